/* compat: all that the probe knows about the inside of an interpreter. No other file knows any of it.
 *
 * Each fact here is checked against the running interpreter before it is relied upon (find.c for the GIL,
 * stacks.c for frames), because a header says what an interpreter looked like when the extension was built,
 * not what it looks like.
 */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- Where the probe can work at all. Elsewhere it is built too, and refuses by name. */

#define FL_PROBE_OLDEST 0x030B0000
#define FL_PROBE_NEWEST 0x030FFFFF
#define FL_PROBE_VERSIONS "3.11 to 3.15"

#if defined(PYPY_VERSION)
#define FL_PROBE_REFUSAL "PyPy has a GIL of another kind, which cannot be observed from outside"
#elif defined(Py_GIL_DISABLED)
#define FL_PROBE_REFUSAL \
    "this is a free-threaded build: it has no GIL to observe; fairlead.sync.waits() tells which threads" \
    " wait for which lock"
#elif PY_VERSION_HEX < FL_PROBE_OLDEST
#define FL_PROBE_REFUSAL                                                                                     \
    "CPython " PY_VERSION " is not one of the versions whose GIL fairlead knows (" FL_PROBE_VERSIONS ")"
#elif PY_VERSION_HEX > FL_PROBE_NEWEST && !defined(FL_PROBE_UNTESTED)
#define FL_PROBE_REFUSAL                                                                                     \
    "CPython " PY_VERSION " is later than the versions whose GIL fairlead knows (" FL_PROBE_VERSIONS   \
    "); to try it all the same, install with --config-settings=setup-args=-Duntested_interpreter=true"
#elif !defined(__linux__)
#define FL_PROBE_REFUSAL "the GIL can be observed on Linux only, so far"
#elif !defined(__GLIBC__)
#define FL_PROBE_REFUSAL                                                                                     \
    "the GIL can be observed with the GNU C library only, and this is another one (musl?)"
#elif !(defined(__x86_64__) && defined(__LP64__)) && !defined(__aarch64__)
#define FL_PROBE_REFUSAL "the GIL can be observed on x86-64 and AArch64 only, so far"
#endif

/* ---- The GIL: struct _gil_runtime_state, alike in all of these versions (Include/internal/pycore_gil.h). */

typedef struct {
    unsigned long interval; /* microseconds */
    void *last_holder;      /* the PyThreadState that has it, or had it last */
    int locked;
    unsigned long switch_number;
    pthread_cond_t cond;
    pthread_mutex_t mutex;
    pthread_cond_t switch_cond;
    pthread_mutex_t switch_mutex;
} fl_py_gil;

#define FL_GIL_OF(member, address) ((fl_py_gil *)((char *)(uintptr_t)(address) - offsetof(fl_py_gil, member)))

/* From 3.12 on an interpreter may have a GIL of its own, which lies inside its PyInterpreterState. */
#define FL_GIL_PER_INTERPRETER (PY_VERSION_HEX >= 0x030C0000)

#ifndef PYPY_VERSION /* nothing of it is used there */

/* ---- Frames: struct _PyInterpreterFrame, its first members (pycore_frame.h, later
 * pycore_interpframe_structs.h). */

#if PY_VERSION_HEX < 0x030C0000
typedef struct fl_py_frame {
    void *unused_1[4];
    PyObject *executable;
    void *unused_2;
    struct fl_py_frame *previous;
    void *instruction;
    int stacktop;
    _Bool is_entry;
    char owner;
} fl_py_frame;
#elif PY_VERSION_HEX < 0x030D0000
typedef struct fl_py_frame {
    PyObject *executable;
    struct fl_py_frame *previous;
    void *unused[5];
    void *instruction;
    int stacktop;
    uint16_t return_offset;
    char owner;
} fl_py_frame;
#else
typedef struct fl_py_frame {
    PyObject *executable; /* from 3.14 on with tag bits */
    struct fl_py_frame *previous;
    void *unused[5];
    void *instruction;
#if PY_VERSION_HEX < 0x030E0000
    int stacktop;
#else
    void *stackpointer;
#endif
    uint16_t return_offset;
    char owner;
} fl_py_frame;
#endif

/* Offset of the instruction that the frame stands at, in bytes, as PyCode_Addr2Line wants it; negative before
   the first. */
static inline int fl_frame_offset(const fl_py_frame *frame, PyCodeObject *code)
{
    return (int)((char *)frame->instruction - (char *)code->co_code_adaptive);
}

#define FL_FRAME_OWNER_GENERATOR 1
/* Owned by the interpreter or by the C stack: no frame of Python code. */
#define FL_FRAME_OWNER_NOT_PYTHON 3

static inline PyObject *fl_frame_executable(const fl_py_frame *frame)
{
    return (PyObject *)((uintptr_t)frame->executable & ~(uintptr_t)3);
}

/* The code that a frame of Python code is at; NULL: it is no such frame, or does not show in tracebacks. Of
   the latter kind are those that have not got as far as the start of their function, and from 3.13 on one
   that the interpreter puts below an __init__ it has learned to call without the detour through type(). */
static inline PyCodeObject *fl_frame_code(const fl_py_frame *frame)
{
    PyObject *executable = fl_frame_executable(frame);
    if (frame->owner >= FL_FRAME_OWNER_NOT_PYTHON || executable == NULL || !PyCode_Check(executable)) {
        return NULL;
    }
    PyCodeObject *code = (PyCodeObject *)executable;
    bool shows = frame->owner == FL_FRAME_OWNER_GENERATOR
                 || fl_frame_offset(frame, code) >= code->_co_firsttraceable * (int)sizeof(uint16_t);
    return shows ? code : NULL;
}

/* Where a thread state has its interpreter. */
#define FL_INTERPRETER_OFFSET offsetof(PyThreadState, interp)

/* Where a thread state has its innermost frame or, before 3.13, the structure that has it. */
#if PY_VERSION_HEX < 0x030D0000
#define FL_TOP_OFFSET offsetof(PyThreadState, cframe)
#define FL_TOP_OFFSET_WITHIN offsetof(_PyCFrame, current_frame)
#else
#define FL_TOP_OFFSET offsetof(PyThreadState, current_frame)
#endif

static inline fl_py_frame *fl_frame_top(PyThreadState *tstate)
{
#if PY_VERSION_HEX < 0x030D0000
    return tstate->cframe ? (fl_py_frame *)tstate->cframe->current_frame : NULL;
#else
    return (fl_py_frame *)tstate->current_frame;
#endif
}

/* Before 3.13 a frame that has called a function of Python's stands so many units behind the call. */
#if PY_VERSION_HEX < 0x030C0000
#define FL_UNITS_FROM_CALL 4
#define FL_BEHIND_CALL(opcode) 0 /* no instruction, but the end of what belongs to the call */
#elif PY_VERSION_HEX < 0x030D0000
#define FL_UNITS_FROM_CALL 3
#define FL_BEHIND_CALL(opcode) 0
#else
#define FL_UNITS_FROM_CALL 0
#define FL_BEHIND_CALL(opcode) (opcode)
#endif

/* An instruction that calls nothing, and so runs for long only if it destroys objects: what a store
   replaces, or the locals of a function that returns. */
bool fl_opcode_destroys(unsigned char opcode);

/* A call that is known to be of a function of Python's: where its caller is the innermost frame, that
   function has returned, and its locals are destroyed. */
bool fl_opcode_calls_python(unsigned char opcode);

/* ---- What a thread state counts: each step of a task, and each switch of a greenlet, enters a context of
 * its own. Its number is unique in its interpreter. */

typedef struct {
    uint64_t contexts, thread_state;
    PyInterpreterState *interpreter;
} fl_py_turn;

static inline fl_py_turn fl_py_turn_here(void)
{
    const PyThreadState *here = PyThreadState_Get();
    return (fl_py_turn){here->context_ver, here->id, here->interp};
}

/* Whether this thread runs the same task, or greenlet, as it did then. */
static inline bool fl_py_turn_lasts(const fl_py_turn *turn)
{
    fl_py_turn now = fl_py_turn_here();
    return turn->contexts == now.contexts && turn->thread_state == now.thread_state &&
           turn->interpreter == now.interpreter;
}

#endif

/* ---- Whether thread states may have been freed under the feet of their threads. */

static inline int fl_finalizing(void)
{
#if PY_VERSION_HEX < 0x030D0000
    return _Py_IsFinalizing();
#else
    return Py_IsFinalizing();
#endif
}

/* Whether an exception was sent to the calling thread that has not arrived. PyPy does not say. */
static inline bool fl_exception_pending(void)
{
#ifdef PYPY_VERSION
    return true;
#else
    return PyThreadState_Get()->async_exc != NULL;
#endif
}

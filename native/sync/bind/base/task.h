/* task: which task or greenlet runs in this thread, and whether one has ended: the identity of a holder. */
#pragma once

#include "gil/interpreter/compat.h"
#include "machine/fork.h"
#include "machine/thread.h"
#include "sync/bind/base/wrapper.h"
#include "sync/wait/thread_table.h"

/* The task that runs in this thread, as its library knows it: a new reference. NULL: none does, or an
   exception is set. */
PyObject *fl_task_here(fl_state *state);

/* The loop that asyncio runs in this thread, a new reference; NULL: none, or an exception is set. */
PyObject *fl_running_loop(fl_state *state);
/* The task of this loop that runs in this thread, the same way. */
PyObject *fl_asyncio_task(fl_state *state, PyObject *loop);

/* Whether this loop of asyncio's runs a task in this thread; with an exception, which may be set, no. Once it
   was asked it is known as long as that step of the task runs (fl_runs_task_still): up to 3.11 asking for the
   loop is a system call. */
bool fl_runs_task_of(fl_state *state, const PyObject *loop);
bool fl_runs_task_still(const PyObject *loop);

/* Before a thread waits: -1 with a DeadlockError, if a task runs in it, unless blocking is allowed there. */
int fl_refuse_to_block(fl_state *state);

/* Whether this task or greenlet has ended; where that is not known, no. -1: an exception. Any thread. */
int fl_task_ended(fl_state *state, PyObject *task);

/* fl_owner_task(), and while deadlocks are looked for which task it is. */
extern fl_atomic(uint32_t) fl_naming_tasks;
uint64_t fl_owner_named_slow(fl_state *state);
static inline uint64_t fl_owner_named(fl_state *state)
{
    /* only whether it is worth to ask */
    return __builtin_expect(fl_load(&fl_naming_tasks, relaxed) != 0, false) ? fl_owner_named_slow(state)
                                                                           : fl_owner_task();
}

/* The caller: a thread, or a task or greenlet that runs in it. `task` is a new reference or NULL. */
typedef struct {
    uint64_t thread;
    PyObject *task;
} fl_caller;

/* The last caller of this thread, and since when; its task is borrowed, and is there as long as it runs.
   Another interpreter may be where one was that is gone. In a forked child no task of the parent runs. */
typedef struct {
#ifndef PYPY_VERSION /* whose thread states do not count: there it is asked each time */
    fl_py_turn turn;
#endif
    uint32_t interpreters, generation;
    fl_caller who;
} fl_caller_memory;
extern _Thread_local fl_caller_memory fl_caller_last FL_THREAD_LOCAL_MODEL;

/* How many interpreters have had this module. */
extern fl_atomic(uint32_t) fl_caller_interpreters;

/* Asks, and remembers the answer. */
int fl_caller_ask(fl_state *state, fl_caller *me);

/* Of a primitive that tells its holders apart. -1: an exception. */
static inline int fl_caller_here(PyObject *wrapper, fl_caller *me)
{
#ifndef PYPY_VERSION
    const fl_caller_memory *last = &fl_caller_last;
    if (__builtin_expect(fl_py_turn_lasts(&last->turn) && last->generation == fl_fork_generation &&
                             last->interpreters == fl_load(&fl_caller_interpreters, relaxed), /* its own */
                         true)) {
        me->thread = last->who.thread;
        me->task = Py_XNewRef(last->who.task);
        return 0;
    }
#endif
    return fl_caller_ask(fl_wrapper_state(wrapper), me);
}

static inline uint64_t fl_caller_owner(const fl_caller *me)
{
    return me->task == NULL ? me->thread : me->thread | FL_OWNER_TASK;
}

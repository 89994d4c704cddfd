/* What the native code uses of Python's modules: found once, and kept in the module's state.
 *
 * Nothing is imported where it is used. An import looks into sys.modules, and without a GIL it takes that
 * dictionary's lock: a daemon thread may be handed the lock when the interpreter exits, which lets the thread
 * run no more, and the exit then waits for the lock for ever.
 */
#pragma once

#include "sync/bind/base/state.h"

/* The classes of fairlead.errors that are raised here. */
#define FL_ERRORS(X)                                                                                       \
    X(AlreadyHeldError)                                                                                    \
    X(BrokenBarrierError)                                                                                  \
    X(BrokenLockError)                                                                                     \
    X(ChannelClosedError)                                                                                  \
    X(DeadlockError)                                                                                       \
    X(EndClosedError)                                                                                      \
    X(HandleGoneError)                                                                                     \
    X(LaggedError)                                                                                         \
    X(LoopClosedError)                                                                                     \
    X(NotHeldError)                                                                                        \
    X(OwnerDeathWarning)                                                                                   \
    X(OwnerDiedError)                                                                                      \
    X(QueueEmpty)                                                                                          \
    X(QueueFull)                                                                                           \
    X(QueueShutDown)                                                                                       \
    X(SerializationError)                                                                                  \
    X(TooManyReleasesError)                                                                                \
    X(UsageError)                                                                                          \
    X(WrongSegmentError)

#define FL_ERROR(name) FL_ERROR_##name,
typedef enum { FL_ERRORS(FL_ERROR) } fl_error;
#undef FL_ERROR

/* What this module of Python has under a name, borrowed, kept in this place of the state; NULL with an
   exception. */
PyObject *fl_imported(PyObject **place, const char *module, const char *name);

/* Likewise of the adapter of a library. 1: *found is that; 0: the program has not imported the library; -1:
   an exception. */
int fl_of_adapter(fl_state *state, PyObject **place, PyObject *library, const char *adapter,
                  const char *name, PyObject **found);

/* What this module of asyncio has under a name, likewise; NULL: not there, or an exception is set. */
PyObject *fl_of_asyncio(fl_state *state, PyObject **place, PyObject *module_name, const char *name);

/* The errors in a tuple, borrowed; NULL with an exception. Each primitive asks for them when it is made, so
   that they are there when it raises one. */
PyObject *fl_errors(fl_state *state);

/* Raises this error with these arguments, a tuple as Py_BuildValue makes it, and returns NULL. */
void *fl_raise_with(fl_state *state, fl_error error, const char *format, ...);
#define fl_raise(state, name, message) fl_raise_with(state, FL_ERROR_##name, "(s)", message)

/* arguments: what the methods of primitives are called with. */
#pragma once

#include "sync/bind/base/state.h"
#include "sync/wait/waitq.h"

/* The arguments of a vectorcall by position or name; -1 with an exception set. `names` ends with NULL; the
   first one must be given if it begins with ! */
int fl_arguments(const char *function, const char *const *names, PyObject *const *args, Py_ssize_t count,
                 PyObject *kwnames, PyObject **values);

/* shutdown(immediate=False): 0 or 1; -1 with an exception. */
static inline int fl_shutdown_arguments(PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    static const char *const names[] = {"immediate", NULL};
    PyObject *value;
    if (fl_arguments("shutdown", names, args, count, kwnames, &value) < 0) {
        return -1;
    }
    return value == NULL ? 0 : PyObject_IsTrue(value);
}

/* A whole number from `least`, which is not negative, to `most`; -1 with an exception set, whose message
   begins with the argument's name and goes on with `limit`. */
int64_t fl_whole(const char *name, PyObject *number, int64_t least, int64_t most, const char *limit);

/* How many permits: likewise, from 1 to the wait queue's limit; NULL for 1. */
int64_t fl_permits_parse(const fl_waitq *waitq, PyObject *number, const char *limit);
/* Likewise, of a method whose one argument is n=1. */
int64_t fl_permits_argument(const char *method, const fl_waitq *waitq, PyObject *const *args,
                            Py_ssize_t count, PyObject *kwnames, const char *limit);

/* The deadline that a lock's arguments (blocking=True, timeout=None) mean, where a time-out of -1 is for
   ever; -1 with an exception set. */
int fl_acquire_parse(const char *function, PyObject *const *args, Py_ssize_t count, PyObject *kwnames,
                     int64_t *deadline);
static inline int fl_acquire_arguments(const char *function, PyObject *const *args, Py_ssize_t count,
                                       PyObject *kwnames, int64_t *deadline)
{
    *deadline = FL_FOREVER;
    return count == 0 && kwnames == NULL ? 0 : fl_acquire_parse(function, args, count, kwnames, deadline);
}

/* The deadline that the argument (timeout=None) means; -1 with an exception set. */
int fl_timeout_argument(const char *function, PyObject *const *args, Py_ssize_t count, PyObject *kwnames,
                        int64_t *deadline);

/* The deadline that `blocking` and `timeout` (either may be NULL) mean, as in threading: 0 for "do not wait",
   which a negative time-out is, too; None is for ever. -1 with an exception set: nan, too large, or a
   time-out for a call that does not block. */
int fl_deadline_parse(PyObject *blocking, PyObject *timeout, int64_t *deadline);
/* The same in nanoseconds from now on, or FL_FOREVER. */
int fl_wait_parse(PyObject *blocking, PyObject *timeout, int64_t *wait);

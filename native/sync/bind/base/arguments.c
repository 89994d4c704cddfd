/* What the methods of primitives are called with. */
#include "sync/bind/base/arguments.h"

#include <math.h>

#include "machine/clock.h"

/* threading.TIMEOUT_MAX: what fits a signed 64-bit number of nanoseconds. */
#define LONGEST_SECONDS 9223372036.0

/* As a truth value that is a number, of which True is one. */
static bool is_zero_or_one(PyObject *number)
{
    int overflow;
    long value = PyLong_AsLongAndOverflow(number, &overflow);
    return !overflow && (value == 0 || value == 1);
}

/* `lock`: -1 is for ever, as of threading's Lock and RLock. *wait is in nanoseconds, or FL_FOREVER. */
static int parse_wait(PyObject *blocking, PyObject *timeout, bool lock, int64_t *wait)
{
    int block = blocking == NULL ? 1 : PyObject_IsTrue(blocking);
    if (block < 0) {
        return -1;
    }
    if (blocking != NULL && PyLong_CheckExact(blocking) && !is_zero_or_one(blocking)) {
        PyErr_Format(PyExc_TypeError,
                     "whether to block is True or False, not %R; of n permits give the name: acquire(n=%R)",
                     blocking, blocking);
        return -1;
    }
    double seconds = -1;
    if (timeout != NULL && timeout != Py_None) {
        seconds = PyFloat_AsDouble(timeout); /* once: an object may say another number each time */
        if (seconds == -1 && PyErr_Occurred()) {
            return -1;
        }
        if (isnan(seconds)) {
            PyErr_SetString(PyExc_ValueError, "timeout value must be a number of seconds, or None");
            return -1;
        }
        if (seconds > LONGEST_SECONDS) {
            PyErr_SetString(PyExc_OverflowError, "timeout value is too large, use None to wait for ever");
            return -1;
        }
        if (lock && seconds == -1) {
            timeout = NULL;
        } else if (!block) {
            PyErr_SetString(PyExc_ValueError, "can't specify a timeout for a non-blocking call");
            return -1;
        }
    }
    bool endless = timeout == NULL || timeout == Py_None;
    *wait = !block ? 0 : endless ? FL_FOREVER : seconds <= 0 ? 0 : (int64_t)ceil(seconds * 1e9);
    return 0;
}

int fl_wait_parse(PyObject *blocking, PyObject *timeout, int64_t *wait)
{
    return parse_wait(blocking, timeout, false, wait);
}

static int64_t deadline_of(int64_t wait)
{
    int64_t now = wait == 0 || wait == FL_FOREVER ? 0 : fl_clock_now();
    return wait == FL_FOREVER ? wait : wait < FL_FOREVER - 1 - now ? now + wait : FL_FOREVER - 1;
}

int fl_deadline_parse(PyObject *blocking, PyObject *timeout, int64_t *deadline)
{
    int64_t wait = 0;
    int parsed = parse_wait(blocking, timeout, false, &wait);
    *deadline = deadline_of(wait);
    return parsed;
}

static bool is_named(PyObject *name, const char *parameter)
{
    return PyUnicode_CompareWithASCIIString(name, parameter + (parameter[0] == '!')) == 0;
}

int fl_arguments(const char *function, const char *const *names, PyObject *const *args, Py_ssize_t count,
                 PyObject *kwnames, PyObject **values)
{
    Py_ssize_t most = 0;
    for (; names[most] != NULL; most++) {
        values[most] = most < count ? args[most] : NULL;
    }
    if (count > most) {
        PyErr_Format(PyExc_TypeError, "%s() takes at most %zd arguments (%zd given)", function, most, count);
        return -1;
    }
    for (Py_ssize_t i = 0; kwnames != NULL && i < PyTuple_GET_SIZE(kwnames); i++) {
        PyObject *name = PyTuple_GET_ITEM(kwnames, i);
        Py_ssize_t at = 0;
        while (names[at] != NULL && !is_named(name, names[at])) {
            at++;
        }
        if (names[at] == NULL || values[at] != NULL) {
            PyErr_Format(PyExc_TypeError, "%s() got an unexpected or repeated argument '%U'", function, name);
            return -1;
        }
        values[at] = args[count + i];
    }
    if (names[0][0] == '!' && values[0] == NULL) {
        PyErr_Format(PyExc_TypeError, "%s() missing required argument '%s'", function, names[0] + 1);
        return -1;
    }
    return 0;
}

int fl_acquire_parse(const char *function, PyObject *const *args, Py_ssize_t count, PyObject *kwnames,
                     int64_t *deadline)
{
    static const char *const names[] = {"blocking", "timeout", NULL};
    PyObject *values[2];
    if (fl_arguments(function, names, args, count, kwnames, values) < 0) {
        return -1;
    }
    int64_t wait = 0;
    int parsed = parse_wait(values[0], values[1], true, &wait);
    *deadline = deadline_of(wait);
    return parsed;
}

int fl_timeout_argument(const char *function, PyObject *const *args, Py_ssize_t count, PyObject *kwnames,
                        int64_t *deadline)
{
    static const char *const names[] = {"timeout", NULL};
    PyObject *timeout;
    if (fl_arguments(function, names, args, count, kwnames, &timeout) < 0) {
        return -1;
    }
    return fl_deadline_parse(NULL, timeout, deadline);
}

int64_t fl_whole(const char *name, PyObject *number, int64_t least, int64_t most, const char *limit)
{
    long long value = PyLong_AsLongLong(number);
    if (value == -1 && PyErr_Occurred()) {
        return -1;
    }
    if (value < least || value > most) {
        PyErr_Format(PyExc_ValueError, "%s must be %lld or more, and at most %lld%s", name, (long long)least,
                     (long long)most, limit);
        return -1;
    }
    return value;
}

int64_t fl_permits_parse(const fl_waitq *waitq, PyObject *number, const char *limit)
{
    return number == NULL ? 1 : fl_whole("n", number, 1, waitq->limit, limit);
}

int64_t fl_permits_argument(const char *method, const fl_waitq *waitq, PyObject *const *args,
                            Py_ssize_t count, PyObject *kwnames, const char *limit)
{
    static const char *const names[] = {"n", NULL};
    PyObject *value = NULL;
    if ((count > 0 || kwnames != NULL) && fl_arguments(method, names, args, count, kwnames, &value) < 0) {
        return -1;
    }
    return fl_permits_parse(waitq, value, limit);
}

/* See lost.h. */
#include "sync/bind/locks/lost.h"

struct fl_lost {
    struct fl_lost *next;
    uint64_t thread;
    uint32_t times;
};

static struct fl_lost *first(PyObject *lock)
{
    return fl_load(&((fl_wrapper *)lock)->lost, relaxed); /* within the lock's critical section */
}

static void set_first(PyObject *lock, struct fl_lost *lost)
{
    fl_store(&((fl_wrapper *)lock)->lost, lost, relaxed); /* the same */
}

void fl_lost_note(PyObject *lock, uint32_t times)
{
    struct fl_lost *lost = PyMem_RawMalloc(sizeof *lost);
    if (lost != NULL) { /* else what is around the wait raises, or releases another's lock */
        FL_BEGIN_CRITICAL(lock);
        *lost = (struct fl_lost){first(lock), fl_owner_thread(), times};
        set_first(lock, lost);
        FL_END_CRITICAL();
    }
}

/* Takes off one time of this thread's latest note, or the whole note. False: it has none. */
static bool take_off(PyObject *lock, bool whole)
{
    bool found = false;
    FL_BEGIN_CRITICAL(lock);
    struct fl_lost *before = NULL, *lost = first(lock);
    while (lost != NULL && lost->thread != fl_owner_thread()) {
        before = lost;
        lost = lost->next;
    }
    found = lost != NULL;
    if (found && (whole || --lost->times == 0)) {
        if (before == NULL) {
            set_first(lock, lost->next);
        } else {
            before->next = lost->next;
        }
        PyMem_RawFree(lost);
    }
    FL_END_CRITICAL();
    return found;
}

bool fl_lost_take_slow(PyObject *lock)
{
    PyObject *type, *value, *traceback;
    PyErr_GetExcInfo(&type, &value, &traceback);
    PyObject *errors = value == NULL ? NULL : fl_errors(fl_wrapper_state(lock));
    bool closes = errors != NULL &&
                  (PyErr_GivenExceptionMatches(value, PyExc_GeneratorExit) ||
                   PyErr_GivenExceptionMatches(value, PyTuple_GET_ITEM(errors, FL_ERROR_LoopClosedError)));
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
    return take_off(lock, !closes) && closes;
}

void fl_lost_clear_slow(PyObject *lock)
{
    while (take_off(lock, true)) {
    }
}

void fl_lock_dealloc(PyObject *lock)
{
    for (struct fl_lost *next, *lost = first(lock); lost != NULL; lost = next) {
        next = lost->next;
        PyMem_RawFree(lost);
    }
    fl_wrapper_dealloc(lock);
}

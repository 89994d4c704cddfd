/* c_api: what Python's C API lacks, or has in some versions only. */
#pragma once

#define PY_SSIZE_T_CLEAN /* "#" in formats is a Py_ssize_t; needed to 3.12 */
#include <Python.h>

#include <stdbool.h>
#include <structmember.h>

#ifdef PYPY_VERSION /* which has one interpreter, and no calls for this in its C API */
#define PyInterpreterState_Get() PyThreadState_GetInterpreter(PyThreadState_Get())
#define PyInterpreterState_Main() PyInterpreterState_Get()
#undef PyErr_CheckSignals
#define PyErr_CheckSignals() fl_run_handlers() /* PyPy's own does nothing */
int fl_run_handlers(void);
#undef PyIter_Send
#define PyIter_Send fl_iterator_send
PySendResult fl_iterator_send(PyObject *iterator, PyObject *value, PyObject **result);
#endif

#if PY_VERSION_HEX >= 0x030D0000
#define FL_BEGIN_CRITICAL(object) \
    (void)(object); /* all that is left of it where there is a GIL */ \
    Py_BEGIN_CRITICAL_SECTION(object)
#define FL_END_CRITICAL() Py_END_CRITICAL_SECTION()
#else
#define FL_BEGIN_CRITICAL(object) \
    (void)(object); \
    {
#define FL_END_CRITICAL() }
#endif

/* __copy__ and __deepcopy__ of every type: a TypeError. */
PyObject *fl_refuse_copy(PyObject *self, PyObject *ignored);

/* A frozen record of `count` whole numbers; bit i of `booleans` says that field i is a truth value. */
PyObject *fl_record(PyTypeObject *type, const long *values, int count, int booleans);

/* The value of a key, a new reference: without a GIL another thread may delete the key meanwhile. NULL: not
   there, or an exception is set. */
PyObject *fl_dict_get(PyObject *dict, PyObject *key);

/* Puts this, whose reference it steals, at the end of the list, and returns the list; NULL with an exception
   where either is NULL or it cannot be, and the list is gone. */
PyObject *fl_appended(PyObject *list, PyObject *one);

/* What a method returns: a truth value, or None; of -1 NULL, with the exception that is set. */
static inline PyObject *fl_truth(int value)
{
    return value < 0 ? NULL : PyBool_FromLong(value);
}
static inline PyObject *fl_none(int outcome)
{
    return outcome < 0 ? NULL : Py_NewRef(Py_None);
}

/* The exception that is set, with its traceback, which is set no more; and raises it again, whose reference
   it steals. */
PyObject *fl_caught(void);
void fl_raise_again(PyObject *error);

/* Takes back what was sent to this thread by PyThreadState_SetAsyncExc and has not arrived: whether there was
   anything. */
bool fl_recall_exception(void);

/* With an exception set where none can be raised, as that of a signal handler in what the mailbox calls of
   the loop: it is raised at this thread's next instruction of Python. Where handlers do not run it is an
   error of the loop's side, and unraisable. */
void fl_raise_later(PyObject *where);

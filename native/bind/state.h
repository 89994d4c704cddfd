/* What the files of this directory share: the module's state and one exec function per concern. */
#ifndef FL_BIND_STATE_H
#define FL_BIND_STATE_H

#include <Python.h>

/* Per interpreter. Written by the exec functions only, so that threads may read it without a lock. */
typedef struct {
    PyTypeObject *cores_type;
    PyTypeObject *usage_type;
} fl_state;

static inline fl_state *fl_state_of(PyObject *module)
{
    return (fl_state *)PyModule_GetState(module);
}

/* Each adds one concern's functions and types to the module; -1 with an exception set on failure. */
int fl_clock_exec(PyObject *module);
int fl_cores_exec(PyObject *module);
int fl_simulate_exec(PyObject *module);
int fl_usage_exec(PyObject *module);

#endif

/* module: what the files of the extension fairlead._probe have in common. */
#pragma once

#include "gil/interpreter/compat.h"
#include "gil/observe/snapshot.h"

/* Lets in one thread at a time: several interpreters may call at once, each with its own GIL. The thread
   inside may release its GIL, so a thread that waits to enter releases its own meanwhile. */
void fl_module_enter(void);
void fl_module_leave(void);

/* Makes the probe ready; call it, entered, before any other part of the probe. NULL, or why the probe
   cannot be used. */
const char *fl_module_prepare(void);

/* The counts at the moment when a window was opened; NULL, with an exception: it is not open. Call it
   entered. */
const fl_snapshot *fl_module_window(long window);

/* Raises an error of fairlead.errors. */
PyObject *fl_module_fail(const char *error, const char *text);

PyObject *fl_module_number(uint64_t value);

/* Adds a new object, which may be NULL, to a dict. -1: exception. */
int fl_module_add(PyObject *dict, const char *name, PyObject *value);

/* The functions of each file. */
extern PyMethodDef fl_module_loops[], fl_module_reading[], fl_module_recording[],
    fl_module_scheduling[], fl_module_serving[];

/* What all queues share: the arguments of their calls. */
#pragma once

#include "sync/bind/base/state.h"

/* As fl_deadline_parse, by the rules of the module queue: a time-out means nothing to a call that does not
   block, and a negative one is an error. Either may be NULL. */
int fl_queue_deadline(PyObject *block, PyObject *timeout, int64_t *deadline);

/* The deadline that the arguments block=True, timeout=None of this method mean; -1 with an exception set. */
int fl_queue_arguments(const char *function, PyObject *const *args, Py_ssize_t count, PyObject *kwnames,
                       int64_t *deadline);

/* A Rendezvous closes; immediate: what came back is dropped. */
void fl_rendezvous_shutdown(PyObject *rendezvous, bool immediate);

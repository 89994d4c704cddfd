/* What the two sides of a job queue have in common: calls and replies cross as messages (codec.h). */
#ifndef FL_INTERPRETERS_BIND_JOB_QUEUE_H
#define FL_INTERPRETERS_BIND_JOB_QUEUE_H

#include "interpreters/bind/codec.h"
#include "sync/bind/base/wait.h"

#include "interpreters/job_queue.h"

/* What completions are; the kinds between are the worker's (pools/interpreter/worker.py). */
#define FL_COMPLETIONS_BEGUN 0
#define FL_COMPLETIONS_UNREADABLE 255

/* Waits for a permit, as fl_wait_thread. Waits of this kind are never of a greenlet's alone. `look`: of the
   job queue, for who is likely to be given one soon; NULL: sleep at once. */
int fl_wait_permit(PyObject *what, fl_waitq *waitq, fl_spin *spin, int64_t deadline);

#endif

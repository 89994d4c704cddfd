/* What the two sides of a job queue have in common: calls and replies cross as messages (codec.h). */
#pragma once

#include "interpreters/bind/codec.h"

#include "interpreters/job_queue.h"

/* Kinds of completions; those between the last two are defined by pools/interpreter/worker.py. */
#define FL_COMPLETIONS_BEGUN 0
#define FL_COMPLETIONS_REFUSED 1 /* a reply: the call could not be read */
#define FL_COMPLETIONS_UNREADABLE 255

/* Waits for a permit, as fl_wait_thread. It always blocks the whole thread, never a greenlet alone. `spin`:
   the job queue's, for a thread that is likely to get a permit soon; NULL: sleep at once. */
int fl_wait_permit(PyObject *what, fl_waitq *waitq, fl_spin *spin, int64_t deadline);

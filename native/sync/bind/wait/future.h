/* future: what a task awaits, of whichever library its loop is. */
#pragma once

#include "sync/bind/base/state.h"

/* 1: it was done before; 0: it is done now; -1: an exception, perhaps of a signal handler. */
int fl_future_complete(fl_state *state, PyObject *future);

/* With that exception set, which must not cost the task its wake-up: completes it, and raises that later. */
void fl_future_complete_again(fl_state *state, PyObject *future);

/* With that exception set: whether the loop is closed, which refuses to schedule its tasks. */
bool fl_future_refused(void);

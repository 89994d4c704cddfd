/* How the C tests wait: as a thread of Python does, without signal handlers. */
#pragma once

#include "sync/wait/thread_table.h"

/* Of a waiter that has entered. */
static inline fl_wait_result wait_entered(fl_waiter *waiter, int64_t deadline)
{
    fl_wait_result result;
    do {
        result = fl_waitq_wait(waiter, deadline, FL_FOREVER);
    } while (result == FL_WAIT_INTERRUPTED);
    return result;
}

static inline fl_wait_result wait_at(fl_waitq *waitq, uint32_t wanted, fl_stake stake, int64_t deadline)
{
    fl_waiter *waiter = fl_thread_waiter(waitq, wanted, stake);
    fl_wait_result result = fl_waitq_enter(waiter) ? FL_WAIT_GRANTED : wait_entered(waiter, deadline);
    fl_thread_waiter_done(waiter);
    return result;
}

/* permit: how a thread with an interpreter waits for a permit of a job queue. */
#include "interpreters/bind/job_queue.h"
#include "sync/bind/wait/blocking.h"

#include "machine/clock.h"

#define SPINS_AT_ONCE 32 /* at the wait queue, for one at the clock */

/* Detached. Whether there was something by that time. */
static bool spin_for_permit(fl_waitq *waitq, int64_t until)
{
    do {
        for (int i = 0; i < SPINS_AT_ONCE; i++) {
            uint64_t word = fl_load(&waitq->word, relaxed); /* the acquire that follows orders it */
            if ((uint32_t)word > 0 || word & FL_SEM_CLOSED) {
                return true;
            }
            fl_pause();
        }
    } while (fl_clock_now() < until);
    return false;
}

int fl_wait_permit(PyObject *what, fl_waitq *waitq, fl_spin *spin, int64_t deadline)
{
    if (fl_sem_try(waitq, 1, 0)) {
        return 1;
    }
    if (deadline == 0) {
        return 0;
    }
    uint32_t ns = spin == NULL ? 0 : fl_spin_begin(spin);
    if (ns > 0) {
        int64_t until = fl_clock_now() + ns;
        bool found;
        Py_BEGIN_ALLOW_THREADS
        found = spin_for_permit(waitq, until < deadline ? until : deadline);
        Py_END_ALLOW_THREADS
        fl_spin_end(spin, ns, found);
        if (fl_sem_try(waitq, 1, 0)) {
            return 1;
        }
    }
    return fl_wait_thread(what, waitq, 1, (fl_stake){0}, deadline);
}

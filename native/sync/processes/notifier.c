/* See notifier.h. */
#include "sync/processes/notifier.h"

#include "machine/clock.h"
#include "machine/thread.h"
#include "sync/locks/semaphore.h"

/* The mutex; the caller has the owner, too, so that `gone` is not the last to. */
static void begin(fl_notifier *notifier)
{
    fl_fork_unlock(&notifier->generation, &notifier->lock);
    fl_mutex_lock(&notifier->lock);
    if (notifier->forks != fl_fork_generation) {
        notifier->forks = fl_fork_generation;
        notifier->armed = false;
        if (notifier->runs) { /* in the parent: threads do not come along */
            notifier->runs = false;
            fl_waitq_unref(notifier->wakeup);
            notifier->gone(notifier->owner);
        }
    }
}

static void idle(fl_notifier *notifier)
{
    uint32_t work = fl_load(&notifier->work, relaxed); /* changed under the mutex */
    fl_mutex_unlock(&notifier->lock);
    fl_park(&notifier->work, work, FL_FOREVER);
    fl_mutex_lock(&notifier->lock);
}

/* With the mutex, which it leaves meanwhile. */
static void watch(fl_notifier *notifier)
{
    uint32_t seen = notifier->seen;
    int64_t until = fl_clock_now() + ((int64_t)FL_SHM_FIRST_LOOK_NS << notifier->looks);
    fl_mutex_unlock(&notifier->lock);
    fl_park_result result = fl_park_shared(&notifier->eventcount->word, seen, until);
    bool ready = result == FL_PARK_TIMED_OUT && notifier->ready(notifier->owner, notifier->eventcount);
    fl_mutex_lock(&notifier->lock);
    notifier->looks += result == FL_PARK_TIMED_OUT && notifier->looks < FL_SHM_LAST_LOOK;
    bool changed =
        fl_load(&notifier->eventcount->word, seq_cst) != notifier->seen; /* which may be newer by now */
    if (notifier->armed && (result == FL_PARK_WOKEN || ready || changed)) {
        notifier->armed = false;
        fl_sem_give(notifier->wakeup, 1);
    } else if (result == FL_PARK_WOKEN) {
        fl_shm_pass_on(notifier->eventcount);
    }
}

static void *run(void *arg)
{
    fl_notifier *notifier = arg;
    fl_mutex_lock(&notifier->lock);
    while (!notifier->over) {
        if (notifier->armed) {
            watch(notifier);
        } else {
            idle(notifier);
        }
    }
    fl_mutex_unlock(&notifier->lock);
    fl_waitq_unref(notifier->wakeup);
    notifier->gone(notifier->owner);
    return NULL;
}

static void wake(fl_notifier *notifier)
{
    fl_fetch_add(&notifier->work, 1, relaxed); /* under the mutex */
    fl_unpark(&notifier->work);
}

fl_notifier_result fl_notifier_arm(fl_notifier *notifier, fl_shm_eventcount *eventcount, uint32_t seen,
                                   fl_waitq *wakeup)
{
    fl_notifier_result result = FL_NOTIFIER_WAITS;
    begin(notifier);
    notifier->seen = seen;
    notifier->looks = 0;
    notifier->armed = true;
    if (notifier->runs) {
        wake(notifier);
    } else {
        fl_waitq_ref(wakeup);
        notifier->wakeup = wakeup;
        notifier->eventcount = eventcount; /* always the same, and read without the mutex */
        notifier->runs = fl_thread_start(run, notifier);
        if (!notifier->runs) {
            notifier->armed = false;
            fl_waitq_unref(wakeup);
        }
        result = notifier->runs ? FL_NOTIFIER_STARTED : FL_NOTIFIER_FAILED;
    }
    fl_mutex_unlock(&notifier->lock);
    return result;
}

void fl_notifier_disarm(fl_notifier *notifier)
{
    begin(notifier);
    bool rung = !notifier->armed;
    notifier->armed = false;
    fl_shm_eventcount *eventcount = notifier->eventcount;
    fl_mutex_unlock(&notifier->lock);
    if (rung && eventcount != NULL) {
        fl_shm_pass_on(eventcount);
    }
}

void fl_notifier_end(fl_notifier *notifier)
{
    begin(notifier);
    notifier->over = true;
    if (notifier->runs) {
        wake(notifier);
    }
    fl_mutex_unlock(&notifier->lock);
}

/* See herald.h. */
#include "core/herald.h"

#include <pthread.h>
#include <signal.h>

#include "core/clock.h"
#include "core/semaphore.h"

#define STACK 65536

/* The mutex; who calls has the owner, too, so that `gone` is not the last to. */
static void begin(fl_herald *herald)
{
    fl_fork_unlock(&herald->generation, &herald->lock);
    fl_mutex_lock(&herald->lock);
    if (herald->forks != fl_fork_generation) {
        herald->forks = fl_fork_generation;
        herald->armed = false;
        if (herald->runs) { /* in the parent: threads do not come along */
            herald->runs = false;
            fl_cell_unref(herald->bell);
            herald->gone(herald->owner);
        }
    }
}

static void idle(fl_herald *herald)
{
    uint32_t work = fl_load(&herald->work, relaxed); /* changed under the mutex */
    fl_mutex_unlock(&herald->lock);
    fl_park(&herald->work, work, FL_FOREVER);
    fl_mutex_lock(&herald->lock);
}

/* With the mutex, which it leaves meanwhile. */
static void watch(fl_herald *herald)
{
    uint32_t seen = herald->seen;
    int64_t until = fl_clock_now() + ((int64_t)FL_SHM_FIRST_LOOK_NS << herald->looks);
    fl_mutex_unlock(&herald->lock);
    fl_park_result result = fl_park_shared(&herald->turn->word, seen, until);
    bool worth = result == FL_PARK_TIMED_OUT && herald->worth(herald->owner, herald->turn);
    fl_mutex_lock(&herald->lock);
    herald->looks += result == FL_PARK_TIMED_OUT && herald->looks < FL_SHM_LAST_LOOK;
    bool changed = fl_load(&herald->turn->word, seq_cst) != herald->seen; /* which may be newer by now */
    if (herald->armed && (result == FL_PARK_WOKEN || worth || changed)) {
        herald->armed = false;
        fl_sem_give(herald->bell, 1);
    } else if (result == FL_PARK_WOKEN) {
        fl_shm_pass_on(herald->turn);
    }
}

static void *run(void *arg)
{
    fl_herald *herald = arg;
    fl_mutex_lock(&herald->lock);
    while (!herald->over) {
        if (herald->armed) {
            watch(herald);
        } else {
            idle(herald);
        }
    }
    fl_mutex_unlock(&herald->lock);
    fl_cell_unref(herald->bell);
    herald->gone(herald->owner);
    return NULL;
}

/* No signal is for it: a handler of Python's would find no thread of Python's. */
static bool start(fl_herald *herald)
{
    pthread_attr_t attributes;
    pthread_t thread;
    sigset_t all, before;
    sigfillset(&all);
    if (pthread_attr_init(&attributes) != 0) {
        return false;
    }
    pthread_attr_setstacksize(&attributes, STACK);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = pthread_create(&thread, &attributes, run, herald) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return started;
}

static void nudge(fl_herald *herald)
{
    fl_fetch_add(&herald->work, 1, relaxed); /* under the mutex */
    fl_unpark(&herald->work);
}

fl_herald_result fl_herald_arm(fl_herald *herald, fl_shm_turn *turn, uint32_t seen, fl_cell *bell)
{
    fl_herald_result result = FL_HERALD_WAITS;
    begin(herald);
    herald->seen = seen;
    herald->looks = 0;
    herald->armed = true;
    if (herald->runs) {
        nudge(herald);
    } else {
        fl_cell_ref(bell);
        herald->bell = bell;
        herald->turn = turn; /* always the same, and read without the mutex */
        herald->runs = start(herald);
        if (!herald->runs) {
            herald->armed = false;
            fl_cell_unref(bell);
        }
        result = herald->runs ? FL_HERALD_STARTED : FL_HERALD_FAILED;
    }
    fl_mutex_unlock(&herald->lock);
    return result;
}

void fl_herald_disarm(fl_herald *herald)
{
    begin(herald);
    bool rung = !herald->armed;
    herald->armed = false;
    fl_shm_turn *turn = herald->turn;
    fl_mutex_unlock(&herald->lock);
    if (rung && turn != NULL) {
        fl_shm_pass_on(turn);
    }
}

void fl_herald_end(fl_herald *herald)
{
    begin(herald);
    herald->over = true;
    if (herald->runs) {
        nudge(herald);
    }
    fl_mutex_unlock(&herald->lock);
}

/* lost: a lock that a coroutine let go of to wait for a condition, and did not take again, because the
 * coroutine was closed.
 *
 * The code around that wait, an `async with` or a `finally`, is about to release the lock, which is not the
 * coroutine's, and may be another's by now. So the lock notes in which thread that happens, and how often the
 * lock was held. That many releases of this thread release nothing, if they come while GeneratorExit is
 * handled, or LoopClosedError, where the loop is closed under a task. The note goes with the last of them, or
 * when the thread acquires the lock. The note is the lock's, and not the condition's, because a lock may have
 * many conditions.
 */
#pragma once

#include "sync/bind/base/wrapper.h"

void fl_lost_note(PyObject *lock, uint32_t times);

bool fl_lost_take_slow(PyObject *lock);
void fl_lost_clear_slow(PyObject *lock);

static inline bool fl_lost_any(PyObject *lock)
{
    return __builtin_expect(fl_load(&((fl_wrapper *)lock)->lost, relaxed) != NULL, false); /* this thread's */
}

/* By a release: whether it is one of those. */
static inline bool fl_lost_take(PyObject *lock)
{
    return fl_lost_any(lock) && fl_lost_take_slow(lock);
}

/* By an acquisition. */
static inline void fl_lost_clear(PyObject *lock)
{
    if (fl_lost_any(lock)) {
        fl_lost_clear_slow(lock);
    }
}

/* The end of the lock's object, with its notes. */
void fl_lock_dealloc(PyObject *lock);

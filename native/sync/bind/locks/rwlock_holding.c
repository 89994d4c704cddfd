/* See rwlock_holding.h.
 *
 * The wait queue knows how many are inside, `holders` knows which, and how often each has come in. Only the
 * first time of coming in, and the last of leaving, is the wait queue's business; what is between, its
 * holder's own. Invariant: an entry of `holders` says of its holder what the wait queue counts of it,
 * whenever that holder is not inside a function of this file. So coming in again is never kept out by
 * waiters.
 */
#include "sync/bind/locks/rwlock_holding.h"
#include "sync/bind/base/task.h"
#include "sync/bind/wait/blocking.h"
#include "sync/bind/wait/gone.h"
#include "sync/bind/wait/mailbox.h"

/* The most that the holder may do. */
static fl_rw_mode level(const fl_rw_hold *hold)
{
    return hold->writes     ? FL_RW_WRITE
           : hold->upgrades ? FL_RW_UPGRADE
           : hold->reads    ? FL_RW_READ
                            : FL_RW_NONE;
}

static uint32_t *times(fl_rw_hold *hold, uint32_t mode)
{
    return mode == FL_RW_WRITE ? &hold->writes : mode == FL_RW_UPGRADE ? &hold->upgrades : &hold->reads;
}

/* In a forked child only the thread that forked is inside, with its tasks, which will not go on. */
static void recover(fl_rwlock *self)
{
    FL_BEGIN_CRITICAL(self);
    if (fl_load(&self->generation, relaxed) != fl_fork_generation) { /* written under this lock */
        fl_holders before = self->holders;
        self->holders = (fl_holders){0};
        for (uint32_t i = 0; i < before.room; i++) {
            fl_rw_hold *hold = &before.at[i], *kept;
            const fl_caller who = {hold->thread, hold->task};
            /* the references of those that are gone are, too: their tasks are frozen in their loops */
            if (hold->thread == fl_fork_thread && (kept = fl_holders_add(&self->holders, &who)) != NULL) {
                kept->reads = hold->reads;
                kept->upgrades = hold->upgrades;
                kept->writes = hold->writes;
                fl_rw_survive(self->wrapper.waitq, level(kept));
            }
        }
        PyMem_RawFree(before.at);
        fl_store(&self->generation, fl_fork_generation, release); /* pairs with fl_rwlock_begin */
    }
    FL_END_CRITICAL();
}

fl_rwlock *fl_rwlock_begin(PyObject *op)
{
    fl_rwlock *self = (fl_rwlock *)op;
    if (fl_load(&self->generation, acquire) != fl_fork_generation) { /* pairs with recover */
        recover(self);
    }
    return self;
}

fl_rwlock *fl_rwlock_of_view(PyObject *view)
{
    return fl_rwlock_begin(((fl_part *)view)->of);
}

static int refuse_upgrade(fl_rwlock *self)
{
    fl_raise(fl_wrapper_state((PyObject *)self), DeadlockError,
             "the caller holds `reading`, and can acquire neither `writing` nor `upgradable` while it does: "
             "begin with `upgradable`, or release first");
    return -1;
}

/* 1: the caller is inside so that it may just come in again; 0: *wanted is to be had; -1: an exception. */
static int plan(fl_rwlock *self, const fl_caller *me, uint32_t mode, uint32_t *wanted)
{
    int result = 0;
    *wanted = mode;
    FL_BEGIN_CRITICAL(self);
    const fl_rw_hold *hold = fl_holders_find(&self->holders, me);
    fl_rw_mode inside = hold == NULL ? FL_RW_NONE : level(hold);
    if (inside == FL_RW_NONE) {
        result = 0;
    } else if (inside >= mode) {
        result = 1;
    } else if (inside == FL_RW_UPGRADE) {
        *wanted = FL_RW_RAISE;
    } else {
        result = -1;
    }
    FL_END_CRITICAL();
    return result < 0 ? refuse_upgrade(self) : result;
}

/* Lets go of what an entry says more than `to`, and of the entry if that is nothing. */
static void lower(fl_rwlock *self, fl_rw_mode from, fl_rw_mode to)
{
    if (from != to) {
        FL_WAKING(fl_rw_lower(self->wrapper.waitq, from, to));
    }
}

/* The caller has come in once more; by what plan() said, the wait queue knows. -1: an exception, and the wait
   queue's change is undone. */
static int enlist(fl_rwlock *self, const fl_caller *me, uint32_t mode)
{
    fl_rw_mode before = FL_RW_NONE;
    bool done = false;
    FL_BEGIN_CRITICAL(self);
    fl_rw_hold *hold = fl_holders_find(&self->holders, me);
    if (hold != NULL) {
        before = level(hold);
    } else {
        hold = fl_holders_add(&self->holders, me);
    }
    if (hold != NULL && *times(hold, mode) < UINT32_MAX) {
        ++*times(hold, mode);
        done = true;
    }
    FL_END_CRITICAL();
    if (done) {
        return 0;
    }
    if (before < mode) {
        lower(self, (fl_rw_mode)mode, before);
        PyErr_NoMemory();
    } else {
        PyErr_SetString(PyExc_OverflowError, "the lock is held as often as it can count");
    }
    return -1;
}

/* Whether another task of this thread, or the thread beneath this task, is in the way of what is wanted. */
static bool own_thread_is_in_the_way(fl_rwlock *self, const fl_caller *me, uint32_t wanted)
{
    bool barred = fl_rw_word(self->wrapper.waitq) & FL_RW_BARRED;
    uint64_t writer =
        fl_load(&self->wrapper.waitq->owner, relaxed); /* ours by what this thread did, or got */
    bool found = (writer & ~(uint64_t)FL_OWNER_TASK) == me->thread;
    FL_BEGIN_CRITICAL(self);
    const fl_rw_hold *mine = fl_holders_find(&self->holders, me);
    for (uint32_t i = 0; i < self->holders.room; i++) {
        const fl_rw_hold *hold = &self->holders.at[i];
        if (hold->thread == me->thread && hold != mine) {
            fl_rw_mode inside = level(hold);
            found = found || barred || wanted >= FL_RW_WRITE || inside == FL_RW_WRITE ||
                    (wanted == FL_RW_UPGRADE && inside == FL_RW_UPGRADE);
        }
    }
    FL_END_CRITICAL();
    return found;
}

static bool is_inside(fl_rwlock *self, PyObject *task)
{
    bool inside = false;
    FL_BEGIN_CRITICAL(self);
    for (uint32_t i = 0; i < self->holders.room && !inside; i++) {
        inside = self->holders.at[i].task == task;
    }
    FL_END_CRITICAL();
    return inside;
}

/* Whether one of the holders has ended: a fl_gone, or -1 with an exception. */
static int holders_gone(PyObject *op, fl_rwlock *self)
{
    PyObject *tasks[FL_HOLDERS_CHECKED];
    uint32_t seen = 0, count = 0;
    int gone = FL_NONE_GONE;
    FL_BEGIN_CRITICAL(self);
    for (uint32_t i = 0; i < self->holders.room && seen < FL_HOLDERS_CHECKED && gone == FL_NONE_GONE; i++) {
        const fl_rw_hold *hold = &self->holders.at[i];
        seen += hold->thread != 0;
        if (fl_owner_is_gone(hold->thread)) {
            gone = FL_THREAD_GONE;
        } else if (hold->task != NULL) {
            tasks[count++] = Py_NewRef(hold->task);
        }
    }
    FL_END_CRITICAL();
    for (uint32_t i = 0; i < count; i++) {
        if (gone == FL_NONE_GONE) {
            gone = fl_task_ended(fl_wrapper_state(op), tasks[i]);
            if (gone > 0) { /* or it has let go, and ended, since it was seen inside */
                gone = is_inside(self, tasks[i]) ? FL_TASK_GONE : FL_NONE_GONE;
            }
        }
        Py_DECREF(tasks[i]);
    }
    return gone;
}

/* As fl_wait_thread, at once or later. */
static int take(PyObject *op, fl_rwlock *self, const fl_caller *me, uint32_t wanted, int64_t deadline)
{
    if (fl_rw_try(self->wrapper.waitq, wanted, fl_caller_owner(me))) {
        return 1;
    }
    if (deadline == 0) {
        return 0;
    }
    int gone = holders_gone(op, self);
    if (gone < 0 || fl_warn_if_gone(op, gone) < 0) {
        return -1;
    }
    if (deadline == FL_FOREVER && own_thread_is_in_the_way(self, me, wanted)) {
        int others_run = fl_in_greenlet(fl_wrapper_state(op));
        if (others_run <= 0) {
            if (others_run == 0) {
                fl_raise(fl_wrapper_state((PyObject *)self), DeadlockError,
                         "a task of this thread, or the thread beneath this task, is inside this lock and "
                         "cannot leave while this one waits; use `async with`, or a timeout");
            }
            return -1;
        }
    }
    return fl_wait_thread(op, self->wrapper.waitq, wanted, FL_HOLDER(fl_caller_owner(me)), deadline);
}

/* As fl_rwlock_come_in, with *wanted set to what is to be had of the wait queue; the reference to the task is
   stolen. */
static int come_in_as(PyObject *op, fl_caller me, int64_t deadline, uint32_t *wanted)
{
    fl_rwlock *self = fl_rwlock_of_view(op);
    int taken = plan(self, &me, ((fl_rwlock_view *)op)->mode, wanted);
    if (taken == 0) {
        taken = take(op, self, &me, *wanted, deadline);
    }
    if (taken == 1 && enlist(self, &me, ((fl_rwlock_view *)op)->mode) < 0) {
        taken = -1;
    }
    Py_XDECREF(me.task);
    return taken;
}

int fl_rwlock_come_in(PyObject *op, int64_t deadline)
{
    fl_caller me;
    uint32_t wanted;
    return fl_caller_here(op, &me) < 0 ? -1 : come_in_as(op, me, deadline, &wanted);
}

int fl_rwlock_leave(fl_rwlock *self, uint32_t mode, uint32_t instead)
{
    fl_caller me;
    if (fl_caller_here((PyObject *)self, &me) < 0) {
        return -1;
    }
    bool held = false, downgrades = mode == FL_RW_NONE;
    fl_rw_mode from = FL_RW_NONE, to = FL_RW_NONE;
    PyObject *task = NULL;
    FL_BEGIN_CRITICAL(self);
    fl_rw_hold *hold = fl_holders_find(&self->holders, &me);
    from = hold == NULL ? FL_RW_NONE : level(hold);
    mode = downgrades ? from : mode;
    held = from != FL_RW_NONE && *times(hold, mode) > 0 && !(downgrades && mode == FL_RW_READ);
    if (held) {
        --*times(hold, mode);
        if (instead != FL_RW_NONE) {
            ++*times(hold, instead);
        }
        to = level(hold);
        if (to == FL_RW_NONE) {
            task = fl_holders_remove(&self->holders, hold);
        }
    }
    FL_END_CRITICAL();
    if (held) {
        lower(self, from, to);
    } else {
        fl_raise(fl_wrapper_state((PyObject *)self), NotHeldError,
                 downgrades ? "cannot downgrade: hold `writing` or `upgradable` first"
                            : "cannot release what the caller has not acquired; another thread or task may");
    }
    Py_XDECREF(task);
    Py_XDECREF(me.task);
    return held ? 0 : -1;
}

int fl_rwlock_attempt(PyObject *op, PyObject *Py_UNUSED(item), uint32_t *wanted)
{
    fl_caller me;
    if (fl_caller_here(op, &me) < 0) {
        return -1;
    }
    if (me.task == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "a readers-writer lock is held by a task, and none runs here; "
                                            "threads use the call without _async");
        return -1;
    }
    int taken = come_in_as(op, me, 0, wanted);
    if (taken == 1) {
        *wanted = FL_RW_NONE; /* nothing is left for fl_rwlock_finish */
    } else if (taken == 0) {
        int gone = holders_gone(op, fl_rwlock_of_view(op));
        taken = gone < 0 || fl_warn_if_gone(op, gone) < 0 ? -1 : 0;
    }
    return taken;
}

PyObject *fl_rwlock_finish(PyObject *op, fl_end end)
{
    fl_rwlock *self = fl_rwlock_of_view(op);
    fl_caller me;
    if (end.wanted == FL_RW_NONE) {
        Py_RETURN_TRUE; /* it came in at once */
    }
    int failed = fl_caller_here(op, &me);
    if (failed == 0 && me.task != NULL) {
        failed = enlist(self, &me, ((fl_rwlock_view *)op)->mode);
        Py_DECREF(me.task);
        return failed ? NULL : Py_NewRef(Py_True);
    }
    bool raises = end.wanted == FL_RW_RAISE;
    lower(self, raises ? FL_RW_WRITE : (fl_rw_mode)end.wanted, raises ? FL_RW_UPGRADE : FL_RW_NONE);
    if (failed == 0) {
        PyErr_SetString(PyExc_RuntimeError, "a readers-writer lock was granted to a task that does not run");
    }
    return NULL;
}


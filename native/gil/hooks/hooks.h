/* hooks: the one place where the probe meets the interpreter.
 *
 * take_gil() and drop_gil() reach the operating system through five functions of the C library, which the
 * object that holds the interpreter calls through its global offset table. The hooks stand in that table. A
 * call that is not about a GIL costs one comparison more than before; calls from anywhere else do not come
 * here at all.
 *
 *     drop_gil   lock(mutex) signal(cond) unlock(mutex), and after a request to drop
 *                lock(switch_mutex) [wait(switch_cond)] unlock(switch_mutex)
 *     take_gil   lock(mutex) { timedwait(cond) }
 *                lock(switch_mutex) signal(switch_cond) unlock(switch_mutex) unlock(mutex)
 *
 * So a GIL is taken at the signal of switch_cond and dropped at the signal of cond, both under its mutex, and
 * waited for in between. unlock is hooked only while there is a scheduler.
 *
 * The hooks themselves count the takes and drops that no thread waits for. They report the rest to two
 * listeners, either of which may be absent: an observer, which only reads, and a scheduler, whose answers
 * change what happens. All reports about one GIL are made under its mutex unless said otherwise, hence one
 * after another, with times that never go back. No callback may touch Python objects other than by reading,
 * take a lock that any thread holds while waiting for a GIL, or block.
 */
#pragma once

#include "gil/hooks/control.h"
#include "gil/threads/gil.h"

/* After a hold this long the observer gets a report of the next take, even if no thread waits. */
#define FL_LONG_HOLD_NS 1000000

/* After so many requests in a row by waiters that no hook has seen, the hooks see none: another library's
   hook does not pass their calls on, or the interpreter makes them elsewhere. A few requests are by threads
   that began to wait before the hooks were in. */
#define FL_UNSEEN_ENOUGH 16

typedef struct {
    /* A thread was seen for the first time, or has ended; seat->waiting: it was still waiting. */
    void (*thread_start)(fl_gil *gil, fl_seat *seat);
    void (*thread_end)(fl_gil *gil, fl_seat *seat);
    /* The GIL is held by another: the thread begins to wait. seat->t_want may lie before now. */
    void (*want)(fl_gil *gil, fl_seat *seat, uint64_t now);
    /* A waiting thread asks the holder to drop. gil->t_request is set. */
    void (*request)(fl_gil *gil, fl_seat *seat, uint64_t now);
    /* The thread has the GIL. Called if it had to wait, during a recording, or if its last hold was long.
       `since`: when its wait began; 0: it did not wait. gil->holder_before is the holder before it. */
    void (*acquired)(fl_gil *gil, fl_seat *seat, uint64_t since, uint64_t now);
    /* The thread drops the GIL. Called if another thread waits, has asked for the drop, or was forced out
       and is expected back (gil->forced_out); during a recording; or if seat->marked is set. The drop is
       forced if gil->t_request is set. No other thread can have the GIL yet, and the thread's frames are
       its own. */
    void (*dropped)(fl_gil *gil, fl_seat *seat, uint64_t now);
    /* The hooks are being taken out: the hold or wait of the thread, if any, is to be counted up to now. */
    void (*interrupted)(fl_gil *gil, fl_seat *seat, uint64_t now);
    /* In the child of a fork: the records of the parent are gone. */
    void (*forked)(void);
} fl_observer;

/* A scheduler's `wait` returns this to leave the wait to the interpreter. */
#define FL_WAIT_AS_USUAL (-1)

typedef struct {
    void (*thread_start)(fl_gil *gil, fl_seat *seat);
    void (*thread_end)(fl_gil *gil, fl_seat *seat);
    /* The GIL is not free. Returns, with the mutex held again, FL_WAIT_AS_USUAL or what take_gil() is to
       get from pthread_cond_timedwait: 0 (check again) or ETIMEDOUT. On ETIMEDOUT take_gil() asks the
       holder to drop, if the GIL is still locked and gil->py->switch_number is what it was when this was
       called; before it asks, call fl_hooks_request. To hand the GIL over, leave gil->py->locked at 1 in
       `dropped` and clear it here, under the mutex, just before returning. */
    int (*wait)(fl_gil *gil, fl_seat *seat, const struct timespec *deadline);
    /* The waiting thread gives up: the interpreter is being finalised. */
    void (*leave)(fl_gil *gil, fl_seat *seat, uint64_t now);
    /* True: no thread waits on switch_cond, do not signal it. */
    bool (*acquired)(fl_gil *gil, fl_seat *seat, uint64_t now);
    /* Called before `dropped` when there is no observer. True: the drop is dealt with, and `dropped` is not
       called. Then the hooks do not read the clock, which would be most of the cost of a drop; this call
       sets seat->t_dropped and seat->held. */
    bool (*let_go)(fl_gil *gil, fl_seat *seat);
    /* True: the successor is chosen, or no thread is to be woken: do not signal cond. */
    bool (*dropped)(fl_gil *gil, fl_seat *seat, uint64_t now, bool forced);
    /* Called by the same thread once it has unlocked the mutex, if seat->wakes was set. Not under the
       mutex. */
    void (*unlocked)(fl_gil *gil, fl_seat *seat);
    /* drop_gil() would now wait until another thread has the GIL. True: do not. Not under the mutex. */
    bool (*switched)(fl_gil *gil, fl_seat *seat);
    /* In the child of a fork; gil->schedule and the present thread's seat->schedule are as they were in the
     * parent. */
    void (*forked)(fl_gil *gil, fl_seat *seat);
} fl_scheduler;

/* ---- install.c */

/* To be called once, before anything else here, with the GIL held, which it releases for a moment. NULL, or
 * why not. `forked_too` is called in each child of a fork, whether there is an observer or not, and before
 * an observer's `forked`. */
const char *fl_hooks_prepare(void (*forked_too)(void));

/* Puts the hooks in; each success wants one fl_hooks_release. NULL, or why not, in one line; then nothing has
   changed. The calling thread holds the GIL and an attached thread state; may let go of it and take it again.
 */
const char *fl_hooks_install(void);

/* Takes all hooks but that of the wait for the GIL out, until a thread first waits, another party installs,
   or the process forks: until then there is nothing to schedule, and a program of one thread runs as without
   hooks. Changes nothing where another thread has a thread state or there is an observer. With the GIL held.
 */
void fl_hooks_rest(void);

/* Ends that. NULL, or why not: then they rest on. Any thread, any time; under the mutex or not. */
const char *fl_hooks_wake(void);

/* One line on standard error: the process, and both texts together. Never waits: a line that it does
   not take is left out, and the next one says so. Any thread. */
void fl_hooks_tell(const char *news, const char *more);

/* Other processes look at this page from now on. Any thread. */
void fl_hooks_show(fl_control_page *page);

/* Takes one installation back, the last one the hooks with it. No scheduler may have parked a thread then.
   With the GIL held. */
void fl_hooks_release(void);

/* From now on there is this observer; NULL: none. The hooks are in. With the GIL held. */
void fl_hooks_observe(const fl_observer *observer);

/* From now on there is this scheduler. The hooks are in. With the GIL held. NULL, or why the table cannot be
   changed. */
const char *fl_hooks_schedule(const fl_scheduler *scheduler);

/* There is an observer. */
bool fl_hooks_observed(void);

/* Nanoseconds for which there has been an observer. */
uint64_t fl_hooks_active_ns(void);

/* Puts hooks in again that the dynamic linker has overwritten: it was looking a function up for its first
   call while the hook was put in. Not where another library has put its own, which passes on to ours.
   Called by any thread that is about to have a GIL; takes some ns when all hooks are in. */
void fl_hooks_reinstall(void);

/* Whether the waiters of this GIL are not seen. Any thread. */
static inline bool fl_hooks_miss_waiters(const fl_gil *gil)
{
    return atomic_load_explicit(&gil->unseen, memory_order_relaxed) >= FL_UNSEEN_ENOUGH;
}

/* The present thread was asked to drop this GIL by a waiter that no hook has seen, and has done so. Puts
   hooks in again, as fl_hooks_reinstall, or says in one line that waiters are not seen. Not under the
   mutex. */
void fl_hooks_asked_by_unseen(fl_gil *gil);

/* ---- hooks.c */

/* For a scheduler's `wait`: this thread is about to ask the holder to drop. Under the mutex. */
void fl_hooks_request(fl_gil *gil, fl_seat *seat, uint64_t now);

/* For the registry of threads. Under the mutex. */
void fl_hooks_thread_start(fl_gil *gil, fl_seat *seat);
void fl_hooks_thread_end(fl_gil *gil, fl_seat *seat);

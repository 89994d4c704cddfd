/* policy: which thread gets an interpreter's lock (GIL) next, and when a waiter asks for it.
 *
 * The caller reports what happens (a thread wants, waits, acquires, drops), and the policy answers what to
 * do. It reads no clock, makes no system call, allocates nothing and starts nothing: the same code drives
 * the hooks under a real interpreter and the simulator. docs/explanation/gil-scheduler.md says why it is as
 * it is.
 *
 * The calls for one thread, and from where each is made:
 *
 *     want                        it starts to take the GIL                   (its own thread, no lock)
 *       GIL free: acquired                                                    (lock)
 *       GIL held: arrive, then tick until it says TAKE or a drop granted it the GIL,
 *                 then acquired                                               (lock)
 *     drop                        it lets go: the answer names the next holder  (lock)
 *
 * The GIL is free, held, or granted: by a drop, and its new holder is not awake yet. While granted it counts
 * as locked for all other threads, so none can barge in between a grant and its acquisition.
 *
 * Locking: "lock" above is one lock that the caller owns, for the real scheduler the mutex inside the GIL;
 * it protects fl_policy and every fl_policy_thread of it. Functions that need no lock say so. None blocks,
 * none calls back. Cost: O(log n) amortised per event for n waiting threads.
 * Time: nanoseconds of one monotonic clock; `now` must not go back from one locked call to the next.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gil/policy/account.h"
#include "gil/policy/awake.h"
#include "gil/policy/bursts.h"
#include "gil/policy/duequeue.h"
#include "gil/policy/constants.h"
#include "gil/policy/predictor.h"
#include "gil/policy/watchdog.h"

typedef enum {
    FL_MODE_STOCK,       /* no scheduling: tick answers PASS, drop names no thread */
    FL_MODE_INTERACTIVE, /* short bursts first, and no thread waits for ever: order.c */
} fl_policy_mode;

typedef enum { FL_PRIORITY_NORMAL, FL_PRIORITY_IO, FL_PRIORITY_BACKGROUND } fl_priority;

/* What a thread's present burst is, decided anew each time it wants the GIL. */
typedef enum { FL_CLASS_SERVING, FL_CLASS_COMPUTING, FL_CLASSES } fl_class;

/* A thread that sleeps needs some 30 us to wake, and a GIL that is granted to it stands still meanwhile. So
 * it is woken for a GIL that is left free, again and again, until it has waited for offer_ns. */
typedef enum { FL_OFFER_NONE, FL_OFFER_MADE, FL_OFFER_MISSED } fl_offer;

typedef struct fl_policy_thread {
    fl_duelink link; /* first: place in its class's queue; link.due: when it is due */
    fl_watched watched;
    int64_t t_want, t_acquired, t_dropped;
    int64_t t_timer;  /* when its timer fires, as tick said last */
    int64_t t_ask;    /* when it may repeat its request */
    int64_t hold;     /* length of its last hold */
    int64_t coreless; /* how much of its present hold it has had no core */
    int64_t t_burst;  /* what its deadline counts from: when its burst began, or a computation's turn */
    int64_t t_began, t_ended; /* when its burst began, and when the one before had ended */
    int64_t used;     /* GIL time of its present burst */
    int64_t turn;     /* a computation: GIL time of its present turn */
    int64_t finished; /* its last burst, not yet counted; -1: none */
    int64_t last;     /* the one before */
    int64_t guess;    /* how long its bursts are: the shorter one of the last two */
    fl_predictor away; /* off for longer than lazy_ns? */
    uint32_t ask_epoch;
    uint8_t asks; /* requests in ask_epoch */
    uint8_t cls;
    uint8_t held_as; /* its class when it acquired last */
    uint8_t priority;
    fl_awake awake; /* does it sleep, but for the GIL? */
    bool seen;      /* has held the GIL before */
    bool yielding;  /* fl_policy_yields since its last acquisition */
    bool yielded;   /* ... and before it: it is likely to yield again */
    bool stayed;    /* fl_policy_stays since its last acquisition */
    bool waited;    /* this acquisition had to wait */
    bool queued;
    bool granted;   /* the GIL is reserved for it */
    bool protected; /* granted a slice of the computations' floor */
    bool forced;    /* its last drop followed a request */
    bool spun;      /* has spun once in this wait */
    bool asleep;    /* was answered SLEEP, and has not called tick since */
    uint8_t offer;  /* has it been woken for a GIL that was left free? an fl_offer */
} fl_policy_thread;

typedef struct fl_policy_counts {
    uint64_t acquired, waited, forced, direct_handovers, dropped_unclaimed, asked, asked_again, woken_early,
        slices, revoked;
    uint64_t spun; /* by the caller, when it spins */
} fl_policy_counts;

typedef struct fl_policy {
    fl_policy_constants k;
    fl_policy_mode mode;
    int64_t interval; /* ns; the interpreter's switch interval; may be changed at any time (lock) */
    bool spare_cores; /* more than one core may be used: spinning is allowed (lock to change) */

    fl_policy_thread *holder; /* NULL when free or granted */
    fl_policy_thread *alone;  /* takes and drops with no other thread there; see fl_policy_retake */
    fl_policy_thread *grantee;  /* granted, not yet awake */
    int64_t t_acquired;       /* when the holder acquired, or the grant was made */
    int64_t reserved_until;   /* free, but expected to be retaken by its last holder until then */
    fl_policy_thread *kept_by; /* free: its last holder, if that was serving */
    bool gap_owed;            /* free: it does not pass on from, or to, a slice of a debt or of the floor */
    bool paying;              /* the grantee, or holder, was granted such a slice */
    int64_t t_free;           /* when it became free */
    int64_t handover;         /* how long a waiter then took to get it, lately: a moving mean */
    uint32_t epoch;           /* counts acquisitions */
    uint8_t holder_class;
    bool holder_protected;
    bool asked; /* the holder has been asked to drop */

    fl_duequeue queues[FL_CLASSES];
    uint32_t waiting;
    fl_bursts bursts;
    fl_account account;             /* of the computations */
    fl_debt debt;                   /* what threads that are awake owe them */
    fl_policy_thread *server;       /* the serving thread that acquired last ... */
    bool alternates;                /* ... and whether its client takes turns with it */
    bool looked;                    /* that has been checked since it became the server: */
    uint64_t sleeps, turns;         /* how often it had slept and a thread had taken the GIL by then ... */
    int64_t t_looked;               /* ... and when that was, of this server or one before */
    int64_t t_robbed; /* when a spinning computation last had no core ... */
    int64_t pause;    /* ... and for how long none spins after that */

    uint64_t stuck_grant; /* counts.direct_handovers of the grant that was last looked at ... */
    int64_t t_stuck;      /* ... and when a waiter first found it not taken */
    fl_watchdog watchdog;
    bool tripped; /* the watchdog ended scheduling */
    fl_policy_counts counts;
} fl_policy;

/* mode, share (the computations' floor, 1 .. FL_SHARE_ONE - 1); constants NULL: the defaults. */
void fl_policy_init(fl_policy *policy, fl_policy_mode mode, int32_t share, int64_t interval,
                    const fl_policy_constants *constants, int64_t now);

/* A thread's record must live until fl_policy_thread_exit. No lock. */
void fl_policy_thread_new(fl_policy_thread *thread, fl_priority priority);

/* The thread neither holds nor will want the GIL again; takes it out of the queue if it is in there. Lock. */
void fl_policy_thread_exit(fl_policy *policy, fl_policy_thread *thread, int64_t now);

/* The thread is about to sleep for no time at all: its next want is a yield, not a wait. Own thread, no
 * lock. */
void fl_policy_yields(fl_policy_thread *thread);

/* The thread has not slept since it dropped the GIL: if it was away, then for want of a core. Own thread, no
 * lock, before its next want. */
void fl_policy_stays(fl_policy_thread *thread);

/* The thread has just dropped the GIL: should the caller find out whether it sleeps before its next want?
 * Lock. */
bool fl_policy_samples(const fl_policy *policy, fl_policy_thread *thread, int64_t now);

/* It has, or has not. Own thread, no lock, before its next want. */
void fl_policy_slept(const fl_policy *policy, fl_policy_thread *thread, bool slept);

/* The thread, which holds the GIL, has had no core for so many ns of this hold, as far as known. It is
 * neither charged for them nor asked to drop the GIL for them, up to a switch interval a hold: it may have
 * slept. Lock. */
void fl_policy_coreless(const fl_policy *policy, fl_policy_thread *thread, int64_t ns);

/* From its next want on. Own thread, no lock. */
void fl_policy_set_priority(fl_policy_thread *thread, fl_priority priority);

/* The thread starts to take the GIL. Own thread, no lock (reads only policy->k). */
void fl_policy_want(const fl_policy *policy, fl_policy_thread *thread, int64_t now);

/* The GIL was not free: the thread joins the waiters. Call tick next. Lock. */
void fl_policy_arrive(fl_policy *policy, fl_policy_thread *thread, int64_t now);

typedef enum {
    FL_TICK_SLEEP, /* until `until`, or until granted or woken early; then, if not granted, tick again */
    FL_TICK_SPIN,  /* the same on the core, looking for a grant or a kick all the time */
    FL_TICK_ASK,   /* ask the holder to drop; then tick again */
    FL_TICK_TAKE,  /* the GIL is yours (no longer queued): set locked, call acquired */
    FL_TICK_PASS,  /* not scheduled (no longer queued): wait by the interpreter's own means */
} fl_tick_kind;

typedef struct fl_tick {
    fl_tick_kind kind;
    int64_t until;
    /* TAKE only: this thread did not take the GIL that was granted to it for k.late_ns, so the grant is
       withdrawn; clear its mark and wake it: it is no longer queued, and its burst goes on. */
    fl_policy_thread *revoke;
} fl_tick;

/* What should this waiting, not granted thread do now? `locked` is the GIL's own flag (true while granted).
 * Lock. */
fl_tick fl_policy_tick(fl_policy *policy, fl_policy_thread *thread, bool locked, int64_t now);

/* A thread that was answered SPIN has lost its core: others want it now. Then tick again. Lock. */
void fl_policy_crowded(fl_policy *policy, const fl_policy_thread *thread, int64_t now);

/* The serving thread whose number of sleeps the caller, a waiter, is to report by fl_policy_server_slept;
 * NULL: none now. Lock. */
fl_policy_thread *fl_policy_server_to_look_at(const fl_policy *policy, const fl_policy_thread *thread,
                                              int64_t now);

/* How often that thread has slept since some fixed moment; 0: not known. Lock. */
void fl_policy_server_slept(fl_policy *policy, uint64_t sleeps, int64_t now);

/* To be called by threads that acquire the GIL. `asleep_since` says of a thread whose grant was withdrawn
 * whether it has slept ever since, `rouse` wakes it. True: so many have slept on that scheduling has ended
 * (mode STOCK, tripped). Lock. */
static inline bool fl_policy_gives_up(fl_policy *policy, int64_t now,
                                      bool (*asleep_since)(fl_watched *thread),
                                      void (*rouse)(fl_watched *thread))
{
    const fl_policy_constants *k = &policy->k;
    if (policy->mode == FL_MODE_STOCK
        || !fl_watchdog_look(&policy->watchdog, (uint32_t)k->watchdog_threads, k->lost_ns, now,
                             asleep_since, rouse)) {
        return false;
    }
    policy->tripped = true;
    policy->mode = FL_MODE_STOCK;
    return true;
}

/* The waiting thread gives up (the interpreter is being finalised). Harmless when not queued. Lock. */
void fl_policy_leave(fl_policy *policy, fl_policy_thread *thread, int64_t now);

/* The thread has the GIL. Lock. */
void fl_policy_acquired(fl_policy *policy, fl_policy_thread *thread, int64_t now);

typedef enum {
    FL_DROP_NO_WAITER,
    FL_DROP_FREE,   /* left free on purpose: for the dropper, or for a thread that is woken */
    FL_DROP_HAND,   /* handed to `grant`: keep the GIL locked, mark and wake that thread */
} fl_drop_kind;

typedef struct fl_drop {
    fl_drop_kind kind;
    fl_policy_thread *grant;
    fl_policy_thread *kick; /* wake this one too, or stop its spinning: it must set its timer anew */
} fl_drop;

/* The holder lets go. Lock. */
fl_drop fl_policy_drop(fl_policy *policy, fl_policy_thread *thread, int64_t now);

/* A thread that drops the GIL when no other wants it, and is the next to take it, is only counted: a release
 * and a retake take few nanoseconds. True: that is all there is to do in place of want and acquired (of drop,
 * which then says NO_WAITER). Not to be called after a hold of k.floor_slice_ns or more. Lock. */
static inline bool fl_policy_retake(fl_policy *policy, fl_policy_thread *thread)
{
    if (policy->alone != thread || thread->yielding || thread->priority == FL_PRIORITY_BACKGROUND) {
        return false;
    }
    policy->holder = thread;
    policy->counts.acquired++;
    return true;
}

static inline bool fl_policy_let_go(fl_policy *policy, const fl_policy_thread *thread)
{
    if (policy->alone != thread) {
        return false;
    }
    policy->holder = NULL;
    return true;
}

/* Reports what fl_policy_retake has only counted: call it while policy->alone is not NULL, before any other
 * call for that policy. The thread acquired the GIL at t_acquired; it has dropped it at t_dropped since,
 * or, if it still is the holder, dropped it then before. Lock. */
void fl_policy_catch_up(fl_policy *policy, int64_t t_acquired, int64_t t_dropped);

/* Take any one waiter out of the queue, NULL when there is none: before the mode changes, wake each that this
 * returns; its next tick queues it anew under the new mode, or passes it. Lock. */
fl_policy_thread *fl_policy_evict(fl_policy *policy, int64_t now);

/* No thread may be queued (fl_policy_evict). Also clears the watchdog's verdict. Lock. */
void fl_policy_set_mode(fl_policy *policy, fl_policy_mode mode, int32_t share, int64_t now);

/* In the child of a fork: only `self` is left, holding the GIL or not. Needs no lock: there is one thread. */
void fl_policy_fork_reset(fl_policy *policy, fl_policy_thread *self, bool holds, int64_t now);

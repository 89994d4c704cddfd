/* policy: who gets an interpreter's lock (GIL) next, and when a waiter asks for it.
 *
 * The policy is told what happens (a thread wants, waits, acquires, drops) and answers what to do. It reads
 * no clock, makes no system call, allocates nothing and starts nothing: the same code drives the hooks
 * under a real interpreter and the simulator. docs/explanation/gil-scheduler.md says why it is as it is.
 *
 * One life of a thread, and who calls:
 *
 *     want                        it starts to take the GIL                   (its own thread, no lock)
 *       GIL free: acquired                                                    (lock)
 *       GIL held: arrive, then tick until it says TAKE or a drop granted it the GIL,
 *                 then acquired                                               (lock)
 *     drop                        it lets go: the answer names who gets the GIL (lock)
 *
 * The GIL is free, held, or in limbo: granted by a drop, its new holder not awake yet. In limbo it counts
 * as locked for everybody else, so nobody can barge in between a grant and its acquisition.
 *
 * Locking: "lock" above is one lock that the caller owns, for the real scheduler the mutex inside the GIL;
 * it protects fl_policy and every fl_policy_thread of it. Functions that need no lock say so. None blocks,
 * none calls back. Cost: O(1) per event (FAIR: O(log n) amortised), whatever the number of waiting threads.
 * Time: nanoseconds of one monotonic clock; `now` must not go back from one locked call to the next.
 */
#ifndef FL_POLICY_H
#define FL_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/account.h"
#include "core/policy_constants.h"
#include "core/predictor.h"
#include "core/waitqueue.h"

typedef enum {
    FL_MODE_STOCK,       /* no scheduling: tick answers PASS, drop names nobody */
    FL_MODE_INTERACTIVE, /* threads that wait for the world first, CPU-bound ones a share */
    FL_MODE_FAIR,        /* equal GIL time for every thread that wants it */
} fl_policy_mode;

typedef enum { FL_PRIORITY_NORMAL, FL_PRIORITY_IO, FL_PRIORITY_BACKGROUND } fl_priority;

/* What a thread is, decided anew each time it wants the GIL. Lower is better, POLL and CPU are equals. */
typedef enum {
    FL_CLASS_FRESH,      /* new, or back from a real wait */
    FL_CLASS_BRIEF,      /* back from a short absence: a lock, a send, a file */
    FL_CLASS_CPU,        /* forced out after some GIL time since its last wait, or known by its long holds */
    FL_CLASS_POLL,       /* yields after short holds */
    FL_CLASS_BACKGROUND, /* by its own word */
    FL_CLASSES
} fl_class;

/* A thread that sleeps needs some 30 us to wake, and a GIL that is granted to it stands still meanwhile. So
 * it is woken for a GIL that is left free; if it finds it taken, the next drop grants it. */
typedef enum { FL_OFFER_NONE, FL_OFFER_MADE, FL_OFFER_MISSED } fl_offer;

typedef struct fl_policy_thread {
    union {
        fl_waitlink link; /* INTERACTIVE: place in its class's queue */
        struct {          /* FAIR: place in the heap */
            struct fl_policy_thread *child, *next, *prev;
        } heap;
    };
    int64_t t_want, t_acquired, t_dropped;
    int64_t t_due;     /* when its timer fires, as tick said last */
    int64_t t_ask;     /* when it may repeat its request */
    int64_t t_spin;    /* CPU: how long it may spin in this wait; 0: it has not begun to */
    int64_t t_burst;   /* when its row of acquisitions without a wait began */
    int64_t hold;      /* length of its last hold */
    int64_t since_wait; /* GIL time that it has used since a real wait; a new thread: cpu_hold_ns */
    int64_t t_line;    /* INTERACTIVE: when its turn began: the order of CPU and POLL */
    int64_t turn;      /* INTERACTIVE: GIL time that it has used of its turn */
    int64_t used;      /* FAIR: GIL time used, on the policy's virtual clock */
    fl_predictor away; /* off for longer than lazy_ns? */
    fl_predictor send; /* off for longer than send_ns? */
    uint32_t ask_epoch;
    uint8_t asks; /* requests in ask_epoch */
    uint8_t cls;
    uint8_t held_as;   /* its class when it acquired last */
    uint8_t priority;
    bool seen;      /* has held the GIL before */
    bool yielding;  /* fl_policy_yields since its last acquisition */
    bool stayed;    /* fl_policy_stays since its last acquisition */
    bool waited;    /* this acquisition had to wait */
    bool queued;
    bool granted;   /* in limbo: the GIL is reserved for it */
    bool protected; /* granted a slice of the CPU share */
    bool forced;    /* its last drop followed a request */
    bool spun;      /* has spun once in this wait */
    bool asleep;    /* was told to sleep, and has not looked since */
    uint8_t offer;  /* has it been woken for a GIL that was left free? an fl_offer */
} fl_policy_thread;

typedef struct fl_policy_counts {
    uint64_t acquired, waited, forced, handed, left_free, asked, asked_again, kicked, slices, aged, revoked;
    uint64_t spun; /* by the caller, when it spins */
} fl_policy_counts;

typedef struct fl_policy {
    fl_policy_constants k;
    fl_policy_mode mode;
    bool fair;        /* where the waiters are: heap or queues (the watchdog's fallback keeps it) */
    int64_t interval; /* ns; the interpreter's switch interval; may be changed at any time (lock) */
    bool spare_cores; /* more than one core may be used: spinning is allowed (lock to change) */

    fl_policy_thread *holder; /* NULL when free or in limbo */
    fl_policy_thread *alone;  /* comes and goes with nobody else there; see fl_policy_retake */
    fl_policy_thread *limbo;  /* granted, not yet awake */
    int64_t t_acquired;       /* when the holder acquired, or the grant was made */
    int64_t reserved_until;   /* free, but expected to be retaken by its last holder until then */
    int64_t t_free;           /* when it became free */
    uint32_t epoch;           /* counts acquisitions */
    uint8_t holder_class;
    bool holder_protected;
    bool asked; /* the holder has been asked to drop */

    fl_waitqueue queues[FL_CLASSES];
    fl_account account;
    uint32_t herd;      /* how many FRESH and BRIEF threads waited when the last slice ended */
    int64_t t_aged;     /* last pick by age */
    int64_t t_progress; /* last acquisition by a FRESH or BRIEF thread */
    const fl_policy_thread *server; /* the FRESH or BRIEF thread that acquired last; only compared ... */
    int64_t t_server;               /* ... and since when it alone did */
    int64_t t_crowded;  /* when a CPU-bound thread last had no core to spin on ... */
    int64_t pause;      /* ... and for how long none spins after that */

    fl_policy_thread *heap; /* FAIR: the waiter that used least */
    int64_t virtual_now;    /* FAIR: `used` of the last thread served */
    uint32_t waiting;

    uint32_t stuck_epoch, stuck;
    uint32_t lost; /* grants in a row whose wake-up was lost */
    int64_t t_stuck;
    bool tripped; /* the watchdog ended scheduling */
    fl_policy_counts counts;
} fl_policy;

/* mode, share (1 .. FL_SHARE_ONE - 1, INTERACTIVE only); constants NULL: the defaults. */
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

/* From its next want on. Own thread, no lock. */
void fl_policy_set_priority(fl_policy_thread *thread, fl_priority priority);

/* The thread starts to take the GIL. Own thread, no lock (reads only policy->k). */
void fl_policy_want(const fl_policy *policy, fl_policy_thread *thread, int64_t now);

/* The GIL was not free: the thread joins those who wait. Call tick next. Lock. */
void fl_policy_arrive(fl_policy *policy, fl_policy_thread *thread, int64_t now);

typedef enum {
    FL_TICK_SLEEP, /* until `until`, or until granted or kicked; then, if not granted, tick again */
    FL_TICK_SPIN,  /* the same on the core, looking for a grant or a kick all the time */
    FL_TICK_ASK,   /* ask the holder to drop; then tick again */
    FL_TICK_TAKE,  /* the GIL is yours (no longer queued): set locked, call acquired */
    FL_TICK_PASS,  /* not scheduled (no longer queued): wait by the interpreter's own means */
} fl_tick_kind;

typedef struct fl_tick {
    fl_tick_kind kind;
    int64_t until;
    /* TAKE only: this thread did not take the GIL that was granted to it for k.watchdog_intervals, so the
       grant is withdrawn; clear its mark and wake it: it is no longer queued. NULL nearly always. */
    fl_policy_thread *revoke;
} fl_tick;

/* What should this waiting, not granted thread do now? `locked` is the GIL's own flag (true in limbo).
 * Lock. */
fl_tick fl_policy_tick(fl_policy *policy, fl_policy_thread *thread, bool locked, int64_t now);

/* The thread that was told to spin has no core for that: now others want it. Then tick again. Lock. */
void fl_policy_crowded(fl_policy *policy, const fl_policy_thread *thread, int64_t now);

/* To be called after a tick with `revoke` unless that thread is known to be on its way, only without a core.
 * True: so many grants in a row were lost that scheduling has ended (mode STOCK, tripped). Lock. */
bool fl_policy_lost(fl_policy *policy);

/* The waiting thread gives up (the interpreter is being finalised). Harmless when not queued. Lock. */
void fl_policy_leave(fl_policy *policy, fl_policy_thread *thread, int64_t now);

/* The thread has the GIL. Lock. */
void fl_policy_acquired(fl_policy *policy, fl_policy_thread *thread, int64_t now);

typedef enum {
    FL_DROP_NOBODY, /* nobody waits */
    FL_DROP_FREE,   /* left free on purpose: for the dropper, for a thread to be woken, or for no poller */
    FL_DROP_HAND,   /* handed to `grant`: keep the GIL locked, mark and wake that thread */
} fl_drop_kind;

typedef struct fl_drop {
    fl_drop_kind kind;
    fl_policy_thread *grant;
    fl_policy_thread *kick; /* wake this one too, or stop its spinning: it must set its timer anew */
} fl_drop;

/* The holder lets go. Lock. */
fl_drop fl_policy_drop(fl_policy *policy, fl_policy_thread *thread, int64_t now);

/* A thread that drops the GIL when nobody wants it, and is the next to take it, is only counted: a release
 * and a retake take few nanoseconds. True: that is all there is to do in place of want and acquired (of drop,
 * which then says NOBODY). Not to be called after a hold of k.cpu_hold_ns or more. Lock. */
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

/* Makes up for that while policy->alone is not NULL, before anything else is called for that policy. The
 * thread acquired the GIL at t_acquired; it has dropped it at t_dropped since, or, if it still is the holder,
 * dropped it then before. Lock. */
void fl_policy_catch_up(fl_policy *policy, int64_t t_acquired, int64_t t_dropped);

/* Take any one waiter out of the queue, NULL when there is none: before the mode changes, wake each that this
 * returns; its next tick queues it anew under the new mode, or passes it. Lock. */
fl_policy_thread *fl_policy_evict(fl_policy *policy, int64_t now);

/* Nobody may be queued (fl_policy_evict). Also clears the watchdog's verdict. Lock. */
void fl_policy_set_mode(fl_policy *policy, fl_policy_mode mode, int32_t share, int64_t now);

/* In the child of a fork: only `self` is left, holding the GIL or not. Needs no lock: there is one thread. */
void fl_policy_fork_reset(fl_policy *policy, fl_policy_thread *self, bool holds, int64_t now);

#endif

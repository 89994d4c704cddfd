/* wait queue: where threads and tasks wait for each other. Every primitive is a wait queue and a few rules.
 *
 * Prior art. The state word with a fast path of one compare-and-swap, the queue beside it that only waiting
 * touches, and barging with a forced hand-off after half a millisecond are parking_lot's
 * (https://webkit.org/blog/6161/locking-in-webkit/ and https://docs.rs/parking_lot); here the queue is in the
 * object and not in a global table, because an object of Python has the room, and because a table could not
 * be shared by the interpreters of two copies of an extension. Permits that are handed to the head of a
 * first-in first-out queue are tokio's batch semaphore
 * (https://docs.rs/tokio/latest/tokio/sync/struct.Semaphore.html) and AbstractQueuedSynchronizer's (Doug Lea,
 * 2005, https://gee.cs.oswego.edu/dl/papers/aqs.pdf).
 *
 * A waiter is one wait of one thread or task, used once. Its state moves
 *
 *     WAITING <-> WOKEN       "look again": there may be something for you
 *     WAITING or WOKEN -> GRANTED                         by the releasing thread
 *     WAITING or WOKEN -> REFUSED                         by the closing thread
 *     WAITING or WOKEN -> CANCELLED, TIMED_OUT, BROKEN    by the waiter's own side
 *     GRANTED -> TAKEN, CANCELLED or BROKEN                task only: it resumed, will not, its loop ended
 *
 * The first four change under the queue lock, the last by a compare-and-swap: so a grant, a time-out, a
 * cancellation and the end of a loop at the same instant have one winner, and what is in the queue waits. The
 * loser reads the winning state: a cancellation that finds GRANTED owns a permit, and releases it.
 *
 * Invariants, checked by the model (native/tests/model/test_model.c):
 * 1. No lost wake-up: whenever the queue lock is free and what the head waits for is there, the head is
 * WOKEN,
 *    or a thread that will take the lock is on the way.
 * 2. Others touch a waiter only under the queue lock, and for the last time as they store GRANTED. After that
 *    its thread may use it for another wait: waking uses its address and never its content. A task's waiter
 *    is counted, and the thread that wakes it has a count.
 * 3. A waiter keeps its place from when it is queued until its wait is over. A thread that looks for signals
 *    and runs their handlers stays queued, and may be granted something meanwhile. So a thread's waiter is
 *    allocated, once per thread (thread_table.h): a thread that ends as it attaches again, at the end of the
 *    interpreter, leaves its waiter behind.
 * 4. Under the queue lock there is no Python, no allocation, and no call that blocks.
 *
 * Rejected. Handing over at every release (strict order) is the option `fair` and not the default: each
 * release is then a switch of threads, and under a GIL that is a convoy. Waking and letting all compete (no
 * hand-off) starves. A waiter that is woken under the queue lock would run into it. A global table of queues
 * (see above). Leaving the queue to look for signals, to come back to the old place: an event that is set and
 * cleared, a reader, or permits that are released meanwhile pass the waiter by.
 *
 * To build a primitive: put what it counts into `word`, and fill in an fl_waitq_ops.
 *   fast path    compare-and-swaps on `word`, after fl_waitq_refresh (fork), with a flag in `word` that says
 *                that a waiter is queued; that flag is set under the queue lock by the same compare-and-swap
 *                that sees that there is nothing to take. Then no fence is needed between "I queued" and
 *                "is it free now?".
 *   attempt      the same as a function, for the endings.
 *   enter        under the queue lock: take it, or set the flag and fl_waitq_push. Where the others have gone
 *                on with what is granted, so that it cannot be given back, the waiter is `final`.
 *   serve        under the queue lock: give to the head and the next as long as there is something:
 *                fl_waitq_grant (it is theirs), or fl_waitq_wake (they try themselves, by `retry`; only where
 *                others may come first: a kind without that has no `retry`). Called after every leave, when a
 *                waiter is queued as the head, and by what makes something available. Where nothing will ever
 *                come any more: fl_waitq_refuse.
 *   give_back    no lock: what a granted waiter had and will not use. Must end in the same as if it had
 *                never been granted.
 *   forked       in a child process, once, before anything else happens there: no waiter exists any more. A
 * thread waits with fl_waitq_enter and fl_waitq_wait, a task with fl_waitq_enter and its mailbox (mailbox.h);
 * sync/bind/wait has both endings ready for Python. semaphore.c has all of it; event.c is the smallest.
 */
#pragma once

#include "machine/atomic.h"
#include "machine/fork.h"

typedef enum {
    FL_WAITING,
    FL_WOKEN,
    FL_GRANTED,
    FL_REFUSED,
    FL_TAKEN,
    FL_CANCELLED,
    FL_TIMED_OUT,
    FL_BROKEN,
    FL_CLAIMED, /* these two in combine.h only */
    FL_DONE,
} fl_waiter_state;

/* What a waiter brings along. */
typedef union {
    uint64_t holder;           /* to a lock: its next holder, fl_owner_* */
    struct fl_handoff **place; /* to a meeting: where its handoff is, and where the other's will be */
    uint64_t sum;              /* to a rate: what was ever wanted up to this waiter */
    uint64_t word;             /* to a rate, once it is granted: the word as that left it */
} fl_stake;
#define FL_HOLDER(number) ((fl_stake){.holder = (number)})

typedef struct fl_waiter {
    fl_atomic(uint32_t) state; /* a thread parks on it */
    uint32_t wanted;           /* how many, or what; up to the kind */
    fl_atomic(struct fl_waitq *) waitq;
    fl_atomic(struct fl_waitq *) moved_from; /* a condition's, to that of its lock; both change once, under
                                                the locks of both (condition.h). NULL: it has not moved */
    fl_stake stake;
    int64_t since;                  /* fl_clock_now() when it began to wait; 0: not yet */
    int64_t look;                   /* of what comes with time: when it looks next */
    struct fl_waiter *prev, *next;  /* queue lock */
    uint32_t generation;            /* queue lock; of the process it was queued in */
    bool queued;                    /* queue lock */
    bool final;                     /* queue lock; what it was granted cannot be given back */
    bool for_lock;                  /* it may come to wait for a holder; constant */
    bool offered;                   /* queue lock; the lock is about to be granted, or a fork came between */
    bool told;                      /* its own side's: it knows that the holder has ended */
    fl_atomic(uint8_t) posted;      /* in the list of its mailbox */
    fl_atomic(uint32_t) refs;       /* task only */
    struct fl_mailbox *mailbox;     /* NULL: a thread */
    struct fl_waiter *ready;        /* the list of its mailbox */
    struct fl_waiter *before, *after; /* all waiters of the mailbox, under its lock */
    fl_atomic(void *) payload;      /* what the loop's side completes */
    fl_atomic(void *) request;      /* what it waits for; of a combiner what is to be run */
    void *request_moved;            /* what it waits for once it has moved; constant */
    struct fl_choice *choice;       /* it is one of several (choice.h); NULL: it is alone */
    uint32_t place_in_choice;       /* constant */
    struct fl_wake_list *together;  /* thread only, written before it is let go: see fl_waiter_wake_others */
} fl_waiter;

typedef struct {
    fl_waiter *waiter;
    struct fl_mailbox *mailbox;
    const fl_atomic(uint32_t) *word; /* where its thread parks */
} fl_wake;

#ifndef FL_WAKES
#define FL_WAKES 8
#endif
#ifndef FL_WAKES_BEGUN
#define FL_WAKES_BEGUN 2
#endif

/* Waiters that are let go together, when they are more than FL_WAKES. A thread that wakes a thousand others
   holds the GIL for a thousand system calls, and those that are awake wait for it all at once, each by a
   time-out of the switch interval. So it wakes two, and each thread that was let go wakes two more before it
   wants the GIL. With one more each, a thread that has no core for a while would keep all behind it asleep.
   All of it but `refs` is the queue lock's. */
typedef struct fl_wake_list {
    fl_atomic(uint32_t) refs; /* one of each thread in it, one of the thread that let them go */
    uint32_t room;
    uint32_t threads, woken; /* from the front on */
    uint32_t tasks;          /* from the end on: woken by the thread that let them go */
    fl_wake at[];
} fl_wake_list;

/* Waiters to wake once the queue lock is free. */
typedef struct fl_wakes {
    uint32_t count;
    fl_wake at[FL_WAKES];
    fl_wake_list *list;    /* NULL: `at` is enough, or there is no memory */
    const fl_waiter *left; /* the waiter that has just left the queue by itself, for `serve`; or NULL */
} fl_wakes;

typedef struct fl_waitq {
    fl_atomic(uint64_t) word;
    fl_atomic(uint64_t) owner; /* of what is FL_WAITQ_OWNED: its holder; 0: none, or about to say so */
    fl_waiter *head, *tail;    /* queue lock */
    const struct fl_waitq_ops *ops;
    fl_mutex lock; /* the queue lock */
    fl_atomic(uint32_t) generation;
    fl_atomic(uint32_t) waiting; /* written under the queue lock */
    fl_atomic(uint32_t) refs;
    uint32_t limit; /* of what `word` counts; constant */
    uint32_t flags; /* constant */
} fl_waitq;

#define FL_WAITQ_FAIR 1u  /* strict first-in first-out */
#define FL_WAITQ_OWNED 2u /* `owner` is kept */
#define FL_WAITQ_BREAKS 4u /* a lock that closes when its holder's thread ends */
#define FL_WAITQ_TO_LOCK 8u /* a condition's: its waiters go on to wait for a lock */

/* What a primitive does at each step. All but `enter` may be NULL, and then: nothing is ever taken at once;
   no waiter is woken; one that leaves was in no other's way; one that was granted has taken nothing; after a
   fork the word is as it was; there is nothing to forget; no waiter learns that an owner has ended. */
typedef struct fl_waitq_ops {
    bool (*attempt)(fl_waitq *waitq, uint32_t wanted, fl_stake stake);  /* no lock; true: taken */
    bool (*enter)(fl_waitq *waitq, fl_waiter *waiter, fl_wakes *wakes); /* queue lock; true: taken at once */
    bool (*retry)(fl_waitq *waitq, fl_waiter *waiter, fl_wakes *wakes); /* queue lock; true: taken */
    void (*serve)(fl_waitq *waitq, fl_wakes *wakes);                    /* queue lock */
    void (*give_back)(fl_waiter *waiter);                             /* no lock */
    void (*forked)(fl_waitq *waitq); /* no lock, alone in this wait queue */
    void (*forget)(fl_waiter *waiter); /* no lock; a task's waiter that is settled, before it goes */
    void (*pass_on)(fl_waitq *waitq);    /* no lock; of a condition: one that has moved is gone */
    void (*orphaned)(fl_waitq *waitq);   /* no lock; the owner's thread has ended, and there are waiters */
    int64_t (*look)(const fl_waiter *waiter); /* no lock; of what comes with time: when it looks next */
    bool wakes; /* `attempt` may wake others */
    bool marks; /* a waiter that leaves has changed something, and cannot be one of several */
} fl_waitq_ops;

/* What a granted waiter had and will not use. */
static inline void fl_waitq_give_back(fl_waiter *waiter)
{
    const fl_waitq_ops *ops = waiter->waitq->ops;
    if (ops->give_back != NULL) {
        ops->give_back(waiter);
    }
}

/* Queue lock. */
static inline void fl_waitq_serve(fl_waitq *waitq, fl_wakes *wakes)
{
    if (waitq->ops->serve != NULL) {
        waitq->ops->serve(waitq, wakes);
    }
}

/* After this long at the head of a queue a waiter is served before any newcomer (parking_lot's figure).
   */
#define FL_PATIENCE_NS 500000

/* A holder: the thread, and whether a task of that thread's loop is meant and not the thread itself. */
#define FL_OWNER_TASK 1u
uint64_t fl_owner_thread(void);
static inline uint64_t fl_owner_task(void)
{
    return fl_owner_thread() | FL_OWNER_TASK;
}

/* While deadlocks are looked for, a Lock's holder may also say which task it is, by a number above these. */
#define FL_OWNER_PLACE ((UINT64_C(1) << 40) - 1)
static inline uint64_t fl_owner_place(uint64_t owner)
{
    return owner & FL_OWNER_PLACE;
}

/* In a forked child, once, before anything else happens there. */
void fl_waitq_forked(void);

/* fl_owner_thread() of the thread that forked this process. */
extern uint64_t fl_fork_thread;

/* Once per process, before the first wait queue is used. False: no memory. */
bool fl_waitq_setup(void);

/* A new wait queue with one reference; NULL: no memory. Any thread. */
fl_waitq *fl_waitq_new(const fl_waitq_ops *ops, uint64_t word, uint32_t limit, uint32_t flags);
/* The same as the first member of something larger, which is zero otherwise and goes with it. */
fl_waitq *fl_waitq_new_within(size_t size, const fl_waitq_ops *ops, uint64_t word, uint32_t limit,
                              uint32_t flags);
void fl_waitq_ref(fl_waitq *waitq);
void fl_waitq_unref(fl_waitq *waitq);

void fl_waitq_refresh_slow(fl_waitq *waitq);

/* Begins every operation: in a forked child the first one puts the wait queue in order. Short, takes a mutex.
 */
static inline void fl_waitq_refresh(fl_waitq *waitq)
{
    /* pairs with the release in fl_waitq_refresh_slow */
    if (__builtin_expect(FL_LOAD_GENERATION(&waitq->generation) != fl_fork_generation, false)) {
        fl_waitq_refresh_slow(waitq);
    }
}

/* How many wait: a figure to show. */
static inline uint32_t fl_waitq_waiting(fl_waitq *waitq)
{
    fl_waitq_refresh(waitq);
    return fl_load(&waitq->waiting, relaxed);
}

/* The queue lock. No Python inside, attached or not. Unlocking wakes the waiters that were granted something
   or woken meanwhile. */
void fl_waitq_lock(fl_waitq *waitq);
/* The same where all may have to be woken, with room to remember them. Without that room, or if more have
   come since, some are woken under the lock. */
void fl_waitq_lock_for_all(fl_waitq *waitq, fl_wakes *wakes);
void fl_waitq_unlock(fl_waitq *waitq, fl_wakes *wakes);

/* Queue lock. Behind all others, or before them. */
void fl_waitq_push(fl_waitq *waitq, fl_waiter *waiter);
void fl_waitq_push_first(fl_waitq *waitq, fl_waiter *waiter);
void fl_waitq_unlink(fl_waitq *waitq, fl_waiter *waiter);
/* Queue lock. It is out of the queue. True: what it waited for is the waiter's now, which must not be touched
   again. False: it is one of several, and another of them was first; nothing was given. */
bool fl_waitq_grant(fl_waitq *waitq, fl_waiter *waiter, fl_wakes *wakes);
/* Queue lock. It is out of the queue, and its wait over without anything, as fl_waitq_grant otherwise. */
void fl_waitq_refuse(fl_waitq *waitq, fl_waiter *waiter, fl_wakes *wakes);
/* Queue lock. Refuses all; or those only that wait for this object. */
void fl_waitq_refuse_all(fl_waitq *waitq, const void *request, fl_wakes *wakes);
/* Queue lock. */
void fl_waitq_wake(fl_waiter *waiter, fl_wakes *wakes);

/* Whether the wait queue's holder is a thread, or a task of a thread, that has ended: what it holds only
   another may give back. Set by the thread table; NULL: none ends. */
extern bool (*fl_owner_ended)(uint64_t owner);
static inline bool fl_owner_is_gone(uint64_t owner)
{
    return owner != 0 && fl_owner_ended != NULL && fl_owner_ended(owner);
}
static inline bool fl_waitq_orphaned(fl_waitq *waitq)
{
    uint64_t owner = waitq->flags & FL_WAITQ_OWNED ? fl_load(&waitq->owner, relaxed) : 0;
    /* a thread that has ended has written it before: one that let go first is in it no more, seen from its
       end */
    return fl_owner_is_gone(owner) && fl_load(&waitq->owner, relaxed) == owner;
}

/* Any thread: refuses those that wait for this object, and serves the others. */
void fl_waitq_refuse_of(fl_waitq *waitq, const void *request);

/* Any thread: the first one that waits looks again, and finds whose holder has ended. */
void fl_waitq_wake_head(fl_waitq *waitq);

/* A thread's waiter. */
void fl_waiter_init(fl_waiter *waiter, fl_waitq *waitq, uint32_t wanted, fl_stake stake);

/* Once. True: it has what it wants, and was never queued. False: it is queued, and its side must wait for it;
   or it was refused at once, as its state says and fl_waitq_wait returns. In a forked child, a waiter that
   was queued in the parent enters again. */
bool fl_waitq_enter(fl_waiter *waiter);

typedef enum {
    FL_WAIT_GRANTED,
    FL_WAIT_REFUSED,
    FL_WAIT_TIMED_OUT,   /* it has left */
    FL_WAIT_INTERRUPTED, /* by a signal, or it is time to look for one; or the holder has ended, and `told`
                            says so now. It waits still, in its place. */
} fl_wait_result;

/* The thread's ending. Blocks, detached. `signals`: when it looks for signals at the latest. */
fl_wait_result fl_waitq_wait(fl_waiter *waiter, int64_t deadline, int64_t signals);

/* By a thread whose waiter was granted something or refused: wakes one of those that were let go together
   with it, if there are any left. Every ending does it. */
void fl_waiter_wake_others(fl_waiter *waiter);

/* Takes the waiter out of the queue, for a reason. False: it was granted or refused first; or its time is
   over and it has moved from a condition to its lock, which it waits for whatever the time. */
bool fl_waitq_leave(fl_waiter *waiter, fl_waiter_state why);

/* The waiter tries; by its own thread, or by its loop's. True: it has what it wants. */
bool fl_waitq_retry(fl_waiter *waiter);

/* Whether it still waits, and its wait queue's `owner` was not set on its behalf before this call: both
   change under the queue lock. The waiter is there meanwhile. */
bool fl_waiter_waits(fl_waiter *waiter);

/* Leaves, or gives back what it was granted. True: it did one or the other; false: it was settled before, or
   is to be cancelled and what it was granted is final. For a thread's waiter that is not to be used, and for
   a task's at any time, from any thread. */
bool fl_waiter_abandon(fl_waiter *waiter, fl_waiter_state why);

/* The queue that it waits in, locked; any side while the waiter is there. */
fl_waitq *fl_waiter_lock(fl_waiter *waiter);

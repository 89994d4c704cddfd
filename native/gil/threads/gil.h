/* gil: what the probe keeps of each GIL, of each thread, and of each thread at each GIL (its seat).
 *
 * Locks, outermost first; none is held while Python code runs or memory of Python is touched:
 *     fl_gil.life        guards `alive` and `idle`: a thread that holds it and finds the GIL alive and not
 *                        idle may lock the GIL's own mutex
 *     fl_gil.py->mutex   the interpreter's own mutex, which it holds for a moment at every take and drop.
 *                        All that is said to be "under the mutex" is guarded by it: what the hooks do, they
 *                        do while the interpreter holds it anyway, and a snapshot takes it for the time of a
 *                        copy
 *     the registry's lock (registry.c), and within it the threads' lock (threads.c)
 *     the recorder's lock (recorder.c) and the stacks' lock (stacks.c): with these held no other is taken
 *
 * An interpreter's own GIL disappears with its interpreter, and nothing reports that: the GIL is not
 * destroyed, its memory is freed. So while no thread holds or waits for such a GIL it is `idle`, which its
 * own threads change in the hooks, and no other thread touches it; what is "under the mutex" is then
 * guarded by `life` alone. A thread that takes both must not wait for the mutex of such a GIL with `life`
 * held, because the hooks take `life` under the mutex.
 *
 * Lives: a seat belongs to its thread and to its GIL, and is freed when both have let go of it; so neither a
 * thread that ends nor an interpreter that is destroyed leaves a pointer behind. An fl_gil is reused, never
 * freed. Seats of threads that have ended are kept for reports up to a number, then added to the account of
 * the "ended threads".
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "gil/trace/collections.h"
#include "gil/trace/blame.h"
#include "gil/trace/histogram.h"
#include "gil/trace/ring.h"
#include "machine/ticks.h"
#include "gil/interpreter/compat.h"

#define FL_THREAD_NAME 80
#define FL_SERIAL_ENDED FL_BLAME_ENDED

#define FL_CACHE_LINE 64 /* bytes */

#define FL_WINDOWS 8 /* observations at once (snapshot.h) */

/* The longest wait, hold and overrun (snapshot.h). */
typedef struct {
    uint64_t of[3];
} fl_maxima;

static inline void fl_maximum(uint64_t *maximum, uint64_t value)
{
    *maximum = value > *maximum ? value : *maximum;
}

static inline void fl_maxima_merge(fl_maxima *maxima, const fl_maxima *others)
{
    for (int i = 0; i < 3; i++) {
        fl_maximum(&maxima->of[i], others->of[i]);
    }
}

/* Everything counted of a seat. Times in ticks. Under the mutex. A take and a drop that no thread waits for
   touch the first cache line and one of the histogram, most often that of the holds from 256 ns to 65 us. */
typedef struct {
    uint64_t acquisitions, voluntary_drops, held, contended, waited;
    fl_maxima maxima; /* since the last snapshot */
    uint64_t held_histogram[FL_HISTOGRAM_BUCKETS], wait_histogram[FL_HISTOGRAM_BUCKETS];
    uint64_t forced_drops, requests, handoffs, off_cpu, off_cpu_known, asleep;
    uint64_t overrun, overrun_off_cpu; /* of the second, the part without a core */
} fl_tally;

_Static_assert(offsetof(fl_tally, held_histogram) == FL_CACHE_LINE, "what comes before is one line");

/* A look at a stack (stacks.h). All zeros: none yet. */
typedef struct {
    uint64_t hash; /* of the addresses that make up the stack */
    uint32_t id;
} fl_stack_look;

typedef struct fl_thread {
    struct fl_thread *next, *previous; /* the threads' lock, like the rest but `seats` */
    uint32_t serial;                   /* from 1; never used again in this process */
    pid_t native_id;
    uint16_t gil; /* index of the first it was seen with */
    bool ended;
    bool recorded;             /* the recording has the present name */
    char name[FL_THREAD_NAME]; /* UTF-8; "" when not known */
    struct fl_seat *seats;     /* its own thread only */
    atomic_uint references;    /* of itself while it runs, and of its seats */
} fl_thread;

typedef struct fl_seat {
    /* What every take and drop looks at: one cache line, and the tally's. */
    _Alignas(FL_CACHE_LINE) struct fl_gil *_Atomic gil; /* NULL: is no more */
    uint32_t serial;
    bool holding;       /* under the mutex, and of its own thread: that may read it without */
    bool waiting;       /* likewise */
    bool wakes;         /* own thread: call the scheduler's `unlocked` after the mutex */
    bool forced_out;    /* under the mutex: it was, and has not been back for the GIL */
    bool marked;        /* what follows is of this hold (offcpu.h) */
    bool sleeps;        /* it did when it was last looked at */
    bool sampled;       /* own thread: whether it sleeps before it wants the GIL again is to be found out */
    bool ended;         /* under the mutex: the thread is no more */
    atomic_bool orphan; /* the GIL is no more and has let go: the thread may free this */
    uint64_t t_acquired, t_dropped;
    uint64_t held;                 /* how long its last hold was: the next may be alike */
    uint64_t switch_apart;         /* under the mutex: such waits that nothing followed, not yet counted */
    _Atomic uint64_t switch_until, /* its last wait for the GIL to be taken from it; 0: none, or goes on. */
        switch_from;               /* Written by its own thread, and cleared by it under the mutex */
    _Alignas(FL_CACHE_LINE) fl_tally tally;

    uint64_t t_want;
    struct fl_seat *ahead, *behind; /* among the waiters, by when they began */
    fl_thread *thread;
    const void *tstate; /* under the mutex: with which it took the GIL last; to be read as outside.h does */
    struct fl_seat *of_thread, *of_gil;
    uint64_t spent_us;          /* own thread: its CPU time when it was forced out, or that wait was over, */
    long slept;                 /* and how often it had let go of its core */
    uint64_t cpu_ns, cpu_ticks; /* the CPU clock at some moment, and when that was */
    uint64_t off_cpu, asleep;   /* before that moment */
    uint64_t off_cpu_before;    /* before the first request */
    uint64_t t_collecting, collected; /* own thread: since when it collects garbage; how long after a
                                         request in this hold */
    fl_stack_look look_holding, look_waiting;
    fl_maxima window[FL_WINDOWS];
    void *schedule; /* the scheduler's own record */
} fl_seat;

typedef struct fl_gil {
    fl_py_gil *py;
    uint16_t index; /* 0 is the main interpreter's */
    bool alive;     /* written under `life` and the registry's lock, read under either */
    bool idle;      /* written under `life` and the mutex, read under either */
    uint64_t since; /* order of birth */
    fl_ring *ring;  /* under the mutex, like what follows `life`. NULL: events are not recorded */
    pthread_mutex_t life;

    /* What every take and drop writes, on whichever core: one cache line. */
    _Alignas(FL_CACHE_LINE) fl_seat *holder; /* NULL: free, or not known */
    fl_seat *dropper;       /* the thread that dropped it, until one has it; NULL: not known */
    uint64_t t_last;        /* the last time given to an event: no later event gets an earlier one */
    uint64_t t_request;     /* when the holder was first asked to drop; 0: it was not */
    uint64_t t_waiter;      /* when a waiter's stack was last taken */
    uint64_t asked_late;    /* by so much the waiter that asked was late, for want of a core */
    fl_seat *first, *last;  /* of the waiters */
    uint32_t holder_before; /* serial; 0: not known */
    uint32_t forced_out;    /* how many seats are */

    fl_seat *seats;
    uint32_t ended;    /* seats of threads that have ended */
    fl_tally departed; /* of those that were let go */
    fl_blame blame;
    fl_event take;    /* the last, kept back until it is known what comes next (observe.c); kind 0: none */
    fl_event row;     /* likewise: `row_count` short holds of one thread, from `row_from` on */
    uint64_t row_from;
    uint32_t row_count;
    fl_collections collections;
    uint64_t t_stack; /* when a holder's stack was last looked at */
    uint32_t late_stack; /* what the holder does that goes on after requests; 0: not looked at */
    uint64_t t_look;  /* when it was last looked whether a holder sleeps */
    void *schedule;   /* the scheduler's own record */
    uint32_t obeyed;  /* the last request from outside that it knows of (control.h) */
    atomic_uint unseen; /* requests in a row by waiters that no hook has seen (hooks.h) */
    uint64_t until;   /* when scheduling ends: what the program was given for a while (schedule.h) */
} fl_gil;

static inline fl_gil *fl_seat_gil(const fl_seat *seat)
{
    return atomic_load_explicit(&seat->gil, memory_order_relaxed);
}

/* A time under the mutex: never earlier than the one before. */
static inline uint64_t fl_gil_now(fl_gil *gil)
{
    return gil->t_last = fl_ticks_from(gil->t_last);
}

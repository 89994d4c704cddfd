/* sim: threads, cores and an interpreter's lock, simulated event by event.
 *
 * What is modelled: c cores with one run queue, time slices, wake-up latency and preemption, timer slack;
 * threads that run a program of a few operations; CPython's take/drop protocol in three variants, of which
 * SCHED is driven by the code of gil/policy/policy.c itself. What is not: caches, the mutex inside the GIL
 * (its critical sections take no time), priorities of the kernel, and core affinity.
 *
 * The same input gives the same run to the nanosecond: there is one source of randomness, seeded, and
 * events at the same nanosecond happen in the order in which they were scheduled.
 *
 * Threads: a simulation belongs to one thread at a time; different simulations are independent. Nothing
 * here knows Python. Allocation happens in fl_sim_new only (and for the log, doubling).
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "gil/policy/policy.h"

typedef enum {
    FL_GIL_OLD,   /* CPython to 3.1: released every so many ticks, a plain lock */
    FL_GIL_STOCK, /* CPython since 3.2: asked for after the switch interval, forced switch */
    FL_GIL_SCHED, /* scheduled by gil/policy/policy.c */
} fl_gil_kind;

/* ns, index, value: see each. "Off" means that the thread drops the GIL for it and takes it again
 * afterwards. */
typedef enum {
    FL_OP_RUN,     /* run bytecode for ns */
    FL_OP_CALL,    /* run C code for ns that never looks whether to drop the GIL */
    FL_OP_OFF,     /* off: compute for ns */
    FL_OP_SLEEP,   /* off: sleep for ns, using no core */
    FL_OP_YIELD,   /* off: sleep(0) */
    FL_OP_ACQUIRE, /* take semaphore `index`; off only if it is not to be had at once */
    FL_OP_RELEASE, /* release it `value` times */
    FL_OP_RECEIVE, /* off: a system call of ns, then take semaphore `index` */
    FL_OP_SEND,    /* off: a system call of ns, then release semaphore `index` */
    FL_OP_ADD,     /* counter `index` += value */
    FL_OP_UNTIL,   /* jump to `target` if counter `index` == value */
    FL_OP_LOOP,    /* jump to `target`, `value` times in all, then go on */
    FL_OP_JUMP,    /* to `target` */
    FL_OP_START,   /* start the next thread of group `index` and wait (off) until it has run */
    FL_OP_JOIN,    /* wait (off) for each thread of group `index` in turn */
    FL_OP_BEGIN,   /* a request begins */
    FL_OP_END,     /* the request ends: its length goes to the histogram of group `target` - 1, for 0 of
                      the thread's own */
    FL_OP_MEASURE, /* statistics begin here */
    FL_OP_EXIT,
    FL_OP_ARRIVE,  /* foreign: wait for the next arrival of a Poisson process of mean gap ns, stamp it and
                      release semaphore `index` */
    FL_OP_STAMPED, /* a request begins, at the stamp of the arrival that was taken from semaphore `index` */
    FL_OP_SOMETIMES, /* to `target`, `value` times in a million */
    FL_OPS
} fl_op_kind;

typedef struct fl_op {
    uint8_t kind;
    uint8_t depth;   /* LOOP: nesting depth, 0 .. FL_SIM_DEPTH - 1 */
    uint16_t jitter; /* RUN, CALL, OFF, WAIT: +- this many thousandths of ns, uniformly */
    uint32_t index;
    uint32_t target;
    int64_t ns; /* or value */
} fl_op;

#define FL_SIM_DEPTH 4

typedef struct fl_group {
    uint32_t entry;     /* first operation */
    uint32_t threads;   /* how many exist in all */
    uint32_t initial;   /* so many of them start at time 0; the others wait for START */
    uint8_t foreign;    /* of another process: never needs the GIL */
    uint8_t daemon;     /* the simulation does not wait for them */
    uint8_t priority;   /* fl_priority */
} fl_group;

typedef struct fl_kernel {
    uint32_t cores;
    uint8_t fair;            /* run queue by run time (1) or first-in first-out (0) */
    uint8_t preempt;         /* fair only: a woken thread takes a core from one that is further ahead */
    int64_t slice_ns;        /* time slice when others want the core */
    int64_t granularity_ns;  /* preempt only when ahead by more than this */
    int64_t credit_ns;       /* fair only: a thread that has slept is put at most this far ahead */
    int64_t switch_ns;       /* what a core needs to change threads */
    int64_t resume_ns;       /* what a sleep costs the sleeper: the way into the kernel, and out again */
    int64_t wake_ns;         /* from a wake-up to the woken thread being runnable */
    int64_t wake_jitter_ns;  /* and up to this more, uniformly */
    int64_t idle_exit_ns;    /* a core that has been idle for idle_after_ns needs this much more */
    int64_t idle_after_ns;
    int64_t call_ns;         /* what waking costs the waker */
    int64_t slack_ns;        /* timers fire this much late; 0: sleep(0) is a sched_yield() */
} fl_kernel;

typedef struct fl_sim_config {
    fl_gil_kind gil;
    fl_kernel kernel;
    int64_t interval_ns;   /* switch interval; for OLD the time of 100 ticks */
    uint8_t queued;        /* STOCK with a queue of waiters and hand-over on request (gil_queue.c) */
    uint32_t return_divisor; /* STOCK: a thread that dropped the GIL unasked asks after interval / this */
    int64_t take_ns;       /* what taking the GIL costs */
    int64_t check_ns;      /* bytecode looks whether to drop the GIL at least this often */
    fl_policy_mode mode;   /* SCHED */
    int32_t share;         /* SCHED, of FL_SHARE_ONE */
    fl_policy_constants constants;
    uint64_t seed;
    uint32_t lost_wakes;   /* fault injection: so many in a million wake-ups of granted threads are lost */
    size_t log_limit;      /* keep this many events, 0 for none */
    const fl_op *ops;
    uint32_t ops_count;
    const fl_group *groups;
    uint32_t groups_count;
    const int64_t *counters; /* initial values */
    uint32_t counters_count;
    const int64_t *semaphores;
    uint32_t semaphores_count;
} fl_sim_config;

typedef enum {
    FL_SIM_EVENT_START, FL_SIM_EVENT_WAIT, FL_SIM_EVENT_TIMEOUT, FL_SIM_EVENT_ASK, FL_SIM_EVENT_DROP,
    FL_SIM_EVENT_FORCED, FL_SIM_EVENT_SIGNAL, FL_SIM_EVENT_SWITCH_WAIT, FL_SIM_EVENT_FREE,
    FL_SIM_EVENT_HAND, FL_SIM_EVENT_KICK, FL_SIM_EVENT_ACQUIRE, FL_SIM_EVENT_ON_CORE, FL_SIM_EVENT_OFF_CORE,
    FL_SIM_EVENT_PARK, FL_SIM_EVENT_WAKE, FL_SIM_EVENT_EXIT,
} fl_sim_event_kind;

typedef struct fl_sim_event {
    int64_t t;
    uint32_t thread;
    uint32_t other; /* the other thread that it concerns; UINT32_MAX: none */
    uint32_t number; /* the GIL's switch number */
    uint8_t kind;
    uint8_t cls;
    uint16_t core;
} fl_sim_event;

/* Times in ns. Since MEASURE, or since the start. */
typedef struct fl_thread_stats {
    uint64_t passes;  /* acquisitions */
    uint64_t waits;   /* acquisitions that had to wait */
    uint64_t forced;  /* drops after a request */
    uint64_t asked;   /* requests sent */
    int64_t held, waited, max_wait, cpu;
} fl_thread_stats;

/* Request lengths in log-linear buckets: bucket b covers [fl_sim_bucket_low(b), fl_sim_bucket_low(b + 1)). */
#define FL_SIM_BUCKETS 640
typedef struct fl_group_stats {
    uint64_t requests;
    int64_t sum, max;
    uint32_t buckets[FL_SIM_BUCKETS];
} fl_group_stats;

typedef struct fl_sim_totals {
    int64_t elapsed, gil_free_wanted, max_wait[FL_CLASSES];
    uint64_t passes, switches, context_switches, wakeups, asked, forced, direct_handovers, dropped_unclaimed,
        woken_early;
    uint64_t steps, logged;
    uint32_t threads, finished;
    uint8_t tripped; /* the watchdog fell back to stock */
} fl_sim_totals;

typedef enum {
    FL_SIM_RUNNING,   /* not finished: call fl_sim_run again */
    FL_SIM_FINISHED,  /* every thread that is not a daemon has ended */
    FL_SIM_TIME_UP,   /* `until` has been reached */
    FL_SIM_DEADLOCK,  /* the program's own fault: threads wait for each other */
    FL_SIM_LOST,      /* violation: the GIL is free and no thread that wants it will ever look */
    FL_SIM_TWO,       /* violation: two holders */
    FL_SIM_STALLED,   /* violation: the GIL was free and wanted for longer than the policy allows */
    FL_SIM_NO_TIME,   /* the program loops without using time */
    FL_SIM_NO_THREAD, /* the program starts more threads than a group has */
} fl_sim_status;

typedef struct fl_sim fl_sim;

int64_t fl_sim_bucket_low(uint32_t bucket);

/* NULL when memory is short. The config's arrays are copied; indices and targets must be in range. */
fl_sim *fl_sim_new(const fl_sim_config *config);
void fl_sim_free(fl_sim *sim);

/* Go on for at most `steps` events, or until simulated time `until`. */
fl_sim_status fl_sim_run(fl_sim *sim, uint64_t steps, int64_t until);

fl_sim_totals fl_sim_get_totals(const fl_sim *sim);
fl_thread_stats fl_sim_get_thread(const fl_sim *sim, uint32_t thread);
const fl_group_stats *fl_sim_get_group(const fl_sim *sim, uint32_t group);
const fl_sim_event *fl_sim_get_log(const fl_sim *sim, size_t *count);

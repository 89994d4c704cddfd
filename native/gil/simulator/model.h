/* model: the simulation's own records, shared by its files; not for callers.
 *
 * kernel.c knows cores and the threads that run on them; gil.c and gil_sched.c know the lock; program.c
 * knows operations. A thread on a core always works off a stretch of CPU time (`burst`); when the stretch
 * ends, its `step` says what happens next: one instant action that ends by starting another stretch or by
 * blocking.
 */
#pragma once

#include "gil/simulator/heap.h"
#include "gil/simulator/sim.h"

#define NO_ACTOR UINT32_MAX
#define FL_SIM_MAX_PREEMPTIONS 10 /* MAX_PREEMPTIONS of upstream/patches/ab */

typedef enum {
    AT_UNBORN,
    AT_CORE,    /* on a core; its event is the end of its burst or of its slice */
    AT_QUEUE,   /* runnable, waiting for a core */
    AT_WAKING,  /* woken; its event is the moment when it becomes runnable */
    AT_BLOCK,   /* asleep; its event, if any, is its timer */
    AT_DEAD,
} fl_where;

typedef enum {
    STEP_CONTINUE, /* holds the GIL (or is foreign): go on with the program */
    STEP_RAN,      /* a piece of RUN or CALL is over */
    STEP_OFF,      /* the GIL is dropped: begin what it was dropped for */
    STEP_SEM,      /* try to take the semaphore of the current operation */
    STEP_POST,     /* release the semaphore of the current operation */
    STEP_TAKE,     /* want the GIL */
    STEP_RETRY,    /* OLD, STOCK: woken while waiting for the GIL */
    STEP_TICK,     /* SCHED: woken, or done spinning */
} fl_step;

typedef struct fl_actor {
    fl_policy_thread policy; /* first: a policy's thread is an actor */
    uint32_t id, pc, group, core;
    uint8_t where, step;
    bool foreign;
    bool gil_wanting; /* between wanting the GIL and having it */
    bool gil_waiting; /* in there, it had to wait */
    bool parked;      /* in there, asleep, with no wake-up on its way */
    bool signalled;   /* OLD, STOCK: its wake-up is on its way */
    bool spinning;
    bool forced;      /* is dropping because it was asked to */
    bool computes;    /* STOCK: waits after so many drops that it was asked for */
    uint32_t preemptions; /* such drops since it last dropped of its own accord */
    bool granted, is_first; /* STOCK, queued: the GIL is its own; it has been first in the queue */
    bool overdue;           /* and has been so for an interval */
    bool must_switch; /* STOCK: after this drop, wait until another has had the GIL */
    bool reported;        /* SCHED: the policy knows that it wants the GIL */
    bool has_run;     /* has held the GIL once */
    uint32_t next;    /* in a semaphore's or the GIL's queue of sleepers */
    uint32_t starter; /* the thread that waits for its first run, or for its end */
    uint32_t loop[FL_SIM_DEPTH];
    uint32_t cursor;  /* JOIN: present target; START: the thread started; NO_ACTOR between */
    uint32_t switch_seen;
    int64_t burst, burst_from; /* what is left of the stretch, and since when it has been worked off */
    int64_t piece, left;       /* RUN: the present piece, and what is left of the operation with it */
    int64_t ticks;             /* OLD: until the next release */
    int64_t vruntime;
    int64_t cpu_acquired; /* stats.cpu when it acquired */
    int64_t t_robbed; /* when its core was taken from it last; 0: it has been asked for since */
    int64_t patience;          /* STOCK: how long it lets pass before it asks */
    int64_t since, t_first;    /* STOCK, queued: from when its patience counts; since when it is first */
    int64_t t_want, t_acquired, t_dropped, t_begin;
    uint64_t wakes;
    uint64_t slept; /* ... by its last drop, if `sampled` */
    bool sampled;
    uint64_t arrivals; /* ARRIVE: its random numbers */
    int64_t t_arrival; /* ARRIVE: when the next is due */
    fl_thread_stats stats;
} fl_actor;

typedef struct fl_sleepers { /* first-in first-out, through fl_actor.next */
    uint32_t first, last;
} fl_sleepers;

typedef struct fl_core {
    uint32_t thread, last;
    int64_t since, slice_end, idle_from;
} fl_core;

#define FL_SIM_STAMPS (1u << 17)
typedef struct fl_sim_semaphore {
    int64_t *stamps; /* of what ARRIVE released: when it was due; first-in first-out */
    uint32_t stamped, taken;
    int64_t count;
    fl_sleepers sleepers;
} fl_sim_semaphore;

struct fl_sim {
    fl_sim_config config;
    int64_t now;
    uint64_t random;
    fl_heap events, queue;
    fl_core *cores;
    int64_t min_vruntime;
    fl_actor *actors;
    uint32_t count, alive; /* alive: not daemons, not ended */
    uint32_t *group_first, *group_started;
    int64_t *counters;
    fl_sim_semaphore *semaphores;
    fl_op *ops;
    fl_group *groups;
    fl_group_stats *group_stats;

    /* the GIL */
    bool locked, drop_request;
    uint32_t holder, last_holder, switch_number, switch_waiter;
    fl_sleepers waiters; /* OLD, STOCK: asleep on the condition variable */
    int64_t switch_time; /* when another than the last holder took the GIL */
    bool holder_computes; /* STOCK, queued: it had been preempted before its last wait */
    int64_t t_computed;   /* until when such a thread held the GIL last */
    uint32_t waiting, parked;
    fl_policy policy;
    int64_t t_measure, free_from;

    fl_sim_status status;
    fl_sim_totals totals;
    fl_sim_event *log;
    size_t log_size;
};

static inline int64_t fl_sim_random(fl_sim *sim, int64_t below) /* 0 .. below - 1; 0 if below < 1 */
{
    uint64_t z = (sim->random += 0x9e3779b97f4a7c15ull); /* splitmix64 */
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    z ^= z >> 31;
    return below < 1 ? 0 : (int64_t)(z % (uint64_t)below);
}

static inline void fl_sleepers_push(fl_sim *sim, fl_sleepers *list, fl_actor *actor)
{
    actor->next = NO_ACTOR;
    if (list->last == NO_ACTOR) {
        list->first = actor->id;
    }
    else {
        sim->actors[list->last].next = actor->id;
    }
    list->last = actor->id;
}

static inline fl_actor *fl_sleepers_pop(fl_sim *sim, fl_sleepers *list)
{
    if (list->first == NO_ACTOR) {
        return NULL;
    }
    fl_actor *actor = &sim->actors[list->first];
    list->first = actor->next;
    if (list->first == NO_ACTOR) {
        list->last = NO_ACTOR;
    }
    return actor;
}

void fl_sim_log(fl_sim *sim, fl_sim_event_kind kind, const fl_actor *actor, uint32_t other);

/* kernel.c */
void fl_kernel_work(fl_sim *sim, fl_actor *actor, int64_t ns, fl_step step);   /* on its core, for ns */
void fl_kernel_shorten(fl_sim *sim, fl_actor *actor, int64_t ns);              /* its burst ends within ns */
void fl_kernel_block(fl_sim *sim, fl_actor *actor, int64_t until, fl_step step); /* INT64_MAX: no timer */
void fl_kernel_yield(fl_sim *sim, fl_actor *actor, fl_step step);              /* behind the others */
void fl_kernel_wake(fl_sim *sim, fl_actor *actor);                             /* no effect unless asleep */
void fl_kernel_end(fl_sim *sim, fl_actor *actor);
fl_actor *fl_kernel_event(fl_sim *sim); /* the next event; whose step is due, or NULL: there is none */

/* gil.c: each ends in a stretch of work or in blocking */
void fl_gil_take(fl_sim *sim, fl_actor *actor);
void fl_gil_retry(fl_sim *sim, fl_actor *actor);
void fl_gil_drop(fl_sim *sim, fl_actor *actor, bool forced);
void fl_gil_acquired(fl_sim *sim, fl_actor *actor);
void fl_gil_request(fl_sim *sim, fl_actor *actor);
void fl_gil_sleep(fl_sim *sim, fl_actor *actor, int64_t until, fl_step step);
void fl_gil_awake(fl_sim *sim, fl_actor *actor);
void fl_gil_waits(fl_sim *sim, fl_actor *actor);

int64_t fl_gil_signal(fl_sim *sim, fl_actor *actor, fl_actor *woken); /* the time that it costs */

/* gil_queue.c */
void fl_queue_take(fl_sim *sim, fl_actor *actor);
void fl_queue_retry(fl_sim *sim, fl_actor *actor);
void fl_queue_switched(fl_sim *sim, const fl_actor *actor);
int64_t fl_queue_drop(fl_sim *sim, fl_actor *actor);

/* gil_sched.c */
void fl_sched_take(fl_sim *sim, fl_actor *actor);
void fl_sched_tick(fl_sim *sim, fl_actor *actor);
void fl_sched_acquired(fl_sim *sim, fl_actor *actor); /* t_acquired is still that of its last hold */
int64_t fl_sched_drop(fl_sim *sim, fl_actor *actor); /* the time that its wake-ups cost */

/* program.c */
void fl_program_step(fl_sim *sim, fl_actor *actor);
void fl_program_born(fl_sim *sim, fl_actor *actor);

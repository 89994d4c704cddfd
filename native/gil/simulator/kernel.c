/* The kernel's scheduler: c cores, one run queue, time slices, wake-up latency and preemption.
 *
 * Linux has one queue per core and moves threads between them; one queue is the ideal that this approaches,
 * and it errs in favour of the woken. `fair` orders the queue by run time used (as CFS does, a sleeper
 * being put at most half a slice behind), else it is first-in first-out, as SCHED_RR.
 */
#include "gil/simulator/model.h"

static fl_core *core_of(fl_sim *sim, const fl_actor *actor)
{
    return &sim->cores[actor->core];
}

/* Its event: the end of its burst, or of its slice if a thread waits for the core. */
static void arm(fl_sim *sim, fl_actor *actor)
{
    int64_t at = actor->burst_from + actor->burst;
    const fl_core *core = core_of(sim, actor);

    if (!fl_heap_empty(&sim->queue) && core->slice_end < at) {
        at = core->slice_end > actor->burst_from ? core->slice_end : actor->burst_from;
    }
    fl_heap_set(&sim->events, actor->id, at > sim->now ? at : sim->now);
}

/* Settle what it has worked off so far. */
static void settle(fl_sim *sim, fl_actor *actor)
{
    int64_t done = sim->now - actor->burst_from;

    if (done > 0) {
        actor->burst -= done;
        actor->burst_from = sim->now;
        actor->vruntime += done;
        actor->stats.cpu += done;
    }
}

static void put_on(fl_sim *sim, uint32_t number, fl_actor *actor)
{
    fl_core *core = &sim->cores[number];
    const fl_kernel *kernel = &sim->config.kernel;

    actor->core = number;
    actor->where = AT_CORE;
    actor->burst_from = sim->now;
    if (core->last != actor->id) {
        actor->burst_from += kernel->switch_ns;
        sim->totals.context_switches++;
    }
    if (actor->vruntime > sim->min_vruntime) {
        sim->min_vruntime = actor->vruntime;
    }
    core->thread = core->last = actor->id;
    core->since = sim->now;
    core->slice_end = actor->burst_from + kernel->slice_ns;
    fl_sim_log(sim, FL_SIM_EVENT_ON_CORE, actor, NO_ACTOR);
    arm(sim, actor);
}

static void enqueue(fl_sim *sim, fl_actor *actor)
{
    bool was_empty = fl_heap_empty(&sim->queue);

    actor->where = AT_QUEUE;
    fl_heap_set(&sim->queue, actor->id, sim->config.kernel.fair ? actor->vruntime : 0);
    if (was_empty) { /* from now on slices matter */
        for (uint32_t c = 0; c < sim->config.kernel.cores; c++) {
            if (sim->cores[c].thread != NO_ACTOR) {
                arm(sim, &sim->actors[sim->cores[c].thread]);
            }
        }
    }
}

/* The core is free: give it to the first in the queue. */
static void refill(fl_sim *sim, uint32_t number)
{
    fl_core *core = &sim->cores[number];

    core->thread = NO_ACTOR;
    if (fl_heap_empty(&sim->queue)) {
        core->idle_from = sim->now;
        return;
    }
    fl_actor *next = &sim->actors[fl_heap_first(&sim->queue)->thread];
    fl_heap_remove(&sim->queue, next->id);
    put_on(sim, number, next);
}

static void take_off(fl_sim *sim, fl_actor *actor)
{
    settle(sim, actor);
    fl_heap_remove(&sim->events, actor->id);
    fl_sim_log(sim, FL_SIM_EVENT_OFF_CORE, actor, NO_ACTOR);
}

/* The idle core that fell asleep last, or NO_ACTOR. */
static uint32_t idle_core(const fl_sim *sim)
{
    uint32_t best = NO_ACTOR;

    for (uint32_t c = 0; c < sim->config.kernel.cores; c++) {
        if (sim->cores[c].thread == NO_ACTOR
            && (best == NO_ACTOR || sim->cores[c].idle_from > sim->cores[best].idle_from)) {
            best = c;
        }
    }
    return best;
}

static void runnable(fl_sim *sim, fl_actor *actor)
{
    const fl_kernel *kernel = &sim->config.kernel;
    uint32_t core = idle_core(sim);

    if (actor->vruntime < sim->min_vruntime - kernel->credit_ns) {
        actor->vruntime = sim->min_vruntime - kernel->credit_ns;
    }
    if (core != NO_ACTOR) {
        put_on(sim, core, actor);
        return;
    }
    if (kernel->fair && kernel->preempt) {
        fl_actor *victim = NULL;
        for (uint32_t c = 0; c < kernel->cores; c++) {
            fl_actor *running = &sim->actors[sim->cores[c].thread];
            settle(sim, running);
            if (victim == NULL || running->vruntime > victim->vruntime) {
                victim = running;
            }
        }
        if (actor->vruntime + kernel->granularity_ns < victim->vruntime) {
            core = victim->core;
            take_off(sim, victim);
            victim->t_robbed = sim->now;
            put_on(sim, core, actor);
            enqueue(sim, victim);
            return;
        }
    }
    enqueue(sim, actor);
}

void fl_kernel_work(fl_sim *sim, fl_actor *actor, int64_t ns, fl_step step)
{
    actor->burst = ns;
    actor->burst_from = actor->burst_from > sim->now ? actor->burst_from : sim->now;
    actor->step = (uint8_t)step;
    arm(sim, actor);
}

void fl_kernel_shorten(fl_sim *sim, fl_actor *actor, int64_t ns)
{
    if (actor->where == AT_CORE) {
        settle(sim, actor);
    }
    if (actor->burst > ns) {
        actor->burst = ns;
    }
    if (actor->where == AT_CORE) {
        arm(sim, actor);
    }
}

void fl_kernel_block(fl_sim *sim, fl_actor *actor, int64_t until, fl_step step)
{
    take_off(sim, actor);
    actor->where = AT_BLOCK;
    actor->step = (uint8_t)step;
    actor->burst = sim->config.kernel.resume_ns;
    if (until != INT64_MAX) {
        int64_t at = (until > sim->now ? until : sim->now) + sim->config.kernel.slack_ns;
        fl_heap_set(&sim->events, actor->id, at);
    }
    refill(sim, actor->core);
}

void fl_kernel_yield(fl_sim *sim, fl_actor *actor, fl_step step)
{
    actor->step = (uint8_t)step;
    if (fl_heap_empty(&sim->queue)) {
        fl_kernel_work(sim, actor, sim->config.kernel.switch_ns, step);
        return;
    }
    take_off(sim, actor);
    actor->burst = 0;
    enqueue(sim, actor);
    refill(sim, actor->core);
}

void fl_kernel_wake(fl_sim *sim, fl_actor *actor)
{
    const fl_kernel *kernel = &sim->config.kernel;
    int64_t at = sim->now + kernel->wake_ns + fl_sim_random(sim, kernel->wake_jitter_ns);
    uint32_t core = idle_core(sim);

    if (actor->where != AT_BLOCK) {
        return;
    }
    if (core != NO_ACTOR && sim->now - sim->cores[core].idle_from >= kernel->idle_after_ns) {
        at += kernel->idle_exit_ns;
    }
    sim->totals.wakeups++;
    actor->wakes++;
    actor->where = AT_WAKING;
    fl_heap_set(&sim->events, actor->id, at);
    fl_sim_log(sim, FL_SIM_EVENT_WAKE, actor, NO_ACTOR);
}

void fl_kernel_end(fl_sim *sim, fl_actor *actor)
{
    take_off(sim, actor);
    actor->where = AT_DEAD;
    refill(sim, actor->core);
}

fl_actor *fl_kernel_event(fl_sim *sim)
{
    fl_heap_entry event = *fl_heap_first(&sim->events);
    fl_actor *actor = &sim->actors[event.thread];

    sim->now = event.key;
    fl_heap_remove(&sim->events, event.thread);
    switch ((fl_where)actor->where) {
    case AT_BLOCK: /* its timer; the interrupt costs what a wake-up costs */
        fl_gil_awake(sim, actor);
        fl_kernel_wake(sim, actor);
        return NULL;
    case AT_WAKING:
        runnable(sim, actor);
        return NULL;
    case AT_CORE:
        settle(sim, actor);
        if (actor->burst <= 0) {
            return actor;
        }
        if (fl_heap_empty(&sim->queue)
            || (sim->config.kernel.fair && actor->vruntime < fl_heap_first(&sim->queue)->key)) {
            core_of(sim, actor)->slice_end = sim->now + sim->config.kernel.slice_ns;
            arm(sim, actor);
            return NULL;
        }
        take_off(sim, actor);
        actor->t_robbed = sim->now;
        uint32_t core = actor->core;
        enqueue(sim, actor);
        refill(sim, core);
        return NULL;
    default:
        return NULL;
    }
}

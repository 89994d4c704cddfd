/* The interpreter's lock: what its three variants have in common, and the two that CPython had and has.
 *
 * OLD (to 3.1): a lock made of a flag, a mutex and a condition variable. A thread that runs bytecode
 * releases and retakes it every 100 ticks; a release signals one sleeper, and the thread that takes it first
 * has it.
 *
 * STOCK (since 3.2): a waiter sleeps for the switch interval at a time; if the holder has not changed
 * meanwhile it sets the drop request, which the holder sees between two bytecodes. A drop signals one
 * sleeper; if it was asked for, the dropper then waits until another thread has had the GIL (the forced
 * switch). Two settings make it what upstream/ proposes for CPython: `return_divisor` (how early a thread
 * asks that dropped the GIL of its own accord) and `queued`, for which see gil_queue.c.
 */
#include "gil/simulator/model.h"

static bool is_stock(const fl_sim *sim) /* by choice, or because the watchdog fell back to it */
{
    return sim->config.gil == FL_GIL_STOCK
           || (sim->config.gil == FL_GIL_SCHED && sim->policy.mode == FL_MODE_STOCK);
}

/* Time in which the GIL is free, is wanted, and no thread that wants it is awake: it must end soon. */
static void watch_free(fl_sim *sim)
{
    bool idle = !sim->locked && sim->waiting > 0 && sim->waiting == sim->parked;

    if (idle && sim->free_from == INT64_MAX) {
        sim->free_from = sim->now;
    }
    else if (!idle && sim->free_from != INT64_MAX) {
        int64_t took = sim->now - sim->free_from;
        sim->free_from = INT64_MAX;
        if (took > sim->totals.gil_free_wanted) {
            sim->totals.gil_free_wanted = took;
        }
    }
}

void fl_gil_waits(fl_sim *sim, fl_actor *actor)
{
    if (!actor->gil_waiting) {
        actor->gil_waiting = true;
        sim->waiting++;
    }
}

/* Asleep in its wait for the GIL; `parked` until a wake-up is under way. */
void fl_gil_sleep(fl_sim *sim, fl_actor *actor, int64_t until, fl_step step)
{
    actor->parked = true;
    sim->parked += actor->gil_waiting;
    watch_free(sim);
    fl_sim_log(sim, FL_SIM_EVENT_PARK, actor, NO_ACTOR);
    fl_kernel_block(sim, actor, until, step);
}

void fl_gil_awake(fl_sim *sim, fl_actor *actor)
{
    if (actor->parked) {
        actor->parked = false;
        sim->parked -= actor->gil_waiting;
        watch_free(sim);
    }
}

void fl_gil_take(fl_sim *sim, fl_actor *actor)
{
    if (!actor->gil_wanting) {
        actor->t_want = sim->now;
        actor->gil_wanting = true;
    }
    if (!sim->locked) {
        fl_gil_acquired(sim, actor);
        return;
    }
    fl_sim_log(sim, FL_SIM_EVENT_WAIT, actor, sim->holder);
    if (sim->config.gil == FL_GIL_SCHED && !is_stock(sim)) {
        fl_sched_take(sim, actor);
        return;
    }
    if (!actor->gil_waiting) {
        uint32_t most = sim->config.queued ? FL_SIM_MAX_PREEMPTIONS : 0;
        actor->computes = actor->preemptions > most;
        actor->patience = sim->config.interval_ns / (actor->computes ? 1 : sim->config.return_divisor);
    }
    fl_gil_waits(sim, actor);
    if (sim->config.queued) {
        fl_queue_take(sim, actor);
        return;
    }
    actor->switch_seen = sim->switch_number;
    actor->signalled = false;
    fl_sleepers_push(sim, &sim->waiters, actor);
    int64_t until = sim->config.gil == FL_GIL_OLD ? INT64_MAX : sim->now + actor->patience;
    fl_gil_sleep(sim, actor, until, STEP_RETRY);
}

/* Take this waiter out of the middle of the condition variable's queue: its wait has timed out. */
static void stop_waiting(fl_sim *sim, fl_actor *actor)
{
    uint32_t *link = &sim->waiters.first, before = NO_ACTOR;

    while (*link != actor->id) {
        before = *link;
        link = &sim->actors[*link].next;
    }
    *link = actor->next;
    if (sim->waiters.last == actor->id) {
        sim->waiters.last = before;
    }
}

void fl_gil_retry(fl_sim *sim, fl_actor *actor)
{
    if (sim->config.queued) {
        fl_queue_retry(sim, actor);
        return;
    }
    if (!actor->signalled) {
        stop_waiting(sim, actor);
        if (2 * actor->patience <= sim->config.interval_ns) {
            actor->patience *= 2;
        }
        else {
            actor->patience = sim->config.interval_ns;
        }
        if (sim->locked && sim->switch_number == actor->switch_seen) {
            fl_sim_log(sim, FL_SIM_EVENT_TIMEOUT, actor, sim->holder);
            fl_gil_request(sim, actor);
        }
    }
    fl_gil_take(sim, actor);
}

int64_t fl_gil_signal(fl_sim *sim, fl_actor *actor, fl_actor *woken)
{
    fl_gil_awake(sim, woken);
    fl_kernel_wake(sim, woken);
    fl_sim_log(sim, FL_SIM_EVENT_SIGNAL, actor, woken->id);
    return sim->config.kernel.call_ns;
}

void fl_gil_request(fl_sim *sim, fl_actor *actor)
{
    fl_actor *holder = sim->holder == NO_ACTOR ? NULL : &sim->actors[sim->holder];

    actor->stats.asked++;
    sim->totals.asked++;
    fl_sim_log(sim, FL_SIM_EVENT_ASK, actor, sim->holder);
    sim->drop_request = true;
    if (holder == NULL || holder->step != STEP_RAN || sim->ops[holder->pc].kind != FL_OP_RUN) {
        return; /* it looks when its C code returns */
    }
    int64_t before = holder->burst, gap = 1 + fl_sim_random(sim, sim->config.check_ns);
    if (holder->where == AT_CORE && sim->now > holder->burst_from) {
        before -= sim->now - holder->burst_from;
    }
    fl_kernel_shorten(sim, holder, gap);
    if (before > gap) {
        holder->piece -= before - gap;
    }
}

void fl_gil_acquired(fl_sim *sim, fl_actor *actor)
{
    int64_t cost = sim->config.take_ns;
    int64_t waited = sim->now - (actor->t_want > sim->t_measure ? actor->t_want : sim->t_measure);

    if (sim->holder != NO_ACTOR) {
        sim->status = FL_SIM_TWO;
        return;
    }
    fl_gil_awake(sim, actor);
    sim->locked = true;
    sim->holder = actor->id;
    sim->waiting -= actor->gil_waiting;
    actor->gil_wanting = actor->gil_waiting = false;
    watch_free(sim);
    sim->drop_request = false;
    if (sim->config.gil == FL_GIL_SCHED) {
        fl_sched_acquired(sim, actor);
    }
    actor->t_acquired = sim->now;
    if (sim->last_holder != actor->id) {
        sim->last_holder = actor->id;
        sim->switch_time = sim->now;
        fl_queue_switched(sim, actor);
        sim->switch_number++;
        sim->totals.switches++;
    }
    sim->totals.passes++;
    actor->stats.passes++;
    actor->stats.waited += waited;
    actor->stats.waits += waited > 0;
    if (waited > actor->stats.max_wait) {
        actor->stats.max_wait = waited;
    }
    uint8_t cls = actor->policy.cls;
    if (waited > sim->totals.max_wait[cls]) {
        sim->totals.max_wait[cls] = waited;
    }
    fl_sim_log(sim, FL_SIM_EVENT_ACQUIRE, actor, NO_ACTOR);
    if (sim->switch_waiter != NO_ACTOR && sim->switch_waiter != actor->id) {
        fl_kernel_wake(sim, &sim->actors[sim->switch_waiter]);
        sim->switch_waiter = NO_ACTOR;
        cost += sim->config.kernel.call_ns;
    }
    if (!actor->has_run) {
        actor->has_run = true;
        if (actor->starter != NO_ACTOR) {
            fl_kernel_wake(sim, &sim->actors[actor->starter]);
            actor->starter = NO_ACTOR;
            cost += sim->config.kernel.call_ns;
        }
    }
    fl_kernel_work(sim, actor, cost, STEP_CONTINUE);
}

void fl_gil_drop(fl_sim *sim, fl_actor *actor, bool forced)
{
    int64_t cost = sim->config.take_ns / 2;
    int64_t from = actor->t_acquired > sim->t_measure ? actor->t_acquired : sim->t_measure;

    actor->forced = forced;
    actor->preemptions = forced ? actor->preemptions + 1 : 0;
    actor->stats.forced += forced;
    sim->totals.forced += forced;
    actor->stats.held += sim->now - from;
    fl_sim_log(sim, forced ? FL_SIM_EVENT_FORCED : FL_SIM_EVENT_DROP, actor, NO_ACTOR);
    sim->holder = NO_ACTOR;
    if (sim->config.gil == FL_GIL_SCHED) {
        cost += fl_sched_drop(sim, actor);
    }
    actor->t_dropped = sim->now;
    if (sim->config.queued) {
        cost += fl_queue_drop(sim, actor);
        watch_free(sim);
        fl_kernel_work(sim, actor, cost, STEP_OFF);
        return;
    }
    if (sim->config.gil != FL_GIL_SCHED || sim->policy.grantee == NULL) {
        sim->locked = false;
    }
    fl_actor *woken = fl_sleepers_pop(sim, &sim->waiters);
    if (woken != NULL) {
        woken->signalled = true;
        cost += fl_gil_signal(sim, actor, woken);
    }
    actor->must_switch = is_stock(sim) && sim->drop_request;
    watch_free(sim);
    fl_kernel_work(sim, actor, cost, STEP_OFF);
}

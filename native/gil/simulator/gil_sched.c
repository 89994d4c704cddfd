/* The scheduled lock: the same wait and drop as the hooks under a real interpreter make, around
 * gil/policy/policy.c. */
#include <stddef.h>

#include "gil/simulator/model.h"

static fl_actor *actor_of(fl_policy_thread *thread)
{
    return (fl_actor *)(void *)thread;
}

/* Makes the reports to the policy that were only counted (fl_policy_catch_up). */
static void catch_up(fl_sim *sim)
{
    if (sim->policy.alone != NULL) {
        const fl_actor *alone = actor_of(sim->policy.alone);
        fl_policy_catch_up(&sim->policy, alone->t_acquired, alone->t_dropped);
    }
}

static void want(fl_sim *sim, fl_actor *actor)
{
    if (!actor->reported) {
        if (actor->sampled) {
            actor->sampled = false;
            fl_policy_slept(&sim->policy, &actor->policy, actor->slept != actor->wakes);
        }
        fl_policy_want(&sim->policy, &actor->policy, actor->t_want);
        actor->reported = true;
    }
}

void fl_sched_take(fl_sim *sim, fl_actor *actor)
{
    catch_up(sim);
    want(sim, actor);
    fl_policy_arrive(&sim->policy, &actor->policy, sim->now);
    fl_gil_waits(sim, actor);
    fl_sched_tick(sim, actor);
}

/* As the hooks read a thread's CPU clock. */
static void look_coreless(const fl_sim *sim, fl_actor *holder)
{
    int64_t ran = holder->stats.cpu - holder->cpu_acquired, held = sim->now - sim->policy.t_acquired;

    if (holder->where == AT_CORE && sim->now > holder->burst_from) {
        ran += sim->now - holder->burst_from;
    }
    if (held >= sim->config.constants.grain_ns) {
        fl_policy_coreless(&sim->policy, &holder->policy, held - ran);
    }
}

/* As the hooks do after fl_parker_spin(). It has its core back now. */
static void look_robbed(fl_sim *sim, fl_actor *actor)
{
    if (actor->spinning && actor->t_robbed != 0
        && sim->now - actor->t_robbed >= sim->config.constants.robbed_ns) {
        fl_policy_crowded(&sim->policy, &actor->policy, sim->now);
    }
    actor->t_robbed = 0;
    actor->spinning = false;
}

/* As the hooks ask the kernel. */
static bool asleep_since(fl_watched *thread)
{
    char *policy = (char *)thread - offsetof(fl_policy_thread, watched);
    return ((fl_actor *)(void *)policy)->where == AT_BLOCK;
}

/* Does nothing: a wake-up that the simulation loses is lost for good. */
static void rouse(fl_watched *thread)
{
    (void)thread;
}

void fl_sched_tick(fl_sim *sim, fl_actor *actor)
{
    look_robbed(sim, actor);
    if (actor->policy.granted) {
        fl_gil_acquired(sim, actor);
        return;
    }
    for (;;) {
        if (sim->policy.holder != NULL) {
            look_coreless(sim, actor_of(sim->policy.holder));
        }
        fl_policy_thread *server = fl_policy_server_to_look_at(&sim->policy, &actor->policy, sim->now);
        if (server != NULL) {
            fl_policy_server_slept(&sim->policy, actor_of(server)->wakes, sim->now);
        }
        fl_tick tick = fl_policy_tick(&sim->policy, &actor->policy, sim->locked, sim->now);
        switch (tick.kind) {
        case FL_TICK_TAKE:
            fl_gil_acquired(sim, actor);
            return;
        case FL_TICK_PASS:
            fl_gil_take(sim, actor);
            return;
        case FL_TICK_ASK:
            fl_gil_request(sim, actor);
            break;
        case FL_TICK_SPIN:
            actor->spinning = true;
            fl_kernel_work(sim, actor, tick.until - sim->now, STEP_TICK);
            return;
        case FL_TICK_SLEEP:
            fl_gil_sleep(sim, actor, tick.until, STEP_TICK);
            return;
        }
    }
}

void fl_sched_acquired(fl_sim *sim, fl_actor *actor)
{
    bool brief = actor->t_dropped - actor->t_acquired < sim->config.constants.floor_slice_ns;

    if (actor->reported || !brief || !fl_policy_retake(&sim->policy, &actor->policy)) {
        catch_up(sim);
        want(sim, actor);
        fl_policy_acquired(&sim->policy, &actor->policy, sim->now);
        sim->totals.tripped |= fl_policy_gives_up(&sim->policy, sim->now, asleep_since, rouse);
    }
    actor->reported = false;
    actor->cpu_acquired = actor->stats.cpu;
}

/* Wake a waiter that was granted the GIL, or that is to set its timer anew. */
static int64_t call(fl_sim *sim, fl_actor *actor)
{
    if (actor->spinning) {
        fl_kernel_shorten(sim, actor, sim->config.take_ns);
        return 0;
    }
    if (!actor->parked) {
        return 0; /* awake already: it will look by itself */
    }
    if (actor->policy.granted && fl_sim_random(sim, 1000000) < sim->config.lost_wakes) {
        fl_heap_remove(&sim->events, actor->id); /* injected fault: nor will its timer come */
        return sim->config.kernel.call_ns;
    }
    fl_gil_awake(sim, actor);
    fl_kernel_wake(sim, actor);
    return sim->config.kernel.call_ns;
}

int64_t fl_sched_drop(fl_sim *sim, fl_actor *actor)
{
    if (fl_policy_let_go(&sim->policy, &actor->policy)) {
        return 0;
    }
    catch_up(sim);
    if (sim->policy.holder == &actor->policy) {
        look_coreless(sim, actor);
    }
    fl_drop drop = fl_policy_drop(&sim->policy, &actor->policy, sim->now);
    int64_t cost = 0;

    if (fl_policy_samples(&sim->policy, &actor->policy, sim->now)) {
        actor->sampled = true;
        actor->slept = actor->wakes;
    }
    if (drop.kick != NULL) {
        sim->totals.woken_early++;
        fl_sim_log(sim, FL_SIM_EVENT_KICK, actor, actor_of(drop.kick)->id);
        cost += call(sim, actor_of(drop.kick));
    }
    if (drop.kind == FL_DROP_HAND) {
        sim->totals.direct_handovers++;
        fl_sim_log(sim, FL_SIM_EVENT_HAND, actor, actor_of(drop.grant)->id);
        cost += call(sim, actor_of(drop.grant));
    }
    else if (drop.kind == FL_DROP_FREE) {
        sim->totals.dropped_unclaimed++;
        fl_sim_log(sim, FL_SIM_EVENT_FREE, actor, NO_ACTOR);
    }
    return cost;
}

/* STOCK with a queue of waiters, as upstream/patches/b and ab have it: only the first has a timer, and a drop
 * that was asked for hands the GIL over to the first. With a return_divisor (ab), a thread that was asked to
 * drop the GIL more than ten times since it last did so of its own accord goes behind the others, but the
 * first of those is not passed if none has had the GIL for an interval. Only a holder that was asked hands
 * over, or any to the thread that has been the first for an interval. The queue is fl_sim.waiters.
 */
#include "gil/simulator/model.h"

static void enqueue(fl_sim *sim, fl_actor *actor)
{
    uint32_t *link = &sim->waiters.first;
    bool passes = sim->config.return_divisor > 1 && !actor->computes;
    bool behind = !sim->holder_computes && sim->now - sim->t_computed >= sim->config.interval_ns;

    while (*link != NO_ACTOR && (!passes || !sim->actors[*link].computes || behind)) {
        behind = behind && !sim->actors[*link].computes;
        link = &sim->actors[*link].next;
    }
    actor->next = *link;
    *link = actor->id;
    actor->granted = actor->is_first = actor->overdue = false;
}

static void dequeue(fl_sim *sim, const fl_actor *actor)
{
    uint32_t *link = &sim->waiters.first;

    while (*link != actor->id) {
        link = &sim->actors[*link].next;
    }
    *link = actor->next;
}

static int64_t wake_first(fl_sim *sim, fl_actor *actor)
{
    return sim->waiters.first == NO_ACTOR ? 0 : fl_gil_signal(sim, actor, &sim->actors[sim->waiters.first]);
}

static void wait(fl_sim *sim, fl_actor *actor)
{
    if (sim->waiters.first != actor->id) {
        fl_gil_sleep(sim, actor, INT64_MAX, STEP_RETRY);
        return;
    }
    if (!actor->is_first) {
        actor->is_first = true;
        actor->since = sim->switch_time;
        actor->t_first = sim->now;
    }
    if (sim->now - actor->since >= actor->patience) {
        fl_gil_request(sim, actor);
        actor->since = sim->now;
        actor->overdue = sim->now - actor->t_first >= sim->config.interval_ns;
    }
    fl_gil_sleep(sim, actor, actor->since + actor->patience, STEP_RETRY);
}

void fl_queue_take(fl_sim *sim, fl_actor *actor)
{
    enqueue(sim, actor);
    wait(sim, actor);
}

void fl_queue_retry(fl_sim *sim, fl_actor *actor)
{
    if (!actor->granted && sim->locked) {
        wait(sim, actor);
        return;
    }
    if (!actor->granted) {
        dequeue(sim, actor);
    }
    wake_first(sim, actor);
    fl_gil_acquired(sim, actor);
}

void fl_queue_switched(fl_sim *sim, const fl_actor *actor)
{
    if (sim->holder_computes) {
        sim->t_computed = sim->now;
    }
    sim->holder_computes = actor->computes;
}

int64_t fl_queue_drop(fl_sim *sim, fl_actor *actor)
{
    fl_actor *first = sim->waiters.first == NO_ACTOR ? NULL : &sim->actors[sim->waiters.first];

    sim->locked = sim->drop_request && first != NULL
                  && (sim->config.return_divisor == 1 || actor->forced || first->overdue);
    if (sim->locked) {
        first->granted = true;
        dequeue(sim, first);
        sim->totals.direct_handovers++;
        return fl_gil_signal(sim, actor, first);
    }
    return wake_first(sim, actor);
}

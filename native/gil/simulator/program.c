/* The programs that threads run: one operation after another, each holding the GIL unless it is dropped for
 * it. */
#include "gil/simulator/model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ARRIVE_NS 5000 /* what sending a request costs its client */
#define FREE_OPS 1000000 /* so many operations in a row that take no time are a loop that never ends */

static void finish(fl_sim *sim, fl_actor *actor) /* the operation, off the GIL */
{
    actor->pc++;
    if (actor->foreign) {
        fl_kernel_work(sim, actor, 0, STEP_CONTINUE);
        return;
    }
    fl_gil_take(sim, actor);
}

static int64_t jittered(fl_sim *sim, const fl_op *op)
{
    int64_t spread = op->ns * op->jitter / 1000;
    return spread < 1 ? op->ns : op->ns - spread + fl_sim_random(sim, 2 * spread + 1);
}

static int64_t release(fl_sim *sim, fl_sim_semaphore *semaphore, int64_t times)
{
    int64_t cost = 0;

    semaphore->count += times;
    for (fl_actor *woken; times-- > 0 && (woken = fl_sleepers_pop(sim, &semaphore->sleepers)) != NULL;) {
        fl_kernel_wake(sim, woken);
        cost += sim->config.kernel.call_ns;
    }
    return cost;
}

static void start_piece(fl_sim *sim, fl_actor *actor)
{
    actor->piece = actor->left;
    if (sim->config.gil == FL_GIL_OLD && !actor->foreign && sim->ops[actor->pc].kind == FL_OP_RUN) {
        if (actor->ticks <= 0) {
            actor->ticks = sim->config.interval_ns;
        }
        if (actor->ticks < actor->piece) {
            actor->piece = actor->ticks;
        }
    }
    fl_kernel_work(sim, actor, actor->piece, STEP_RAN);
}

static void ran(fl_sim *sim, fl_actor *actor)
{
    actor->left -= actor->piece;
    if (actor->left <= 0) {
        actor->pc++;
    }
    if (sim->config.gil == FL_GIL_OLD && !actor->foreign) {
        actor->ticks -= actor->piece;
        if (actor->ticks <= 0) { /* 100 ticks are over: let go, and take it again at once */
            fl_gil_drop(sim, actor, true);
            return;
        }
    }
    actor->step = STEP_CONTINUE;
    fl_program_step(sim, actor);
}

static void measure(fl_sim *sim)
{
    fl_sim_totals kept = sim->totals;

    sim->t_measure = sim->now;
    memset(&sim->totals, 0, sizeof sim->totals);
    sim->totals.steps = kept.steps;
    sim->totals.finished = kept.finished;
    sim->totals.tripped = kept.tripped;
    sim->log_size = 0;
    memset(sim->group_stats, 0, sizeof(fl_group_stats) * sim->config.groups_count);
    for (uint32_t i = 0; i < sim->count; i++) {
        sim->actors[i].stats = (fl_thread_stats){0};
    }
}

static uint32_t bucket_of(int64_t ns) /* 16 per octave; below 16 ns one each */
{
    uint32_t octave = 0;
    uint64_t value = ns < 0 ? 0 : (uint64_t)ns;

    while (value >= 32) {
        value >>= 1;
        octave++;
    }
    uint32_t bucket = octave * 16 + (uint32_t)value;
    return bucket < FL_SIM_BUCKETS ? bucket : FL_SIM_BUCKETS - 1;
}

int64_t fl_sim_bucket_low(uint32_t bucket)
{
    return bucket < 32 ? bucket : (int64_t)(16 + bucket % 16) << (bucket / 16 - 1);
}

static void request_ends(fl_sim *sim, const fl_actor *actor, const fl_op *op)
{
    fl_group_stats *stats = &sim->group_stats[op->target > 0 ? op->target - 1 : actor->group];
    int64_t took = sim->now - actor->t_begin;

    stats->requests++;
    stats->sum += took;
    stats->max = took > stats->max ? took : stats->max;
    stats->buckets[bucket_of(took)]++;
}

static bool stamp(fl_sim_semaphore *semaphore, int64_t t)
{
    if (semaphore->stamps == NULL) {
        semaphore->stamps = calloc(FL_SIM_STAMPS, sizeof(int64_t));
    }
    if (semaphore->stamps == NULL || semaphore->stamped - semaphore->taken == FL_SIM_STAMPS) {
        return false;
    }
    semaphore->stamps[semaphore->stamped++ % FL_SIM_STAMPS] = t;
    return true;
}

static int64_t take_stamp(fl_sim_semaphore *semaphore, int64_t now)
{
    bool none = semaphore->stamped == semaphore->taken;
    return none ? now : semaphore->stamps[semaphore->taken++ % FL_SIM_STAMPS];
}

void fl_program_born(fl_sim *sim, fl_actor *actor)
{
    actor->where = AT_BLOCK;
    actor->step = actor->foreign ? STEP_CONTINUE : STEP_TAKE;
    actor->vruntime = sim->min_vruntime;
    fl_sim_log(sim, FL_SIM_EVENT_START, actor, actor->starter);
    fl_kernel_wake(sim, actor);
}

/* JOIN: the next thread of the group that has not ended; NULL when all have. */
static fl_actor *join_target(fl_sim *sim, fl_actor *actor, uint32_t group)
{
    uint32_t end = sim->group_first[group] + sim->groups[group].threads;

    if (actor->cursor == NO_ACTOR) {
        actor->cursor = sim->group_first[group];
    }
    while (actor->cursor < end && sim->actors[actor->cursor].where == AT_DEAD) {
        actor->cursor++;
    }
    return actor->cursor < end ? &sim->actors[actor->cursor] : NULL;
}

static void end(fl_sim *sim, fl_actor *actor)
{
    fl_sim_log(sim, FL_SIM_EVENT_EXIT, actor, NO_ACTOR);
    if (actor->starter != NO_ACTOR) {
        fl_kernel_wake(sim, &sim->actors[actor->starter]);
    }
    sim->alive -= !sim->groups[actor->group].daemon;
    sim->totals.finished++;
    fl_kernel_end(sim, actor);
}

/* The GIL is dropped (or never needed): begin what it was dropped for. */
static void off(fl_sim *sim, fl_actor *actor)
{
    if (actor->must_switch) {
        actor->must_switch = false;
        if (sim->last_holder == actor->id) {
            fl_sim_log(sim, FL_SIM_EVENT_SWITCH_WAIT, actor, NO_ACTOR);
            sim->switch_waiter = actor->id;
            fl_kernel_block(sim, actor, INT64_MAX, STEP_OFF);
            return;
        }
    }
    if (actor->forced) {
        actor->forced = false;
        fl_policy_stays(&actor->policy);
        fl_gil_take(sim, actor);
        return;
    }
    const fl_op *op = &sim->ops[actor->pc];
    switch (op->kind) {
    case FL_OP_OFF:
        actor->pc++;
        fl_kernel_work(sim, actor, jittered(sim, op), actor->foreign ? STEP_CONTINUE : STEP_TAKE);
        return;
    case FL_OP_SLEEP:
        actor->pc++;
        fl_kernel_block(sim, actor, sim->now + jittered(sim, op), actor->foreign ? STEP_CONTINUE : STEP_TAKE);
        return;
    case FL_OP_YIELD:
        actor->pc++;
        fl_policy_yields(&actor->policy);
        if (sim->config.kernel.slack_ns > 0) {
            fl_kernel_block(sim, actor, sim->now, actor->foreign ? STEP_CONTINUE : STEP_TAKE);
        }
        else {
            fl_kernel_yield(sim, actor, actor->foreign ? STEP_CONTINUE : STEP_TAKE);
        }
        return;
    case FL_OP_ARRIVE: {
        /* Its own stream of numbers: every policy meets the same arrivals. */
        uint64_t z = (actor->arrivals += 0x9e3779b97f4a7c15ull);
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
        z = (z ^ z >> 27) * 0x94d049bb133111ebull;
        double u = (double)((z ^ z >> 31) % (1u << 30) + 1) / (double)(1u << 30);
        int64_t from = actor->t_arrival != 0 ? actor->t_arrival : sim->now;
        actor->t_arrival = from + (int64_t)(-log(u) * (double)op->ns);
        if (actor->t_arrival <= sim->now) {
            fl_kernel_work(sim, actor, ARRIVE_NS, STEP_POST);
        }
        else {
            fl_kernel_block(sim, actor, actor->t_arrival - sim->config.kernel.slack_ns, STEP_POST);
        }
        return;
    }
    case FL_OP_RECEIVE:
        fl_kernel_work(sim, actor, op->ns, STEP_SEM);
        return;
    case FL_OP_SEND:
        fl_kernel_work(sim, actor, op->ns, STEP_POST);
        return;
    case FL_OP_START:
        if (!sim->actors[actor->cursor].has_run) {
            actor->cursor = NO_ACTOR;
            actor->pc++;
            fl_kernel_block(sim, actor, INT64_MAX, STEP_TAKE);
            return;
        }
        sim->actors[actor->cursor].starter = NO_ACTOR;
        actor->cursor = NO_ACTOR;
        finish(sim, actor);
        return;
    case FL_OP_JOIN:
        if (sim->actors[actor->cursor].where == AT_DEAD) {
            fl_gil_take(sim, actor);
            return;
        }
        sim->actors[actor->cursor].starter = actor->id;
        fl_kernel_block(sim, actor, INT64_MAX, STEP_TAKE);
        return;
    case FL_OP_EXIT:
        end(sim, actor);
        return;
    default: /* ACQUIRE */
        fl_kernel_work(sim, actor, 0, STEP_SEM);
        return;
    }
}

/* One operation; false when it used time (or blocked) and so the thread's turn is over. */
static bool operate(fl_sim *sim, fl_actor *actor)
{
    const fl_op *op = &sim->ops[actor->pc];
    int64_t cost;

    switch ((fl_op_kind)op->kind) {
    case FL_OP_RUN:
    case FL_OP_CALL:
        actor->left = jittered(sim, op);
        start_piece(sim, actor);
        return false;
    case FL_OP_ACQUIRE:
        if (sim->semaphores[op->index].count > 0) {
            sim->semaphores[op->index].count--;
            break;
        }
        goto off;
    case FL_OP_RELEASE:
        cost = release(sim, &sim->semaphores[op->index], op->ns);
        actor->pc++;
        if (cost > 0) {
            fl_kernel_work(sim, actor, cost, STEP_CONTINUE);
        }
        return cost == 0;
    case FL_OP_ADD:
        sim->counters[op->index] += op->ns;
        break;
    case FL_OP_UNTIL:
        actor->pc = sim->counters[op->index] == op->ns ? op->target : actor->pc + 1;
        return true;
    case FL_OP_LOOP:
        if (actor->loop[op->depth] == 0) {
            actor->loop[op->depth] = (uint32_t)op->ns;
        }
        actor->pc = --actor->loop[op->depth] > 0 ? op->target : actor->pc + 1;
        return true;
    case FL_OP_JUMP:
        actor->pc = op->target;
        return true;
    case FL_OP_SOMETIMES:
        actor->pc = fl_sim_random(sim, 1000000) < op->ns ? op->target : actor->pc + 1;
        return true;
    case FL_OP_START: {
        if (sim->group_started[op->index] >= sim->groups[op->index].threads) {
            sim->status = FL_SIM_NO_THREAD;
            return false;
        }
        fl_actor *child = &sim->actors[sim->group_first[op->index] + sim->group_started[op->index]++];
        child->starter = actor->id;
        actor->cursor = child->id;
        fl_program_born(sim, child);
        goto off;
    }
    case FL_OP_JOIN:
        if (join_target(sim, actor, op->index) != NULL) {
            goto off;
        }
        actor->cursor = NO_ACTOR;
        break;
    case FL_OP_BEGIN:
        actor->t_begin = sim->now;
        break;
    case FL_OP_STAMPED:
        actor->t_begin = take_stamp(&sim->semaphores[op->index], sim->now);
        break;
    case FL_OP_END:
        request_ends(sim, actor, op);
        break;
    case FL_OP_MEASURE:
        measure(sim);
        break;
    default:
        goto off;
    }
    actor->pc++;
    return true;

off:
    if (actor->foreign) {
        off(sim, actor);
    }
    else {
        fl_gil_drop(sim, actor, false);
    }
    return false;
}

static void go_on(fl_sim *sim, fl_actor *actor)
{
    for (int i = 0; i < FREE_OPS; i++) {
        if (!actor->foreign && sim->drop_request && sim->config.gil != FL_GIL_OLD) {
            fl_gil_drop(sim, actor, true);
            return;
        }
        if (actor->left > 0) {
            start_piece(sim, actor);
            return;
        }
        if (!operate(sim, actor)) {
            return;
        }
    }
    sim->status = FL_SIM_NO_TIME;
}

void fl_program_step(fl_sim *sim, fl_actor *actor)
{
    switch ((fl_step)actor->step) {
    case STEP_CONTINUE:
        go_on(sim, actor);
        return;
    case STEP_RAN:
        ran(sim, actor);
        return;
    case STEP_OFF:
        off(sim, actor);
        return;
    case STEP_SEM: {
        fl_sim_semaphore *semaphore = &sim->semaphores[sim->ops[actor->pc].index];
        if (semaphore->count > 0) {
            semaphore->count--;
            finish(sim, actor);
            return;
        }
        fl_sleepers_push(sim, &semaphore->sleepers, actor);
        fl_kernel_block(sim, actor, INT64_MAX, STEP_SEM);
        return;
    }
    case STEP_POST: {
        const fl_op *op = &sim->ops[actor->pc];
        if (op->kind == FL_OP_ARRIVE && !stamp(&sim->semaphores[op->index], actor->t_arrival)) {
            actor->pc++;
            fl_kernel_work(sim, actor, 0, STEP_CONTINUE); /* given up: the queue is full */
            return;
        }
        int64_t cost = op->kind == FL_OP_ARRIVE ? ARRIVE_NS : 0;
        cost += release(sim, &sim->semaphores[op->index], 1);
        actor->pc++;
        fl_kernel_work(sim, actor, cost, actor->foreign ? STEP_CONTINUE : STEP_TAKE);
        return;
    }
    case STEP_TAKE:
        fl_gil_take(sim, actor);
        return;
    case STEP_RETRY:
        fl_gil_retry(sim, actor);
        return;
    case STEP_TICK:
        fl_sched_tick(sim, actor);
        return;
    }
}

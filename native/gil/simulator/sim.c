#include "gil/simulator/sim.h"

#include <stdlib.h>
#include <string.h>

#include "gil/simulator/model.h"

void fl_sim_log(fl_sim *sim, fl_sim_event_kind kind, const fl_actor *actor, uint32_t other)
{
    sim->totals.logged++;
    if (sim->log_size >= sim->config.log_limit) {
        return;
    }
    sim->log[sim->log_size++] = (fl_sim_event){
        .t = sim->now,
        .thread = actor->id,
        .other = other,
        .number = sim->switch_number,
        .kind = (uint8_t)kind,
        .cls = actor->policy.cls,
        .core = (uint16_t)actor->core,
    };
}

static void *copy(const void *from, size_t count, size_t size)
{
    void *to = malloc((count + 1) * size);

    if (to != NULL && count > 0) {
        memcpy(to, from, count * size);
    }
    return to;
}

static bool allocate(fl_sim *sim)
{
    const fl_sim_config *config = &sim->config;

    for (uint32_t g = 0; g < config->groups_count; g++) {
        sim->count += config->groups[g].threads;
    }
    sim->actors = calloc(sim->count + 1u, sizeof(fl_actor));
    sim->cores = calloc(config->kernel.cores, sizeof(fl_core));
    sim->group_first = calloc(config->groups_count + 1u, sizeof(uint32_t));
    sim->group_started = calloc(config->groups_count + 1u, sizeof(uint32_t));
    sim->group_stats = calloc(config->groups_count + 1u, sizeof(fl_group_stats));
    sim->semaphores = calloc(config->semaphores_count + 1u, sizeof(fl_sim_semaphore));
    sim->log = malloc((config->log_limit + 1) * sizeof(fl_sim_event));
    sim->ops = copy(config->ops, config->ops_count, sizeof(fl_op));
    sim->groups = copy(config->groups, config->groups_count, sizeof(fl_group));
    sim->counters = copy(config->counters, config->counters_count, sizeof(int64_t));
    bool heaps = fl_heap_init(&sim->events, sim->count);
    heaps = fl_heap_init(&sim->queue, sim->count) && heaps;
    return heaps && sim->actors != NULL && sim->cores != NULL && sim->group_first != NULL
           && sim->group_started != NULL && sim->group_stats != NULL && sim->semaphores != NULL
           && sim->log != NULL && sim->ops != NULL && sim->groups != NULL && sim->counters != NULL;
}

static void populate(fl_sim *sim)
{
    uint32_t id = 0;

    for (uint32_t g = 0; g < sim->config.groups_count; g++) {
        const fl_group *group = &sim->groups[g];
        sim->group_first[g] = id;
        sim->alive += group->daemon ? 0 : group->threads;
        for (uint32_t i = 0; i < group->threads; i++, id++) {
            fl_actor *actor = &sim->actors[id];
            actor->id = id;
            actor->group = g;
            actor->arrivals = sim->config.seed * 1000003u + id;
            actor->pc = group->entry;
            actor->foreign = group->foreign != 0;
            actor->next = actor->starter = actor->cursor = NO_ACTOR;
            fl_policy_thread_new(&actor->policy, (fl_priority)group->priority);
        }
    }
    for (uint32_t g = 0; g < sim->config.groups_count; g++) {
        for (; sim->group_started[g] < sim->groups[g].initial; sim->group_started[g]++) {
            fl_program_born(sim, &sim->actors[sim->group_first[g] + sim->group_started[g]]);
        }
    }
}

fl_sim *fl_sim_new(const fl_sim_config *config)
{
    fl_sim *sim = calloc(1, sizeof *sim);

    if (sim == NULL) {
        return NULL;
    }
    sim->config = *config;
    sim->random = config->seed;
    if (!allocate(sim)) {
        fl_sim_free(sim);
        return NULL;
    }
    for (uint32_t c = 0; c < config->kernel.cores; c++) {
        sim->cores[c] = (fl_core){.thread = NO_ACTOR, .last = NO_ACTOR};
    }
    for (uint32_t s = 0; s < config->semaphores_count; s++) {
        sim->semaphores[s] = (fl_sim_semaphore){
            .count = config->semaphores[s],
            .sleepers = {NO_ACTOR, NO_ACTOR},
        };
    }
    sim->waiters = (fl_sleepers){NO_ACTOR, NO_ACTOR};
    sim->holder = sim->last_holder = sim->switch_waiter = NO_ACTOR;
    sim->free_from = INT64_MAX;
    fl_policy_mode mode = config->gil == FL_GIL_SCHED ? config->mode : FL_MODE_STOCK;
    fl_policy_init(&sim->policy, mode, config->share, config->interval_ns, &config->constants, 0);
    sim->policy.spare_cores = config->kernel.cores > 1;
    populate(sim);
    return sim;
}

void fl_sim_free(fl_sim *sim)
{
    if (sim == NULL) {
        return;
    }
    fl_heap_free(&sim->events);
    fl_heap_free(&sim->queue);
    free(sim->actors);
    free(sim->cores);
    free(sim->group_first);
    free(sim->group_started);
    free(sim->group_stats);
    for (uint32_t s = 0; sim->semaphores != NULL && s < sim->config.semaphores_count; s++) {
        free(sim->semaphores[s].stamps);
    }
    free(sim->semaphores);
    free(sim->log);
    free(sim->ops);
    free(sim->groups);
    free(sim->counters);
    free(sim);
}

/* The longest that the GIL may be left free while a thread that may take it sleeps. */
static int64_t longest_free(const fl_sim *sim)
{
    const fl_kernel *kernel = &sim->config.kernel;
    const fl_policy_constants *k = &sim->config.constants;

    return k->lazy_ns + 2 * k->late_ns + kernel->slack_ns + kernel->wake_ns
           + kernel->wake_jitter_ns + kernel->idle_exit_ns;
}

/* No thread will ever do anything again: whose fault is that? */
static fl_sim_status silence(const fl_sim *sim)
{
    for (uint32_t i = 0; i < sim->count; i++) {
        if (sim->actors[i].gil_wanting) {
            return FL_SIM_LOST;
        }
    }
    return FL_SIM_DEADLOCK;
}

fl_sim_status fl_sim_run(fl_sim *sim, uint64_t steps, int64_t until)
{
    while (sim->status == FL_SIM_RUNNING && steps-- > 0) {
        if (sim->alive == 0) {
            sim->status = FL_SIM_FINISHED;
        }
        else if (fl_heap_empty(&sim->events)) {
            sim->status = silence(sim);
        }
        else if (fl_heap_first(&sim->events)->key > until) {
            sim->now = until;
            sim->status = FL_SIM_TIME_UP;
        }
        else {
            fl_actor *actor = fl_kernel_event(sim);
            sim->totals.steps++;
            if (actor != NULL) {
                fl_program_step(sim, actor);
            }
            if (sim->status == FL_SIM_RUNNING && sim->config.lost_wakes == 0 && sim->free_from != INT64_MAX
                && sim->now - sim->free_from > longest_free(sim)) {
                sim->status = FL_SIM_STALLED;
            }
        }
    }
    return sim->status;
}

fl_sim_totals fl_sim_get_totals(const fl_sim *sim)
{
    fl_sim_totals totals = sim->totals;

    totals.elapsed = sim->now - sim->t_measure;
    totals.threads = sim->count;
    for (uint32_t i = 0; i < sim->count; i++) {
        const fl_actor *actor = &sim->actors[i];
        int64_t waited = sim->now - (actor->t_want > sim->t_measure ? actor->t_want : sim->t_measure);
        if (actor->gil_wanting && waited > totals.max_wait[actor->policy.cls]) {
            totals.max_wait[actor->policy.cls] = waited; /* still waiting counts too */
        }
    }
    return totals;
}

fl_thread_stats fl_sim_get_thread(const fl_sim *sim, uint32_t thread)
{
    const fl_actor *actor = &sim->actors[thread];
    fl_thread_stats stats = actor->stats;

    if (sim->holder == thread) {
        stats.held += sim->now - (actor->t_acquired > sim->t_measure ? actor->t_acquired : sim->t_measure);
    }
    if (actor->gil_wanting) {
        int64_t waited = sim->now - (actor->t_want > sim->t_measure ? actor->t_want : sim->t_measure);
        stats.waited += waited;
        stats.max_wait = waited > stats.max_wait ? waited : stats.max_wait;
    }
    return stats;
}

const fl_group_stats *fl_sim_get_group(const fl_sim *sim, uint32_t group)
{
    return &sim->group_stats[group];
}

const fl_sim_event *fl_sim_get_log(const fl_sim *sim, size_t *count)
{
    *count = sim->log_size;
    return sim->log;
}

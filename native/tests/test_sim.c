/* Random schedules, through every kind of GIL: no lost wake-up, one holder, no free GIL that is wanted and
 * left. */
#include "check.h"
#include "gil/simulator/heap.h"
#include "gil/simulator/sim.h"

#define GROUPS 4
#define OPS_PER_GROUP 8
#define SEMAPHORES 2

static uint64_t state;

static uint32_t below(uint32_t n)
{
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)(state >> 33) % n;
}

static fl_kernel random_kernel(void)
{
    return (fl_kernel){
        .cores = 1 + below(4),
        .fair = (uint8_t)below(2),
        .preempt = (uint8_t)below(2),
        .slice_ns = 500000 + below(4000000),
        .granularity_ns = below(1000000),
        .credit_ns = below(3000000),
        .switch_ns = below(3000),
        .resume_ns = below(4000),
        .wake_ns = below(50000),
        .wake_jitter_ns = below(50000),
        .idle_exit_ns = below(50000),
        .idle_after_ns = below(100000),
        .call_ns = below(3000),
        .slack_ns = below(2) * 50000,
    };
}

/* Threads of a group do the same random things, so often; locks are taken one at a time, so nothing
 * deadlocks. */
static uint32_t random_body(fl_op *ops, uint32_t at)
{
    uint32_t begin = at, steps = 1 + below(OPS_PER_GROUP);
    for (uint32_t i = 0; i < steps; i++) {
        uint32_t semaphore = below(SEMAPHORES);
        switch (below(6)) {
        case 0: ops[at++] = (fl_op){.kind = FL_OP_RUN, .ns = 500 + below(20000), .jitter = 500}; break;
        case 1: ops[at++] = (fl_op){.kind = FL_OP_RUN, .ns = 500 + below(3000000)}; break;
        case 2: ops[at++] = (fl_op){.kind = FL_OP_SLEEP, .ns = below(400000), .jitter = 900}; break;
        case 3: ops[at++] = (fl_op){.kind = FL_OP_OFF, .ns = below(100000)}; break;
        case 4: ops[at++] = (fl_op){.kind = FL_OP_YIELD}; break;
        default:
            ops[at++] = (fl_op){.kind = FL_OP_ACQUIRE, .index = semaphore};
            ops[at++] = (fl_op){.kind = FL_OP_CALL, .ns = 500 + below(50000)};
            ops[at++] = (fl_op){.kind = FL_OP_RELEASE, .index = semaphore, .ns = 1};
            break;
        }
    }
    ops[at++] = (fl_op){.kind = FL_OP_RUN, .ns = 1000};
    ops[at++] = (fl_op){.kind = FL_OP_LOOP, .target = begin, .ns = 1 + below(12)};
    ops[at++] = (fl_op){.kind = FL_OP_EXIT};
    return at;
}

static void test_random_schedules(uint64_t seed)
{
    fl_op ops[GROUPS * (3 * OPS_PER_GROUP + 3)];
    fl_group groups[GROUPS];
    int64_t semaphores[SEMAPHORES] = {1, 2};
    uint32_t at = 0, threads = 0;
    state = seed;
    fl_kernel kernel = random_kernel();

    for (uint32_t g = 0; g < GROUPS; g++) {
        uint32_t count = 1 + below(12);
        uint8_t priority = (uint8_t)below(3);
        groups[g] = (fl_group){.entry = at, .threads = count, .initial = count, .priority = priority};
        threads += count;
        at = random_body(ops, at);
    }
    for (int variant = 0; variant < 7; variant++) { /* from 4 on: upstream's A, B, A and B */
        fl_sim_config config = {
            .gil = variant < 2 ? (fl_gil_kind)variant : variant < 4 ? FL_GIL_SCHED : FL_GIL_STOCK,
            .queued = variant > 4,
            .return_divisor = variant == 4 || variant == 6 ? 50 : 1,
            .mode = variant == 2 ? FL_MODE_INTERACTIVE : FL_MODE_STOCK,
            .kernel = kernel,
            .interval_ns = variant == 0 ? 5000 : 5000000,
            .take_ns = 150,
            .check_ns = 1000,
            .share = 300,
            .constants = fl_policy_constants_default(),
            .seed = seed,
            .ops = ops, .ops_count = at,
            .groups = groups, .groups_count = GROUPS,
            .semaphores = semaphores, .semaphores_count = SEMAPHORES,
        };
        fl_sim *sim = fl_sim_new(&config);
        CHECK(sim != NULL);
        fl_sim_status status = fl_sim_run(sim, 20000000, INT64_MAX);
        if (status != FL_SIM_FINISHED) {
            fprintf(stderr, "seed %llu, variant %d\n", (unsigned long long)seed, variant);
        }
        CHECK_EQUAL(status, FL_SIM_FINISHED);
        CHECK_EQUAL(fl_sim_get_totals(sim).finished, threads);
        CHECK(!fl_sim_get_totals(sim).tripped);
        fl_sim_free(sim);
    }
}

static void test_heap_order(void)
{
    enum { N = 500 };
    fl_heap heap;
    CHECK(fl_heap_init(&heap, N));
    state = 7;
    for (int round = 0; round < 20; round++) {
        for (uint32_t i = 0; i < N; i++) {
            fl_heap_set(&heap, i, below(50));
        }
        for (uint32_t i = 0; i < N / 2; i++) {
            fl_heap_remove(&heap, below(N));
        }
        int64_t key = -1;
        uint64_t order = 0;
        while (!fl_heap_empty(&heap)) {
            fl_heap_entry first = *fl_heap_first(&heap);
            CHECK(first.key > key || (first.key == key && first.order > order));
            key = first.key;
            order = first.order;
            fl_heap_remove(&heap, first.thread);
        }
    }
    fl_heap_free(&heap);
}

static void test_buckets_cover_every_length(void)
{
    for (uint32_t bucket = 0; bucket + 1 < FL_SIM_BUCKETS; bucket++) {
        CHECK(fl_sim_bucket_low(bucket) < fl_sim_bucket_low(bucket + 1));
    }
}

int main(int argc, char **argv)
{
    test_heap_order();
    test_buckets_cover_every_length();
    if (argc > 1) { /* test_sim SEED repeats one */
        test_random_schedules(strtoull(argv[1], NULL, 10));
        return 0;
    }
    for (uint64_t seed = 1; seed <= 200; seed++) {
        test_random_schedules(seed);
    }
    return 0;
}

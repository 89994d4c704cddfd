/* Memory for what comes and goes, taken by one thread and given back by another. */
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "check.h"
#include "gil/trace/pool.h"

typedef struct {
    uint64_t words[21]; /* no power of two */
} thing;

static size_t bytes(fl_pool *pool)
{
    size_t used, left;
    fl_pool_measure(pool, &used, &left);
    return used + left;
}

static void test_what_is_taken_is_zero_and_ones_own(void)
{
    static fl_pool pool = FL_POOL_OF(thing);
    thing *things[3 * FL_POOL_SLAB];
    for (int round = 0; round < 2; round++) {
        for (uint64_t i = 0; i < 3 * FL_POOL_SLAB; i++) {
            things[i] = fl_pool_take(&pool);
            CHECK(things[i] != NULL);
            for (size_t word = 0; word < 21; word++) {
                CHECK_EQUAL(things[i]->words[word], 0);
                things[i]->words[word] = i;
            }
        }
        for (uint64_t i = 0; i < 3 * FL_POOL_SLAB; i++) {
            for (size_t word = 0; word < 21; word++) {
                CHECK_EQUAL(things[i]->words[word], i);
            }
            fl_pool_give(&pool, things[i]);
        }
    }
    CHECK_EQUAL(bytes(&pool), 3 * FL_POOL_SLAB * sizeof(thing));
}

static fl_pool shared = FL_POOL_OF(thing);
static thing *_Atomic between;

static void *take(void *rounds)
{
    for (uintptr_t i = 0; i < (uintptr_t)rounds; i++) {
        thing *mine = fl_pool_take(&shared);
        CHECK(mine != NULL);
        while (atomic_load(&between) != NULL) {
            sched_yield();
        }
        atomic_store(&between, mine);
    }
    return NULL;
}

static void test_what_another_thread_gives_back_is_used_again(void)
{
    pthread_t thread;
    uintptr_t rounds = 2000;
    CHECK(pthread_create(&thread, NULL, take, (void *)rounds) == 0);
    for (uintptr_t i = 0; i < rounds; i++) {
        thing *theirs;
        while ((theirs = atomic_exchange(&between, NULL)) == NULL) {
            sched_yield();
        }
        memset(theirs, 0xFF, sizeof *theirs);
        fl_pool_give(&shared, theirs);
    }
    pthread_join(thread, NULL);
    CHECK_EQUAL(bytes(&shared), FL_POOL_SLAB * sizeof(thing));
}

static void test_a_forked_child_begins_with_an_empty_pool(void)
{
    static fl_pool pool = FL_POOL_OF(thing);
    static thing *kept;
    kept = fl_pool_take(&pool);
    CHECK(kept != NULL);
    fl_pool_fork(&pool, 1);
    CHECK_EQUAL(bytes(&pool), sizeof(thing));
    fl_pool_give(&pool, kept);
    CHECK(fl_pool_take(&pool) == kept);
}

int main(void)
{
    test_what_is_taken_is_zero_and_ones_own();
    test_what_another_thread_gives_back_is_used_again();
    test_a_forked_child_begins_with_an_empty_pool();
    return 0;
}

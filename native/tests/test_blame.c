/* Blame, against a plain account that adds every hold to every waiter. Ticks are nanoseconds here. */
#include <string.h>

#include "check.h"
#include "gil/trace/blame.h"

static uint64_t random_state = 1;

static uint64_t random_below(uint64_t limit)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (random_state >> 33) % limit;
}

/* That no thread has asked for. */
static fl_hold held(uint64_t start, uint64_t end, uint32_t thread, uint32_t stack)
{
    return (fl_hold){.start = start, .end = end, .asked = end, .thread = thread, .stack = stack};
}

static uint64_t blamed(const fl_blame *blame, uint32_t waiter, uint32_t holder)
{
    for (size_t i = 0; i < blame->pairs_room; i++) {
        if (blame->pairs[i].waiter == waiter && blame->pairs[i].holder == holder) {
            return blame->pairs[i].parts.all;
        }
    }
    return 0;
}

static uint64_t total(const fl_blame *blame)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < blame->pairs_room; i++) {
        sum += blame->pairs[i].parts.all;
    }
    return sum;
}

static void test_a_wait_is_split_by_holders(void)
{
    fl_blame blame = {0};
    fl_blame_hold(&blame, held(100, 200, 1, 0));
    fl_blame_hold(&blame, held(210, 300, 2, 0));
    fl_blame_hold(&blame, held(305, 400, 1, 0));
    fl_blame_wait(&blame, 3, 0, 150, 410);
    CHECK_EQUAL(blamed(&blame, 3, 1), 50 + 95);
    CHECK_EQUAL(blamed(&blame, 3, 2), 90);
    CHECK_EQUAL(blamed(&blame, 3, FL_BLAME_NO_THREAD), 10 + 5 + 10);
    CHECK_EQUAL(blamed(&blame, 3, FL_BLAME_UNKNOWN), 0);
    fl_blame_free(&blame);
}

static void test_a_wait_without_a_hold_has_no_holder(void)
{
    fl_blame blame = {0};
    fl_blame_wait(&blame, 3, 0, 10, 30);
    fl_blame_hold(&blame, held(100, 200, 1, 0));
    fl_blame_wait(&blame, 3, 0, 200, 240);
    CHECK_EQUAL(blamed(&blame, 3, FL_BLAME_NO_THREAD), 60);
    CHECK_EQUAL(total(&blame), 60);
    fl_blame_free(&blame);
}

static void test_an_empty_wait_adds_nothing(void)
{
    fl_blame blame = {0};
    fl_blame_hold(&blame, held(100, 200, 1, 0));
    fl_blame_wait(&blame, 3, 0, 150, 150);
    fl_blame_wait(&blame, 3, 0, 160, 150);
    CHECK_EQUAL(total(&blame), 0);
    fl_blame_free(&blame);
}

static fl_blame_parts parts_of(const fl_blame *blame, uint32_t waiter, uint32_t holder)
{
    for (size_t i = 0; i < blame->pairs_room; i++) {
        if (blame->pairs[i].waiter == waiter && blame->pairs[i].holder == holder) {
            return blame->pairs[i].parts;
        }
    }
    return (fl_blame_parts){0};
}

static void test_a_hold_that_goes_on_after_a_request_is_split_by_what_it_did(void)
{
    fl_blame blame = {0};
    fl_hold hold = held(0, 1000, 1, 7);
    hold.asked = 200;
    hold.collecting = 400;
    hold.coreless = 80;
    fl_blame_hold(&blame, hold);
    fl_blame_wait(&blame, 2, 0, 100, 1000); /* all that came after the request */
    fl_blame_wait(&blame, 3, 0, 600, 1000); /* half of it */
    fl_blame_parts whole = parts_of(&blame, 2, 1), half = parts_of(&blame, 3, 1);
    CHECK_EQUAL(whole.all, 900);
    CHECK_EQUAL(whole.asked, 100);
    CHECK_EQUAL(whole.late, 800);
    CHECK_EQUAL(whole.collecting, 400);
    CHECK_EQUAL(whole.coreless, 80);
    CHECK_EQUAL(half.asked, 0);
    CHECK_EQUAL(half.late, 400);
    CHECK_EQUAL(half.collecting, 200);
    CHECK_EQUAL(half.coreless, 40);
    const fl_blame_loss *loss = blame.losses;
    while (loss->waiter != 3) {
        loss++;
    }
    CHECK_EQUAL(loss->late, 160);
    fl_blame_free(&blame);
}

static void test_a_lock_that_stands_free_for_long_is_want_of_a_core(void)
{
    fl_blame blame = {0};
    fl_blame_wait(&blame, 2, 0, 0, FL_BLAME_FREE_NS / 2);
    CHECK_EQUAL(parts_of(&blame, 2, FL_BLAME_NO_THREAD).coreless, 0);
    fl_blame_wait(&blame, 2, 0, 0, 2 * FL_BLAME_FREE_NS);
    CHECK_EQUAL(parts_of(&blame, 2, FL_BLAME_NO_THREAD).coreless, 2 * FL_BLAME_FREE_NS);
    fl_blame_free(&blame);
}

static void test_losses_are_kept_by_stacks(void)
{
    fl_blame blame = {0};
    fl_blame_hold(&blame, held(0, 100, 1, 7));
    fl_blame_wait(&blame, 2, 9, 20, 110);
    fl_blame_wait(&blame, 3, 0, 60, 115);
    fl_blame_hold(&blame, held(120, 150, 1, 7));
    fl_blame_wait(&blame, 2, 9, 130, 150);
    const fl_blame_loss *found = NULL;
    size_t count = 0;
    for (size_t i = 0; i < blame.losses_room; i++) {
        if (blame.losses[i].waits) {
            count++;
            found = blame.losses[i].waiter == 2 ? &blame.losses[i] : found;
        }
    }
    CHECK_EQUAL(count, 2);
    CHECK(found && found->waiter_stack == 9 && found->holder_stack == 7 && found->holder == 1);
    CHECK_EQUAL(found->ticks, 80 + 20);
    CHECK_EQUAL(found->longest, 80);
    CHECK_EQUAL(found->waits, 2);
    fl_blame_free(&blame);
}

#define THREADS 8

/* Random schedules of few threads: every wait sees few holds, so the account must be exact. */
static void test_few_threads_are_accounted_exactly(void)
{
    static uint64_t want[THREADS + 1], plain[THREADS + 1][THREADS + 1], waited[THREADS + 1];
    fl_blame blame = {0};
    uint64_t now = 0;
    memset(plain, 0, sizeof plain);
    for (uint32_t i = 1; i <= THREADS; i++) {
        want[i] = random_below(100);
    }
    for (int step = 0; step < 20000; step++) {
        uint32_t next = 1; /* the longest waiter */
        for (uint32_t i = 2; i <= THREADS; i++) {
            next = want[i] < want[next] ? i : next;
        }
        now = now > want[next] ? now : want[next];
        now += random_below(20); /* no thread has it */
        fl_blame_wait(&blame, next, 0, want[next], now);
        waited[next] += now - want[next];
        uint64_t start = now;
        now += 1 + random_below(1000);
        for (uint32_t i = 1; i <= THREADS; i++) {
            if (i != next && want[i] < now) {
                plain[i][next] += now - (want[i] > start ? want[i] : start);
            }
        }
        fl_blame_hold(&blame, held(start, now, next, 0));
        want[next] = now + random_below(3000);
    }
    for (uint32_t waiter = 1; waiter <= THREADS; waiter++) {
        uint64_t named = blamed(&blame, waiter, FL_BLAME_NO_THREAD);
        for (uint32_t holder = 1; holder <= THREADS; holder++) {
            uint64_t open = 0; /* of the wait that is not over, which blame has not seen yet */
            if (want[waiter] < now && waiter != holder) {
                open = plain[waiter][holder] - blamed(&blame, waiter, holder);
                CHECK(open <= now - want[waiter]);
            } else {
                CHECK_EQUAL(blamed(&blame, waiter, holder), plain[waiter][holder]);
            }
            named += blamed(&blame, waiter, holder);
        }
        CHECK_EQUAL(blamed(&blame, waiter, FL_BLAME_UNKNOWN), 0);
        CHECK_EQUAL(named, waited[waiter]);
    }
    fl_blame_free(&blame);
}

/* A thousand threads that pass the lock round in a microsecond: what is not looked at is known to be unknown.
 */
static void test_many_threads_cost_a_bounded_number_of_steps(void)
{
    enum { MANY = 1000, HOLD = 1000, ROUNDS = 20 };
    fl_blame blame = {0};
    uint64_t now = 0, waited = 0;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        for (uint32_t i = 1; i <= MANY; i++) {
            uint64_t wanted = round ? now - (MANY - 1) * HOLD : 0;
            fl_blame_wait(&blame, i, 0, wanted, now);
            waited += now - wanted;
            fl_blame_hold(&blame, held(now, now + HOLD, i, 0));
            now += HOLD;
        }
    }
    CHECK_EQUAL(total(&blame), waited);
    CHECK(blame.pairs_used <= FL_BLAME_PAIRS);
    uint64_t unknown = 0;
    for (uint32_t i = 1; i <= MANY; i++) {
        unknown += blamed(&blame, i, FL_BLAME_UNKNOWN);
    }
    CHECK(unknown > waited / 2 && unknown < waited);
    fl_blame_free(&blame);
}

/* The same with holds of 5 ms, as computing threads have them: the ration pays for all of them. */
static void test_many_threads_with_long_holds_are_accounted_exactly(void)
{
    enum { MANY = 150, HOLD = 5000000, ROUNDS = 5 };
    fl_blame blame = {0};
    uint64_t now = 0;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        for (uint32_t i = 1; i <= MANY; i++) {
            if (round) {
                fl_blame_wait(&blame, i, 0, now - (uint64_t)(MANY - 1) * HOLD, now);
            }
            fl_blame_hold(&blame, held(now, now + HOLD, i, 0));
            now += HOLD;
        }
    }
    CHECK_EQUAL(blame.pairs_used, MANY * (MANY - 1));
    CHECK_EQUAL(blamed(&blame, 1, FL_BLAME_UNKNOWN), 0);
    CHECK_EQUAL(blamed(&blame, 1, MANY), (uint64_t)HOLD * (ROUNDS - 1));
    fl_blame_free(&blame);
}

static bool is_old(uint32_t serial, void *context)
{
    return serial < *(uint32_t *)context;
}

static void test_merged_threads_keep_their_sum(void)
{
    fl_blame blame = {0};
    uint64_t now = 0;
    for (uint32_t i = 1; i < 500; i++) {
        fl_blame_hold(&blame, held(now, now + 10, i, i % 3));
        fl_blame_wait(&blame, i + 1, 0, now, now + 12);
        now += 20;
    }
    uint64_t before = total(&blame);
    uint32_t limit = 400;
    fl_blame_merge(&blame, is_old, &limit);
    CHECK_EQUAL(total(&blame), before);
    CHECK_EQUAL(blamed(&blame, FL_BLAME_ENDED, FL_BLAME_ENDED), 398 * 10);
    CHECK_EQUAL(blamed(&blame, 400, FL_BLAME_ENDED), 10);
    CHECK_EQUAL(blamed(&blame, 450, 449), 10);
    fl_blame_free(&blame);
}

static void test_merging_again_and_again_takes_no_more_memory(void)
{
    fl_blame blame = {0};
    uint64_t now = 0, before = 0;
    size_t bytes = 0;
    uint32_t serial = 1;
    for (int round = 0; round < 50; round++) {
        for (int i = 0; i < 500; i++, serial++, now += 20) {
            fl_blame_hold(&blame, held(now, now + 10, serial, serial % 3));
            fl_blame_wait(&blame, serial + 1, serial % 2, now, now + 12);
        }
        before = total(&blame);
        fl_blame_merge(&blame, is_old, &serial);
        CHECK_EQUAL(total(&blame), before);
        CHECK(round < 2 || fl_blame_bytes(&blame) == bytes);
        bytes = fl_blame_bytes(&blame);
    }
    fl_blame_free(&blame);
}

int main(void)
{
    test_a_wait_is_split_by_holders();
    test_a_wait_without_a_hold_has_no_holder();
    test_an_empty_wait_adds_nothing();
    test_a_hold_that_goes_on_after_a_request_is_split_by_what_it_did();
    test_a_lock_that_stands_free_for_long_is_want_of_a_core();
    test_losses_are_kept_by_stacks();
    test_few_threads_are_accounted_exactly();
    test_many_threads_cost_a_bounded_number_of_steps();
    test_many_threads_with_long_holds_are_accounted_exactly();
    test_merged_threads_keep_their_sum();
    test_merging_again_and_again_takes_no_more_memory();
    return 0;
}

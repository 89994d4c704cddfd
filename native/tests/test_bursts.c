/* What the policy decides by: lengths of bursts, the due queue, the computations' account, the predictor. */
#include <math.h>

#include "check.h"
#include "gil/policy/account.h"
#include "gil/policy/bursts.h"
#include "gil/policy/duequeue.h"
#include "gil/policy/predictor.h"

#include <stddef.h>

#define MS 1000000ll
#define US 1000ll

static fl_bursts bursts;

static void note(int64_t ns, int times)
{
    for (int i = 0; i < times; i++) {
        fl_bursts_note(&bursts, ns);
    }
}

/* xorshift64: the same numbers in every run. */
static uint64_t random_below(uint64_t limit)
{
    static uint64_t state = 88172645463325252u;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % limit;
}

static void test_buckets_are_half_an_octave(void)
{
    CHECK_EQUAL(fl_bursts_low(0), 0);
    CHECK_EQUAL(fl_bursts_low(1), 1024);
    CHECK_EQUAL(fl_bursts_bucket(0), 0);
    for (uint32_t bucket = 1; bucket < FL_BURSTS_BUCKETS; bucket++) {
        int64_t low = fl_bursts_low(bucket);
        CHECK_EQUAL(fl_bursts_bucket(low), bucket);
        CHECK_EQUAL(fl_bursts_bucket(low - 1), bucket - 1);
        CHECK(bucket == 1 || 2 * low <= 3 * fl_bursts_low(bucket - 1));
        CHECK(bucket < 3 || low == 2 * fl_bursts_low(bucket - 2));
    }
    CHECK_EQUAL(fl_bursts_low(FL_BURSTS_BUCKETS - 1), 64 * 1024 * 1024);
    CHECK_EQUAL(fl_bursts_bucket(1000 * MS), FL_BURSTS_BUCKETS - 1);
    CHECK_EQUAL(fl_bursts_bucket(INT64_MAX), FL_BURSTS_BUCKETS - 1);
}

static void test_burst_that_outlasts_all_known_ones_is_expected_to_double(void)
{
    fl_bursts_init(&bursts);
    CHECK_EQUAL(fl_bursts_rank(&bursts, 0), 0);
    note(100 * US, 100);
    for (uint32_t bucket = fl_bursts_bucket(100 * US) + 1; bucket < FL_BURSTS_BUCKETS; bucket++) {
        CHECK_EQUAL(fl_bursts_rank(&bursts, fl_bursts_low(bucket)), 2 * fl_bursts_low(bucket));
    }
}

static void test_first_burst_is_news_at_once(void)
{
    fl_bursts_init(&bursts);
    note(MS, 1);
    CHECK(fl_bursts_rank(&bursts, 0) > MS * 2 / 3 && fl_bursts_rank(&bursts, 0) < MS * 3 / 2);
}

static void test_rank_falls_where_all_bursts_are_alike(void)
{
    fl_bursts_init(&bursts);
    note(3 * MS, 500);
    int64_t rank = fl_bursts_rank(&bursts, 0);
    CHECK(rank > 2 * MS && rank < 4 * MS);
    for (int64_t age = 0; age < 3 * MS; age += 10 * US) {
        CHECK(fl_bursts_rank(&bursts, age) <= rank);
        rank = fl_bursts_rank(&bursts, age);
    }
    CHECK(rank < 2 * MS);
}

static void test_rank_of_a_mixture_is_small_until_the_short_ones_are_over(void)
{
    fl_bursts_init(&bursts);
    for (int i = 0; i < 50; i++) {
        note(100 * US, 9);
        note(20 * MS, 1);
    }
    CHECK(fl_bursts_rank(&bursts, 0) < 200 * US);
    CHECK(fl_bursts_rank(&bursts, 90 * US) < 200 * US);
    for (int64_t age = 150 * US; age < 20 * MS; age += 50 * US) {
        CHECK(fl_bursts_rank(&bursts, age) > 7 * MS && fl_bursts_rank(&bursts, age) < 30 * MS);
    }
}

enum { SAMPLES = 400 };

/* The rank by its definition, from the bursts themselves, at the ends of the buckets. */
static double rank_by_definition(const int64_t *lengths, int64_t age)
{
    double best = -1;

    for (int i = 0; i < SAMPLES; i++) {
        double cost = 0, worth = 0;
        int64_t x = fl_bursts_low(fl_bursts_bucket(lengths[i]) + 1);
        for (int j = 0; j < SAMPLES && lengths[i] >= age; j++) {
            if (lengths[j] >= age) {
                cost += (double)((lengths[j] < x ? lengths[j] : x) - age);
                worth += lengths[j] < x ? 1 / (double)lengths[j] : 0;
            }
        }
        if (worth > 0 && (best < 0 || cost / worth < best)) {
            best = cost / worth;
        }
    }
    return best < 0 ? best : sqrt(best);
}

static void test_rank_is_what_its_definition_says_within_a_bucket(void)
{
    for (int round = 0; round < 20; round++) {
        int64_t lengths[SAMPLES];
        fl_bursts_init(&bursts);
        uint64_t octaves = 1 + random_below(5);
        for (int i = 0; i < SAMPLES; i++) {
            uint64_t least = 2048u << random_below(octaves);
            lengths[i] = (int64_t)(least + random_below(least));
            note(lengths[i], 1);
        }
        note(lengths[0], 64); /* until the ranks are those of all */
        for (uint32_t bucket = 0; bucket < FL_BURSTS_BUCKETS; bucket++) {
            int64_t age = fl_bursts_low(bucket);
            double rank = (double)fl_bursts_rank(&bursts, age), wanted = rank_by_definition(lengths, age);
            CHECK(wanted < 0 || (rank > wanted / 2 && rank < wanted * 2));
        }
    }
}

static void test_last_bursts_count(void)
{
    fl_bursts_init(&bursts);
    note(10 * MS, 5 * FL_BURSTS_KEPT);
    CHECK(fl_bursts_rank(&bursts, 0) > 7 * MS);
    CHECK(bursts.total >= FL_BURSTS_KEPT && bursts.total < 2 * FL_BURSTS_KEPT);
    note(10 * US, 5 * FL_BURSTS_KEPT);
    CHECK(fl_bursts_rank(&bursts, 0) < 20 * US);
    CHECK(bursts.counts[fl_bursts_bucket(10 * MS)] < FL_BURSTS_KEPT / 8);
    uint32_t sum = 0;
    for (uint32_t bucket = 0; bucket < FL_BURSTS_BUCKETS; bucket++) {
        sum += bursts.counts[bucket];
    }
    CHECK_EQUAL(bursts.total, sum);
}

enum { LINKS = 200 };

/* The member that leaves next, by going through all of them. */
static fl_duelink *first_by_search(fl_duelink *links, const bool *in)
{
    fl_duelink *first = NULL;

    for (int i = 0; i < LINKS; i++) {
        fl_duelink *link = &links[i];
        if (in[i] && (first == NULL || link->due < first->due
                      || (link->due == first->due && link->since < first->since))) {
            first = link;
        }
    }
    return first;
}

static void test_queue_is_in_order_of_deadlines_as_members_join_and_leave(void)
{
    static fl_duelink links[LINKS];
    static bool in[LINKS];
    fl_duequeue queue = {0};
    uint32_t count = 0;

    for (int step = 0; step < 20000; step++) {
        uint64_t i = random_below(LINKS);
        bool take_first = queue.first != NULL && random_below(4) == 0;
        if (take_first) {
            i = (uint64_t)(queue.first - links);
        }
        if (in[i]) {
            fl_duequeue_remove(&queue, &links[i]);
            count--;
        }
        else {
            links[i].due = (int64_t)random_below(50); /* many of one deadline */
            links[i].since = step;
            fl_duequeue_add(&queue, &links[i]);
            count++;
        }
        in[i] = !in[i];
        CHECK(queue.first == first_by_search(links, in));
        CHECK_EQUAL(queue.count, count);
    }
    while (queue.first != NULL) {
        fl_duelink *first = queue.first;
        CHECK(first == first_by_search(links, in));
        in[first - links] = false;
        fl_duequeue_remove(&queue, first);
    }
    CHECK_EQUAL(queue.count, 0);
}

static void test_account_balances_at_its_share(void)
{
    fl_account account;
    fl_account_init(&account, FL_SHARE_ONE / 4, 4 * MS, 0);
    fl_account_set(&account, true, false, 0);
    CHECK_EQUAL(fl_account_credit(&account, 4 * MS), MS);
    fl_account_set(&account, true, true, 4 * MS);
    int64_t lasts = fl_account_lasts(&account);
    CHECK_EQUAL(lasts, MS * 4 / 3); /* it goes on earning while it spends */
    CHECK(fl_account_credit(&account, 4 * MS + lasts) <= 1);
    CHECK_EQUAL(fl_account_lasts(&account), 0);
}

static void test_account_stays_within_a_slice(void)
{
    fl_account account;
    fl_account_init(&account, FL_SHARE_ONE / 2, MS, 0);
    fl_account_set(&account, true, false, 0);
    for (int64_t t = 100 * US; t < 50 * MS; t += 100 * US) {
        CHECK_EQUAL(fl_account_credit(&account, t), t / 2 < MS ? t / 2 : MS);
    }
    fl_account_set(&account, true, true, 50 * MS);
    CHECK_EQUAL(fl_account_credit(&account, 51 * MS), MS / 2);
    CHECK_EQUAL(fl_account_credit(&account, INT64_MAX / 2), -MS); /* a clock that jumps breaks nothing */
    fl_account_set(&account, true, false, INT64_MAX / 2);
    CHECK_EQUAL(fl_account_credit(&account, INT64_MAX), MS);
    CHECK_EQUAL(fl_account_credit(&account, 0), MS); /* nor does one that goes back */
}

static void test_account_stands_still_while_no_computation_wants_the_gil(void)
{
    fl_account account;
    fl_account_init(&account, FL_SHARE_ONE / 2, MS, 0);
    fl_account_set(&account, true, false, 0);
    fl_account_set(&account, false, false, MS);
    CHECK_EQUAL(fl_account_credit(&account, 1000 * MS), MS / 2);
    fl_account_set(&account, true, false, 1000 * MS);
    CHECK_EQUAL(fl_account_credit(&account, 1000 * MS + 100 * US), MS / 2 + 50 * US);
}

static void test_predictor_learns_a_period(void)
{
    fl_predictor predictor;
    fl_predictor_init(&predictor);
    for (int i = 0; i < 64; i++) {
        fl_predictor_train(&predictor, i % 3 == 0);
    }
    for (int i = 64; i < 94; i++) {
        CHECK_EQUAL(fl_predictor_says_long(&predictor), i % 3 == 0);
        fl_predictor_train(&predictor, i % 3 == 0);
    }
}

int main(void)
{
    test_buckets_are_half_an_octave();
    test_burst_that_outlasts_all_known_ones_is_expected_to_double();
    test_first_burst_is_news_at_once();
    test_rank_falls_where_all_bursts_are_alike();
    test_rank_of_a_mixture_is_small_until_the_short_ones_are_over();
    test_rank_is_what_its_definition_says_within_a_bucket();
    test_last_bursts_count();
    test_queue_is_in_order_of_deadlines_as_members_join_and_leave();
    test_account_balances_at_its_share();
    test_account_stays_within_a_slice();
    test_account_stands_still_while_no_computation_wants_the_gil();
    test_predictor_learns_a_period();
    return 0;
}

/* counter: a number that many threads add to at once, each in a place of its own.
 *
 * Prior art: java.util.concurrent.atomic.LongAdder (Doug Lea, Java 8), and per-CPU counters of kernels. One
 * number that all cores change moves from core to core with each change; stripes that lie in cache lines of
 * their own stay where they are, and only a call for the sum fetches them all.
 *
 * A thread's stripe goes by its number (fl_owner_thread), which are given one after another, so that as many
 * threads as there are stripes have one each. What a stripe counts is moved to `rest`, which has 128 bits,
 * before it could overflow; so the sum is exact, however large. Numbers that are large by themselves are
 * added there at once.
 *
 * Invariants, checked by the model (counter-* in native/tests/model/scenarios_counter.c):
 * 1. Every number that was added is in exactly one of the sums that were taken (fl_counter_take), or in what
 *    is left.
 * 2. A sum has all that was added before it began, nothing that was added after it ended, and of what is
 *    added meanwhile any part. If nothing negative is added, sums never become smaller.
 */
#ifndef FL_SYNC_WAIT_COUNTER_H
#define FL_SYNC_WAIT_COUNTER_H

#include "machine/atomic.h"

#define FL_COUNTER_STRIPES 64 /* at most */
#define FL_COUNTER_SMALL (INT64_C(1) << 31) /* a larger number is not added to a stripe */
#ifdef FL_MODEL
#define FL_COUNTER_FULL 2
#else
#define FL_COUNTER_FULL (INT64_C(1) << 62) /* and what many threads add before it is moved */
#endif

typedef struct {
    uint64_t low;
    int64_t high; /* times 2**64 */
} fl_wide;

typedef struct {
    _Alignas(64) fl_atomic(int64_t) value;
} fl_stripe;

typedef struct {
    fl_mutex lock; /* of `rest`, and of moving stripes there */
    fl_atomic(uint32_t) generation;
    uint32_t stripes; /* a power of two; constant */
    fl_wide rest;
    fl_stripe at[];
} fl_counter;

/* NULL: no memory. As many stripes as that, rounded up to a power of two. */
fl_counter *fl_counter_new(uint32_t stripes);
void fl_counter_free(fl_counter *counter);

void fl_counter_move(fl_counter *counter, fl_stripe *stripe);
void fl_counter_add_large(fl_counter *counter, int64_t by);

/* Adds a number. None of these blocks; any thread, attached or not, at any time. */
static inline void fl_counter_add(fl_counter *counter, uint64_t thread, int64_t by)
{
    if (__builtin_expect(by >= FL_COUNTER_SMALL || by <= -FL_COUNTER_SMALL, false)) {
        fl_counter_add_large(counter, by);
        return;
    }
    fl_stripe *stripe = &counter->at[(thread >> 1) & (counter->stripes - 1)];
    int64_t value = fl_fetch_add(&stripe->value, by, relaxed) + by; /* it guards nothing but itself */
    if (__builtin_expect(value >= FL_COUNTER_FULL || value <= -FL_COUNTER_FULL, false)) {
        fl_counter_move(counter, stripe);
    }
}

/* The sum; and the sum, of which nothing is left. */
fl_wide fl_counter_sum(fl_counter *counter);
fl_wide fl_counter_take(fl_counter *counter);

#endif

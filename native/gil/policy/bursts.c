#include "gil/policy/bursts.h"

#include <math.h>
#include <string.h>

int64_t fl_bursts_low(uint32_t bucket)
{
    if (bucket == 0) {
        return 0;
    }
    int64_t octave = (int64_t)1024 << ((bucket - 1) / 2);
    return bucket % 2 ? octave : octave + octave / 2;
}

uint32_t fl_bursts_bucket(int64_t age)
{
    if (age < 1024) {
        return 0;
    }
    uint32_t octave = 63u - (uint32_t)__builtin_clzll((uint64_t)age); /* 10 or more */
    uint32_t bucket = 1 + 2 * (octave - 10) + (uint32_t)(age >> (octave - 1) & 1);
    return bucket < FL_BURSTS_BUCKETS ? bucket : FL_BURSTS_BUCKETS - 1;
}

/* The length that stands for all of a bucket. */
static int64_t middle(uint32_t bucket)
{
    int64_t low = fl_bursts_low(bucket);
    return bucket + 1 < FL_BURSTS_BUCKETS ? (low + fl_bursts_low(bucket + 1)) / 2 : 2 * low;
}

static int64_t rank_at(const fl_bursts *bursts, uint32_t age, uint64_t outlasted)
{
    double used = (double)fl_bursts_low(age), cost = 0, worth = 0, best = INFINITY;

    for (uint32_t b = age; b < FL_BURSTS_BUCKETS; b++) {
        double length = (double)middle(b), count = bursts->counts[b];
        outlasted -= bursts->counts[b];
        cost += count * (length - used);
        worth += count / length;
        if (bursts->counts[b] > 0) {
            double x = b + 1 < FL_BURSTS_BUCKETS ? (double)fl_bursts_low(b + 1) : length;
            best = fmin(best, (cost + (double)outlasted * (x - used)) / worth);
        }
    }
    return best < INFINITY ? (int64_t)sqrt(best) : 2 * fl_bursts_low(age);
}

static void compute(fl_bursts *bursts)
{
    uint64_t outlasted = bursts->total;

    for (uint32_t b = 0; b < FL_BURSTS_BUCKETS; b++) {
        bursts->rank[b] = rank_at(bursts, b, outlasted);
        outlasted -= bursts->counts[b];
    }
    bursts->fresh = 0;
}

void fl_bursts_init(fl_bursts *bursts)
{
    memset(bursts, 0, sizeof *bursts);
    compute(bursts);
}

void fl_bursts_note(fl_bursts *bursts, int64_t ns)
{
    bursts->counts[fl_bursts_bucket(ns)]++;
    bursts->total++;
    bursts->fresh++;
    if (bursts->total >= 2 * FL_BURSTS_KEPT) {
        bursts->total = 0;
        for (uint32_t b = 0; b < FL_BURSTS_BUCKETS; b++) {
            bursts->counts[b] /= 2;
            bursts->total += bursts->counts[b];
        }
    }
    /* Often at first, when each burst is news. */
    if (bursts->fresh >= FL_BURSTS_FRESH || bursts->fresh * FL_BURSTS_PARTS >= bursts->total) {
        compute(bursts);
    }
}

/* histogram: durations counted by their power of two. */
#pragma once

#include <stdint.h>

#define FL_HISTOGRAM_BUCKETS 40

/* Bucket k takes durations of [2^k, 2^(k+1)) ns, bucket 0 also 0 ns, the last also all longer ones (9 minutes
 * on). */
static inline unsigned fl_histogram_bucket(uint64_t ns)
{
    unsigned bucket = 63u - (unsigned)__builtin_clzll(ns | 1);
    return bucket < FL_HISTOGRAM_BUCKETS ? bucket : FL_HISTOGRAM_BUCKETS - 1;
}

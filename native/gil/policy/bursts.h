/* bursts: how long the bursts of this process are, and what that says of one that is under way.
 *
 * A burst is the GIL time that a thread uses between two drops of its own accord. The finished bursts of all
 * threads are counted in buckets, two an octave from 1 us to 64 ms; the counts are halved now and then, so
 * that the last FL_BURSTS_KEPT or so count.
 *
 * The rank of a burst that has lasted for `age`:
 *
 *     rank(age) = the least, over all points x > age, of
 *                 sqrt(E[min(S, x) - age | S > age] / E[1/S if S <= x, else 0 | S > age])
 *
 * where S is the length of a burst. Its square is the Gittins index (Gittins, 1979; for queues: Aalto,
 * Ayesta and Righter, 2009) with a weight of 1/S, as the aim is a small slowdown and not a small delay: what
 * it costs to run on until x, by what the bursts that end by then are worth. Where a length is known it is
 * the geometric mean of it and of what is left (Wierman, Harchol-Balter and Osogami, 2005: RS). Where all
 * bursts are alike, rank is their length at first and falls from there: nothing is gained by interrupting
 * one. Where 0.1 ms and 20 ms are mixed, rank is about 0.1 ms at first and 20 ms as soon as a burst has
 * outlasted the short ones.
 *
 * Locking: every function needs the lock that protects the record. Reads no clock, allocates nothing.
 */
#pragma once

#include <stdint.h>

#include "gil/policy/constants.h"

#define FL_BURSTS_BUCKETS 34

typedef struct fl_bursts {
    uint32_t counts[FL_BURSTS_BUCKETS]; /* bucket 0: below 1 us; the last one: 64 ms and more */
    uint32_t total, fresh;              /* fresh: counted since the ranks were computed */
    int64_t rank[FL_BURSTS_BUCKETS];    /* ns, by the age's bucket */
} fl_bursts;

void fl_bursts_init(fl_bursts *bursts);

/* A burst of so many ns has finished. O(1) amortised. */
void fl_bursts_note(fl_bursts *bursts, int64_t ns);

uint32_t fl_bursts_bucket(int64_t age);
int64_t fl_bursts_low(uint32_t bucket); /* the least age of that bucket, ns */

static inline int64_t fl_bursts_rank(const fl_bursts *bursts, int64_t age)
{
    return bursts->rank[fl_bursts_bucket(age)];
}

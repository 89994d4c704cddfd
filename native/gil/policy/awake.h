/* awake: threads that leave the GIL for moments and do not sleep meanwhile, and what they owe.
 *
 * A thread that hashes, compresses or queries a database in memory leaves the GIL all the time, and never
 * waits for anything outside. It drops the GIL as a server does, and goes on as a computation does. So a part
 * of the time for which it holds the GIL is owed to computations that want it, and several times over the
 * time for which the GIL stands free for it, or is handed over; but not the hand-overs of paying that.
 *
 * To tell it from a server the caller looks, now and then, whether the thread has slept in an absence. A
 * server whose requests queue up does not sleep either. So a thread may keep the GIL for a part of the time,
 * as one of many does, and for computation_ns more for each sleep that was seen; that is not owed.
 *
 * Locking: fl_debt needs the lock that protects the policy; fl_awake its own thread, or that lock.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gil/policy/constants.h"

typedef struct fl_awake {
    uint32_t sleeps;   /* whether it slept in the last FL_SAMPLES absences looked at; bit 0: the last */
    uint8_t nth, skip; /* so many drops go by before the next is chosen */
    int64_t t_sampled; /* when one was chosen last */
    int64_t t_kept;    /* up to when its part is taken off `kept` */
    int64_t kept;      /* GIL time that it kept beyond its part; negative: what it may keep besides */
} fl_awake;

typedef struct fl_debt {
    int64_t owed; /* ns */
    bool due;     /* it is being paid: from a slice on, down to nothing */
} fl_debt;

/* Of a new thread: it sleeps until it is seen not to. */
void fl_awake_init(fl_awake *awake);

static inline bool fl_awake_is(const fl_awake *awake)
{
    return __builtin_popcount(awake->sleeps) <= FL_SAMPLES_SLEPT;
}

/* Is the absence that begins now to be looked at? FL_SAMPLES in computation_ns at most. */
bool fl_awake_samples(fl_awake *awake, const fl_policy_constants *k, int64_t now);

/* It has been: the thread slept in it, or did not. */
void fl_awake_slept(fl_awake *awake, bool slept, const fl_policy_constants *k);

/* The thread has kept the GIL for `ns`. True: they are owed. */
bool fl_awake_keeps(fl_awake *awake, int64_t ns, const fl_policy_constants *k, int64_t now);

/* So much more is owed, up to two slices; from one on it is paid. */
void fl_debt_add(fl_debt *debt, int64_t ns, int64_t slice);
void fl_debt_pay(fl_debt *debt, int64_t ns);

/* Every number of the scheduler: name, default, reason. Times are nanoseconds.
 *
 * Rules and timers can be set in the simulator: benchmarks/gil_policy_sweep.py halves and doubles each. The
 * last list is of sizes and rates that are fixed.
 */
#pragma once

/* What the policy decides by. */
#define FL_POLICY_RULES(X)                                                                                 \
    /* A waiter is due after so many times the expected length of its burst: a short one goes before one   \
       so many times as long that has not waited yet, and after one that has. */                           \
    X(stretch, 5)                                                                                          \
    /* A holder is not interrupted before it has held the GIL, on a core, for this: two switches cost      \
       some 50 us. */                                                                                      \
    X(grain_ns, 500000)                                                                                    \
    /* A burst shorter than this after an absence shorter than this is the end of a send() or the like,    \
       and tells nothing of the thread's next one. */                                                      \
    X(brief_ns, 20000)                                                                                     \
    /* A burst of this much GIL time is a computation, a shorter one is part of a request. */              \
    X(computation_ns, 25000000)                                                                            \
    /* A burst that has used no GIL time yet is expected to need at most this, and later at most twice     \
       what it has used: what makes the longest wait finite, whatever the bursts of others are. */         \
    X(expect_most_ns, 5000000)                                                                             \
    /* Computations go first once they are owed this much of their floor; neither they nor the others are  \
       ever owed more. */                                                                                  \
    X(floor_slice_ns, 1000000)                                                                             \
    /* The GIL stays free for a thread that usually comes back within this, if only computations wait. */  \
    X(lazy_ns, 100000)                                                                                     \
    /* Of what an awake thread holds one part in so many is owed to the computations: an event loop that   \
       has always something to do keeps four fifths ... */                                                 \
    X(awake_holds, 4)                                                                                      \
    /* ... and so many times over the time for which the GIL stands free for it: a computation beside one  \
       that hashes takes at least 1 + 1 / awake_costs times as long as alone, and hand-overs besides. */   \
    X(awake_costs, 8)                                                                                      \
    /* ... but for one part in so many of the time, a few calls at once: the threads of a server that has  \
       fallen behind do not sleep either, and are many. */                                                 \
    X(awake_parts, 32)                                                                                     \
    /* ... and but for computation_ns for each sleep that was seen before, this much in all: so long a     \
       server of one thread may take to catch up. */                                                       \
    X(awake_credit_ns, 1000000000)                                                                         \
    /* A background thread goes behind the turns of other computations that begin within this. */          \
    X(background_ns, 1000000000)                                                                           \
    /* A sleeper is woken for a free GIL, which others may use meanwhile, until it has waited this long;   \
       then the GIL is granted to it, and stands still until it is awake. */                               \
    X(offer_ns, 20000000)                                                                                  \
    /* Spin this long before sleeping, if cores allow: a sleep and a wake-up take several times that. */   \
    X(spin_ns, 15000)                                                                                      \
    /* How often it is checked whether one thread serves and takes turns with its client. If so, the       \
       computation that is next spins, which keeps its core awake. */                                      \
    X(alternates_ns, 10000000)

/* How the protocol of sleeping, waking and asking keeps time. They bound the harm when a step goes wrong,
 * and decide nothing. */
#define FL_POLICY_TIMERS(X)                                                                                \
    /* Off the GIL this long after a request to drop, and asleep: a wait, and no interruption. Twice       \
       Linux's timer slack and more. */                                                                    \
    X(away_ns, 150000)                                                                                     \
    /* A thread that has held the GIL since before there was scheduling is asked after this, or after a     \
       switch interval that is shorter: what its burst is is not known. */                                 \
    X(unknown_ns, 5000000)                                                                                 \
    /* A request that had no effect is repeated after this, doubled each time up to the switch interval:   \
       those sent within 0.7 us of an acquisition are sometimes lost. */                                   \
    X(retry_ns, 50000)                                                                                     \
    /* A grant that has not been taken for this goes to another waiter that is awake: its thread has no    \
       core. The first in line oversleeps by no more. */                                                   \
    X(late_ns, 300000)                                                                                     \
    /* A spinning thread whose core was gone for this long was in the way of a computation ... */          \
    X(robbed_ns, 500000)                                                                                   \
    /* ... so none spins for this long, twice as long if it happens again at once, ... */                  \
    X(pause_least_ns, 5000000)                                                                             \
    /* ... and so on up to this. */                                                                        \
    X(pause_most_ns, 300000000)                                                                            \
    /* A thread that has slept for this long since its grant was withdrawn is woken again: the thread      \
       that was to wake it may have had no core. */                                                        \
    X(lost_ns, 200000000)                                                                                  \
    /* Scheduling ends when there are so many of those at once. */                                         \
    X(watchdog_threads, 3)

/* A thread that has not slept in all of the last FL_SAMPLES absences that were looked at, but for so many, is
   awake. The few are sleeps at the GIL's own mutex. */
#define FL_SAMPLES 32
#define FL_SAMPLES_SLEPT 3
/* So many bursts, or twice as many, say what to expect. That is computed anew after so many more, ... */
#define FL_BURSTS_KEPT 1024
#define FL_BURSTS_FRESH 64
/* ... or after one part in so many, when there are few. */
#define FL_BURSTS_PARTS 8
/* The moving mean of hand-overs takes one part in so many of each, ... */
#define FL_HANDOVER_PARTS 16
/* ... and so many of them, twice, must be worth an interruption. */
#define FL_HANDOVERS 8
/* A server that sleeps at one in so many of its turns takes turns with its client. */
#define FL_TURNS_A_SLEEP 4
/* How many switches of a GIL lie between two looks whether all hooks are in; a power of two. */
#define FL_SWITCHES_PER_LOOK 256
/* How long the number of cores that a thread may use is taken to stay the same. */
#define FL_CORES_NS 10000000
/* Without a core for so long, a thread asks whether a CPU quota was used up, ... */
#define FL_GONE_NS 500000
/* ... at most once in this; ... */
#define FL_GONE_EVERY_NS 1000000000
/* ... if so, none spins for this. */
#define FL_GONE_CALM_NS 10000000000

#define FL_POLICY_CONSTANTS(X) FL_POLICY_RULES(X) FL_POLICY_TIMERS(X)

typedef struct fl_policy_constants {
#define FL_POLICY_FIELD(name, value) long long name;
    FL_POLICY_CONSTANTS(FL_POLICY_FIELD)
#undef FL_POLICY_FIELD
} fl_policy_constants;

static inline fl_policy_constants fl_policy_constants_default(void)
{
    return (fl_policy_constants){
#define FL_POLICY_VALUE(name, value) .name = (value),
        FL_POLICY_CONSTANTS(FL_POLICY_VALUE)
#undef FL_POLICY_VALUE
    };
}

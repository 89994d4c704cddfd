/* The numbers of the scheduling policy: name, default, reason. Times are nanoseconds.
 *
 * Every one can be set in the simulator; benchmarks/gil_policy_sweep.py varies each by itself and prints what
 * that does to the echo servers, the squares and the CPU share. "flat" below means: half and twice the value
 * move no figure of that table by more than a tenth.
 */
#ifndef FL_POLICY_CONSTANTS_H
#define FL_POLICY_CONSTANTS_H

#define FL_POLICY_CONSTANTS(X)                                                                             \
    /* Off the GIL this long is a real wait, not a sleep(0): more than twice Linux's 50 us timer slack. */ \
    X(long_off_ns, 150000)                                                                                 \
    /* A thread forced out after less than this has not shown that it is CPU-bound. */                     \
    X(brief_hold_ns, 100000)                                                                               \
    /* A hold this long shows that it is, and so do several that were forced to end, without a real wait. */ \
    X(cpu_hold_ns, 1000000)                                                                                \
    /* A thread that yields after less than this is a poller: it only looks whether something has          \
       happened. */                                                                                        \
    X(poll_hold_ns, 20000)                                                                                 \
    /* CPU-bound threads go first once they are this far behind their share, and then run until they no    \
       longer are: long enough to pay for two switches, short enough to be the worst case of a             \
       request's wait. */                                                                                  \
    X(share_slice_ns, 1000000)                                                                             \
    /* While it lasts, those who serve fall asleep, and are woken one by one when it ends: a slice is      \
       longer by this for each that waited at the end of the last one ... */                               \
    X(herd_ns, 80000)                                                                                      \
    /* ... beyond so many, whom the cores get awake in less than a slice ... */                            \
    X(herd_least, 16)                                                                                      \
    /* ... and up to so many: 5 ms in all. */                                                              \
    X(herd_most, 64)                                                                                       \
    /* The same for pollers, whose pass is short: small, so that their passes are spread out. */           \
    X(poll_credit_ns, 50000)                                                                               \
    /* The sliding window over which the share is kept. */                                                 \
    X(window_ns, 100000000)                                                                                \
    /* How far ahead of their share CPU-bound threads can be held to be. What they took while nobody       \
       else wanted the GIL costs them at most this divided by the share. */                                \
    X(debt_ns, 4000000)                                                                                    \
    /* A waiter that was passed over for this long goes first, once per such period: bounded ageing. */    \
    X(age_ns, 20000000)                                                                                    \
    /* CPU-bound threads fill even short gaps between the holds of others while they are this far          \
       behind. */                                                                                          \
    X(gap_credit_ns, 0)                                                                                    \
    /* A drop is lazy if its thread is expected back within this and only CPU-bound threads wait. */       \
    X(lazy_ns, 100000)                                                                                     \
    /* Likewise if others wait: back within a send() that does not block. */                               \
    X(send_ns, 20000)                                                                                      \
    /* Such sends keep the GIL from the others for this long in all, then it is handed over. */            \
    X(burst_ns, 200000)                                                                                    \
    /* A sleeper is woken for a free GIL, so that those who are awake can use it meanwhile, until it has   \
       waited this long; then it is granted the GIL, which stands still until it is awake. */              \
    X(offer_ns, 4000000)                                                                                   \
    /* A fresh waiter asks a holder that is not CPU-bound for the GIL after this ... */                    \
    X(ask_fresh_ns, 200000)                                                                                \
    /* ... and a brief one after this. Both are far above the hold of a request (5 to 50 us). */           \
    X(ask_brief_ns, 1000000)                                                                               \
    /* First repetition of a request that had no effect, doubled each time up to the switch interval:      \
       requests sent less than 0.7 us after an acquisition are sometimes lost (seen on 3.12). */           \
    X(reask_ns, 50000)                                                                                     \
    /* The k-th in line has its timer k times this after the first's: it is only the first's back-up. */   \
    X(stagger_ns, 50000)                                                                                   \
    X(stagger_cpu_ns, 1000000)                                                                             \
    /* While a granted thread is on its way, look again after this. */                                     \
    X(limbo_ns, 1000000)                                                                                   \
    /* The first in line is woken to set its timer anew if it would oversleep by more than this. */        \
    X(kick_ns, 500000)                                                                                     \
    /* After a hand-over it may oversleep by this: most holders drop long before. */                       \
    X(kick_handed_ns, 10000000)                                                                            \
    /* Pollers are held to their share as long as other threads made progress within this. */              \
    X(quiet_ns, 20000000)                                                                                  \
    /* Spin this long before parking (a futex sleep and wake-up is several times that), if cores allow. */ \
    X(spin_ns, 15000)                                                                                      \
    /* The CPU-bound thread that is next spins for this long in all, while others serve: from one slice to \
       the next at the usual share. */                                                                     \
    X(spin_cpu_ns, 3000000)                                                                                \
    /* Who takes its core for so long computes; who serves takes it for microseconds. */                   \
    X(robbed_ns, 500000)                                                                                   \
    /* None does for this long after the kernel took the core of one that did, twice as long if that       \
       happens again at once ... */                                                                        \
    X(crowded_least_ns, 5000000)                                                                           \
    /* ... and so on, up to this. */                                                                       \
    X(crowded_ns, 300000000)                                                                               \
    /* A grant that has not been taken after this many switch intervals is taken back ... */               \
    X(watchdog_intervals, 40)                                                                              \
    /* (intervals of at least this: users set them to microseconds) ... */                                 \
    X(watchdog_least_ns, 5000000)                                                                          \
    /* ... and scheduling ends when so many in a row had to be, by threads that were not even running. */  \
    X(watchdog_grants, 3)                                                                                  \
    /* Policy "fair": a waiter asks when it is this far behind the holder in GIL time ... */               \
    X(fair_slice_ns, 2000000)                                                                              \
    /* ... and one that comes from a wait is at most this far behind everybody else. */                    \
    X(fair_lag_ns, 2000000)

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

#endif

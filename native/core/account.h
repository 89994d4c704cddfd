/* account: how far the CPU-bound threads are behind (or ahead of) their share of the GIL.
 *
 * credit = integral over the past of (share - charging) dt, taken while CPU-bound threads
 * have demand (wait or hold) and weighted by exp(-age / window): a sliding window without
 * edges. Serving whenever credit > 0 keeps them at their share; what happened several
 * windows ago is forgotten. credit can never exceed share * window; how far it may fall is
 * limited by debt, so that threads which had the interpreter to themselves do not pay for
 * it when others arrive.
 *
 * A window with edges (a ring of buckets) was tried on paper and rejected: as a controller
 * it repeats its own past. A burst of charge leaves the ring one window later and lets the
 * same burst happen again, for ever.
 *
 * Locking: every function needs the lock of the policy that owns the account.
 * Time: integer nanoseconds from any monotonic clock, never going back between calls.
 */
#ifndef FL_ACCOUNT_H
#define FL_ACCOUNT_H

#include <stdbool.h>
#include <stdint.h>

/* Shares are fixed-point: FL_SHARE_ONE is the whole GIL. */
#define FL_SHARE_ONE 1024

typedef struct fl_account {
    int64_t credit;   /* ns; valid as of `since` */
    int64_t since;    /* ns */
    int64_t window;   /* ns, > 0 */
    int64_t debt;     /* ns, >= 0: credit never falls below -debt */
    int32_t share;    /* 1 .. FL_SHARE_ONE - 1 */
    bool demand;      /* a CPU-bound thread waits or holds */
    bool charging;    /* the GIL is a CPU-bound thread's, or on its way to one */
} fl_account;

void fl_account_init(fl_account *account, int32_t share, int64_t window, int64_t debt, int64_t now);

/* The credit as of now. */
int64_t fl_account_credit(fl_account *account, int64_t now);

/* From now on demand and charging are as given. Free when nothing changes. */
static inline void fl_account_set(fl_account *account, bool demand, bool charging, int64_t now)
{
    if (account->demand != demand || account->charging != charging) {
        (void)fl_account_credit(account, now);
        account->demand = demand;
        account->charging = charging;
    }
}

/* How long until the credit, as of the last settlement, rises (falls) to zero if demand goes on and
 * the GIL is not (is) charged: 0 when it is there already. The window's forgetting shortens both a little. */
int64_t fl_account_recovers_in(const fl_account *account);
int64_t fl_account_lasts(const fl_account *account);

#endif

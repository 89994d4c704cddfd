/* account: how much of their floor of GIL time the computations are owed: a token bucket.
 *
 * credit = integral of (share - charging) dt, taken while a computation wants or holds the GIL, and kept
 * within -most .. most: what computations had while no other thread wanted the GIL is not held against them
 * for long, and a long C call saves nothing up for them.
 *
 * Locking: every function needs the lock of the policy that owns the account.
 * Time: integer nanoseconds from any monotonic clock, never going back between calls.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Shares are fixed-point: FL_SHARE_ONE is the whole GIL. */
#define FL_SHARE_ONE 1024

typedef struct fl_account {
    int64_t credit; /* ns; valid as of `since` */
    int64_t since;  /* ns */
    int64_t most;   /* ns, > 0 */
    int32_t share;  /* 1 .. FL_SHARE_ONE - 1 */
    bool demand;    /* a computation waits or holds */
    bool charging;  /* the GIL is a computation's, or on its way to one */
} fl_account;

void fl_account_init(fl_account *account, int32_t share, int64_t most, int64_t now);

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

/* For how long since `from` a computation has wanted the GIL and none was charged for it. */
static inline int64_t fl_account_unserved(const fl_account *account, int64_t from, int64_t now)
{
    return account->demand && !account->charging ? now - (from > account->since ? from : account->since) : 0;
}

/* How long until the credit, as of the last settlement, has fallen to zero if the GIL is charged: 0 when it
 * is there already. */
int64_t fl_account_lasts(const fl_account *account);

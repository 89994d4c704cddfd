#include "core/account.h"

void fl_account_init(fl_account *account, int32_t share, int64_t window, int64_t debt, int64_t now)
{
    *account = (fl_account){.since = now, .window = window, .debt = debt, .share = share};
}

int64_t fl_account_credit(fl_account *account, int64_t now)
{
    int64_t dt = now - account->since;

    if (dt <= 0) {
        return account->credit;
    }
    account->since = now;
    if (dt > 8 * account->window) {
        dt = 8 * account->window; /* the past is forgotten by then; keeps the products below 2^63 */
    }
    /* One implicit Euler step of credit' = -credit / window + income: stable for every dt. */
    int64_t income = 0;
    if (account->demand) {
        income += dt * account->share / FL_SHARE_ONE;
    }
    if (account->charging) {
        income -= dt;
    }
    account->credit += income;
    account->credit -= account->credit * dt / (account->window + dt);
    if (account->credit < -account->debt) {
        account->credit = -account->debt;
    }
    return account->credit;
}

int64_t fl_account_recovers_in(const fl_account *account)
{
    return account->credit >= 0 ? 0 : -account->credit * FL_SHARE_ONE / account->share;
}

int64_t fl_account_lasts(const fl_account *account)
{
    return account->credit <= 0 ? 0 : account->credit * FL_SHARE_ONE / (FL_SHARE_ONE - account->share);
}

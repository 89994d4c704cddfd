#include "gil/policy/account.h"

void fl_account_init(fl_account *account, int32_t share, int64_t most, int64_t now)
{
    *account = (fl_account){.since = now, .most = most, .share = share};
}

int64_t fl_account_credit(fl_account *account, int64_t now)
{
    int64_t dt = now - account->since, most = account->most;
    int64_t enough = 2 * most * FL_SHARE_ONE; /* from bound to bound at any share; keeps the product small */

    if (dt <= 0) {
        return account->credit;
    }
    account->since = now;
    dt = dt < enough ? dt : enough;
    account->credit += account->demand ? dt * account->share / FL_SHARE_ONE : 0;
    account->credit -= account->charging ? dt : 0;
    if (account->credit > most) {
        account->credit = most;
    }
    if (account->credit < -most) {
        account->credit = -most;
    }
    return account->credit;
}

int64_t fl_account_lasts(const fl_account *account)
{
    return account->credit <= 0 ? 0 : account->credit * FL_SHARE_ONE / (FL_SHARE_ONE - account->share);
}

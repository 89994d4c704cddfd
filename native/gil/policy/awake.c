#include "gil/policy/awake.h"

void fl_awake_init(fl_awake *awake)
{
    *awake = (fl_awake){.sleeps = UINT32_MAX};
}

bool fl_awake_samples(fl_awake *awake, const fl_policy_constants *k, int64_t now)
{
    if (now - awake->t_sampled < k->computation_ns / FL_SAMPLES) {
        return false;
    }
    /* The first drop after some time mostly follows a long absence, and so begins a short one: another one is
       taken each time. */
    if (awake->skip > 0) {
        awake->skip--;
        return false;
    }
    awake->skip = ++awake->nth % 8;
    awake->t_sampled = now;
    return true;
}

void fl_awake_slept(fl_awake *awake, bool slept, const fl_policy_constants *k)
{
    awake->sleeps = awake->sleeps << 1 | slept;
    if (slept && !fl_awake_is(awake)) {
        awake->kept -= k->computation_ns;
        awake->kept = awake->kept > -k->awake_credit_ns ? awake->kept : -k->awake_credit_ns;
    }
}

bool fl_awake_keeps(fl_awake *awake, int64_t ns, const fl_policy_constants *k, int64_t now)
{
    int64_t part = (now - awake->t_kept) / k->awake_parts;

    awake->t_kept = now;
    if (!fl_awake_is(awake)) {
        return false;
    }
    if (awake->kept > 0) {
        awake->kept = awake->kept > part ? awake->kept - part : 0;
    }
    bool more = awake->kept > k->floor_slice_ns; /* a few calls at once are no more than a part */
    awake->kept += ns;
    awake->kept = awake->kept < k->computation_ns ? awake->kept : k->computation_ns; /* soon forgotten */
    return more;
}

void fl_debt_add(fl_debt *debt, int64_t ns, int64_t slice)
{
    debt->owed = debt->owed + ns < 2 * slice ? debt->owed + ns : 2 * slice;
    debt->due |= debt->owed >= slice;
}

void fl_debt_pay(fl_debt *debt, int64_t ns)
{
    debt->owed = debt->owed > ns ? debt->owed - ns : 0;
    debt->due &= debt->owed > 0;
}

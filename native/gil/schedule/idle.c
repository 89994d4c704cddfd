#include "gil/schedule/idle.h"

#include <stdio.h>

/* So long is looked at together, and from this share on it is said. */
#define WINDOW_NS 10000000000
#define PERCENT 25

/* No gap counts for more: a longer one is for want of a core, under which the interpreter's own scheduling
   suffers as well. */
#define GAP_NS 100000

const char *fl_idle_acquired(fl_idle *idle, const fl_policy *policy, int64_t now)
{
    if (idle->said || policy->mode == FL_MODE_STOCK) {
        return NULL;
    }
    idle->since = idle->since ? idle->since : now;
    if (policy->grantee == NULL) { /* else it was on its way to a thread that had to wake up */
        int64_t gap = fl_account_unserved(&policy->account, policy->t_free, now);
        idle->sum += gap < GAP_NS ? gap : GAP_NS;
    }
    int64_t elapsed = now - idle->since;
    if (elapsed < WINDOW_NS) {
        return NULL;
    }
    int percent = (int)(idle->sum * 100 / elapsed);
    idle->since = now;
    idle->sum = 0;
    idle->said = percent >= PERCENT;
    if (!idle->said) {
        return NULL;
    }
    snprintf(idle->news, sizeof idle->news,
             "no thread had the GIL for %d %% of the last %lld s while a computing thread waited for it; try "
             "a larger --cpu-share, or policy stock (fairlead ctl)",
             percent, (long long)(elapsed / 1000000000));
    return idle->news;
}

void fl_idle_forked(fl_idle *idle)
{
    idle->since = idle->sum = 0;
}

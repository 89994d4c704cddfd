/* Any other Unix: what POSIX promises, which is neither affinity nor accounts per thread. */
#include "platform/unix.h"

#include "core/cores.h"

int fl_cores_affinity(void)
{
    return fl_cores_online();
}

fl_usage_result fl_usage_read(fl_usage_scope scope, fl_usage *usage)
{
    if (scope == FL_USAGE_THREAD) {
        return FL_USAGE_UNSUPPORTED;
    }
    fl_unix_rusage(scope == FL_USAGE_PROCESS ? RUSAGE_SELF : RUSAGE_CHILDREN, usage);
    return FL_USAGE_OK;
}

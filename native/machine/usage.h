/* What the kernel has accounted: CPU time, context switches and memory. */
#pragma once

#include <stdint.h>

typedef enum {
    FL_USAGE_THREAD,    /* the calling thread */
    FL_USAGE_PROCESS,   /* all threads of this process, ended ones included */
    FL_USAGE_CHILDREN,  /* child processes that have ended and been waited for, and theirs */
} fl_usage_scope;

typedef enum {
    FL_USAGE_OK,
    FL_USAGE_UNSUPPORTED,  /* this system keeps no such account */
} fl_usage_result;

typedef struct {
    int64_t user_ns;
    int64_t system_ns;
    int64_t ctx_voluntary;  /* 0 where the system does not count them */
    int64_t ctx_involuntary;
    int64_t max_rss_kb;  /* KiB; of the whole process for a thread, of the largest one for children */
} fl_usage;

/* Reads the counters of `scope`. Any thread, any time; never blocks. Implemented by machine/os/. */
fl_usage_result fl_usage_read(fl_usage_scope scope, fl_usage *usage);

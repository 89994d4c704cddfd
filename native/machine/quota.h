/* The CPU quota that control groups (Linux) or a job (Windows) put on this process. */
#pragma once

#include <stdint.h>

typedef enum {
    FL_QUOTA_NONE,      /* nothing limits this process, or there is no such limit here */
    FL_QUOTA_LIMITED,   /* *cores holds the tightest limit */
    FL_QUOTA_NO_MEMORY,
} fl_quota_result;

/* Finds the tightest CPU quota, in cores, of the control groups that this process is in and of all
   groups above these, in version 1 and version 2 hierarchies.

   `root` stands before every path that is read: "" is this machine, anything else is a directory
   with a copy of the files (proc/self/cgroup, proc/self/mountinfo and the mounted groups).
   A file that is absent or that says nothing understandable sets no limit. Reads files, so it may
   block. Any thread. Implemented by machine/os/; on Windows `root` is not read. */
fl_quota_result fl_quota_read(const char *root, double *cores);

/* How often the kernel has stopped the processes of these groups because their quota was used up
   (nr_throttled, of all of them together); 0 where it does not say. As fl_quota_read; not on Windows. */
uint64_t fl_quota_throttled(const char *root);

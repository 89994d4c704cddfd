/* kernel: what the kernel says of a thread of this process. Any thread, no lock; a system call or three. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

/* What a thread is at: R runs or could, S and D sleep, t is stopped by a debugger; and further letters (man
   5 proc). 0: not known, for want of a file descriptor or of /proc, or because the thread has ended. */
char fl_kernel_state(pid_t thread);

/* For how long a thread has run, in ns; 0: not known. */
uint64_t fl_kernel_cpu_ns(pid_t thread);
uint64_t fl_kernel_own_cpu_ns(void);

/* How often a thread has gone to sleep of its own accord; 0: never, or not known. */
uint64_t fl_kernel_sleeps(pid_t thread);

/* For how long the calling thread has run, and how often it has gone to sleep of its own accord. */
typedef struct {
    uint64_t cpu_us;
    long sleeps;
} fl_kernel_usage;
fl_kernel_usage fl_kernel_own_usage(void);

/* From now on the calling thread, which runs for moments at a time, gets a core sooner beside threads that
   compute. Linux 6.12 and later; nothing changes before that, nor for a real-time thread. */
void fl_kernel_short_slices(void);

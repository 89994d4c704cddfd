/* The monotonic clock, and how late timers may be. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Nanoseconds since an unspecified start; never goes back, and counts the same in all threads and
   processes of the machine. Any thread, any time; never blocks. Implemented by machine/os/. */
int64_t fl_clock_now(void);

/* How many nanoseconds late the kernel may let a timer of the calling thread be, to wake a core for several
   at once. Threads that it starts inherit that. The getter's 0, and the setter's false: this system has no
   such setting. Implemented by machine/os/. */
int64_t fl_timer_slack(void);
bool fl_timer_slack_set(int64_t ns);

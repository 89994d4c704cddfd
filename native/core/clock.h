/* The monotonic clock. */
#ifndef FL_CORE_CLOCK_H
#define FL_CORE_CLOCK_H

#include <stdint.h>

/* Nanoseconds since an unspecified start; never goes back, and counts the same in all threads and
   processes of the machine. Any thread, any time; never blocks. Implemented by platform/. */
int64_t fl_clock_now(void);

#endif

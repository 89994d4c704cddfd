/* watchdog: are threads that were handed the GIL woken up for it at all?
 *
 * A thread whose grant was withdrawn is missing until it looks at the GIL again. A thread that is merely
 * slow, for want of a core or a page, comes within moments. If it has slept for long, the thread that was
 * to wake it may have lost its core: so it is woken once more. Only threads that sleep for long after that
 * count, and only several of them at once.
 *
 * Locking: every function needs the lock that protects the GIL's policy.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef struct fl_watched {
    struct fl_watched *next; /* among those that are missing */
    int64_t since;
    bool missing, roused;
} fl_watched;

typedef struct fl_watchdog {
    fl_watched *first;
    uint32_t missing;
    int64_t t_look; /* not to look before */
} fl_watchdog;

/* The thread did not take its grant, which was withdrawn now. */
void fl_watchdog_missing(fl_watchdog *dog, fl_watched *thread, int64_t now);

/* It looks at the GIL, or ends. */
void fl_watchdog_seen(fl_watchdog *dog, fl_watched *thread);

/* No thread is missing from now on. */
void fl_watchdog_forget(fl_watchdog *dog);

/* Have `enough` threads been missing for `long_ns` since they were roused, asleep all the time? Asks about
 * each at most once in long_ns, and rouses those that have slept for so long. */
bool fl_watchdog_look(fl_watchdog *dog, uint32_t enough, int64_t long_ns, int64_t now,
                      bool (*asleep_since)(fl_watched *thread), void (*rouse)(fl_watched *thread));

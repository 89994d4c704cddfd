/* windows: the longest wait, hold and overrun since each window was opened. A window is one observation.
 *
 * Counters only grow, so what was counted between two moments is a difference. A maximum is not: it is kept
 * for each window. gil/observe/snapshot.h opens windows and closes them.
 */
#pragma once

#include "gil/threads/gil.h"

/* When the latest window was opened; ticks. What began before it began before some window. */
extern _Atomic uint64_t fl_window_latest;

/* One of a seat's maxima, by its place: something that took from `start` to `end`. */
typedef enum { FL_MAXIMUM_WAIT, FL_MAXIMUM_HELD, FL_MAXIMUM_OVERRUN } fl_maximum_kind;

/* Counts what began before some window was opened: each sees the part that lies within it. Under the mutex.
 */
void fl_window_straddle(fl_seat *seat, fl_maximum_kind kind, uint64_t start, uint64_t end);

/* Notes that something took from `start` to `end`. Under the mutex. */
static inline void fl_window_note(fl_seat *seat, fl_maximum_kind kind, uint64_t start, uint64_t end)
{
    if (__builtin_expect(start < atomic_load_explicit(&fl_window_latest, memory_order_relaxed), 0)) {
        fl_window_straddle(seat, kind, start, end);
    } else {
        fl_maximum(&seat->tally.maxima.of[kind], end - start);
    }
}

/* A window begins at `now`, when it is opened; and when that was. Under the mutex of a GIL. */
void fl_window_begin(int window, uint64_t now);
uint64_t fl_window_began(int window);

/* What was the largest since the last look goes into the windows of which a bit is set, and is
   forgotten. Under the mutex. */
void fl_window_take_maxima(fl_seat *seat, unsigned windows);

#include "gil/threads/windows.h"

#ifndef FL_PROBE_REFUSAL

_Atomic uint64_t fl_window_latest;
static _Atomic uint64_t began[FL_WINDOWS]; /* ticks */

void fl_window_begin(int window, uint64_t now)
{
    atomic_store(&began[window], now);
    atomic_store(&fl_window_latest, now);
}

uint64_t fl_window_began(int window)
{
    return atomic_load(&began[window]);
}

void fl_window_straddle(fl_seat *seat, fl_maximum_kind kind, uint64_t start, uint64_t end)
{
    for (int window = 0; window < FL_WINDOWS;
         window++) { /* those that are not open are emptied when they are */
        uint64_t from = atomic_load_explicit(&began[window], memory_order_relaxed);
        from = from > start ? from : start;
        if (end > from) {
            fl_maximum(&seat->window[window].of[kind], end - from);
        }
    }
}

void fl_window_take_maxima(fl_seat *seat, unsigned windows)
{
    fl_maxima *since = &seat->tally.maxima;
    for (int window = 0; window < FL_WINDOWS; window++) {
        if (windows >> window & 1) {
            fl_maxima_merge(&seat->window[window], since);
        }
    }
    *since = (fl_maxima){0};
}

#endif

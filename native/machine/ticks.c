#include "machine/ticks.h"

#define STEP_NS 1000000

fl_tick_scale fl_ticks_scale = {.mult = (uint64_t)1 << 32};

uint64_t fl_ticks_behind(uint64_t last)
{
    uint64_t offset = atomic_load(&fl_ticks_scale.offset);
    uint64_t raw = fl_ticks_scale.counter ? fl_ticks_counter() : fl_ticks_system();
    uint64_t now = raw + offset;
    if (now >= last) {
        return now;
    }
    if (last - now > fl_ticks_from_ns(STEP_NS)) {
        /* Should another thread have found the same step first, its correction stands: ours is for an offset
           that is no longer. */
        (void)atomic_compare_exchange_strong(&fl_ticks_scale.offset, &offset, offset + (last - now));
    }
    return last;
}

fl_tick_anchor fl_ticks_anchor_by(bool counter)
{
    fl_tick_anchor best = {0, 0};
    uint64_t narrowest = UINT64_MAX;
    for (int attempt = 0; attempt < 5; attempt++) {
        uint64_t before = fl_ticks_system();
        uint64_t ticks = counter ? fl_ticks_counter() : fl_ticks_system();
        ticks += atomic_load_explicit(&fl_ticks_scale.offset, memory_order_relaxed);
        uint64_t after = fl_ticks_system();
        if (after - before < narrowest) {
            narrowest = after - before;
            best.ticks = ticks;
            best.ns = before + narrowest / 2;
        }
    }
    return best;
}

fl_tick_anchor fl_ticks_anchor(void)
{
    return fl_ticks_anchor_by(fl_ticks_scale.counter);
}

fl_tick_line fl_ticks_line(fl_tick_anchor before, fl_tick_anchor after)
{
    if (after.ticks <= before.ticks || after.ns <= before.ns) {
        return (fl_tick_line){after, fl_ticks_scale.mult << 8};
    }
    uint64_t span = after.ns - before.ns, length = after.ticks - before.ticks;
    return (fl_tick_line){before, (uint64_t)((((unsigned __int128)span << 40) + length / 2) / length)};
}

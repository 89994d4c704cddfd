#include "core/ticks.h"

fl_tick_scale fl_ticks_scale = {(uint64_t)1 << 32, false};

fl_tick_anchor fl_ticks_anchor_by(bool counter)
{
    fl_tick_anchor best = {0, 0};
    uint64_t narrowest = UINT64_MAX;
    for (int attempt = 0; attempt < 5; attempt++) {
        uint64_t before = fl_ticks_system();
        uint64_t ticks = counter ? fl_ticks_counter() : fl_ticks_system();
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

uint64_t fl_ticks_when(uint64_t ticks, fl_tick_anchor before, fl_tick_anchor after)
{
    if (after.ticks <= before.ticks || after.ns <= before.ns) {
        return ticks >= after.ticks ? after.ns + fl_ticks_to_ns(ticks - after.ticks)
                                    : after.ns - fl_ticks_to_ns(after.ticks - ticks);
    }
    uint64_t span = after.ns - before.ns, length = after.ticks - before.ticks;
    if (ticks >= before.ticks) {
        return before.ns + (uint64_t)((unsigned __int128)(ticks - before.ticks) * span / length);
    }
    return before.ns - (uint64_t)((unsigned __int128)(before.ticks - ticks) * span / length);
}

/* See look.h. */
#include "core/look.h"

void fl_look_init(fl_look *look, int usable)
{
    fl_store(&look->busy, usable < 2, relaxed); /* published with what this is a part of, as all here */
    fl_store(&look->ns, FL_LOOK_MOST_NS, relaxed);
    fl_store(&look->waits, 0, relaxed);
}

uint32_t fl_look_begin(fl_look *look)
{
    uint32_t nobody = 0;
    if (fl_load(&look->busy, relaxed) || !fl_cas(&look->busy, &nobody, 1, relaxed, relaxed)) {
        return 0;
    }
    uint32_t ns = fl_load(&look->ns, relaxed); /* a guess, as all of this */
    uint32_t waits = fl_load(&look->waits, relaxed) + 1;
    if (waits == FL_LOOK_AGAIN) {
        ns = FL_LOOK_MOST_NS;
        waits = 0;
    }
    fl_store(&look->waits, waits, relaxed);
    if (ns < FL_LOOK_LEAST_NS) {
        ns = 0;
        fl_store(&look->busy, 0, relaxed);
    }
    return ns;
}

void fl_look_end(fl_look *look, uint32_t ns, bool found)
{
    fl_store(&look->ns, found ? FL_LOOK_MOST_NS : ns / 2, relaxed);
    fl_store(&look->busy, 0, relaxed);
}

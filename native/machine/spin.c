/* See spin.h. */
#include "machine/spin.h"

void fl_spin_init(fl_spin *spin, int usable)
{
    fl_store(&spin->busy, usable < 2, relaxed); /* published with what this is a part of, as all here */
    fl_store(&spin->ns, FL_SPIN_MOST_NS, relaxed);
    fl_store(&spin->waits, 0, relaxed);
}

uint32_t fl_spin_begin(fl_spin *spin)
{
    uint32_t none = 0;
    if (fl_load(&spin->busy, relaxed) || !fl_cas(&spin->busy, &none, 1, relaxed, relaxed)) {
        return 0;
    }
    uint32_t ns = fl_load(&spin->ns, relaxed); /* any stale value will do, here and below */
    uint32_t waits = fl_load(&spin->waits, relaxed) + 1;
    if (waits == FL_SPIN_AGAIN) {
        ns = FL_SPIN_MOST_NS;
        waits = 0;
    }
    fl_store(&spin->waits, waits, relaxed);
    if (ns < FL_SPIN_LEAST_NS) {
        ns = 0;
        fl_store(&spin->busy, 0, relaxed);
    }
    return ns;
}

void fl_spin_end(fl_spin *spin, uint32_t ns, bool found)
{
    fl_store(&spin->ns, found ? FL_SPIN_MOST_NS : ns / 2, relaxed);
    fl_store(&spin->busy, 0, relaxed);
}

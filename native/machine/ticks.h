/* ticks: the cheapest clock that is fit for measuring intervals within a process.
 *
 * Reading the processor's own counter takes about 8 ns here, clock_gettime() about 25; the probe reads a
 * clock twice for every time a thread lets go of the interpreter's lock, so that is most of its cost. The
 * counter is used only where it runs at one rate in all power states and in step on all cores: x86-64 with an
 * invariant TSC which the kernel itself keeps time with, and AArch64's virtual counter, which is so by
 * definition. Elsewhere a tick is a nanosecond of CLOCK_MONOTONIC.
 *
 * Ticks of different threads compare like those of one thread, to within the counter's own skew (tens of
 * ns): a caller that needs an order that agrees with a lock's must enforce it under that lock.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

typedef struct {
    uint64_t mult; /* nanoseconds per tick, in units of 2^-32 */
    bool counter;  /* the processor's counter, not the system's clock */
    _Atomic uint64_t offset; /* what is added to the counter, which has stepped back by that in all */
} fl_tick_scale;

extern fl_tick_scale fl_ticks_scale;

/* Choose the clock and measure its rate; takes about 10 ms the first time, nothing later. Any thread, any
   number of them at once: each returns when the choice is made. Must have returned once before anything else
   here is called, and blocks. The rate is good to about 5 parts in a million. Implemented by machine/os/. */
void fl_ticks_prepare(void);

static inline uint64_t fl_ticks_system(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline uint64_t fl_ticks_counter(void)
{
#if defined(__x86_64__)
    return __rdtsc();
#elif defined(__aarch64__)
    uint64_t value;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(value));
    return value;
#else
    return fl_ticks_system();
#endif
}

/* Any thread, any time; never blocks. */
static inline uint64_t fl_ticks_now(void)
{
    uint64_t raw = __builtin_expect(fl_ticks_scale.counter, true) ? fl_ticks_counter() : fl_ticks_system();
    return raw + atomic_load_explicit(&fl_ticks_scale.offset, memory_order_relaxed);
}

/* The present moment, when the clock says that it is before `last`. A counter differs by some tens of ns from
   core to core: then it is `last`. A millisecond is no such difference: the counter has stepped back, as it
   does after a suspend, a migration to another machine or a restored checkpoint, and may not be at `last`
   again for days. So it goes on from `last`, for all threads. */
uint64_t fl_ticks_behind(uint64_t last);

/* Likewise: a time that is never before `last`, and later than that soon. */
static inline uint64_t fl_ticks_from(uint64_t last)
{
    uint64_t now = fl_ticks_now();
    return __builtin_expect(now >= last, true) ? now : fl_ticks_behind(last);
}

/* Of an interval. */
static inline uint64_t fl_ticks_to_ns(uint64_t ticks)
{
    return (uint64_t)(((unsigned __int128)ticks * fl_ticks_scale.mult) >> 32);
}

static inline uint64_t fl_ticks_from_ns(uint64_t ns)
{
    return (uint64_t)(((unsigned __int128)ns << 32) / fl_ticks_scale.mult);
}

/* One moment by both clocks. */
typedef struct {
    uint64_t ticks;
    uint64_t ns; /* CLOCK_MONOTONIC */
} fl_tick_anchor;

/* The two readings belong to the same moment to within some 100 ns, unless the thread loses its core at every
 * try. */
fl_tick_anchor fl_ticks_anchor(void);

/* Likewise, with this clock for the ticks, whatever was chosen: for fl_ticks_prepare. */
fl_tick_anchor fl_ticks_anchor_by(bool counter);

/* The way from ticks to CLOCK_MONOTONIC, near and between two moments. Follows the system's clock where that
   is being slewed, which a fixed rate would not. */
typedef struct {
    fl_tick_anchor from;
    uint64_t mult; /* nanoseconds per tick, in units of 2^-40 */
} fl_tick_line;

fl_tick_line fl_ticks_line(fl_tick_anchor before, fl_tick_anchor after);

/* When it was `ticks`. To the nanosecond within 2^39 ticks of the first moment, which are some minutes. */
static inline uint64_t fl_ticks_when(const fl_tick_line *line, uint64_t ticks)
{
    bool later = ticks >= line->from.ticks;
    uint64_t apart = later ? ticks - line->from.ticks : line->from.ticks - ticks;
    unsigned __int128 scaled = (unsigned __int128)apart * line->mult + ((uint64_t)1 << 39);
    return later ? line->from.ns + (uint64_t)(scaled >> 40) : line->from.ns - (uint64_t)(scaled >> 40);
}

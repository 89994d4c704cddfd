/* predictor: will this thread be away for long, given how its last four absences went?
 *
 * Sixteen two-bit saturating counters, chosen by the last four outcomes: the two-level
 * adaptive scheme of branch predictors (Yeh and Patt, 1991), on "off the GIL for longer
 * than the horizon" in place of "branch taken". It learns periodic patterns such as
 * "receive (long), send (short)" that an average cannot tell apart. 8 bytes per thread.
 *
 * Locking: only the owning thread trains or asks; no lock is needed.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef struct fl_predictor {
    uint32_t counters; /* 16 x 2 bits; 2 and 3 mean "long" */
    uint8_t history;   /* the last four outcomes, newest in bit 0, 1 means long */
} fl_predictor;

/* All counters at a weak "long": a lock kept free for a thread that nothing is known of is time lost. */
static inline void fl_predictor_init(fl_predictor *predictor)
{
    *predictor = (fl_predictor){.counters = 0xaaaaaaaau};
}

static inline bool fl_predictor_says_long(const fl_predictor *predictor)
{
    return (predictor->counters >> (2u * predictor->history) & 3u) >= 2u;
}

static inline void fl_predictor_train(fl_predictor *predictor, bool was_long)
{
    unsigned shift = 2u * predictor->history;
    uint32_t counter = predictor->counters >> shift & 3u;

    if (was_long && counter < 3u) {
        predictor->counters += 1u << shift;
    }
    else if (!was_long && counter > 0u) {
        predictor->counters -= 1u << shift;
    }
    predictor->history = (uint8_t)(((unsigned)predictor->history << 1 | (was_long ? 1u : 0u)) & 15u);
}

#include "gil/trace/collections.h"

void fl_collections_add(fl_collections *collections, const fl_collection *one)
{
    size_t at = 0;
    while (at < collections->count
           && (collections->of[at].thread != one->thread || collections->of[at].generation != one->generation
               || collections->of[at].stack != one->stack)) {
        at++;
    }
    if (at == FL_COLLECTIONS) {
        at = FL_COLLECTIONS - 1; /* of all that find no place */
        collections->of[at].thread = collections->of[at].stack = 0;
    } else if (at == collections->count) {
        collections->of[collections->count++] =
            (fl_collection){.thread = one->thread, .generation = one->generation, .stack = one->stack};
    }
    fl_collection *sum = &collections->of[at];
    sum->runs += one->runs;
    sum->ticks += one->ticks;
    sum->longest = one->longest > sum->longest ? one->longest : sum->longest;
}

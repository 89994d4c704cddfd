/* See counter.h. */
#include "sync/wait/counter.h"

#include "machine/aligned.h"
#include "sync/wait/waitq.h"

/* In a forked child another thread may have had the lock; what it was moving is then counted once or not at
   all. */
static void lock(fl_counter *counter)
{
    fl_fork_unlock(&counter->generation, &counter->lock);
    fl_mutex_lock(&counter->lock);
}

static void add_to(fl_wide *sum, int64_t by)
{
    sum->low += (uint64_t)by;
    sum->high += (by < 0 ? -1 : 0) + (sum->low < (uint64_t)by ? 1 : 0);
}

fl_counter *fl_counter_new(uint32_t stripes)
{
    uint32_t room = 1;
    while (room < stripes && room < FL_COUNTER_STRIPES) {
        room *= 2;
    }
    fl_counter *counter =
        fl_aligned_alloc(_Alignof(fl_counter), sizeof *counter + room * sizeof(fl_stripe));
    if (counter != NULL) {
        *counter = (fl_counter){.generation = fl_fork_generation, .stripes = room};
        for (uint32_t i = 0; i < room; i++) {
            fl_store(&counter->at[i].value, 0, relaxed); /* no other thread has it yet */
        }
    }
    return counter;
}

void fl_counter_free(fl_counter *counter)
{
    fl_aligned_free(counter);
}

/* Moved under the lock, so that a sum finds it in one place or the other. */
void fl_counter_move(fl_counter *counter, fl_stripe *stripe)
{
    lock(counter);
    add_to(&counter->rest, fl_exchange(&stripe->value, 0, relaxed)); /* by the lock */
    fl_mutex_unlock(&counter->lock);
}

void fl_counter_add_large(fl_counter *counter, int64_t by)
{
    lock(counter);
    add_to(&counter->rest, by);
    fl_mutex_unlock(&counter->lock);
}

fl_wide fl_counter_sum(fl_counter *counter)
{
    lock(counter);
    fl_wide sum = counter->rest;
    for (uint32_t i = 0; i < counter->stripes; i++) {
        add_to(&sum, fl_load(&counter->at[i].value, relaxed)); /* as it is at this moment */
    }
    fl_mutex_unlock(&counter->lock);
    return sum;
}

fl_wide fl_counter_take(fl_counter *counter)
{
    lock(counter);
    fl_wide sum = counter->rest;
    counter->rest = (fl_wide){0};
    for (uint32_t i = 0; i < counter->stripes; i++) {
        add_to(&sum, fl_exchange(&counter->at[i].value, 0, relaxed)); /* what is added later stays */
    }
    fl_mutex_unlock(&counter->lock);
    return sum;
}

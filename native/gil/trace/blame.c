#include "gil/trace/blame.h"

#include <stdlib.h>
#include <string.h>

#include "machine/ticks.h"

#define FIRST_ROOM 64

void fl_blame_free(fl_blame *blame)
{
    free(blame->holds);
    free(blame->pairs);
    free(blame->losses);
    free(blame->spare_pairs);
    free(blame->spare_losses);
    *blame = (fl_blame){0};
}

size_t fl_blame_bytes(const fl_blame *blame)
{
    return (blame->holds ? FL_BLAME_HOLDS * sizeof *blame->holds : 0)
           + blame->pairs_room * sizeof *blame->pairs * (blame->spare_pairs ? 2 : 1)
           + blame->losses_room * sizeof *blame->losses * (blame->spare_losses ? 2 : 1);
}

static uint64_t mix(uint64_t value)
{
    value ^= value >> 32;
    value *= 0x9E3779B97F4A7C15u;
    return value ^ value >> 29;
}

static fl_blame_pair *pair_place(fl_blame_pair *pairs, size_t room, uint32_t waiter, uint32_t holder)
{
    size_t at = (size_t)mix((uint64_t)waiter << 32 | holder) & (room - 1);
    while ((pairs[at].waiter | pairs[at].holder)
           && (pairs[at].waiter != waiter || pairs[at].holder != holder)) {
        at = (at + 1) & (room - 1);
    }
    return &pairs[at];
}

static bool pairs_resize(fl_blame *blame, size_t room)
{
    fl_blame_pair *pairs = calloc(room, sizeof *pairs);
    if (pairs == NULL) {
        return false;
    }
    for (size_t i = 0; i < blame->pairs_room; i++) {
        const fl_blame_pair *old = &blame->pairs[i];
        if (old->waiter | old->holder) {
            *pair_place(pairs, room, old->waiter, old->holder) = *old;
        }
    }
    free(blame->pairs);
    free(blame->spare_pairs);
    blame->spare_pairs = NULL;
    blame->pairs = pairs;
    blame->pairs_room = room;
    return true;
}

static void parts_add(fl_blame_parts *sum, const fl_blame_parts *parts)
{
    sum->all += parts->all;
    sum->asked += parts->asked;
    sum->late += parts->late;
    sum->asleep += parts->asleep;
    sum->collecting += parts->collecting;
    sum->coreless += parts->coreless;
}

static void pair_add(fl_blame *blame, uint32_t waiter, uint32_t holder, const fl_blame_parts *parts)
{
    if (parts->all == 0) {
        return;
    }
    if (blame->pairs_used >= blame->pairs_room / 2) {
        size_t room = blame->pairs_room ? blame->pairs_room * 2 : FIRST_ROOM;
        bool grown = room <= FL_BLAME_PAIRS && pairs_resize(blame, room);
        if (!grown && blame->pairs_room == 0) {
            return;
        }
        /* One place is always left for the waiter's "not known", and for that of all that found no place. */
        if (!grown && pair_place(blame->pairs, blame->pairs_room, waiter, holder)->waiter == 0) {
            holder = FL_BLAME_UNKNOWN;
            if (blame->pairs_used >= blame->pairs_room / 4 * 3
                && pair_place(blame->pairs, blame->pairs_room, waiter, holder)->waiter == 0) {
                waiter = FL_BLAME_ENDED;
            }
        }
    }
    fl_blame_pair *pair = pair_place(blame->pairs, blame->pairs_room, waiter, holder);
    if (!(pair->waiter | pair->holder)) {
        pair->waiter = waiter;
        pair->holder = holder;
        blame->pairs_used++;
    }
    parts_add(&pair->parts, parts);
}

void fl_blame_add(fl_blame *blame, uint32_t waiter, uint32_t holder, uint64_t ticks)
{
    pair_add(blame, waiter, holder, &(fl_blame_parts){.all = ticks});
}

static fl_blame_loss *loss_place(fl_blame_loss *losses, size_t room, const fl_blame_loss *key)
{
    uint64_t hash = mix((uint64_t)key->waiter << 32 | key->holder)
                    ^ mix((uint64_t)key->waiter_stack << 32 | key->holder_stack);
    size_t at = (size_t)mix(hash) & (room - 1);
    while (losses[at].waits
           && (losses[at].waiter != key->waiter || losses[at].holder != key->holder
               || losses[at].waiter_stack != key->waiter_stack
               || losses[at].holder_stack != key->holder_stack)) {
        at = (at + 1) & (room - 1);
    }
    return &losses[at];
}

static bool losses_resize(fl_blame *blame, size_t room)
{
    fl_blame_loss *losses = calloc(room, sizeof *losses);
    if (losses == NULL) {
        return false;
    }
    for (size_t i = 0; i < blame->losses_room; i++) {
        if (blame->losses[i].waits) {
            *loss_place(losses, room, &blame->losses[i]) = blame->losses[i];
        }
    }
    free(blame->losses);
    free(blame->spare_losses);
    blame->spare_losses = NULL;
    blame->losses = losses;
    blame->losses_room = room;
    return true;
}

static uint64_t more(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t less(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* What a wait that overlaps a hold from `from` to `until` was for then. */
static fl_blame_parts parts_of(const fl_hold *hold, uint64_t from, uint64_t until)
{
    fl_blame_parts parts = {.all = until - from};
    if (hold->asked < hold->end) {
        uint64_t since = more(from, hold->asked);
        parts.late = until > since ? until - since : 0;
        parts.asked = parts.all - parts.late;
        double share = (double)parts.late / (double)(hold->end - hold->asked);
        parts.coreless = less(parts.late, (uint64_t)(share * (double)hold->coreless));
        parts.collecting =
            less(parts.late - parts.coreless, (uint64_t)(share * (double)hold->collecting));
        parts.asleep = less(parts.late, (uint64_t)(share * (double)hold->asleep));
    }
    return parts;
}

/* What finds no place is missing from the losses only; the pairs have it. */
static void loss_add(fl_blame *blame, fl_blame_loss key, const fl_blame_parts *parts)
{
    uint64_t late = parts->late - parts->collecting - parts->coreless;
    if (blame->losses_used >= blame->losses_room / 2) {
        size_t room = blame->losses_room ? blame->losses_room * 2 : FIRST_ROOM;
        bool grown = room <= FL_BLAME_LOSSES && losses_resize(blame, room);
        if (!grown
            && (blame->losses_room == 0 || !loss_place(blame->losses, blame->losses_room, &key)->waits)) {
            return;
        }
    }
    fl_blame_loss *loss = loss_place(blame->losses, blame->losses_room, &key);
    if (!loss->waits) {
        *loss = key;
        blame->losses_used++;
    }
    loss->ticks += parts->all;
    loss->waits++;
    loss->longest = more(loss->longest, parts->all);
    loss->late += late;
    loss->late_asleep += parts->asleep;
    loss->late_longest = more(loss->late_longest, late);
    loss->late_waits += fl_ticks_to_ns(late) >= FL_BLAME_FREE_NS;
}

void fl_blame_hold(fl_blame *blame, fl_hold hold)
{
    if (blame->holds == NULL) {
        blame->holds = malloc(FL_BLAME_HOLDS * sizeof *blame->holds);
        if (blame->holds == NULL) {
            return;
        }
    }
    blame->holds[blame->noted++ & (FL_BLAME_HOLDS - 1)] = hold;
    blame->ration += fl_ticks_to_ns(hold.end - hold.start);
    if (blame->ration > (uint64_t)FL_BLAME_HOLDS * FL_BLAME_NS_PER_STEP) {
        blame->ration = (uint64_t)FL_BLAME_HOLDS * FL_BLAME_NS_PER_STEP;
    }
}

void fl_blame_wait(fl_blame *blame, uint32_t waiter, uint32_t stack, uint64_t start, uint64_t end)
{
    uint64_t remembered = blame->noted < FL_BLAME_HOLDS ? blame->noted : FL_BLAME_HOLDS;
    uint64_t free_time = end > start ? end - start : 0;
    uint64_t horizon = end; /* from here on the holder is known */
    uint64_t steps = 0;
    for (; steps < remembered && horizon > start; steps++) {
        const fl_hold *hold = &blame->holds[(blame->noted - 1 - steps) & (FL_BLAME_HOLDS - 1)];
        if (hold->end <= start) {
            horizon = start;
            break;
        }
        if (steps >= FL_BLAME_FREE_STEPS) {
            if (blame->ration < FL_BLAME_NS_PER_STEP) {
                break;
            }
            blame->ration -= FL_BLAME_NS_PER_STEP;
        }
        uint64_t from = hold->start > start ? hold->start : start;
        uint64_t until = hold->end < horizon ? hold->end : horizon;
        horizon = from;
        if (until > from) {
            free_time -= until - from;
            fl_blame_parts parts = parts_of(hold, from, until);
            pair_add(blame, waiter, hold->thread, &parts);
            if (hold->stack || stack) {
                fl_blame_loss key = {.waiter = waiter,
                                     .holder = hold->thread,
                                     .waiter_stack = stack,
                                     .holder_stack = hold->stack};
                loss_add(blame, key, &parts);
            }
        }
    }
    /* Before the horizon nothing is known when older holds were left out; when there are none, no thread
     * held it. */
    if (horizon > start && steps < blame->noted) {
        fl_blame_add(blame, waiter, FL_BLAME_UNKNOWN, horizon - start);
        free_time -= horizon - start;
    }
    fl_blame_parts free_parts = {.all = free_time};
    free_parts.coreless = fl_ticks_to_ns(free_time) >= FL_BLAME_FREE_NS ? free_time : 0;
    pair_add(blame, waiter, FL_BLAME_NO_THREAD, &free_parts);
}

void fl_blame_merge(fl_blame *blame, bool (*ended)(uint32_t serial, void *context), void *context)
{
    fl_blame_pair *pairs = blame->spare_pairs;
    fl_blame_loss *losses = blame->spare_losses;
    pairs = pairs ? pairs : calloc(blame->pairs_room ? blame->pairs_room : 1, sizeof *pairs);
    losses = losses ? losses : calloc(blame->losses_room ? blame->losses_room : 1, sizeof *losses);
    if (pairs == NULL || losses == NULL) { /* then they keep their numbers */
        free(pairs);
        free(losses);
        blame->spare_pairs = NULL;
        blame->spare_losses = NULL;
        return;
    }
    fl_blame old = *blame;
    blame->pairs = pairs;
    blame->losses = losses;
    blame->spare_pairs = old.pairs;
    blame->spare_losses = old.losses;
    blame->pairs_used = blame->losses_used = 0;
    for (size_t i = 0; i < old.pairs_room; i++) {
        fl_blame_pair pair = old.pairs[i];
        if (pair.waiter | pair.holder) {
            uint32_t waiter = ended(pair.waiter, context) ? FL_BLAME_ENDED : pair.waiter;
            bool thread = pair.holder != FL_BLAME_NO_THREAD && pair.holder != FL_BLAME_UNKNOWN;
            uint32_t holder = thread && ended(pair.holder, context) ? FL_BLAME_ENDED : pair.holder;
            fl_blame_pair *merged = pair_place(pairs, old.pairs_room, waiter, holder);
            blame->pairs_used += !(merged->waiter | merged->holder);
            merged->waiter = waiter;
            merged->holder = holder;
            parts_add(&merged->parts, &pair.parts);
        }
    }
    for (size_t i = 0; i < old.losses_room; i++) {
        fl_blame_loss loss = old.losses[i];
        if (loss.waits && !ended(loss.waiter, context) && !ended(loss.holder, context)) {
            *loss_place(losses, old.losses_room, &loss) = loss;
            blame->losses_used++;
        }
    }
    if (old.pairs_room) {
        memset(old.pairs, 0, old.pairs_room * sizeof *old.pairs);
    }
    if (old.losses_room) {
        memset(old.losses, 0, old.losses_room * sizeof *old.losses);
    }
}

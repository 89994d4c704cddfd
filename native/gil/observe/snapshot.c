#include "gil/observe/snapshot.h"

#include <stdlib.h>

#include "gil/observe/observe.h"
#include "gil/observe/offcpu.h"
#include "gil/threads/registry.h"

#ifndef FL_PROBE_REFUSAL

#define DEPARTED_GIL UINT16_MAX

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned open_windows; /* bits; under the lock */

/* Room for one copy of all that there is. */
typedef struct {
    fl_snapshot *snapshot;
    size_t seats, pairs, losses, collections; /* wanted */
    unsigned windows;
    int window;
    bool opens; /* its maxima begin now */
} copy;

static void copy_gil(fl_gil *gil, void *context)
{
    copy *into = context;
    fl_snapshot *snapshot = into->snapshot;
    uint64_t now = gil->alive ? fl_gil_now(gil) : 0;
    if (gil->alive) {
        /* What is counted lies between a window's first moment at its first GIL and its last at the last one.
         */
        if (!into->opens || snapshot->ticks == 0) {
            snapshot->ticks = now;
        }
        fl_off_cpu_settle(gil, now);
        if (gil->index == 0) {
            snapshot->interval_us = gil->py->interval;
        }
        if (into->opens) {
            fl_window_begin(into->window, now);
        }
    }
    for (fl_seat *seat = gil->seats; seat; seat = seat->of_gil) {
        fl_window_take_maxima(seat, into->windows);
        if (into->opens) {
            seat->window[into->window] = (fl_maxima){0};
        }
        if (into->seats < snapshot->seat_room) {
            fl_seat_count *count = &snapshot->seats[into->seats];
            *count = (fl_seat_count){.birth = gil->since, .gil = gil->index, .serial = seat->serial};
            count->tally = seat->tally;
            count->tally.maxima = seat->window[into->window];
            if (gil->alive) {
                fl_observe_present(gil, seat, fl_window_began(into->window), now, &count->tally);
            }
        }
        into->seats++;
    }
    if (gil->departed.acquisitions) {
        if (into->seats < snapshot->seat_room) {
            snapshot->seats[into->seats] = (fl_seat_count){
                .birth = gil->since, .gil = gil->index, .serial = FL_SERIAL_ENDED, .tally = gil->departed};
        }
        into->seats++;
    }
    for (size_t i = 0; i < gil->blame.pairs_room; i++) {
        const fl_blame_pair *pair = &gil->blame.pairs[i];
        if (pair->waiter | pair->holder) {
            if (into->pairs < snapshot->pair_room) {
                snapshot->pairs[into->pairs] = (fl_pair_count){gil->since, gil->index, *pair};
            }
            into->pairs++;
        }
    }
    for (size_t i = 0; i < gil->blame.losses_room; i++) {
        const fl_blame_loss *loss = &gil->blame.losses[i];
        if (loss->waits) {
            if (into->losses < snapshot->loss_room) {
                snapshot->losses[into->losses] = (fl_loss_count){gil->since, gil->index, *loss};
            }
            into->losses++;
        }
    }
    for (size_t i = 0; i < gil->collections.count; i++) {
        if (into->collections < snapshot->collection_room) {
            snapshot->collections[into->collections] =
                (fl_collection_count){gil->since, gil->index, gil->collections.of[i]};
        }
        into->collections++;
    }
}

static int order(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int by_seat(const void *left, const void *right)
{
    const fl_seat_count *a = left, *b = right;
    int births = order(a->birth, b->birth);
    return births ? births : order(a->serial, b->serial);
}

static int by_pair(const void *left, const void *right)
{
    const fl_pair_count *a = left, *b = right;
    int result = order(a->birth, b->birth);
    result = result ? result : order(a->pair.waiter, b->pair.waiter);
    return result ? result : order(a->pair.holder, b->pair.holder);
}

static int by_loss(const void *left, const void *right)
{
    const fl_loss_count *a = left, *b = right;
    int result = order(a->birth, b->birth);
    result = result ? result : order(a->loss.waiter, b->loss.waiter);
    result = result ? result : order(a->loss.holder, b->loss.holder);
    result = result ? result : order(a->loss.waiter_stack, b->loss.waiter_stack);
    return result ? result : order(a->loss.holder_stack, b->loss.holder_stack);
}

static int by_collection(const void *left, const void *right)
{
    const fl_collection_count *a = left, *b = right;
    int result = order(a->birth, b->birth);
    result = result ? result : order(a->of.thread, b->of.thread);
    result = result ? result : order(a->of.generation, b->of.generation);
    return result ? result : order(a->of.stack, b->of.stack);
}

void fl_window_close(int window)
{
    pthread_mutex_lock(&lock);
    open_windows &= ~(1u << window);
    pthread_mutex_unlock(&lock);
}

/* Room for so many and some more. What was in it is not needed. */
static bool make_room(void **row, size_t *room, size_t wanted, size_t size)
{
    if (wanted > *room) {
        free(*row);
        *room = wanted + wanted / 8 + 64;
        *row = malloc(*room * size);
    }
    return *row != NULL;
}

static bool make_rooms(fl_snapshot *snapshot, const copy *into)
{
    union {
        void *row;
        fl_seat_count *seats;
        fl_pair_count *pairs;
        fl_loss_count *losses;
        fl_collection_count *collections;
    } a = {.seats = snapshot->seats}, b = {.pairs = snapshot->pairs}, c = {.losses = snapshot->losses},
      d = {.collections = snapshot->collections};
    /* one seat for the departed */
    bool made = make_room(&a.row, &snapshot->seat_room, into->seats + 1, sizeof *a.seats);
    made = make_room(&b.row, &snapshot->pair_room, into->pairs, sizeof *b.pairs) && made;
    made = make_room(&c.row, &snapshot->loss_room, into->losses, sizeof *c.losses) && made;
    made = make_room(&d.row, &snapshot->collection_room, into->collections, sizeof *d.collections) && made;
    snapshot->seats = a.seats;
    snapshot->pairs = b.pairs;
    snapshot->losses = c.losses;
    snapshot->collections = d.collections;
    return made;
}

static bool take(fl_snapshot *snapshot, int window, bool opens)
{
    copy into = {.snapshot = snapshot, .window = window, .opens = opens};
    into.seats = into.pairs = into.losses = into.collections = 1;
    pthread_mutex_lock(&lock);
    into.windows = open_windows;
    pthread_mutex_unlock(&lock);
    do {
        if (!make_rooms(snapshot, &into)) {
            fl_snapshot_free(snapshot);
            return false;
        }
        into.seats = into.pairs = into.losses = into.collections = 0;
        snapshot->ticks = 0;
        fl_registry_each(copy_gil, &into);
    } while (into.seats >= snapshot->seat_room || into.pairs > snapshot->pair_room
             || into.losses > snapshot->loss_room || into.collections > snapshot->collection_room);
    fl_tally departed = fl_registry_departed();
    if (departed.acquisitions) {
        snapshot->seats[into.seats++] = (fl_seat_count){
            .birth = UINT64_MAX, .gil = DEPARTED_GIL, .serial = FL_SERIAL_ENDED, .tally = departed};
    }
    snapshot->seat_count = into.seats;
    snapshot->pair_count = into.pairs;
    snapshot->loss_count = into.losses;
    snapshot->collection_count = into.collections;
    qsort(snapshot->seats, snapshot->seat_count, sizeof *snapshot->seats, by_seat);
    qsort(snapshot->pairs, snapshot->pair_count, sizeof *snapshot->pairs, by_pair);
    qsort(snapshot->losses, snapshot->loss_count, sizeof *snapshot->losses, by_loss);
    qsort(snapshot->collections, snapshot->collection_count, sizeof *snapshot->collections, by_collection);
    return true;
}

bool fl_snapshot_take(fl_snapshot *snapshot, int window)
{
    return take(snapshot, window, false);
}

fl_window_result fl_window_open(int *window, fl_snapshot *base)
{
    pthread_mutex_lock(&lock);
    *window = 0;
    while (*window < FL_WINDOWS && open_windows >> *window & 1) {
        ++*window;
    }
    if (*window < FL_WINDOWS) {
        open_windows |= 1u << *window;
    }
    pthread_mutex_unlock(&lock);
    if (*window == FL_WINDOWS) {
        return FL_WINDOW_TOO_MANY;
    }
    if (!take(base, *window, true)) {
        fl_window_close(*window);
        return FL_WINDOW_NO_MEMORY;
    }
    return FL_WINDOW_OK;
}

static uint64_t less(uint64_t later, uint64_t earlier)
{
    return later > earlier ? later - earlier : 0;
}

static void tally_subtract(fl_tally *later, const fl_tally *earlier)
{
#define LESS(member) later->member = less(later->member, earlier->member)
    LESS(acquisitions);
    LESS(contended);
    LESS(held);
    LESS(waited);
    LESS(off_cpu);
    LESS(off_cpu_known);
    LESS(asleep);
    LESS(overrun);
    LESS(overrun_off_cpu);
    LESS(forced_drops);
    LESS(voluntary_drops);
    LESS(requests);
    LESS(handoffs);
    for (size_t i = 0; i < FL_HISTOGRAM_BUCKETS; i++) {
        LESS(wait_histogram[i]);
        LESS(held_histogram[i]);
    }
#undef LESS
}

static fl_seat_count *find_seat(const fl_snapshot *snapshot, uint64_t birth, uint32_t serial)
{
    fl_seat_count wanted = {.birth = birth, .serial = serial};
    return bsearch(&wanted, snapshot->seats, snapshot->seat_count, sizeof wanted, by_seat);
}

/* The account to which a seat's counts have gone: that of its GIL's ended threads, or that of all GILs that
 * are gone. */
static fl_seat_count *heir(const fl_snapshot *later, uint64_t birth)
{
    fl_seat_count *ended = find_seat(later, birth, FL_SERIAL_ENDED);
    return ended ? ended : find_seat(later, UINT64_MAX, FL_SERIAL_ENDED);
}

static uint32_t serial_now(const fl_snapshot *later, uint64_t birth, uint32_t serial)
{
    bool special = serial == FL_BLAME_NO_THREAD || serial == FL_BLAME_UNKNOWN;
    return special || find_seat(later, birth, serial) ? serial : FL_BLAME_ENDED;
}

void fl_snapshot_subtract(fl_snapshot *later, const fl_snapshot *earlier)
{
    for (size_t i = 0; i < earlier->pair_count; i++) {
        fl_pair_count wanted = earlier->pairs[i];
        wanted.pair.waiter = serial_now(later, wanted.birth, wanted.pair.waiter);
        wanted.pair.holder = serial_now(later, wanted.birth, wanted.pair.holder);
        fl_pair_count *found = bsearch(&wanted, later->pairs, later->pair_count, sizeof wanted, by_pair);
        if (found) {
            fl_blame_parts *parts = &found->pair.parts;
            const fl_blame_parts *before = &wanted.pair.parts;
            parts->all = less(parts->all, before->all);
            parts->asked = less(parts->asked, before->asked);
            parts->late = less(parts->late, before->late);
            parts->asleep = less(parts->asleep, before->asleep);
            parts->collecting = less(parts->collecting, before->collecting);
            parts->coreless = less(parts->coreless, before->coreless);
        }
    }
    for (size_t i = 0; i < earlier->loss_count; i++) {
        const fl_loss_count *wanted = &earlier->losses[i];
        fl_loss_count *found = bsearch(wanted, later->losses, later->loss_count, sizeof *wanted, by_loss);
        if (found) {
            found->loss.ticks = less(found->loss.ticks, wanted->loss.ticks);
            found->loss.waits = less(found->loss.waits, wanted->loss.waits);
            found->loss.late = less(found->loss.late, wanted->loss.late);
            found->loss.late_asleep = less(found->loss.late_asleep, wanted->loss.late_asleep);
            found->loss.late_waits = less(found->loss.late_waits, wanted->loss.late_waits);
        }
    }
    for (size_t i = 0; i < earlier->collection_count; i++) {
        const fl_collection_count *wanted = &earlier->collections[i];
        fl_collection_count *found =
            bsearch(wanted, later->collections, later->collection_count, sizeof *wanted, by_collection);
        if (found) {
            found->of.runs = less(found->of.runs, wanted->of.runs);
            found->of.ticks = less(found->of.ticks, wanted->of.ticks);
        }
    }
    for (size_t i = 0; i < earlier->seat_count; i++) {
        const fl_seat_count *before = &earlier->seats[i];
        fl_seat_count *found = find_seat(later, before->birth, before->serial);
        found = found ? found : heir(later, before->birth);
        if (found) {
            tally_subtract(&found->tally, &before->tally);
        }
    }
    size_t kept = 0;
    for (size_t i = 0; i < later->pair_count; i++) {
        if (later->pairs[i].pair.parts.all) {
            later->pairs[kept++] = later->pairs[i];
        }
    }
    later->pair_count = kept;
    kept = 0;
    for (size_t i = 0; i < later->loss_count; i++) {
        if (later->losses[i].loss.waits) {
            later->losses[kept++] = later->losses[i];
        }
    }
    later->loss_count = kept;
    kept = 0;
    for (size_t i = 0; i < later->collection_count; i++) {
        if (later->collections[i].of.runs) {
            later->collections[kept++] = later->collections[i];
        }
    }
    later->collection_count = kept;
    kept = 0;
    for (size_t i = 0; i < later->seat_count; i++) {
        const fl_tally *tally = &later->seats[i].tally;
        if (tally->acquisitions || tally->held || tally->waited) {
            later->seats[kept++] = later->seats[i];
        }
    }
    later->seat_count = kept;
}

void fl_snapshot_free(fl_snapshot *snapshot)
{
    free(snapshot->seats);
    free(snapshot->pairs);
    free(snapshot->losses);
    free(snapshot->collections);
    *snapshot = (fl_snapshot){0};
}

void fl_snapshot_fork(void)
{
    pthread_mutex_init(&lock, NULL);
}

#endif

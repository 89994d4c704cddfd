#include "gil/threads/registry.h"

#include <stdlib.h>
#include <string.h>

#include "gil/trace/pool.h"
#include "gil/interpreter/find.h"
#include "gil/threads/patience.h"
#include "gil/threads/places.h"
#include "gil/threads/threads.h"
#include "machine/aligned.h"

#ifndef FL_PROBE_REFUSAL

__thread fl_here fl_registry_here;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Under the lock. */
static fl_gil *gils[FL_GILS + FL_DEAD_GILS];
static size_t gil_count, dead_count;
static uint64_t births;
static uint16_t next_index;
static fl_tally departed;

static fl_pool seat_pool = FL_POOL_OF(fl_seat);
static fl_registry_callback *on_start, *on_end;

static void seat_free(fl_seat *seat)
{
    fl_threads_release(seat->thread);
    free(seat->schedule);
    fl_pool_give(&seat_pool, seat);
}

/* Locks gil->life, and the mutex if there is one to be locked: *mutex. False: neither by `until`. */
static bool lock_both(fl_gil *gil, bool *mutex, uint64_t until)
{
    while (fl_lock_until(&gil->life, until)) {
        *mutex = gil->alive && !gil->idle;
        if (!*mutex) {
            return true;
        }
        /* The main interpreter's is never idle: it outlives every caller. */
        if (gil->index == 0 ? fl_lock_until(&gil->py->mutex, until)
                            : pthread_mutex_trylock(&gil->py->mutex) == 0) {
            return true;
        }
        pthread_mutex_unlock(&gil->life);
        if (fl_ticks_now() >= until) {
            return false;
        }
        fl_step_aside();
    }
    return false;
}

static void unlock_both(fl_gil *gil, bool mutex)
{
    if (mutex) {
        pthread_mutex_unlock(&gil->py->mutex);
    }
    pthread_mutex_unlock(&gil->life);
}

/* The thread ends: the key's destructor. */
static void thread_exit(void *argument)
{
    fl_thread *thread = argument;
    fl_registry_here = (fl_here){0};
    for (fl_seat *seat = thread->seats, *next; seat; seat = next) {
        next = seat->of_thread;
        fl_gil *gil = seat->gil;
        bool mutex = false;
        if (gil != NULL) {
            (void)lock_both(gil, &mutex, FL_FOREVER);
        }
        if (seat->gil == NULL) { /* its GIL is being buried, or has been */
            if (gil != NULL) {
                unlock_both(gil, mutex);
            }
            while (!atomic_load(&seat->orphan)) {
                fl_step_aside();
            }
            seat_free(seat);
            continue;
        }
        if (gil->alive) {
            on_end(gil, seat);
            gil->ended++;
            gil->idle = gil->index != 0 && gil->holder == NULL && gil->first == NULL;
        }
        seat->ended = true;
        unlock_both(gil, mutex);
    }
    fl_threads_end(thread);
}

int fl_registry_prepare(fl_registry_callback *start, fl_registry_callback *end)
{
    on_start = start;
    on_end = end;
    return fl_threads_prepare(thread_exit);
}

void fl_tally_add(fl_tally *sum, const fl_tally *tally)
{
    sum->acquisitions += tally->acquisitions;
    sum->contended += tally->contended;
    sum->held += tally->held;
    sum->waited += tally->waited;
    sum->off_cpu += tally->off_cpu;
    sum->off_cpu_known += tally->off_cpu_known;
    sum->asleep += tally->asleep;
    sum->overrun += tally->overrun;
    sum->overrun_off_cpu += tally->overrun_off_cpu;
    fl_maxima_merge(&sum->maxima, &tally->maxima);
    sum->forced_drops += tally->forced_drops;
    sum->voluntary_drops += tally->voluntary_drops;
    sum->requests += tally->requests;
    sum->handoffs += tally->handoffs;
    for (size_t i = 0; i < FL_HISTOGRAM_BUCKETS; i++) {
        sum->wait_histogram[i] += tally->wait_histogram[i];
        sum->held_histogram[i] += tally->held_histogram[i];
    }
}

typedef struct {
    uint32_t serials[FL_ENDED_SEATS];
    size_t count;
} folded;

static int by_serial(const void *left, const void *right)
{
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return (a > b) - (a < b);
}

static bool is_folded(uint32_t serial, void *context)
{
    const folded *set = context;
    return bsearch(&serial, set->serials, set->count, sizeof serial, by_serial) != NULL;
}

/* Lets go of the older half of the seats of ended threads: their sums stay, in one account. Under the mutex.
 */
static void fold_ended(fl_gil *gil)
{
    folded *set = malloc(sizeof *set);
    if (set == NULL) {
        return;
    }
    set->count = 0;
    uint32_t kept = 0;
    for (fl_seat **link = &gil->seats; *link;) { /* newest first */
        fl_seat *seat = *link;
        if (!seat->ended || seat == gil->holder || seat == gil->dropper || seat->waiting
            || kept++ < FL_ENDED_SEATS / 2 || set->count == FL_ENDED_SEATS) {
            link = &seat->of_gil;
            continue;
        }
        *link = seat->of_gil;
        gil->ended--;
        fl_tally_add(&gil->departed, &seat->tally);
        set->serials[set->count++] = seat->serial;
        seat_free(seat);
    }
    qsort(set->serials, set->count, sizeof *set->serials, by_serial);
    fl_blame_merge(&gil->blame, is_folded, set);
    free(set);
}

fl_seat *fl_registry_seat(fl_gil *gil)
{
    fl_here *here = &fl_registry_here;
    here->seat = NULL; /* it may be one of those that are freed now */
    if (here->thread == NULL) {
        here->thread = fl_threads_new(gil->index);
        if (here->thread == NULL) {
            return NULL;
        }
    }
    for (fl_seat **link = &here->thread->seats; *link;) {
        fl_seat *seat = *link;
        if (atomic_load(&seat->orphan)) {
            *link = seat->of_thread;
            seat_free(seat);
        } else if (seat->gil == gil) {
            return here->seat = seat;
        } else {
            link = &seat->of_thread;
        }
    }
    fl_seat *seat = fl_pool_take(&seat_pool);
    if (seat == NULL) {
        return NULL;
    }
    if (gil->ended >= FL_ENDED_SEATS) {
        fold_ended(gil);
    }
    seat->gil = gil;
    seat->thread = here->thread;
    seat->serial = here->thread->serial;
    seat->t_acquired = seat->t_dropped = fl_gil_now(gil); /* as far as is known */
    atomic_fetch_add(&here->thread->references, 1);
    seat->of_thread = here->thread->seats;
    here->thread->seats = seat;
    seat->of_gil = gil->seats;
    gil->seats = seat;
    on_start(gil, seat);
    return here->seat = seat;
}

/* A dead GIL's seats go to the account of what is gone. gil->life is held, and the lock. */
static void bury(fl_gil *gil)
{
    fl_tally_add(&departed, &gil->departed);
    for (fl_seat *seat = gil->seats, *next; seat; seat = next) {
        next = seat->of_gil;
        fl_tally_add(&departed, &seat->tally);
        if (seat->ended) {
            seat_free(seat);
        } else {
            atomic_store(&seat->gil, NULL);
            atomic_store(&seat->orphan, true); /* the last access: its thread may free it now */
        }
    }
    fl_blame_free(&gil->blame);
}

/* The record of the GIL that died first, emptied and with its `life` held; NULL: none to be had. Under the
 * lock. */
static fl_gil *used_record(void)
{
    fl_gil *oldest = NULL;
    for (size_t i = 0; i < gil_count; i++) {
        if (!gils[i]->alive && (oldest == NULL || gils[i]->since < oldest->since)) {
            oldest = gils[i];
        }
    }
    /* Not to wait: `life` comes before the lock. */
    if (oldest == NULL || pthread_mutex_trylock(&oldest->life) != 0) {
        return NULL;
    }
    bury(oldest);
    dead_count--;
    return oldest;
}

/* gil->life is held, and the lock. */
static void end(fl_gil *gil)
{
    gil->alive = gil->idle = false;
    gil->holder = gil->dropper = gil->first = gil->last = NULL;
    gil->ring = NULL;
    fl_places_remove(gil->py);
    dead_count++;
}

/* Ends the records of GILs that have gone with their interpreters, as far as that shows, and of the one that
   was used least lately when there are many that may have. One that has not gone after all is found anew.
   Under the lock. */
static void end_vanished(void)
{
    fl_gil *least = NULL;
    size_t idle = 0;
    for (size_t i = 0; i < gil_count; i++) {
        fl_gil *gil = gils[i];
        if (!gil->alive || gil->index == 0 || pthread_mutex_trylock(&gil->life) != 0) {
            continue;
        }
        if (gil->idle && !fl_find_is_gil(gil->py)) {
            end(gil);
        } else if (gil->idle) {
            idle++;
            least = least == NULL || gil->t_last < least->t_last ? gil : least;
        }
        pthread_mutex_unlock(&gil->life);
    }
    if (idle > FL_IDLE_GILS && pthread_mutex_trylock(&least->life) == 0) {
        if (least->idle) {
            end(least);
        }
        pthread_mutex_unlock(&least->life);
    }
}

static fl_gil *new_record(void)
{
    bool room = gil_count < FL_GILS + FL_DEAD_GILS;
    fl_gil *gil = room ? fl_aligned_alloc(FL_CACHE_LINE, sizeof *gil) : NULL;
    if (gil) {
        memset(gil, 0, sizeof *gil);
        pthread_mutex_init(&gil->life, NULL);
        pthread_mutex_lock(&gil->life);
        gils[gil_count++] = gil;
    }
    return gil;
}

fl_gil *fl_registry_add(fl_py_gil *py, bool main)
{
    pthread_mutex_lock(&lock);
    if (!main) {
        end_vanished();
    }
    fl_gil *gil = dead_count >= FL_DEAD_GILS ? used_record() : NULL;
    if (gil == NULL) {
        gil = new_record();
    }
    if (gil) {
        free(gil->schedule);
        memset(&gil->holder, 0, sizeof *gil - offsetof(fl_gil, holder));
        gil->py = py;
        gil->idle = false;
        gil->ring = NULL;
        gil->since = births++;
        gil->index = main ? 0 : ++next_index ? next_index : ++next_index;
        gil->alive = fl_places_put(py, gil);
        dead_count += !gil->alive;
        pthread_mutex_unlock(&gil->life);
        gil = gil->alive ? gil : NULL;
    }
    pthread_mutex_unlock(&lock);
    return gil;
}

void fl_registry_forget(fl_gil *gil)
{
    pthread_mutex_lock(&gil->life);
    pthread_mutex_lock(&lock);
    if (gil->alive) {
        end(gil);
    }
    pthread_mutex_unlock(&lock);
    pthread_mutex_unlock(&gil->life);
}

/* 0: the lock was not free by `until`. Otherwise there is at least one, from the first hook on. */
static size_t all_gils(fl_gil **all, uint64_t until)
{
    if (!fl_lock_until(&lock, until)) {
        return 0;
    }
    size_t count = gil_count;
    memcpy(all, gils, count * sizeof *all);
    pthread_mutex_unlock(&lock);
    return count;
}

void fl_registry_retire(void)
{
    fl_gil *all[FL_GILS + FL_DEAD_GILS];
    size_t count = all_gils(all, FL_FOREVER);
    for (size_t i = 0; i < count; i++) {
        fl_registry_forget(all[i]);
    }
}

bool fl_registry_each_until(void (*visit)(fl_gil *gil, void *context), void *context, uint64_t until)
{
    fl_gil *all[FL_GILS + FL_DEAD_GILS];
    size_t count = all_gils(all, until);
    for (size_t i = 0; i < count; i++) {
        bool mutex;
        if (!lock_both(all[i], &mutex, until)) {
            return false;
        }
        visit(all[i], context);
        unlock_both(all[i], mutex);
    }
    return count > 0;
}

void fl_registry_each(void (*visit)(fl_gil *gil, void *context), void *context)
{
    (void)fl_registry_each_until(visit, context, FL_FOREVER);
}

bool fl_registry_departed_until(fl_tally *counted, uint64_t until)
{
    if (!fl_lock_until(&lock, until)) {
        return false;
    }
    *counted = departed;
    pthread_mutex_unlock(&lock);
    return true;
}

fl_tally fl_registry_departed(void)
{
    fl_tally copy;
    (void)fl_registry_departed_until(&copy, FL_FOREVER);
    return copy;
}

static void measure(fl_gil *gil, void *context)
{
    fl_registry_size *size = context;
    size->gils++;
    size->alive += gil->alive;
    size->idle += gil->idle;
    size->pairs += gil->blame.pairs_used;
    size->losses += gil->blame.losses_used;
    size->bytes += sizeof *gil + fl_blame_bytes(&gil->blame);
}

fl_registry_size fl_registry_measure(void)
{
    size_t used, left;
    fl_pool_measure(&seat_pool, &used, &left);
    fl_registry_size size = {.seats = used / sizeof(fl_seat), .bytes = used + left};
    fl_registry_each(measure, &size);
    return size;
}

void fl_registry_fork(fl_gil *kept)
{
    /* Other threads may have been anywhere: nothing that they could have been changing is looked at. What
       they had is lost to this process, some kilobytes a thread, in memory that it shares with its parent. */
    pthread_mutex_init(&lock, NULL);
    fl_thread *self = fl_registry_here.thread;
    for (size_t i = 0; i < gil_count; i++) {
        fl_gil *gil = gils[i];
        if (gil == NULL) { /* another thread was adding it */
            gil_count = i;
            break;
        }
        fl_py_gil *py = gil->py;
        uint16_t index = gil->index;
        void *schedule = gil->schedule;
        uint64_t until = gil->until;
        memset(gil, 0, sizeof *gil);
        gil->py = py;
        gil->index = index;
        gil->alive = gil == kept;
        gil->schedule = schedule;
        gil->until = until;
        pthread_mutex_init(&gil->life, NULL);
        if (gil != kept) {
            fl_places_remove(py);
        }
    }
    dead_count = gil_count - (kept != NULL);
    memset(&departed, 0, sizeof departed);
    fl_registry_here = (fl_here){.thread = self};
    fl_seat *seats = self ? self->seats : NULL;
    size_t seat_count = 0;
    for (const fl_seat *seat = seats; seat; seat = seat->of_thread) {
        seat_count++;
    }
    fl_threads_fork(self, kept ? kept->index : 0);
    fl_pool_fork(&seat_pool, seat_count);
    for (fl_seat *seat = seats, *next; seat; seat = next) {
        next = seat->of_thread;
        if (kept == NULL || seat->gil != kept) {
            fl_pool_give(&seat_pool, seat);
            continue;
        }
        void *schedule = seat->schedule;
        memset(seat, 0, sizeof *seat);
        seat->gil = kept;
        seat->thread = self;
        seat->serial = 1;
        seat->schedule = schedule;
        atomic_fetch_add(&self->references, 1);
        self->seats = kept->seats = fl_registry_here.seat = seat;
    }
}

#endif

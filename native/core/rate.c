/* See rate.h. Every change of the word is by one compare-and-swap, or under the queue lock. It guards no
   other memory, and so all orders are relaxed. */
#include "core/rate.h"

#include "core/clock.h"

static fl_rate *rate_of(fl_cell *cell)
{
    return (fl_rate *)(void *)cell;
}

static int64_t date_of(uint64_t word)
{
    return (int64_t)(word & ~FL_RATE_QUEUED);
}

static int64_t later(int64_t one, int64_t other)
{
    return one > other ? one : other;
}

static int64_t now_of(fl_rate *rate)
{
    int64_t standing = fl_load(&rate->standing, relaxed); /* who sets it serves afterwards */
    return standing >= 0 ? standing : fl_clock_now();
}

/* When the last of `sum` permits is there, none of which is yet, and all in order; FL_FOREVER: too late. */
static int64_t due(fl_rate *rate, int64_t full, uint64_t sum)
{
    int64_t wait;
    uint32_t limit = rate->cell.limit;
    if (sum <= limit) {
        return full - (int64_t)(limit - sum) * rate->interval;
    }
    if (sum > INT64_MAX || __builtin_mul_overflow((int64_t)(sum - limit), rate->interval, &wait) ||
        wait > FL_RATE_LONGEST) {
        return FL_FOREVER;
    }
    return full + wait;
}

/* The word after so many were taken now; 0: they are not there. */
static uint64_t after(fl_rate *rate, uint64_t word, uint32_t wanted, int64_t now)
{
#if FL_MODEL_BREAK == 17
    int64_t full = date_of(word) + (int64_t)wanted * rate->interval;
#else
    int64_t full = later(date_of(word), now) + (int64_t)wanted * rate->interval;
#endif
    bool there = full - now <= (int64_t)rate->cell.limit * rate->interval;
    return there ? (uint64_t)full | (word & FL_RATE_QUEUED) : 0;
}

fl_cell *fl_rate_new(int64_t interval, uint32_t limit)
{
    fl_cell *cell = fl_cell_new_within(sizeof(fl_rate), &fl_rate_kind, 0, limit, FL_CELL_FAIR);
    if (cell != NULL) {
        rate_of(cell)->interval = interval;
        rate_of(cell)->standing = -1;
    }
    return cell;
}

bool fl_rate_try(fl_cell *cell, uint32_t wanted)
{
    fl_cell_refresh(cell);
    fl_rate *rate = rate_of(cell);
    uint64_t word = fl_load(&cell->word, relaxed), next; /* only a first guess */
    int64_t now = now_of(rate);
    do {
        if ((word & FL_RATE_QUEUED) || (next = after(rate, word, wanted, now)) == 0) {
            return false;
        }
    } while (!fl_cas(&cell->word, &word, next, relaxed, relaxed));
    return true;
}

static bool attempt(fl_cell *cell, uint32_t wanted, uint64_t owner)
{
    (void)owner;
    return fl_rate_try(cell, wanted);
}

/* Queue lock. It is not in the queue any more. */
static void gone(fl_rate *rate, uint32_t wanted)
{
    rate->queued -= wanted;
    rate->settled += wanted;
}

/* Queue lock. The head looks in time, or is told to. */
static void tell_head(fl_rate *rate, fl_wakes *wakes)
{
    fl_cell *cell = &rate->cell;
    while (cell->head != NULL) {
        fl_waiter *head = cell->head;
        uint32_t wanted = head->wanted; /* a thread's waiter may be gone once it is nudged */
        int64_t full = date_of(fl_load(&cell->word, relaxed));
        if (head->look <= due(rate, full, wanted) || fl_cell_nudge(cell, head, wakes)) {
            return;
        }
        gone(rate, wanted);
    }
    fl_fetch_and(&cell->word, ~FL_RATE_QUEUED, relaxed);
}

/* Queue lock. When this one, which waits, looks next: at its date if it is the head, about then otherwise. */
static void set_look(fl_rate *rate, fl_waiter *waiter, int64_t now)
{
    uint64_t sum = waiter->wanted;
    if (rate->cell.head != waiter) {
        /* too small if somebody behind has left, too large if it came back to an old place */
        int64_t up_to = (int64_t)(waiter->owner - rate->settled), most = (int64_t)rate->queued;
        sum = (uint64_t)later(up_to < most ? up_to : most, (int64_t)(sum + rate->cell.head->wanted));
    }
    waiter->look = due(rate, later(date_of(fl_load(&rate->cell.word, relaxed)), now), sum);
}

/* Queue lock. Serves all who are due. True: this waiter, which is queued, was one, and is unlinked and not
   yet granted. */
static bool serve_due(fl_rate *rate, fl_waiter *self, int64_t now, fl_wakes *wakes)
{
    fl_cell *cell = &rate->cell;
    bool taken = false;
    while (cell->head != NULL) {
        fl_waiter *head = cell->head;
        uint32_t wanted = head->wanted; /* a thread's waiter is gone once it is granted */
        uint64_t word = fl_load(&cell->word, relaxed), next = after(rate, word, wanted, now);
        if (next == 0) {
            break;
        }
        fl_store(&cell->word, next, relaxed);
        gone(rate, wanted);
        head->owner = next & ~FL_RATE_QUEUED;
        if (head == self) {
            fl_cell_unlink(cell, head);
            taken = true;
        } else if (!fl_cell_grant(cell, head, wakes)) {
            fl_store(&cell->word, word, relaxed);
        }
    }
    if (self != NULL && !taken) {
        set_look(rate, self, now);
    }
    tell_head(rate, wakes);
    return taken;
}

static void serve(fl_cell *cell, fl_wakes *wakes)
{
    if (wakes->left != NULL) {
        gone(rate_of(cell), wakes->left->wanted);
        wakes->left = NULL;
    }
#if FL_MODEL_BREAK == 18
    if (cell->head != NULL) {
        return;
    }
#endif
    tell_head(rate_of(cell), wakes);
}

static bool enter(fl_cell *cell, fl_waiter *waiter, fl_wakes *wakes)
{
    (void)wakes;
    fl_rate *rate = rate_of(cell);
    int64_t now = now_of(rate), latest = waiter->since == 0 ? waiter->look : FL_FOREVER;
    uint64_t word = fl_load(&cell->word, relaxed), next; /* only a first guess */
    do {
        next = word & FL_RATE_QUEUED ? 0 : after(rate, word, waiter->wanted, now);
        if (next != 0) {
            if (fl_cas(&cell->word, &word, next, relaxed, relaxed)) {
                return true;
            }
            continue;
        }
        if (due(rate, later(date_of(word), now), rate->queued + waiter->wanted) > latest) {
            fl_store(&waiter->state, FL_REFUSED, relaxed); /* not queued: nobody else looks */
            return false;
        }
    } while (next != 0 || !fl_cas(&cell->word, &word, word | FL_RATE_QUEUED, relaxed, relaxed));
    rate->queued += waiter->wanted;
    waiter->owner = rate->settled + rate->queued;
    fl_cell_push(cell, waiter);
    set_look(rate, waiter, now);
    return false;
}

static bool retry(fl_cell *cell, fl_waiter *waiter, fl_wakes *wakes)
{
    fl_rate *rate = rate_of(cell);
    return serve_due(rate, waiter, now_of(rate), wakes);
}

/* What nobody uses counts as used, unless it was the last: a bucket that was given back to later could
   hold more than it may. */
static void give_back(fl_waiter *waiter)
{
    fl_cell *cell = waiter->cell;
    fl_rate *rate = rate_of(cell);
    fl_wakes wakes = {0};
    fl_cell_lock(cell);
    uint64_t word = fl_load(&cell->word, relaxed); /* only a first guess */
    while (((word & ~FL_RATE_QUEUED) == waiter->owner || FL_MODEL_BREAK == 19) &&
           !fl_cas(&cell->word, &word, word - (uint64_t)waiter->wanted * (uint64_t)rate->interval, relaxed,
                   relaxed)) {
    }
    tell_head(rate, &wakes);
    fl_cell_unlock(cell, &wakes);
}

/* Nobody waits; what was taken was taken. */
static void forked(fl_cell *cell)
{
    fl_fetch_and(&cell->word, ~FL_RATE_QUEUED, relaxed); /* published with the generation */
    rate_of(cell)->queued = rate_of(cell)->settled = 0;
}

const fl_kind fl_rate_kind = {
    .attempt = attempt,
    .enter = enter,
    .retry = retry,
    .serve = serve,
    .give_back = give_back,
    .forked = forked,
    .timed = true,
};

bool fl_rate_enter(fl_waiter *waiter, int64_t latest)
{
    waiter->look = latest;
    return fl_cell_enter(waiter);
}

bool fl_rate_look(fl_waiter *waiter)
{
    uint32_t state = FL_WAITING;
    if (!fl_cas(&waiter->state, &state, FL_NUDGED, acq_rel, acquire) && state != FL_NUDGED) { /* settle */
        return state == FL_GRANTED;
    }
    return fl_cell_retry(waiter);
}

int64_t fl_rate_sleep(const fl_waiter *waiter)
{
    fl_rate *rate = rate_of(waiter->cell);
    if (fl_load(&rate->standing, relaxed) >= 0 || waiter->look == FL_FOREVER) { /* never runs again */
        return FL_FOREVER;
    }
    return later(waiter->look - fl_clock_now(), 0);
}

fl_wait_result fl_rate_wait(fl_waiter *waiter, int64_t deadline)
{
    bool looks = false;
    for (;;) {
        uint32_t state = fl_load(&waiter->state, acquire); /* pairs with settle */
        if (state == FL_GRANTED || ((looks || state == FL_NUDGED) && fl_rate_look(waiter))) {
            return FL_WAIT_GRANTED;
        }
        int64_t sleep = fl_rate_sleep(waiter);
        int64_t until = sleep == FL_FOREVER ? FL_FOREVER : waiter->look;
        fl_park_result result = fl_park(&waiter->state, FL_WAITING, until < deadline ? until : deadline);
        looks = result == FL_PARK_TIMED_OUT && until <= deadline;
        if (result == FL_PARK_INTERRUPTED && fl_cell_leave(waiter, FL_CANCELLED)) {
            return FL_WAIT_INTERRUPTED;
        }
        if (result == FL_PARK_TIMED_OUT && !looks && fl_cell_leave(waiter, FL_TIMED_OUT)) {
            return FL_WAIT_TIMED_OUT;
        }
    }
}

int64_t fl_rate_now(fl_cell *cell)
{
    return now_of(rate_of(cell));
}

uint32_t fl_rate_available(fl_cell *cell)
{
    fl_cell_refresh(cell);
    fl_rate *rate = rate_of(cell);
    int64_t ahead = date_of(fl_load(&cell->word, relaxed)) - now_of(rate);
    int64_t used = ahead <= 0 ? 0 : (ahead + rate->interval - 1) / rate->interval;
    return used < cell->limit ? cell->limit - (uint32_t)used : 0;
}

int64_t fl_rate_delay(fl_cell *cell, uint32_t wanted)
{
    fl_wakes wakes = {0};
    fl_rate *rate = rate_of(cell);
    fl_cell_lock(cell);
    int64_t now = now_of(rate), full = date_of(fl_load(&cell->word, relaxed));
    int64_t date = due(rate, later(full, now), rate->queued + wanted);
    fl_cell_unlock(cell, &wakes);
    return date == FL_FOREVER ? FL_FOREVER : later(date - now, 0);
}

void fl_rate_set(fl_cell *cell, int64_t now)
{
    fl_wakes wakes = {0};
    fl_cell_lock(cell);
    fl_store(&rate_of(cell)->standing, now, relaxed); /* who reads an older one is served here */
    serve_due(rate_of(cell), NULL, now, &wakes);
    fl_cell_unlock(cell, &wakes);
}

int64_t fl_rate_next(fl_cell *cell)
{
    fl_wakes wakes = {0};
    int64_t date = FL_FOREVER;
    fl_cell_lock(cell);
    if (cell->head != NULL) {
        date = due(rate_of(cell), date_of(fl_load(&cell->word, relaxed)), cell->head->wanted);
    }
    fl_cell_unlock(cell, &wakes);
    return date;
}

#include "gil/observe/observe.h"

#include "gil/trace/recording.h"
#include "gil/observe/offcpu.h"
#include "gil/observe/outside.h"
#include "gil/observe/recorder.h"
#include "gil/observe/snapshot.h"
#include "gil/observe/stacks.h"
#include "gil/interpreter/find.h"
#include "gil/threads/registry.h"

#ifndef FL_PROBE_REFUSAL

#define COLLECTED_NS 100000 /* a shorter collection has no event, unless a thread waited for it */
#define SHORT_HOLD_NS 100000
#define ROW_NS 1000000
#define SAMPLE_NS 10000000
#define RAN_NS 500000
#define STACKS_AT_A_DROP 8 /* so many waiters get an event with the holder's stack */

static uint64_t threshold = UINT64_MAX; /* ticks */
static bool of_short_waits; /* stacks are wanted of these, too: not where the threshold is high */

void fl_observe_threshold(uint64_t ns)
{
    threshold = ns == UINT64_MAX ? UINT64_MAX : fl_ticks_from_ns(ns);
    of_short_waits = ns <= SAMPLE_NS;
    fl_off_cpu_prepare();
}

/* There is a ring. */
static inline void put(fl_gil *gil, fl_event event)
{
    event.gil = gil->index;
    if (fl_ring_put(gil->ring, &event)) {
        fl_recorder_wake();
    }
    if (__builtin_expect(atomic_load_explicit(&fl_recorder_resumes, memory_order_relaxed), 0)) {
        fl_recorder_resume_now();
    }
}

/* Most takes are followed by their drop, with no event in between. So an uncontended take is kept back, and
   written with its drop as one event, or alone before any other event. And a thread for which none waits may
   take and drop the GIL a million times a second, as one that reads a database row by row: short holds of one
   thread within ROW_NS are written as one event. */
void fl_observe_flush(fl_gil *gil)
{
    if (gil->ring && gil->row.kind) {
        if (gil->row_count > 1) {
            gil->row.flags |= FL_FLAG_ROW;
            gil->row.other = gil->row_count;
        }
        put(gil, gil->row);
        gil->row.kind = 0;
    }
    if (gil->ring && gil->take.kind) {
        put(gil, gil->take);
        gil->take.kind = 0;
    }
}

/* There is a ring, and the drop is whole. */
static void put_in_row(fl_gil *gil, const fl_event *drop)
{
    fl_event *row = &gil->row;
    bool is_short = fl_ticks_to_ns(drop->value) < SHORT_HOLD_NS;
    if (row->kind && (!is_short || row->thread != drop->thread
                      || fl_ticks_to_ns(drop->t - gil->row_from) > ROW_NS)) {
        fl_observe_flush(gil);
    }
    if (row->kind) {
        row->t = drop->t;
        row->value += drop->value;
        gil->row_count++;
    } else if (is_short) {
        *row = *drop;
        row->gil = gil->index;
        gil->row_from = drop->t - drop->value;
        gil->row_count = 1;
    } else {
        put(gil, *drop);
    }
}

static inline void emit(fl_gil *gil, fl_event event)
{
    if (__builtin_expect(gil->ring != NULL, 0)) {
        fl_observe_flush(gil);
        put(gil, event);
    }
}

/* Counts the waits for another thread to take the GIL after which the thread did something else. */
static void count_apart(fl_gil *gil, fl_seat *seat)
{
    seat->tally.waited += seat->switch_apart;
    fl_blame_add(&gil->blame, seat->serial, FL_BLAME_NO_THREAD, seat->switch_apart);
    seat->switch_apart = 0;
}

static void thread_start(fl_gil *gil, fl_seat *seat)
{
    fl_recorder_attach(gil);
    emit(gil, (fl_event){.t = fl_gil_now(gil), .thread = seat->serial, .kind = FL_KIND_THREAD_START});
}

static void thread_end(fl_gil *gil, fl_seat *seat)
{
    uint64_t now = fl_gil_now(gil), until = atomic_load_explicit(&seat->switch_until, memory_order_relaxed);
    if (until) {
        seat->switch_apart += until - atomic_load_explicit(&seat->switch_from, memory_order_relaxed);
        atomic_store_explicit(&seat->switch_from, 0, memory_order_relaxed);
    }
    count_apart(gil, seat);
    if (seat->waiting && now > seat->t_want) {
        seat->tally.waited += now - seat->t_want;
        fl_window_note(seat, FL_MAXIMUM_WAIT, seat->t_want, now);
        fl_blame_wait(&gil->blame, seat->serial, 0, seat->t_want, now);
    }
    emit(gil, (fl_event){.t = now, .thread = seat->serial, .kind = FL_KIND_THREAD_END});
}

static void want(fl_gil *gil, fl_seat *seat, uint64_t now)
{
    fl_seat *holder = gil->holder;
    fl_off_cpu_wanted(gil, now);
    emit(gil,
         (fl_event){
             .t = now, .thread = seat->serial, .other = holder ? holder->serial : 0, .kind = FL_KIND_WANT});
}

static uint64_t less_of(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* A holder that has been asked before runs one call into C, or destroys something large. Once it lets go it
   is at the next line, or has returned: so another thread looks while it is there. */
static void look_at_late(fl_gil *gil, uint64_t now)
{
    if (gil->late_stack == 0 && now > gil->t_request && now - gil->t_request >= threshold) {
        uint64_t off = gil->holder ? fl_off_cpu_after(gil->holder) : UINT64_MAX, late = now - gil->t_request;
        bool ran = late > off && fl_ticks_to_ns(late - off) >= RAN_NS; /* Python code would have let go */
        gil->late_stack = fl_outside_stack(gil->py->last_holder, ran);
        gil->t_stack = gil->late_stack ? now : gil->t_stack;
    }
}

static uint64_t interval_of(const fl_gil *gil)
{
    return fl_ticks_from_ns((uint64_t)gil->py->interval * 1000);
}

/* A waiter asks when no other thread has taken the GIL for a whole switch interval of its wait, which is at
   most two from the start of the hold. One that asks later had no core: the process was stopped, or
   throttled. */
static uint64_t late_by(const fl_gil *gil, const fl_seat *seat, uint64_t now)
{
    uint64_t held_since = gil->holder ? gil->holder->t_acquired : 0;
    uint64_t due = (held_since > seat->t_want ? held_since : seat->t_want) + 2 * interval_of(gil);
    return now > due && gil->schedule == NULL ? now - due : 0;
}

static void request(fl_gil *gil, fl_seat *seat, uint64_t now)
{
    seat->tally.requests++;
    if (now == gil->t_request) {
        gil->asked_late = late_by(gil, seat, now);
    }
    fl_off_cpu_asked(gil, now);
    look_at_late(gil, now);
    emit(gil, (fl_event){.t = now,
                         .thread = seat->serial,
                         .other = gil->holder ? gil->holder->serial : 0,
                         .value = now - seat->t_want,
                         .kind = FL_KIND_REQUEST});
}

/* After a long wait, and now and then after a short one, of which there may be many. */
static bool samples_waiter(fl_gil *gil, uint64_t waited, uint64_t now)
{
    if (waited < threshold && (!of_short_waits || fl_ticks_to_ns(now - gil->t_waiter) < SAMPLE_NS)) {
        return false;
    }
    gil->t_waiter = now;
    return true;
}

static void acquired_after_wait(fl_gil *gil, fl_seat *seat, uint64_t since, uint64_t now)
{
    fl_tally *tally = &seat->tally;
    uint64_t waited = now > since ? now - since : 0;
    tally->contended++;
    tally->waited += waited;
    tally->wait_histogram[fl_histogram_bucket(fl_ticks_to_ns(waited))]++;
    fl_window_note(seat, FL_MAXIMUM_WAIT, since, since + waited);
    uint32_t stack = samples_waiter(gil, waited, now) ? fl_stacks_look(gil, &seat->look_waiting) : 0;
    fl_blame_wait(&gil->blame, seat->serial, stack, since, now);
    if (gil->dropper && gil->dropper != seat) {
        gil->dropper->tally.handoffs++;
    }
    emit(gil, (fl_event){.t = now,
                         .thread = seat->serial,
                         .other = gil->holder_before,
                         .value = waited,
                         .kind = FL_KIND_ACQUIRE,
                         .flags = FL_FLAG_CONTENDED,
                         .stack = stack});
    if (stack) {
        emit(gil, (fl_event){.t = now,
                             .thread = seat->serial,
                             .other = gil->holder_before,
                             .value = waited,
                             .kind = FL_KIND_STACK_WAITER,
                             .stack = stack});
    }
}

static void acquired(fl_gil *gil, fl_seat *seat, uint64_t since, uint64_t now)
{
    seat->tstate = gil->py->last_holder;
    if (seat->switch_apart) {
        count_apart(gil, seat);
    }
    if (since) {
        acquired_after_wait(gil, seat, since, now);
    } else if (gil->ring) {
        if (gil->take.kind) {
            fl_observe_flush(gil);
        }
        gil->take = (fl_event){
            .t = now, .thread = seat->serial, .other = gil->holder_before, .kind = FL_KIND_ACQUIRE};
    }
    fl_off_cpu_taken(seat, since != 0);
}

static void emit_off_cpu(fl_gil *gil, const fl_seat *seat, uint64_t now)
{
    emit(gil, (fl_event){.t = now, .thread = seat->serial, .value = seat->off_cpu, .kind = FL_KIND_OFFCPU});
    if (seat->asleep) {
        emit(gil,
             (fl_event){.t = now, .thread = seat->serial, .value = seat->asleep, .kind = FL_KIND_ASLEEP});
    }
    if (gil->t_request && seat->off_cpu_before) {
        emit(gil, (fl_event){.t = now,
                             .thread = seat->serial,
                             .value = seat->off_cpu_before,
                             .kind = FL_KIND_OFFCPU_EARLY});
    }
}

/* Waits from here on are long ones. */
static uint64_t long_wait(const fl_gil *gil)
{
    return of_short_waits ? less_of(threshold, interval_of(gil)) : threshold;
}

/* The holder's stack, if a thread has waited for long. It is sampled once per threshold at most; otherwise
   each drop would sample one where a thousand threads take turns. */
static uint32_t sample_holder(fl_gil *gil, fl_seat *seat, uint64_t now)
{
    if (gil->late_stack) {
        return gil->late_stack;
    }
    uint64_t oldest = gil->first->t_want;
    if (now < oldest || now - oldest < long_wait(gil) || now - gil->t_stack < threshold) {
        return 0;
    }
    gil->t_stack = now;
    return fl_stacks_look(gil, &seat->look_holding);
}

static void emit_stack(fl_gil *gil, const fl_seat *seat, uint32_t stack, uint64_t now)
{
    const fl_seat *waiter = gil->first;
    for (int emitted = 0; waiter && emitted < STACKS_AT_A_DROP; emitted++, waiter = waiter->behind) {
        uint64_t waited = now > waiter->t_want ? now - waiter->t_want : 0;
        if (waited >= long_wait(gil)) {
            emit(gil, (fl_event){.t = now,
                                 .thread = seat->serial,
                                 .other = waiter->serial,
                                 .value = waited,
                                 .kind = FL_KIND_STACK_HOLDER,
                                 .stack = stack});
        }
    }
}

static void dropped(fl_gil *gil, fl_seat *seat, uint64_t now)
{
    uint8_t flags = 0;
    uint32_t stack = 0;
    uint64_t overrun = gil->t_request ? now - gil->t_request : 0, coreless = 0;
    uint64_t asked_late = gil->t_request ? gil->asked_late : 0;
    bool off_cpu = fl_off_cpu_dropped(seat, now);
    if (off_cpu) {
        emit_off_cpu(gil, seat, now);
    }
    if (gil->t_request) {
        coreless = off_cpu ? less_of(fl_off_cpu_after(seat), overrun) : 0;
        seat->tally.overrun += overrun;
        seat->tally.overrun_off_cpu += coreless;
        fl_window_note(seat, FL_MAXIMUM_OVERRUN, gil->t_request, now);
        flags = FL_FLAG_FORCED;
    }
    if (asked_late) {
        emit(gil, (fl_event){
                      .t = now, .thread = seat->serial, .value = asked_late, .kind = FL_KIND_ASKED_LATE});
    }
    if (gil->first) {
        flags |= FL_FLAG_CONTENDED;
        stack = sample_holder(gil, seat, now);
        if (stack && gil->ring) {
            emit_stack(gil, seat, stack, now);
        }
    }
    if (gil->first || gil->forced_out) {
        fl_hold hold = {.start = seat->t_acquired, .end = now, .thread = seat->serial, .stack = stack};
        hold.asked = now - overrun - asked_late;
        hold.asleep = off_cpu ? less_of(seat->asleep, overrun) : 0;
        hold.collecting = seat->collected;
        hold.coreless = asked_late + (coreless > hold.asleep ? coreless - hold.asleep : 0);
        fl_blame_hold(&gil->blame, hold);
    }
    seat->collected = 0;
    gil->late_stack = 0;
    fl_event drop = {.t = now,
                     .thread = seat->serial,
                     .value = now - seat->t_acquired,
                     .kind = FL_KIND_DROP,
                     .flags = flags,
                     .stack = stack};
    if (gil->take.kind && gil->take.thread == seat->serial) {
        drop.other = gil->take.other;
        drop.flags |= FL_FLAG_WHOLE;
        gil->take.kind = 0;
    }
    if (drop.flags == FL_FLAG_WHOLE && gil->ring && !gil->forced_out) {
        put_in_row(gil, &drop);
    } else {
        emit(gil, drop);
    }
}

static void add_present(uint64_t start, uint64_t since, uint64_t now, uint64_t *sum, uint64_t *maximum)
{
    if (now > start) {
        *sum += now - start;
        fl_maximum(maximum, now - (start > since ? start : since));
    }
}

void fl_observe_present(const fl_gil *gil, const fl_seat *seat, uint64_t since, uint64_t now,
                        fl_tally *tally)
{
    if (seat->holding) {
        add_present(seat->t_acquired, since, now, &tally->held, &tally->maxima.of[FL_MAXIMUM_HELD]);
        if (gil->t_request && gil->holder == seat) {
            uint64_t before = tally->overrun;
            add_present(gil->t_request, since, now, &tally->overrun, &tally->maxima.of[FL_MAXIMUM_OVERRUN]);
            uint64_t off_cpu = seat->marked ? fl_off_cpu_after(seat) : 0;
            tally->overrun_off_cpu += less_of(off_cpu, tally->overrun - before);
        }
    }
    if (seat->waiting) {
        add_present(seat->t_want, since, now, &tally->waited, &tally->maxima.of[FL_MAXIMUM_WAIT]);
    }
    uint64_t until = atomic_load_explicit(&seat->switch_until, memory_order_relaxed);
    uint64_t from = atomic_load_explicit(&seat->switch_from, memory_order_relaxed);
    until = until && until < now ? until : now;
    tally->waited += seat->switch_apart + (from && from < until ? until - from : 0);
}

void fl_observe_collection(bool begins, uint32_t generation)
{
    fl_seat *seat = fl_registry_here.seat;
    fl_gil *gil = seat && seat->holding ? fl_seat_gil(seat) : NULL;
    if (gil == NULL) {
        return;
    }
    fl_find_real.lock(&gil->py->mutex);
    uint64_t now = fl_gil_now(gil), took = now - seat->t_collecting;
    if (begins) {
        seat->t_collecting = now;
    } else if (seat->t_collecting) {
        uint64_t late = gil->t_request ? less_of(now - gil->t_request, took) : 0;
        uint32_t stack = took >= threshold ? fl_stacks_look(gil, &seat->look_holding) : 0;
        seat->collected += late;
        seat->t_collecting = 0;
        fl_collection one = {seat->serial, generation, stack, 1, took, took};
        fl_collections_add(&gil->collections, &one);
        if (late || fl_ticks_to_ns(took) >= COLLECTED_NS) {
            emit(gil, (fl_event){.t = now,
                                 .thread = seat->serial,
                                 .other = generation,
                                 .value = took,
                                 .kind = FL_KIND_COLLECTED,
                                 .stack = stack});
        }
    }
    fl_find_real.unlock(&gil->py->mutex);
}

static void interrupted(fl_gil *gil, fl_seat *seat, uint64_t now)
{
    if (seat->holding) {
        fl_off_cpu_settle(gil, now);
    }
    fl_observe_present(gil, seat, now, now, &seat->tally);
}

const fl_observer fl_observe = {
    .thread_start = thread_start,
    .thread_end = thread_end,
    .want = want,
    .request = request,
    .acquired = acquired,
    .dropped = dropped,
    .interrupted = interrupted,
    .forked = fl_recorder_forked,
};

#endif

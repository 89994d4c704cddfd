#include "gil/observe/observe.h"

#include "gil/trace/recording.h"
#include "gil/observe/offcpu.h"
#include "gil/observe/recorder.h"
#include "gil/observe/snapshot.h"
#include "gil/observe/stacks.h"

#ifndef FL_PROBE_REFUSAL

#define STACKS_AT_A_DROP 8 /* so many waiters get an event with the holder's stack */

static uint64_t threshold = UINT64_MAX; /* ticks */

void fl_observe_threshold(uint64_t ns)
{
    threshold = ns == UINT64_MAX ? UINT64_MAX : fl_ticks_from_ns(ns);
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
   written with its drop as one event, or alone before any other event. Where threads take turns without
   waiting this halves what is written. */
void fl_observe_flush(fl_gil *gil)
{
    if (gil->ring && gil->take.kind) {
        put(gil, gil->take);
        gil->take.kind = 0;
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

static void request(fl_gil *gil, fl_seat *seat, uint64_t now)
{
    seat->tally.requests++;
    fl_off_cpu_asked(gil, now);
    emit(gil, (fl_event){.t = now,
                         .thread = seat->serial,
                         .other = gil->holder ? gil->holder->serial : 0,
                         .value = now - seat->t_want,
                         .kind = FL_KIND_REQUEST});
}

static void acquired_after_wait(fl_gil *gil, fl_seat *seat, uint64_t since, uint64_t now)
{
    fl_tally *tally = &seat->tally;
    uint64_t waited = now > since ? now - since : 0;
    tally->contended++;
    tally->waited += waited;
    tally->wait_histogram[fl_histogram_bucket(fl_ticks_to_ns(waited))]++;
    fl_window_note(seat, FL_MAXIMUM_WAIT, since, since + waited);
    uint32_t stack = waited >= threshold ? fl_stacks_look(gil, &seat->look_waiting) : 0;
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
    if (seat->switch_apart) {
        count_apart(gil, seat);
    }
    if (since) {
        acquired_after_wait(gil, seat, since, now);
    } else if (gil->ring) {
        fl_observe_flush(gil);
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

/* The holder's stack, if a thread has waited for long. It is sampled once per threshold at most; otherwise
   each drop would sample one where a thousand threads take turns. */
static uint32_t sample_holder(fl_gil *gil, fl_seat *seat, uint64_t now)
{
    uint64_t oldest = gil->first->t_want;
    if (now < oldest || now - oldest < threshold || now - gil->t_stack < threshold) {
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
        if (waited >= threshold) {
            emit(gil, (fl_event){.t = now,
                                 .thread = seat->serial,
                                 .other = waiter->serial,
                                 .value = waited,
                                 .kind = FL_KIND_STACK_HOLDER,
                                 .stack = stack});
        }
    }
}

static uint64_t less_of(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static void dropped(fl_gil *gil, fl_seat *seat, uint64_t now)
{
    uint8_t flags = 0;
    uint32_t stack = 0;
    bool off_cpu = fl_off_cpu_dropped(seat, now);
    if (off_cpu) {
        emit_off_cpu(gil, seat, now);
    }
    if (gil->t_request) {
        uint64_t overrun = now - gil->t_request;
        seat->tally.overrun += overrun;
        seat->tally.overrun_off_cpu += off_cpu ? less_of(fl_off_cpu_after(seat), overrun) : 0;
        fl_window_note(seat, FL_MAXIMUM_OVERRUN, gil->t_request, now);
        flags = FL_FLAG_FORCED;
    }
    if (gil->first) {
        flags |= FL_FLAG_CONTENDED;
        stack = sample_holder(gil, seat, now);
        if (stack && gil->ring) {
            emit_stack(gil, seat, stack, now);
        }
    }
    if (gil->first || gil->forced_out) {
        fl_blame_hold(&gil->blame, (fl_hold){seat->t_acquired, now, seat->serial, stack});
    }
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
    emit(gil, drop);
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

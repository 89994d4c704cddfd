#include "gil/serve/vital_metrics.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gil/hooks/hooks.h"
#include "gil/schedule/counts.h"
#include "gil/trace/loops.h"

#ifndef FL_PROBE_REFUSAL

enum { HELD, WAITED, ACQUISITIONS, CONTENDED, FORCED, SUMS };

typedef struct {
    char name[FL_THREAD_NAME];
    uint64_t sums[SUMS];
} series;

typedef struct {
    series of[FL_METRIC_THREADS + 1]; /* the last: the others */
    size_t used, room;                /* named, at most */
} family;

static family threads = {.room = FL_METRIC_THREADS}, classes = {.room = FL_METRIC_CLASSES};

/* What each thread had done at the last call, in order of birth and serial. */
typedef struct {
    uint64_t birth;
    uint32_t serial;
    uint64_t sums[SUMS];
} past;

static past *pasts;
static size_t past_count;

void fl_vital_metrics_reset(void)
{
    free(pasts);
    fl_vital_metrics_fork();
}

void fl_vital_metrics_fork(void)
{
    pasts = NULL;
    past_count = 0;
    threads = (family){.room = FL_METRIC_THREADS};
    classes = (family){.room = FL_METRIC_CLASSES};
}

const char *fl_vital_name(const fl_thread_record *records, size_t count, uint32_t serial)
{
    for (size_t from = 0, to = count; from < to;) {
        size_t middle = from + (to - from) / 2;
        if (records[middle].serial == serial) {
            return records[middle].name;
        }
        if (records[middle].serial < serial) {
            from = middle + 1;
        } else {
            to = middle;
        }
    }
    return "";
}

void fl_vital_seconds(fl_text *text, uint64_t ns)
{
    char digits[40];
    snprintf(digits, sizeof digits, "%llu.%09llu", (unsigned long long)(ns / 1000000000u),
             (unsigned long long)(ns % 1000000000u));
    fl_text_add(text, digits);
}

/* ---- Series */

static series *series_of(family *of, const char *name)
{
    for (size_t i = 0; i < of->used; i++) {
        if (strcmp(of->of[i].name, name) == 0) {
            return &of->of[i];
        }
    }
    if (of->used == of->room) {
        return &of->of[of->room];
    }
    series *made = &of->of[of->used++];
    snprintf(made->name, sizeof made->name, "%s", name);
    return made;
}

/* The name with each run of digits as one "#". */
static void class_name(const char *name, char *into)
{
    bool in_number = false;
    for (; *name; name++) {
        bool digit = *name >= '0' && *name <= '9';
        if (!digit || !in_number) {
            *into++ = digit ? '#' : *name;
        }
        in_number = digit;
    }
    *into = 0;
}

static void sums_of(const fl_vital_seat *seat, uint64_t sums[SUMS])
{
    sums[HELD] = seat->held;
    sums[WAITED] = seat->waited;
    sums[ACQUISITIONS] = seat->acquisitions;
    sums[CONTENDED] = seat->contended;
    sums[FORCED] = seat->forced_drops;
}

static int order(const past *of, const fl_vital_seat *seat)
{
    return of->birth != seat->birth ? (of->birth > seat->birth) - (of->birth < seat->birth)
                                    : (of->serial > seat->serial) - (of->serial < seat->serial);
}

/* Adds what each thread has done since the last call to its name and its class. */
static void attribute(const fl_vitals *vitals, const fl_thread_record *records, size_t record_count)
{
    past *now = malloc((vitals->count + 1) * sizeof *now);
    if (now == NULL) {
        return; /* the next call makes up for it */
    }
    size_t before = 0;
    for (size_t i = 0; i < vitals->count; i++) {
        const fl_vital_seat *seat = &vitals->seats[i];
        char class[FL_THREAD_NAME];
        const char *name = fl_vital_name(records, record_count, seat->serial);
        name = *name ? name : "(unnamed)";
        class_name(name, class);
        while (before < past_count && order(&pasts[before], seat) < 0) {
            before++;
        }
        bool known = before < past_count && order(&pasts[before], seat) == 0;
        now[i] = (past){.birth = seat->birth, .serial = seat->serial};
        sums_of(seat, now[i].sums);
        series *of_name = series_of(&threads, name), *of_class = series_of(&classes, class);
        for (int sum = 0; sum < SUMS; sum++) {
            uint64_t earlier = known ? pasts[before].sums[sum] : 0;
            now[i].sums[sum] = now[i].sums[sum] > earlier ? now[i].sums[sum] : earlier;
            of_name->sums[sum] += now[i].sums[sum] - earlier;
            of_class->sums[sum] += now[i].sums[sum] - earlier;
        }
    }
    free(pasts);
    pasts = now;
    past_count = vitals->count;
}

/* ---- Text */

static void head(fl_text *text, const char *name, const char *type, const char *help)
{
    fl_text_add(text, "# HELP ");
    fl_text_add(text, name);
    fl_text_add(text, " ");
    fl_text_add(text, help);
    fl_text_add(text, "\n# TYPE ");
    fl_text_add(text, name);
    fl_text_add(text, " ");
    fl_text_add(text, type);
    fl_text_add(text, "\n");
}

static void end_line(fl_text *text, uint64_t value, bool seconds)
{
    fl_text_add(text, " ");
    if (seconds) {
        fl_vital_seconds(text, value);
    } else {
        fl_text_number(text, value);
    }
    fl_text_add(text, "\n");
}

static void plain(fl_text *text, const char *name, const char *type, const char *help, uint64_t value,
                  bool seconds)
{
    head(text, name, type, help);
    fl_text_add(text, name);
    end_line(text, value, seconds);
}

/* The value of a label. JSON's escapes are those of the format, but for control characters, which are left
   out. */
static void label_value(fl_text *text, const char *value)
{
    char shown[FL_THREAD_NAME > FL_LOOP_NAME ? FL_THREAD_NAME : FL_LOOP_NAME];
    size_t size = 0;
    for (; *value; value++) {
        if ((unsigned char)*value >= 0x20 && *value != 0x7F) {
            shown[size++] = *value;
        }
    }
    fl_text_string(text, shown, size);
}

static void label(fl_text *text, const char *name, const char *value)
{
    fl_text_add(text, "{");
    fl_text_add(text, name);
    fl_text_add(text, "=");
    label_value(text, value);
    fl_text_add(text, "}");
}

static void add_family(fl_text *text, const family *of, const char *kind, const uint64_t total[SUMS])
{
    static const struct {
        const char *name, *help;
        bool seconds;
    } metrics[SUMS] = {
        [HELD] = {"held_seconds_total", "Time that it held the GIL.", true},
        [WAITED] = {"waited_seconds_total", "Time that it waited for the GIL.", true},
        [ACQUISITIONS] = {"acquisitions_total", "Times that it took the GIL.", false},
        [CONTENDED] = {"contended_acquisitions_total", "Times that it took the GIL after a wait.", false},
        [FORCED] = {"forced_drops_total", "Times that it was asked to drop the GIL, and did.", false},
    };
    for (int sum = 0; sum < SUMS; sum++) {
        char name[96];
        snprintf(name, sizeof name, "fairlead_gil_%s_%s", kind, metrics[sum].name);
        head(text, name, "counter", metrics[sum].help);
        uint64_t others = total[sum];
        for (size_t i = 0; i < of->used; i++) {
            uint64_t value = of->of[i].sums[sum];
            others -= value < others ? value : others;
            value = metrics[sum].seconds ? fl_ticks_to_ns(value) : value;
            fl_text_add(text, name);
            label(text, kind, of->of[i].name);
            end_line(text, value, metrics[sum].seconds);
        }
        fl_text_add(text, name);
        label(text, kind, "(others)");
        end_line(text, metrics[sum].seconds ? fl_ticks_to_ns(others) : others, metrics[sum].seconds);
    }
}

/* Every second power of two of nanoseconds, from a microsecond to half a minute. */
#define FIRST_BOUND 10
#define LAST_BOUND 35

static void add_histogram(fl_text *text, const char *name, const char *help, const uint64_t *counts,
                          uint64_t sum)
{
    uint64_t so_far = 0, bucket = 0;
    head(text, name, "histogram", help);
    for (unsigned bound = FIRST_BOUND; bound <= LAST_BOUND; bound += 2) {
        char edge[40];
        while (bucket < bound) { /* bucket k ends at 2^(k + 1) */
            so_far += counts[bucket++];
        }
        uint64_t ns = (uint64_t)1 << bound;
        snprintf(edge, sizeof edge, "%llu.%09llu", (unsigned long long)(ns / 1000000000u),
                 (unsigned long long)(ns % 1000000000u));
        fl_text_add(text, name);
        fl_text_add(text, "_bucket");
        label(text, "le", edge);
        end_line(text, so_far, false);
    }
    while (bucket < FL_HISTOGRAM_BUCKETS) {
        so_far += counts[bucket++];
    }
    fl_text_add(text, name);
    fl_text_add(text, "_bucket");
    label(text, "le", "+Inf");
    end_line(text, so_far, false);
    fl_text_add(text, name);
    fl_text_add(text, "_sum");
    end_line(text, fl_ticks_to_ns(sum), true);
    fl_text_add(text, name);
    fl_text_add(text, "_count");
    end_line(text, so_far, false);
}

static void add_totals(fl_text *text, const fl_tally *total)
{
#define COUNTER(name, help, value) plain(text, "fairlead_gil_" name "_total", "counter", help, value, false)
#define SECONDS(name, help, ticks)                                                                           \
    plain(text, "fairlead_gil_" name "_seconds_total", "counter", help, fl_ticks_to_ns(ticks), true)
    plain(text, "fairlead_gil_observed_seconds_total", "counter",
          "Time under observation: what to divide by.", fl_hooks_active_ns(), true);
    COUNTER("acquisitions", "Times that the GIL was taken.", total->acquisitions);
    COUNTER("contended_acquisitions", "Times that it was taken after a wait.", total->contended);
    SECONDS("held", "Time that it was held.", total->held);
    SECONDS("held_off_cpu", "Time that it was held by a thread without a core.", total->off_cpu);
    SECONDS("held_asleep", "Time that it was held by a thread asleep in C code.", total->asleep);
    SECONDS("waited", "Time that threads waited for it, summed over threads.", total->waited);
    SECONDS("overrun", "Time that it was held on to after a request to drop it.", total->overrun);
    COUNTER("forced_drops", "Drops after a request.", total->forced_drops);
    COUNTER("voluntary_drops", "All other drops.", total->voluntary_drops);
    COUNTER("drop_requests", "Requests to drop it.", total->requests);
    COUNTER("handoffs", "Times that it went straight to a thread that was waiting for it.", total->handoffs);
#undef COUNTER
#undef SECONDS
}

static void add_state(fl_text *text, const fl_vitals *vitals, const fl_diagnosis *diagnosis)
{
    uint64_t held = 0, longest = 0, waiting = 0, running = 0;
    for (size_t i = 0; i < vitals->count; i++) {
        const fl_vital_seat *seat = &vitals->seats[i];
        uint64_t lasted = vitals->ticks > seat->since ? fl_ticks_to_ns(vitals->ticks - seat->since) : 0;
        running += !seat->ended;
        waiting += seat->waiting;
        if (seat->holding) {
            fl_maximum(&held, lasted);
        } else if (seat->waiting) {
            fl_maximum(&longest, lasted);
        }
    }
    plain(text, "fairlead_gil_healthy", "gauge", "1 if /healthz answers 200, 0 if it answers 503.",
          diagnosis->health <= FL_HEALTH_COMPUTES, false);
    plain(text, "fairlead_gil_threads", "gauge", "Threads that have had to do with a GIL and run.", running,
          false);
    plain(text, "fairlead_gil_waiting_threads", "gauge", "Threads that wait for a GIL now.", waiting, false);
    plain(text, "fairlead_gil_hold_in_progress_seconds", "gauge", "How long the GIL has been held by now.",
          held, true);
    plain(text, "fairlead_gil_longest_wait_in_progress_seconds", "gauge",
          "How long the thread that has waited longest has waited by now.", longest, true);
}

static void add_policy(fl_text *text, const fl_schedule_state *state)
{
    static const char *const names[] = {"stock", "interactive"};
    head(text, "fairlead_gil_policy", "gauge", "1 for the policy in force.");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        fl_text_add(text, "fairlead_gil_policy");
        label(text, "policy", names[i]);
        end_line(text, (size_t)state->mode == i, false);
    }
    plain(text, "fairlead_gil_watchdog_tripped", "gauge",
          "1 if the scheduler has given up, and the interpreter's own scheduling is in force.",
          state->tripped, false);
    plain(text, "fairlead_gil_watchdog_trips_total", "counter", "Times that it gave up.", state->trips,
          false);
    plain(text, "fairlead_gil_scheduled_seconds_total", "counter", "Time under a policy other than stock.",
          state->scheduled_ns, true);
    plain(text, "fairlead_gil_canary_tries", "gauge", "1 while a canary tries the policy.",
          state->canary == FL_CANARY_TRIES, false);
    plain(text, "fairlead_gil_canary_kept_total", "counter", "Trials of a canary that the policy won.",
          state->canary == FL_CANARY_KEPT, false);
    plain(text, "fairlead_gil_canary_rejected_total", "counter", "Trials of a canary that stock won.",
          state->canary == FL_CANARY_REJECTED, false);
    fl_schedule_count counts[FL_SCHEDULE_COUNTS];
    fl_schedule_counts(state, counts);
    for (size_t i = 0; i < FL_SCHEDULE_COUNTS; i++) {
        char name[96];
        snprintf(name, sizeof name, "fairlead_gil_scheduler_%s_total", counts[i].name);
        plain(text, name, "counter", "The scheduler's count; see the reference of scheduling.",
              counts[i].value, false);
    }
}

/* ---- Event loops */

/* A line of one loop, with a second label where there is one. */
static void loop_line(fl_text *text, const char *name, const fl_loop_sums *loop, const char *of,
                      const char *value)
{
    fl_text_add(text, name);
    fl_text_add(text, "{loop=");
    label_value(text, loop->name);
    if (of) {
        fl_text_add(text, ",");
        fl_text_add(text, of);
        fl_text_add(text, "=");
        label_value(text, value);
    }
    fl_text_add(text, "}");
}

static void add_loop_histogram(fl_text *text, const fl_loop_sums *loop)
{
    uint64_t so_far = 0;
    for (int bucket = 0; bucket <= FL_LOOP_BOUNDS; bucket++) {
        char edge[40] = "+Inf";
        so_far += loop->counts[bucket];
        if (bucket < FL_LOOP_BOUNDS) {
            double bound = (double)fl_loop_bounds[bucket] / 1e9;
            snprintf(edge, sizeof edge, bound < 1 ? "%g" : "%.1f", bound);
        }
        loop_line(text, "fairlead_loop_lag_seconds_bucket", loop, "le", edge);
        end_line(text, so_far, false);
    }
    loop_line(text, "fairlead_loop_lag_seconds_sum", loop, NULL, NULL);
    end_line(text, loop->delay, true);
    loop_line(text, "fairlead_loop_lag_seconds_count", loop, NULL, NULL);
    end_line(text, so_far, false);
}

/* Nothing if no loop has been watched. */
static void add_loops(fl_text *text)
{
    fl_loops now;
    fl_loops_read(&now);
    if (now.loop_count == 0) {
        return;
    }
    head(text, "fairlead_loop_lag_seconds", "histogram", "How late callbacks of the event loop ran.");
    for (size_t i = 0; i < now.loop_count; i++) {
        add_loop_histogram(text, &now.loops[i]);
    }
    head(text, "fairlead_loop_late_seconds_total", "counter", "Delays of late callbacks, by their cause.");
    for (size_t i = 0; i < now.loop_count; i++) {
        const fl_loop_sums *loop = &now.loops[i];
        loop_line(text, "fairlead_loop_late_seconds_total", loop, "cause", "own");
        end_line(text, loop->own, true);
        loop_line(text, "fairlead_loop_late_seconds_total", loop, "cause", "gil");
        end_line(text, loop->gil, true);
        loop_line(text, "fairlead_loop_late_seconds_total", loop, "cause", "core");
        end_line(text, loop->core, true);
    }
    head(text, "fairlead_loop_overdue_seconds", "gauge", "How late the next callback of the watch is now.");
    for (size_t i = 0; i < now.loop_count; i++) {
        loop_line(text, "fairlead_loop_overdue_seconds", &now.loops[i], NULL, NULL);
        end_line(text, now.loops[i].overdue, true);
    }
    head(text, "fairlead_loop_callback_late_seconds_total", "counter",
         "Time by which callbacks made others late.");
    for (size_t i = 0; i < now.callback_count; i++) {
        fl_text_add(text, "fairlead_loop_callback_late_seconds_total");
        label(text, "callback", now.callbacks[i].name);
        end_line(text, now.callbacks[i].own, true);
    }
}

void fl_vital_metrics(const fl_vitals *vitals, const fl_diagnosis *diagnosis,
                      const fl_schedule_state *schedule, const fl_thread_record *records,
                      size_t record_count, bool named, fl_text *text)
{
    const fl_tally *total = &vitals->total;
    const uint64_t sums[SUMS] = {total->held, total->waited, total->acquisitions, total->contended,
                                 total->forced_drops};
    attribute(vitals, records, record_count);
    add_state(text, vitals, diagnosis);
    add_totals(text, total);
    add_histogram(text, "fairlead_gil_wait_seconds", "Waits for the GIL that are over.",
                  total->wait_histogram, total->waited);
    add_histogram(text, "fairlead_gil_hold_seconds", "Holds of the GIL that are over.", total->held_histogram,
                  total->held);
    add_policy(text, schedule);
    if (named) {
        add_family(text, &threads, "thread", sums);
        add_family(text, &classes, "class", sums);
        add_loops(text);
    }
}

#endif

#include "gil/serve/vital_pages.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gil/hooks/hooks.h"
#include "gil/observe/outside.h"
#include "gil/serve/vital_metrics.h"

#ifndef FL_PROBE_REFUSAL

#define THREADS_SHOWN 2048 /* by /threads, at most */
#define LOOKS 3            /* at a stack whose thread lets go of the GIL meanwhile */
#define PATIENCE_NS 15000000 /* of a page with locks that a thread without a core may hold */

static _Atomic uint64_t stalled = UINT64_MAX, busy = UINT64_MAX; /* ns */
static fl_vitals vitals;
static fl_schedule_state schedule;
static fl_thread_record *records; /* in order of serial */
static size_t record_count, record_room;

void fl_vital_pages_limit(uint64_t stalled_ns, uint64_t busy_ns)
{
    atomic_store(&stalled, stalled_ns);
    atomic_store(&busy, busy_ns);
}

static uint64_t patience(void)
{
    return fl_ticks_now() + fl_ticks_from_ns(PATIENCE_NS);
}

static fl_diagnosis diagnose(uint64_t until)
{
    fl_health_limits limits = {atomic_load(&stalled), atomic_load(&busy)};
    return fl_vitals_diagnose(&limits, until);
}

/* This server reports nothing that an earlier one has counted. */
static void begin(void)
{
    fl_vital_pages_limit(UINT64_MAX, UINT64_MAX);
    fl_vital_metrics_reset();
    fl_vitals_begin();
    schedule = fl_schedule_look();
}

static void end(void)
{
    fl_vitals_free(&vitals);
    fl_vital_metrics_reset();
    free(records);
    records = NULL;
    record_count = record_room = 0;
}

void fl_vital_pages_fork(void)
{
    /* The parent's thread may have been changing it: it is left where it is. */
    fl_vital_metrics_fork();
    vitals = (fl_vitals){0};
    records = NULL;
    record_count = record_room = 0;
}

static int by_serial(const void *left, const void *right)
{
    uint32_t a = ((const fl_thread_record *)left)->serial, b = ((const fl_thread_record *)right)->serial;
    return (a > b) - (a < b);
}

/* False: no memory. */
static bool copy_threads(uint64_t until)
{
    size_t count = 0;
    while (fl_threads_copy_until(records, record_room, &count, until)) {
        if (count <= record_room) {
            record_count = count;
            qsort(records, record_count, sizeof *records, by_serial);
            return true;
        }
        size_t room = count + count / 8 + 64;
        fl_thread_record *grown = realloc(records, room * sizeof *grown);
        if (grown == NULL) {
            record_count = 0;
            return false;
        }
        records = grown;
        record_room = room;
    }
    return true;
}

/* ---- Text */

static void add_name(fl_text *text, uint32_t serial, pid_t native_id, bool named)
{
    const char *name = named ? fl_vital_name(records, record_count, serial) : "";
    char number[32];
    if (!*name) {
        snprintf(number, sizeof number, "thread %lu", (unsigned long)serial);
        name = number;
    }
    fl_text_add(text, "\"name\":");
    fl_text_string(text, name, strlen(name));
    fl_text_member(text, "serial", serial);
    fl_text_member(text, "native_id", (uint64_t)native_id);
}

static void add_seconds(fl_text *text, const char *member, uint64_t ns)
{
    fl_text_add(text, ",\"");
    fl_text_add(text, member);
    fl_text_add(text, "\":");
    fl_vital_seconds(text, ns);
}

static uint64_t ns_since(uint64_t now, uint64_t then)
{
    return now > then ? fl_ticks_to_ns(now - then) : 0;
}

static uint64_t unix_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* ---- The pages */

static const char *said(fl_health health)
{
    static const char *const words[] = {
        [FL_HEALTH_MOVES] = "ok",
        [FL_HEALTH_COMPUTES] = "computing",
        [FL_HEALTH_BUSY] = "busy",
        [FL_HEALTH_STALLED] = "stalled",
    };
    return words[health];
}

static int healthz(fl_text *body, bool named)
{
    uint64_t until = patience();
    fl_diagnosis found = diagnose(until);
    bool well = found.health <= FL_HEALTH_COMPUTES;
    (void)copy_threads(until);
    fl_text_add(body, "{\"status\":\"");
    fl_text_add(body, said(found.health));
    fl_text_add(body, "\"");
    fl_text_member(body, "gil", found.gil.index);
    add_seconds(body, "still_seconds", found.still_ns);
    fl_text_member(body, "waiting", found.gil.waiting);
    if (found.gil.holder && found.health != FL_HEALTH_MOVES) {
        fl_text_add(body, ",\"holder\":{");
        add_name(body, found.gil.holder, found.gil.holder_id, named);
        fl_text_add(body, "}");
    }
    fl_text_add(body, "}\n");
    return well ? 200 : 503;
}

static bool same_hold(const fl_vital_gil *a, const fl_vital_gil *b)
{
    return a->birth == b->birth && a->holder == b->holder && a->t_acquired == b->t_acquired;
}

/* The stack of a GIL's holder, if one hold lasted while it was read; `gil` gets the GIL's state just
   before. */
static size_t holders_stack(fl_vital_gil *gil, fl_outside_frame *frames, bool *exact, uint64_t until)
{
    for (int look = 0; look < LOOKS && gil->holder; look++) {
        fl_vital_gil after[FL_VITAL_GILS];
        size_t depth = fl_outside_look(gil->tstate, frames, exact), count;
        bool seen = fl_vitals_gils(after, &count, until);
        for (size_t i = 0; seen && i < count; i++) {
            if (same_hold(gil, &after[i])) {
                return depth;
            }
            if (after[i].birth == gil->birth) {
                *gil = after[i];
            }
        }
    }
    return 0;
}

static void add_stack(fl_text *body, const fl_outside_frame *frames, size_t depth, bool exact)
{
    fl_text_add(body, ",\"stack\":");
    if (depth == 0) {
        fl_text_add(body, "null");
        return;
    }
    for (size_t i = 0; i < depth; i++) {
        fl_text_add(body, i ? ",{\"function\":" : "[{\"function\":");
        fl_text_string(body, frames[i].function, strlen(frames[i].function));
        fl_text_add(body, ",\"file\":");
        fl_text_string(body, frames[i].file, strlen(frames[i].file));
        fl_text_member(body, "line", frames[i].line > 0 ? (uint64_t)frames[i].line : 0);
        fl_text_add(body, "}");
    }
    fl_text_add(body, exact ? "],\"stack_exact\":true" : "],\"stack_exact\":false");
}

static void add_holder(fl_text *body, fl_vital_gil gil, uint64_t until)
{
    static fl_outside_frame frames[FL_OUTSIDE_DEPTH];
    bool exact = false;
    size_t depth = holders_stack(&gil, frames, &exact, until);
    uint64_t unix_now = unix_ns();
    fl_text_add(body, "{\"gil\":");
    fl_text_number(body, gil.index);
    fl_text_member(body, "waiting", gil.waiting);
    fl_text_add(body, ",\"holder\":");
    if (gil.holder) {
        uint64_t held = ns_since(gil.now, gil.t_acquired);
        fl_text_add(body, "{");
        add_name(body, gil.holder, gil.holder_id, true);
        add_seconds(body, "held_seconds", held);
        add_seconds(body, "since_unix", unix_now - held);
        add_stack(body, frames, depth, exact);
        fl_text_add(body, "}");
    } else {
        fl_text_add(body, "null");
    }
    fl_text_add(body, ",\"longest_waiter\":");
    if (gil.waiting) {
        fl_text_add(body, "{");
        add_name(body, gil.waiter, gil.waiter_id, true);
        add_seconds(body, "waited_seconds", ns_since(gil.now, gil.t_want));
        fl_text_add(body, "}");
    } else {
        fl_text_add(body, "null");
    }
    fl_text_add(body, "}");
}

/* These two are nothing but names: of threads, functions and files. */
static int refuse(fl_text *body)
{
    fl_text_add(body, "this takes the token, as Authorization: Bearer TOKEN; fairlead run --serve prints it,"
                      " and fairlead.gil.serve() returns it as .token\n");
    return 401;
}

static int holder(fl_text *body, bool named)
{
    if (!named) {
        return refuse(body);
    }
    fl_vital_gil gils[FL_VITAL_GILS];
    uint64_t until = patience();
    size_t count;
    (void)fl_vitals_gils(gils, &count, until);
    (void)copy_threads(until);
    fl_text_add(body, "{\"gils\":[");
    for (size_t i = 0; i < count; i++) {
        fl_text_add(body, i ? "," : "");
        add_holder(body, gils[i], until);
    }
    fl_text_add(body, "]}\n");
    return 200;
}

static void add_thread(fl_text *body, const fl_vital_seat *seat)
{
    fl_text_add(body, "{");
    add_name(body, seat->serial, seat->native_id, true);
    fl_text_member(body, "gil", seat->gil);
    fl_text_add(body, ",\"state\":");
    fl_text_add(body, seat->holding   ? "\"holds\""
                      : seat->waiting ? "\"waits\""
                      : seat->ended   ? "\"ended\""
                                      : "\"without\"");
    if (seat->holding || seat->waiting) {
        add_seconds(body, "state_seconds", ns_since(vitals.ticks, seat->since));
    }
    fl_text_member(body, "acquisitions", seat->acquisitions);
    fl_text_member(body, "contended_acquisitions", seat->contended);
    add_seconds(body, "held_seconds", fl_ticks_to_ns(seat->held));
    add_seconds(body, "waited_seconds", fl_ticks_to_ns(seat->waited));
    fl_text_member(body, "forced_drops", seat->forced_drops);
    fl_text_member(body, "voluntary_drops", seat->voluntary_drops);
    fl_text_add(body, "}");
}

static int threads(fl_text *body, bool named)
{
    if (!named) {
        return refuse(body);
    }
    size_t shown = 0, left_out = 0;
    uint64_t until = patience();
    if (!fl_vitals_count(&vitals, until) || !copy_threads(until)) {
        return 500;
    }
    fl_text_add(body, "{\"threads\":[");
    for (size_t i = 0; i < vitals.count; i++) {
        if (vitals.seats[i].ended) {
            continue;
        }
        if (shown == THREADS_SHOWN) {
            left_out++;
            continue;
        }
        fl_text_add(body, shown++ ? ",\n" : "\n");
        add_thread(body, &vitals.seats[i]);
    }
    fl_text_add(body, "\n]");
    fl_text_member(body, "left_out", left_out);
    fl_text_add(body, "}\n");
    return 200;
}

static int metrics(fl_text *body, bool named)
{
    uint64_t until = patience();
    fl_diagnosis found = diagnose(until);
    if (!fl_vitals_count(&vitals, until) || !copy_threads(until)) {
        return 500;
    }
    (void)fl_schedule_look_until(&schedule, until);
    fl_vital_metrics(&vitals, &found, &schedule, records, record_count, named, body);
    return 200;
}

static const struct {
    const char *path, *type;
    int (*answer)(fl_text *body, bool named);
} pages[] = {
    {"/healthz", "application/json", healthz},
    {"/holder", "application/json", holder},
    {"/threads", "application/json", threads},
    {"/metrics", "text/plain; version=0.0.4; charset=utf-8", metrics},
};

#define PAGES (sizeof pages / sizeof *pages)

static bool is_path(const char *path, size_t size, const char *wanted)
{
    return size == strlen(wanted) && memcmp(path, wanted, size) == 0;
}

static int answer(const char *path, size_t size, bool trusted, fl_text *body, const char **type)
{
    for (size_t i = 0; i < PAGES; i++) {
        if (is_path(path, size, pages[i].path)) {
            int status = pages[i].answer(body, trusted);
            *type = status == 401 ? *type : pages[i].type;
            return status;
        }
    }
    for (size_t i = 0; i < PAGES; i++) {
        fl_text_add(body, pages[i].path);
        fl_text_add(body, "\n");
    }
    return is_path(path, size, "/") ? 200 : 404;
}

static void tick(void)
{
    (void)diagnose(patience());
}

static void lost(void)
{
    fl_hooks_tell("it serves no longer: the program has closed the endpoint's socket", "");
}

/* The health check is always answered. */
static bool unlimited(const char *path, size_t size)
{
    return is_path(path, size, pages[0].path);
}

const fl_serve_pages fl_vital_pages = {
    .begin = begin,
    .end = end,
    .answer = answer,
    .tick = tick,
    .lost = lost,
    .tick_ms = 250,
    .unlimited = unlimited,
};

#endif

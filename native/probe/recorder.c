#define _GNU_SOURCE /* pthread_setname_np */

#include "probe/recorder.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/recording.h"
#include "core/text.h"
#include "probe/registry.h"
#include "probe/snapshot.h"
#include "probe/stacks.h"

#ifndef FL_PROBE_REFUSAL

#define RING_OF_MAIN (1u << 17) /* events: 4 MiB */
#define RING_OF_OTHERS (1u << 13)
#define RING_AT_LEAST (1u << 6)
#define EVENTS_AT_MOST (1u << 21) /* in all rings together: 64 MiB */
#define FLUSH_NS 100000000
#define EVENTS_A_BLOCK 8192

typedef struct {
    fl_ring *ring;
    bool in_use;             /* a GIL still writes into it */
    fl_tick_anchor previous; /* events up to here have been written */
    uint64_t last_ns;
} outlet;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake;
static bool wake_made;

/* Under the lock. */
static struct {
    outlet *outlets;
    size_t count, room;
    uint64_t events; /* room in all rings */
    bool hurry, stopping;
    bool running; /* there is a thread */
} shared;

/* Whether rings are wanted; read by hooks. */
static atomic_bool recording_events;

atomic_bool fl_recorder_resumes;

/* The recorder's thread only, and start and stop while it does not run. */
static struct {
    bool on;
    pthread_t thread;
    fl_recording file;
    char *path, *meta; /* until the file is made */
    fl_recorder_options options;
    fl_tick_anchor start;
    int window;
    fl_snapshot base;
    uint32_t stacks_told;
    uint64_t next_counters;
    fl_text text;
    fl_event out[EVENTS_A_BLOCK];
} own;

/* ---- Rings */

void fl_recorder_attach(fl_gil *gil)
{
    if (!atomic_load_explicit(&recording_events, memory_order_acquire) || gil->ring) {
        return;
    }
    pthread_mutex_lock(&lock);
    uint64_t size = gil->index == 0 ? RING_OF_MAIN : RING_OF_OTHERS;
    if (shared.events + size > EVENTS_AT_MOST) {
        size = RING_AT_LEAST;
    }
    if (shared.count == shared.room) {
        size_t room = shared.room * 2 + 8;
        outlet *grown = realloc(shared.outlets, room * sizeof *grown);
        if (grown) {
            shared.outlets = grown;
            shared.room = room;
        }
    }
    fl_ring *ring = shared.count < shared.room ? fl_ring_new(size) : NULL;
    if (ring) {
        shared.outlets[shared.count++] = (outlet){.ring = ring, .in_use = true, .previous = own.start};
        shared.events += size;
        gil->ring = ring;
    }
    pthread_mutex_unlock(&lock);
}

void fl_recorder_wake(void)
{
    pthread_mutex_lock(&lock);
    shared.hurry = true;
    pthread_cond_signal(&wake);
    pthread_mutex_unlock(&lock);
}

static void attach(fl_gil *gil, void *context)
{
    (void)context;
    if (gil->alive) {
        fl_recorder_attach(gil);
    }
}

static void detach(fl_gil *gil, void *context)
{
    (void)context;
    gil->ring = NULL;
}

static void note_use(fl_gil *gil, void *context)
{
    (void)context;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; gil->ring && i < shared.count; i++) {
        if (shared.outlets[i].ring == gil->ring) {
            shared.outlets[i].in_use = true;
        }
    }
    pthread_mutex_unlock(&lock);
}

/* ---- Writing */

static void write_text(fl_block_type type)
{
    if (own.text.failed) {
        own.file.error = own.file.error ? own.file.error : ENOMEM;
        return;
    }
    fl_recording_block(&own.file, type, own.text.data, own.text.size);
}

static bool open_file(void)
{
    if (own.file.fd >= 0) {
        return true;
    }
    if (own.file.error) {
        return false;
    }
    int error = fl_recording_open(&own.file, own.path);
    if (error) {
        own.file.error = error;
        return false;
    }
    fl_text_clear(&own.text);
    fl_text_add(&own.text, own.meta);
    fl_text_member(&own.text, "start_ns", own.start.ns);
    struct timespec wall;
    clock_gettime(CLOCK_REALTIME, &wall);
    uint64_t passed = fl_ticks_system() - own.start.ns;
    fl_text_member(&own.text, "start_wall_ns",
                   (uint64_t)wall.tv_sec * 1000000000u + (uint64_t)wall.tv_nsec - passed);
    fl_text_add(&own.text, "}");
    write_text(FL_BLOCK_META);
    return own.file.error == 0;
}

static void write_events(size_t count)
{
    if (count > 0) {
        fl_recording_block(&own.file, FL_BLOCK_EVENTS, own.out, count * sizeof *own.out);
    }
}

static void write_lost(const fl_event *record, fl_tick_anchor before, fl_tick_anchor after)
{
    uint64_t numbers[3] = {
        fl_ticks_when(record->t, before, after),
        fl_ticks_when(record->value, before, after),
        record->thread | (uint64_t)record->other << 32,
    };
    fl_recording_block(&own.file, FL_BLOCK_LOST, numbers, sizeof numbers);
}

/* Writes the next stretch of a ring; false when it is empty. */
static bool drain_some(outlet *from)
{
    const fl_event *events;
    size_t count = fl_ring_peek(from->ring, &events);
    if (count == 0) {
        return false;
    }
    count = count < EVENTS_A_BLOCK ? count : EVENTS_A_BLOCK;
    fl_tick_anchor now = fl_ticks_anchor(); /* later than all of them */
    size_t written = 0;
    for (size_t i = 0; i < count; i++) {
        if (events[i].kind == FL_EVENT_LOST) {
            write_events(written);
            written = 0;
            write_lost(&events[i], from->previous, now);
            continue;
        }
        fl_event *event = &own.out[written++];
        *event = events[i];
        uint64_t when = fl_ticks_when(event->t, from->previous, now);
        event->t = from->last_ns = when > from->last_ns ? when : from->last_ns;
        event->value = fl_ticks_to_ns(event->value);
    }
    write_events(written);
    fl_ring_take(from->ring, count);
    from->previous = now;
    return true;
}

static void write_threads(void)
{
    fl_thread_record records[64];
    size_t count;
    do {
        count = fl_registry_threads(records, 64, true);
        if (count == 0) {
            break;
        }
        fl_text_clear(&own.text);
        for (size_t i = 0; i < count && i < 64; i++) {
            fl_text_add(&own.text, i ? ",{\"serial\":" : "[{\"serial\":");
            fl_text_number(&own.text, records[i].serial);
            fl_text_member(&own.text, "native_id", (uint64_t)records[i].native_id);
            fl_text_member(&own.text, "gil", records[i].gil);
            fl_text_add(&own.text, ",\"name\":");
            fl_text_string(&own.text, records[i].name, strlen(records[i].name));
            fl_text_add(&own.text, "}");
        }
        fl_text_add(&own.text, "]");
        write_text(FL_BLOCK_THREADS);
    } while (count > 64);
}

static void write_stacks(void)
{
    uint32_t count = fl_stacks_count();
    while (own.stacks_told < count) {
        fl_text_clear(&own.text);
        for (int i = 0; i < 256 && own.stacks_told < count; i++) {
            fl_text_add(&own.text, i ? ",{\"id\":" : "[{\"id\":");
            fl_text_number(&own.text, ++own.stacks_told);
            fl_text_add(&own.text, ",\"frames\":");
            fl_stacks_describe(own.stacks_told, &own.text);
            fl_text_add(&own.text, "}");
        }
        fl_text_add(&own.text, "]");
        write_text(FL_BLOCK_STACKS);
    }
}

static void add_seat(const fl_seat_count *seat, bool first)
{
    const fl_tally *tally = &seat->tally;
    fl_text_add(&own.text, first ? "{\"serial\":" : ",{\"serial\":");
    fl_text_number(&own.text, seat->serial);
    fl_text_member(&own.text, "gil", seat->gil);
    fl_text_member(&own.text, "acquisitions", tally->acquisitions);
    fl_text_member(&own.text, "contended", tally->contended);
    fl_text_member(&own.text, "held_ns", fl_ticks_to_ns(tally->held));
    fl_text_member(&own.text, "held_off_cpu_ns", fl_ticks_to_ns(tally->off_cpu));
    fl_text_member(&own.text, "waited_ns", fl_ticks_to_ns(tally->waited));
    fl_text_member(&own.text, "max_wait_ns", fl_ticks_to_ns(tally->maxima.of[FL_MAXIMUM_WAIT]));
    fl_text_member(&own.text, "max_held_ns", fl_ticks_to_ns(tally->maxima.of[FL_MAXIMUM_HELD]));
    fl_text_member(&own.text, "overrun_ns", fl_ticks_to_ns(tally->overrun));
    fl_text_member(&own.text, "max_overrun_ns", fl_ticks_to_ns(tally->maxima.of[FL_MAXIMUM_OVERRUN]));
    fl_text_member(&own.text, "forced_drops", tally->forced_drops);
    fl_text_member(&own.text, "voluntary_drops", tally->voluntary_drops);
    fl_text_member(&own.text, "requests", tally->requests);
    fl_text_member(&own.text, "handoffs", tally->handoffs);
    fl_text_members(&own.text, "wait_histogram", tally->wait_histogram, FL_HISTOGRAM_BUCKETS);
    fl_text_members(&own.text, "held_histogram", tally->held_histogram, FL_HISTOGRAM_BUCKETS);
}

/* Newest first: serials fall. */
static int by_falling_serial(const void *left, const void *right)
{
    uint32_t a = ((const fl_thread_record *)left)->serial, b = ((const fl_thread_record *)right)->serial;
    return (a < b) - (a > b);
}

static void write_counters(void)
{
    fl_snapshot now;
    size_t count = fl_registry_threads(NULL, 0, false), room = count + 64;
    fl_thread_record *records = malloc(room * sizeof *records);
    if (records == NULL || !fl_snapshot_take(&now, own.window)) {
        free(records);
        return; /* the next ones may find memory */
    }
    count = fl_registry_threads(records, room, false);
    count = count < room ? count : room;
    fl_snapshot_subtract(&now, &own.base);
    fl_text_clear(&own.text);
    fl_text_add(&own.text, "{\"t_ns\":");
    fl_text_number(&own.text, fl_ticks_system());
    fl_text_add(&own.text, ",\"threads\":[");
    for (size_t i = 0; i < now.seat_count; i++) {
        const fl_seat_count *seat = &now.seats[i];
        add_seat(seat, i == 0);
        fl_thread_record wanted = {.serial = seat->serial};
        const fl_thread_record *record = bsearch(&wanted, records, count, sizeof wanted, by_falling_serial);
        fl_text_member(&own.text, "native_id", record ? (uint64_t)record->native_id : 0);
        fl_text_add(&own.text, ",\"name\":");
        fl_text_string(&own.text, record ? record->name : "", record ? strlen(record->name) : 0);
        fl_text_add(&own.text, "}");
    }
    fl_text_add(&own.text, "],\"blame\":[");
    for (size_t i = 0; i < now.pair_count; i++) {
        const fl_pair_count *pair = &now.pairs[i];
        fl_text_add(&own.text, i ? ",[" : "[");
        fl_text_number(&own.text, pair->gil);
        fl_text_add(&own.text, ",");
        fl_text_number(&own.text, pair->pair.waiter);
        fl_text_add(&own.text, ",");
        fl_text_number(&own.text, pair->pair.holder);
        fl_text_add(&own.text, ",");
        fl_text_number(&own.text, fl_ticks_to_ns(pair->pair.ticks));
        fl_text_add(&own.text, "]");
    }
    fl_text_add(&own.text, "]}");
    write_text(FL_BLOCK_COUNTERS);
    fl_snapshot_free(&now);
    free(records);
}

/* ---- The thread */

/* Rings whose GIL is no more are emptied once more and given back. */
static void drain(void)
{
    pthread_mutex_lock(&lock);
    size_t count = shared.count;
    for (size_t i = 0; i < count; i++) {
        shared.outlets[i].in_use = false;
    }
    pthread_mutex_unlock(&lock);
    fl_registry_each(note_use, NULL);
    for (size_t i = 0; i < count; i++) {
        pthread_mutex_lock(&lock);
        outlet from = shared.outlets[i]; /* the row may move when one is added */
        pthread_mutex_unlock(&lock);
        while (drain_some(&from)) {
        }
        if (!from.in_use) {
            fl_event record;
            if (fl_ring_lost(from.ring, &record)) {
                write_lost(&record, from.previous, fl_ticks_anchor());
            }
        }
        pthread_mutex_lock(&lock);
        shared.outlets[i] = from;
        pthread_mutex_unlock(&lock);
    }
    pthread_mutex_lock(&lock);
    size_t kept = 0;
    for (size_t i = 0; i < shared.count; i++) {
        outlet *at = &shared.outlets[i];
        if (at->in_use || i >= count) {
            shared.outlets[kept++] = *at;
        } else {
            shared.events -= at->ring->size;
            fl_ring_free(at->ring);
        }
    }
    shared.count = kept;
    pthread_mutex_unlock(&lock);
}

static void flush(bool last)
{
    (void)
        open_file(); /* when nothing can be written, the rings are emptied all the same; the end tells why */
    write_threads();
    write_stacks();
    if (own.options.events) {
        drain();
    }
    write_stacks(); /* those that the events just written name */
    uint64_t now = fl_ticks_system();
    if (last || now >= own.next_counters) {
        write_threads();
        write_counters();
        uint64_t after = fl_ticks_system(), rest = 20 * (after - now);
        own.next_counters = after + (rest > own.options.counters_ns ? rest : own.options.counters_ns);
    }
}

static void *run(void *unused)
{
    (void)unused;
    pthread_setname_np(pthread_self(), "fairlead-record");
    bool stopping = false;
    while (!stopping) {
        pthread_mutex_lock(&lock);
        uint64_t until = fl_ticks_system() + FLUSH_NS;
        struct timespec deadline = {(time_t)(until / 1000000000u), (long)(until % 1000000000u)};
        while (!shared.hurry && !shared.stopping
               && pthread_cond_timedwait(&wake, &lock, &deadline) != ETIMEDOUT) {
        }
        shared.hurry = false;
        stopping = shared.stopping;
        pthread_mutex_unlock(&lock);
        if (!stopping) {
            flush(false);
        }
    }
    return NULL;
}

/* Under the lock. */
static int start_thread(void)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before); /* signals are for the program's threads */
    shared.stopping = shared.hurry = false;
    int error = pthread_create(&own.thread, NULL, run, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    shared.running = error == 0;
    return error;
}

/* There is no thread afterwards, and none comes unless it is started. */
static void end_thread(void)
{
    pthread_mutex_lock(&lock);
    atomic_store(&fl_recorder_resumes, false);
    bool running = shared.running;
    shared.stopping = true;
    shared.running = false;
    if (running) {
        pthread_cond_signal(&wake);
    }
    pthread_mutex_unlock(&lock);
    if (running) {
        pthread_join(own.thread, NULL);
    }
}

static void give_back(void)
{
    for (size_t i = 0; i < shared.count; i++) {
        fl_ring_free(shared.outlets[i].ring);
    }
    free(shared.outlets);
    shared.outlets = NULL;
    shared.count = shared.room = 0;
    shared.events = 0;
    fl_snapshot_free(&own.base);
    fl_window_close(own.window);
    fl_text_free(&own.text);
    free(own.path);
    free(own.meta);
    own.path = own.meta = NULL;
    own.on = false;
}

static int make_wake(void)
{
    if (wake_made) {
        return 0;
    }
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    int error = pthread_cond_init(&wake, &attributes);
    pthread_condattr_destroy(&attributes);
    wake_made = error == 0;
    return error;
}

fl_recorder_result fl_recorder_start(const char *path, const char *meta, fl_recorder_options options,
                                     int *error)
{
    if (own.on) {
        return FL_RECORDER_BUSY;
    }
    fl_window_result opened = fl_window_open(&own.window, &own.base);
    if (opened != FL_WINDOW_OK) {
        return opened == FL_WINDOW_TOO_MANY ? FL_RECORDER_TOO_MANY : FL_RECORDER_NO_MEMORY;
    }
    own.on = true;
    own.options = options;
    own.start = fl_ticks_anchor();
    own.stacks_told = 0;
    own.file = (fl_recording){.fd = -1};
    own.next_counters = own.start.ns + options.counters_ns;
    own.path = strdup(path);
    own.meta = strdup(meta);
    if (own.path == NULL || own.meta == NULL || make_wake() != 0) {
        give_back();
        return FL_RECORDER_NO_MEMORY;
    }
    if (!options.later && !open_file()) {
        *error = own.file.error;
        fl_recording_close(&own.file);
        give_back();
        return FL_RECORDER_FILE;
    }
    fl_registry_untell();
    atomic_store_explicit(&recording_events, options.events, memory_order_release);
    fl_registry_each(attach, NULL);
    pthread_mutex_lock(&lock);
    int thread_error = start_thread();
    pthread_mutex_unlock(&lock);
    if (thread_error) {
        atomic_store(&recording_events, false);
        fl_registry_each(detach, NULL);
        fl_recording_close(&own.file);
        give_back();
        return FL_RECORDER_NO_MEMORY;
    }
    return FL_RECORDER_OK;
}

bool fl_recorder_stop(int *error)
{
    if (!own.on) {
        return false;
    }
    end_thread();
    atomic_store(&recording_events, false);
    fl_registry_each(detach, NULL);
    flush(true);
    uint64_t now = fl_ticks_system();
    fl_recording_block(&own.file, FL_BLOCK_END, &now, sizeof now);
    fl_recording_close(&own.file);
    *error = own.file.error;
    give_back();
    return true;
}

void fl_recorder_pause(void)
{
    if (own.on) {
        end_thread();
    }
}

void fl_recorder_resume(void)
{
    if (own.on) {
        atomic_store(&fl_recorder_resumes, true);
        if (!own.options.events) {
            fl_recorder_resume_now();
        }
    }
}

void fl_recorder_resume_now(void)
{
    pthread_mutex_lock(&lock);
    if (atomic_exchange(&fl_recorder_resumes, false) && !shared.running && start_thread() != 0) {
        own.file.error = own.file.error ? own.file.error : EAGAIN;
    }
    pthread_mutex_unlock(&lock);
}

void fl_recorder_forked(void)
{
    /* The rings and what else the parent's recorder had stay where they are, in memory that is shared with
     * it. */
    if (own.on && own.file.fd >= 0) {
        close(own.file.fd);
    }
    if (own.on) {
        fl_window_close(own.window);
    }
    atomic_store(&recording_events, false);
    atomic_store(&fl_recorder_resumes, false);
    pthread_mutex_init(&lock, NULL);
    wake_made = false;
    memset(&shared, 0, sizeof shared);
    memset(&own, 0, sizeof own);
}

#endif

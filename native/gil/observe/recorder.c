#define _GNU_SOURCE /* pthread_setname_np */

#include "gil/observe/recorder.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>

#include "gil/observe/observe.h"
#include "gil/threads/registry.h"
#include "gil/threads/threads.h"
#include "gil/observe/writer.h"
#include "machine/descriptor.h"

#ifndef FL_PROBE_REFUSAL

#define RING_OF_MAIN (1u << 17) /* events: 4 MiB */
#define RING_OF_OTHERS (1u << 13)
#define RING_AT_LEAST (1u << 6)
#define EVENTS_AT_MOST (1u << 21) /* in all rings together: 64 MiB */
#define FLUSH_NS 100000000

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake;
static bool wake_made;

/* Under the lock. */
static struct {
    fl_outlet *outlets;
    size_t count, room;
    uint64_t events; /* room in all rings */
    bool hurry, stopping;
    bool running; /* there is a thread */
} shared;

/* Whether rings are wanted; read by hooks. */
static atomic_bool recording_events;

atomic_bool fl_recorder_resumes;

/* For the recorder's thread alone, and for start and stop while that does not run. */
static struct {
    bool on;
    bool finished; /* the file is closed */
    pthread_t thread;
    fl_recorder_options options;
    fl_descriptor lease;
    uint64_t next_counters;
    fl_writer writer;
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
        fl_outlet *grown = realloc(shared.outlets, room * sizeof *grown);
        if (grown) {
            shared.outlets = grown;
            shared.room = room;
        }
    }
    fl_ring *ring = shared.count < shared.room ? fl_ring_new(size) : NULL;
    if (ring) {
        shared.outlets[shared.count++] =
            (fl_outlet){.ring = ring, .in_use = true, .previous = own.writer.start};
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
    fl_observe_flush(gil);
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

/* ---- The thread */

/* A ring whose GIL no longer exists is emptied once more and freed. */
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
        fl_outlet from = shared.outlets[i]; /* the array may move when one is added */
        pthread_mutex_unlock(&lock);
        while (fl_writer_events(&own.writer, &from)) {
        }
        if (!from.in_use) {
            fl_event record;
            if (fl_ring_lost(from.ring, &record)) {
                fl_tick_line line = fl_ticks_line(from.previous, fl_ticks_anchor());
                fl_writer_lost(&own.writer, &record, &line);
            }
        }
        pthread_mutex_lock(&lock);
        shared.outlets[i] = from;
        pthread_mutex_unlock(&lock);
    }
    pthread_mutex_lock(&lock);
    size_t kept = 0;
    for (size_t i = 0; i < shared.count; i++) {
        fl_outlet *at = &shared.outlets[i];
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
    fl_looks_take(&own.writer.looks);
    /* Even if the file cannot be written the rings are emptied; fl_recorder_stop says why it could not. */
    (void)fl_writer_open(&own.writer);
    fl_writer_threads(&own.writer);
    fl_writer_stacks(&own.writer);
    if (own.options.events) {
        drain();
    }
    fl_writer_stacks(&own.writer); /* those that the events just written name */
    uint64_t now = fl_ticks_system();
    if (last || now >= own.next_counters) {
        fl_writer_threads(&own.writer);
        fl_writer_counters(&own.writer);
        uint64_t after = fl_ticks_system(), rest = 20 * (after - now);
        own.next_counters = after + (rest > own.options.counters_ns ? rest : own.options.counters_ns);
    }
}

/* The hooks write no more events. */
static void end_events(void)
{
    atomic_store(&recording_events, false);
    fl_registry_each(detach, NULL);
}

/* The file is as large as it may be: the counters go on. */
static void stop_at(uint64_t bytes)
{
    if (own.options.events && bytes && own.writer.file.size >= bytes) {
        end_events();
        drain();
        own.options.events = false;
        fl_writer_full(&own.writer);
    }
}

static void finish(void)
{
    end_events();
    flush(true);
    fl_writer_end(&own.writer);
    own.finished = true;
}

/* Its time is up; or the process that began the recording from outside has ended it, or was killed. */
static bool is_over(void)
{
    uint64_t lasts = own.options.duration_ns;
    if (lasts && fl_ticks_system() - own.writer.start.ns >= lasts) {
        return true;
    }
    int file = fl_descriptor_number(&own.lease);
    return file >= 0 && flock(file, LOCK_SH | LOCK_NB) == 0;
}

static bool take_lease(void)
{
    const char *path = own.options.lease;
    own.options.lease = NULL; /* is the caller's */
    own.lease = path ? fl_descriptor_own(open(path, O_RDONLY | O_CLOEXEC)) : FL_NO_DESCRIPTOR;
    return path == NULL || own.lease.number >= 0;
}

static void *run(void *unused)
{
    (void)unused;
    pthread_setname_np(pthread_self(), "fairlead-record");
    bool stopping = false;
    while (!stopping && !own.finished) {
        pthread_mutex_lock(&lock);
        uint64_t until = fl_ticks_system() + FLUSH_NS;
        struct timespec deadline = {(time_t)(until / 1000000000u), (long)(until % 1000000000u)};
        while (!shared.hurry && !shared.stopping
               && pthread_cond_timedwait(&wake, &lock, &deadline) != ETIMEDOUT) {
        }
        shared.hurry = false;
        stopping = shared.stopping;
        pthread_mutex_unlock(&lock);
        if (!stopping && is_over()) {
            finish();
            own.options.expired();
        } else if (!stopping) {
            flush(false);
            stop_at(own.options.most_bytes);
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
    (void)fl_descriptor_close(&own.lease);
    fl_snapshot_free(&own.writer.base);
    fl_window_close(own.writer.window);
    fl_writer_free(&own.writer);
    own.on = own.finished = false;
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
    fl_window_result opened = fl_window_open(&own.writer.window, &own.writer.base);
    if (opened != FL_WINDOW_OK) {
        return opened == FL_WINDOW_TOO_MANY ? FL_RECORDER_TOO_MANY : FL_RECORDER_NO_MEMORY;
    }
    own.on = true;
    own.options = options;
    bool begun = fl_writer_begin(&own.writer, path, meta);
    own.next_counters = own.writer.start.ns; /* a program may be killed before the interval is over */
    if (!begun || make_wake() != 0) {
        give_back();
        return FL_RECORDER_NO_MEMORY;
    }
    if (!take_lease() || (!options.later && !fl_writer_open(&own.writer))) {
        *error = own.writer.file.error ? own.writer.file.error : errno;
        give_back();
        return FL_RECORDER_FILE;
    }
    fl_threads_record_anew();
    atomic_store_explicit(&recording_events, options.events, memory_order_release);
    fl_registry_each(attach, NULL);
    pthread_mutex_lock(&lock);
    int thread_error = start_thread();
    pthread_mutex_unlock(&lock);
    if (thread_error) {
        atomic_store(&recording_events, false);
        fl_registry_each(detach, NULL);
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
    if (!own.finished) {
        finish();
    }
    *error = own.writer.file.error;
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
        own.writer.file.error = own.writer.file.error ? own.writer.file.error : EAGAIN;
    }
    pthread_mutex_unlock(&lock);
}

size_t fl_recorder_rings(size_t *bytes)
{
    pthread_mutex_lock(&lock);
    size_t count = shared.count;
    *bytes = count * sizeof(fl_ring) + shared.events * sizeof(fl_event) + shared.room * sizeof(fl_outlet);
    pthread_mutex_unlock(&lock);
    return count;
}

void fl_recorder_forked(void)
{
    /* The rings and what else the parent's recorder had stay where they are, in memory that is shared with
     * it. */
    if (own.on) {
        (void)fl_descriptor_close(&own.writer.file.file);
        (void)fl_descriptor_close(&own.lease);
        fl_window_close(own.writer.window);
    }
    atomic_store(&recording_events, false);
    atomic_store(&fl_recorder_resumes, false);
    pthread_mutex_init(&lock, NULL);
    wake_made = false;
    memset(&shared, 0, sizeof shared);
    memset(&own, 0, sizeof own);
}

#endif

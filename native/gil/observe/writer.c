#include "gil/observe/writer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gil/schedule/schedule.h"
#include "gil/observe/stacks.h"

#ifndef FL_PROBE_REFUSAL

bool fl_writer_begin(fl_writer *writer, const char *path, const char *meta)
{
    writer->start = fl_ticks_anchor();
    writer->stacks_written = 0;
    writer->looks = (fl_looks){0};
    writer->file = (fl_recording){.file = FL_NO_DESCRIPTOR};
    writer->loaded = fl_load_read(&writer->load);
    fl_loops_read(&writer->loops_base);
    writer->path = strdup(path);
    writer->meta = strdup(meta);
    return writer->path != NULL && writer->meta != NULL;
}

static void write_text(fl_writer *writer, fl_block_type type)
{
    if (writer->text.failed) {
        writer->file.error = writer->file.error ? writer->file.error : ENOMEM;
        return;
    }
    fl_recording_block(&writer->file, type, writer->text.data, writer->text.size);
}

bool fl_writer_open(fl_writer *writer)
{
    if (writer->file.file.number >= 0) {
        return true;
    }
    if (writer->file.error) {
        return false;
    }
    int error = fl_recording_open(&writer->file, writer->path);
    if (error) {
        writer->file.error = error;
        return false;
    }
    fl_text_clear(&writer->text);
    fl_text_add(&writer->text, writer->meta);
    fl_text_member(&writer->text, "start_ns", writer->start.ns);
    struct timespec wall;
    clock_gettime(CLOCK_REALTIME, &wall);
    uint64_t passed = fl_ticks_system() - writer->start.ns;
    fl_text_member(&writer->text, "start_wall_ns",
                   (uint64_t)wall.tv_sec * 1000000000u + (uint64_t)wall.tv_nsec - passed);
    fl_text_add(&writer->text, "}");
    write_text(writer, FL_BLOCK_META);
    return writer->file.error == 0;
}

static void write_events(fl_writer *writer, size_t count)
{
    if (count > 0) {
        fl_recording_block(&writer->file, FL_BLOCK_EVENTS, writer->out, count * sizeof *writer->out);
    }
}

void fl_writer_lost(fl_writer *writer, const fl_event *record, const fl_tick_line *line)
{
    uint64_t numbers[3] = {
        fl_ticks_when(line, record->t),
        fl_ticks_when(line, record->value),
        record->thread | (uint64_t)record->other << 32,
    };
    fl_recording_block(&writer->file, FL_BLOCK_LOST, numbers, sizeof numbers);
}

static inline uint64_t no_earlier(uint64_t when, uint64_t than)
{
    return when > than ? when : than;
}

bool fl_writer_events(fl_writer *writer, fl_outlet *from)
{
    const fl_event *events;
    size_t count = fl_ring_peek(from->ring, &events);
    if (count == 0) {
        return false;
    }
    count = count < FL_WRITER_EVENTS ? count : FL_WRITER_EVENTS;
    fl_tick_anchor now = fl_ticks_anchor(); /* later than all of them */
    fl_tick_line line = fl_ticks_line(from->previous, now);
    size_t written = 0;
    for (size_t i = 0; i < count; i++) {
        if (events[i].kind == FL_EVENT_LOST) {
            write_events(writer, written);
            written = 0;
            fl_writer_lost(writer, &events[i], &line);
            continue;
        }
        fl_event *event = &writer->out[written++];
        *event = events[i];
        uint64_t begun = no_earlier(fl_ticks_when(&line, event->t - event->value), from->last_ns);
        event->t = from->last_ns = no_earlier(fl_ticks_when(&line, event->t), from->last_ns);
        event->value = event->flags & FL_FLAG_WHOLE ? event->t - begun : fl_ticks_to_ns(event->value);
    }
    write_events(writer, written);
    fl_ring_take(from->ring, count);
    from->previous = now;
    return true;
}

void fl_writer_threads(fl_writer *writer)
{
    fl_thread_record records[64];
    size_t count;
    do {
        count = fl_threads_copy(records, 64, true);
        if (count == 0) {
            break;
        }
        fl_text_clear(&writer->text);
        for (size_t i = 0; i < count && i < 64; i++) {
            fl_text_add(&writer->text, i ? ",{\"serial\":" : "[{\"serial\":");
            fl_text_number(&writer->text, records[i].serial);
            fl_text_member(&writer->text, "native_id", (uint64_t)records[i].native_id);
            fl_text_member(&writer->text, "gil", records[i].gil);
            fl_text_add(&writer->text, ",\"name\":");
            fl_text_string(&writer->text, records[i].name, strlen(records[i].name));
            fl_text_add(&writer->text, "}");
        }
        fl_text_add(&writer->text, "]");
        write_text(writer, FL_BLOCK_THREADS);
    } while (count > 64);
}

void fl_writer_stacks(fl_writer *writer)
{
    uint32_t count = fl_stacks_count();
    while (writer->stacks_written < count) {
        fl_text_clear(&writer->text);
        for (int i = 0; i < 256 && writer->stacks_written < count; i++) {
            fl_text_add(&writer->text, i ? ",{\"id\":" : "[{\"id\":");
            fl_text_number(&writer->text, ++writer->stacks_written);
            fl_text_add(&writer->text, ",\"frames\":");
            fl_stacks_describe(writer->stacks_written, &writer->text);
            fl_text_add(&writer->text, "}");
        }
        fl_text_add(&writer->text, "]");
        write_text(writer, FL_BLOCK_STACKS);
    }
}

static void add_seat(fl_writer *writer, const fl_seat_count *seat, bool first)
{
    const fl_tally *tally = &seat->tally;
    fl_text_add(&writer->text, first ? "{\"serial\":" : ",{\"serial\":");
    fl_text_number(&writer->text, seat->serial);
    fl_text_member(&writer->text, "gil", seat->gil);
    fl_text_member(&writer->text, "acquisitions", tally->acquisitions);
    fl_text_member(&writer->text, "contended", tally->contended);
    fl_text_member(&writer->text, "held_ns", fl_ticks_to_ns(tally->held));
    fl_text_member(&writer->text, "held_off_cpu_ns", fl_ticks_to_ns(tally->off_cpu));
    fl_text_member(&writer->text, "held_asleep_ns", fl_ticks_to_ns(tally->asleep));
    fl_text_member(&writer->text, "waited_ns", fl_ticks_to_ns(tally->waited));
    fl_text_member(&writer->text, "max_wait_ns", fl_ticks_to_ns(tally->maxima.of[FL_MAXIMUM_WAIT]));
    fl_text_member(&writer->text, "max_held_ns", fl_ticks_to_ns(tally->maxima.of[FL_MAXIMUM_HELD]));
    fl_text_member(&writer->text, "overrun_ns", fl_ticks_to_ns(tally->overrun));
    fl_text_member(&writer->text, "overrun_off_cpu_ns", fl_ticks_to_ns(tally->overrun_off_cpu));
    fl_text_member(&writer->text, "max_overrun_ns", fl_ticks_to_ns(tally->maxima.of[FL_MAXIMUM_OVERRUN]));
    fl_text_member(&writer->text, "forced_drops", tally->forced_drops);
    fl_text_member(&writer->text, "voluntary_drops", tally->voluntary_drops);
    fl_text_member(&writer->text, "requests", tally->requests);
    fl_text_member(&writer->text, "handoffs", tally->handoffs);
    fl_text_members(&writer->text, "wait_histogram", tally->wait_histogram, FL_HISTOGRAM_BUCKETS);
    fl_text_members(&writer->text, "held_histogram", tally->held_histogram, FL_HISTOGRAM_BUCKETS);
}

/* Newest first: serials fall. */
static int by_falling_serial(const void *left, const void *right)
{
    uint32_t a = ((const fl_thread_record *)left)->serial, b = ((const fl_thread_record *)right)->serial;
    return (a < b) - (a > b);
}

/* What watched event loops have counted since the start, if any is or was watched. */
static void add_loops(fl_writer *writer)
{
    fl_loops now;
    fl_loops_read(&now);
    if (now.loop_count == 0) {
        return;
    }
    fl_loops_subtract(&now, &writer->loops_base);
    fl_text_add(&writer->text, ",\"loops\":[");
    for (size_t i = 0; i < now.loop_count; i++) {
        const fl_loop_sums *loop = &now.loops[i];
        fl_text_add(&writer->text, i ? ",{\"name\":" : "{\"name\":");
        fl_text_string(&writer->text, loop->name, strlen(loop->name));
        fl_text_member(&writer->text, "beats", loop->beats);
        fl_text_member(&writer->text, "late", loop->late);
        fl_text_member(&writer->text, "own_ns", loop->own);
        fl_text_member(&writer->text, "gil_ns", loop->gil);
        fl_text_member(&writer->text, "core_ns", loop->core);
        fl_text_member(&writer->text, "overdue_ns", loop->overdue);
        fl_text_add(&writer->text, "}");
    }
    fl_text_add(&writer->text, "],\"callbacks\":[");
    for (size_t i = 0; i < now.callback_count; i++) {
        fl_text_add(&writer->text, i ? ",[" : "[");
        fl_text_string(&writer->text, now.callbacks[i].name, strlen(now.callbacks[i].name));
        fl_text_add(&writer->text, ",");
        fl_text_number(&writer->text, now.callbacks[i].own);
        fl_text_add(&writer->text, "]");
    }
    fl_text_add(&writer->text, "]");
}

static void add_row(fl_text *text, const uint64_t *numbers, size_t count, bool first)
{
    for (size_t i = 0; i < count; i++) {
        fl_text_add(text, i ? "," : first ? "[" : ",[");
        fl_text_number(text, numbers[i]);
    }
    fl_text_add(text, "]");
}

void fl_writer_counters(fl_writer *writer)
{
    fl_snapshot *now = &writer->now;
    size_t count = fl_threads_copy(NULL, 0, false) + 64;
    if (count > writer->records_room) {
        free(writer->records);
        writer->records_room = count + count / 8;
        writer->records = malloc(writer->records_room * sizeof *writer->records);
    }
    if (writer->records == NULL || !fl_snapshot_take(now, writer->window)) {
        writer->records_room = writer->records ? writer->records_room : 0;
        return; /* the next ones may find memory */
    }
    count = fl_threads_copy(writer->records, writer->records_room, false);
    count = count < writer->records_room ? count : writer->records_room;
    fl_snapshot_subtract(now, &writer->base);
    fl_text_clear(&writer->text);
    fl_text_add(&writer->text, "{\"t_ns\":");
    fl_text_number(&writer->text, fl_ticks_system());
    fl_text_add(&writer->text, ",\"threads\":[");
    for (size_t i = 0; i < now->seat_count; i++) {
        const fl_seat_count *seat = &now->seats[i];
        add_seat(writer, seat, i == 0);
        fl_thread_record wanted = {.serial = seat->serial};
        const fl_thread_record *record =
            bsearch(&wanted, writer->records, count, sizeof wanted, by_falling_serial);
        fl_text_member(&writer->text, "native_id", record ? (uint64_t)record->native_id : 0);
        fl_text_add(&writer->text, ",\"name\":");
        fl_text_string(&writer->text, record ? record->name : "", record ? strlen(record->name) : 0);
        fl_text_add(&writer->text, "}");
    }
    fl_text_add(&writer->text, "],\"blame\":[");
    for (size_t i = 0; i < now->pair_count; i++) {
        const fl_pair_count *pair = &now->pairs[i];
        const fl_blame_parts *parts = &pair->pair.parts;
        const uint64_t numbers[] = {pair->gil,
                                    pair->pair.waiter,
                                    pair->pair.holder,
                                    fl_ticks_to_ns(parts->all),
                                    fl_ticks_to_ns(parts->asked),
                                    fl_ticks_to_ns(parts->late),
                                    fl_ticks_to_ns(parts->asleep),
                                    fl_ticks_to_ns(parts->collecting),
                                    fl_ticks_to_ns(parts->coreless)};
        add_row(&writer->text, numbers, sizeof numbers / sizeof *numbers, i == 0);
    }
    fl_text_add(&writer->text, "],\"collections\":[");
    for (size_t i = 0; i < now->collection_count; i++) {
        const fl_collection *of = &now->collections[i].of;
        const uint64_t numbers[] = {of->thread, of->generation, of->stack, of->runs,
                                    fl_ticks_to_ns(of->ticks), fl_ticks_to_ns(of->longest)};
        add_row(&writer->text, numbers, sizeof numbers / sizeof *numbers, i == 0);
    }
    fl_text_add(&writer->text, "],\"looks\":[");
    for (size_t i = 0; i < writer->looks.count; i++) {
        const fl_look *look = &writer->looks.of[i];
        const uint64_t numbers[] = {look->thread, look->doing, look->stack, look->ns};
        add_row(&writer->text, numbers, sizeof numbers / sizeof *numbers, i == 0);
    }
    fl_schedule_state state = fl_schedule_look();
    fl_text_add(&writer->text, "],\"scheduler\":{\"mode\":");
    fl_text_number(&writer->text, (uint64_t)state.mode);
    fl_text_member(&writer->text, "tripped", state.tripped);
    fl_text_member(&writer->text, "interval_ns", (uint64_t)now->interval_us * 1000);
    fl_text_add(&writer->text, "}");
    fl_load load;
    if (writer->loaded && fl_load_read(&load)) {
        fl_text_add(&writer->text, ",\"load\":{\"own_ns\":");
        fl_text_number(&writer->text, load.own_ns - writer->load.own_ns);
        fl_text_member(&writer->text, "machine_ns", load.machine_ns - writer->load.machine_ns);
        fl_text_member(&writer->text, "cores", load.cores);
        fl_text_add(&writer->text, "}");
    }
    add_loops(writer);
    fl_text_add(&writer->text, "}");
    write_text(writer, FL_BLOCK_COUNTERS);
}

static void write_moment(fl_writer *writer, fl_block_type type)
{
    uint64_t now = fl_ticks_system();
    fl_recording_block(&writer->file, type, &now, sizeof now);
}

void fl_writer_full(fl_writer *writer)
{
    write_moment(writer, FL_BLOCK_FULL);
}

void fl_writer_end(fl_writer *writer)
{
    write_moment(writer, FL_BLOCK_END);
    fl_recording_close(&writer->file);
}

void fl_writer_free(fl_writer *writer)
{
    fl_recording_close(&writer->file);
    fl_snapshot_free(&writer->now);
    fl_text_free(&writer->text);
    free(writer->records);
    writer->records = NULL;
    writer->records_room = 0;
    free(writer->path);
    free(writer->meta);
    writer->path = writer->meta = NULL;
}

#endif

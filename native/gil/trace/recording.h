/* recording: the file of GIL events and counters. src/fairlead/record/recording.py reads it, and describes
 * it in full; the two agree on this:
 *
 *     file     8 bytes "FLRECORD", u32 version = 3, u32 flags = 0; then blocks until the end of the file
 *     block    u32 type, u32 length of the payload, u32 crc32 of the payload (zlib's), u32 reserved = 0;
 *              then the payload (at most 16 MiB), padded with zero bytes to a multiple of 8
 *
 *     1 META      UTF-8 JSON, one object, always the first block: what was recorded
 *     2 THREADS   UTF-8 JSON, a list of {serial, native_id, name, gil}: threads that are new or renamed
 *     3 EVENTS    fl_event as it stands in memory (32 bytes), `t` and `value` in ns of CLOCK_MONOTONIC
 *     4 STACKS    UTF-8 JSON, a list of {id, frames}, the innermost frame first, each as
 *                 [function, file, line, column, end_line, end_column]
 *     5 COUNTERS  UTF-8 JSON {t_ns, threads: [...], blame: [[gil, waiter, holder, ns], ...]}: everything
 *                 counted since the recording's start
 *     6 LOST      u64 t0_ns, u64 t1_ns, u64 count: events that found no room
 *     7 END       u64 t_ns
 *     8 FULL      u64 t_ns: the file is as large as it may be; no events come after this, and counters do
 *
 * All numbers are little-endian, as every machine is that the probe runs on. The events of one GIL stand in
 * the order in which they happened. Blocks are appended whole: a reader that finds the file cut has
 * everything before the cut.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "machine/descriptor.h"

#define FL_RECORDING_VERSION 3
#define FL_RECORDING_MAX_PAYLOAD (16u << 20)

typedef enum {
    FL_BLOCK_META = 1,
    FL_BLOCK_THREADS,
    FL_BLOCK_EVENTS,
    FL_BLOCK_STACKS,
    FL_BLOCK_COUNTERS,
    FL_BLOCK_LOST,
    FL_BLOCK_END,
    FL_BLOCK_FULL,
} fl_block_type;

typedef enum {
    FL_KIND_WANT = 1,     /* thread begins to wait; other: the holder */
    FL_KIND_REQUEST,      /* thread asks other, the holder, to drop; value: waited so far */
    FL_KIND_ACQUIRE,      /* thread has it; other: the holder before; value: waited */
    FL_KIND_DROP,         /* thread had it; value: held */
    FL_KIND_OFFCPU = 6,   /* thread drops it; value: how long it was off the CPU in this hold */
    FL_KIND_THREAD_START, /* thread takes the GIL for the first time since it is being watched */
    FL_KIND_THREAD_END,
    FL_KIND_STACK_WAITER, /* thread, with `stack`, waited for value; other: the holder before */
    FL_KIND_STACK_HOLDER, /* thread, with `stack`, drops it while other has waited for value */
    FL_KIND_ASLEEP,       /* thread drops it; value: how much of OFFCPU it slept by itself */
    FL_KIND_OFFCPU_EARLY, /* thread drops it; value: how much of OFFCPU lay before the first request */
    FL_KIND_COLLECTED,    /* thread has collected garbage of generation other; value: for how long */
    FL_KIND_ASKED_LATE,   /* thread drops it; value: by how much the first request was late */
} fl_event_kind;

#define FL_FLAG_FORCED 1u
#define FL_FLAG_CONTENDED 2u
#define FL_FLAG_WHOLE 4u /* a drop, and its take `value` before it; other: the holder before */
#define FL_FLAG_ROW 8u /* and whole: `other` short holds, one after another; value: how long together */

typedef struct {
    fl_descriptor file;
    int error;     /* errno of the first write that failed; nothing is written after it. EBADF: the program
                      has closed the file */
    uint64_t size; /* of the whole blocks written */
} fl_recording;

/* Creates the file, which must not be a directory; an existing one is replaced. 0, or errno. Blocks as files
   do, like everything here; one thread at a time. */
int fl_recording_open(fl_recording *recording, const char *path);

/* Appends one block. A block that finds no room is taken back, so that the file ends with a whole one, and
   `error` says why; from then on this does nothing. `size` is at most FL_RECORDING_MAX_PAYLOAD. */
void fl_recording_block(fl_recording *recording, fl_block_type type, const void *payload, size_t size);

/* Closes the file; what fails now counts as a write that failed. */
void fl_recording_close(fl_recording *recording);

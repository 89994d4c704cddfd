/* writer: what a recorder writes, block by block. One thread at a time, and never one that holds a GIL. */
#pragma once

#include "gil/trace/loops.h"
#include "gil/trace/recording.h"
#include "gil/trace/text.h"
#include "gil/threads/gil.h"
#include "gil/threads/load.h"
#include "gil/observe/looks.h"
#include "gil/observe/snapshot.h"
#include "gil/threads/threads.h"

#define FL_WRITER_EVENTS 2048 /* a block, at most: 64 KiB, which the cache still has when it is summed up */

/* The ring of one GIL, and how far it has been written. */
typedef struct {
    fl_ring *ring;
    bool in_use;             /* a GIL still writes into it */
    fl_tick_anchor previous; /* events up to here have been written */
    uint64_t last_ns;
} fl_outlet;

/* file.error: what kept something from being written, or 0. */
typedef struct {
    fl_recording file;
    char *path, *meta; /* until the file is made */
    fl_tick_anchor start;
    int window; /* that the counters are of, and what had been counted before */
    fl_snapshot base;
    fl_looks looks;
    bool loaded;  /* the next field could be read */
    fl_load load; /* at the start */
    fl_loops loops_base; /* counted before the start */
    /* Memory that is reused: each fork makes a new thread of the recorder's, and each would leave what it
       frees in another of malloc's arenas. */
    fl_snapshot now;
    fl_thread_record *records;
    size_t records_room;
    uint32_t stacks_written;
    fl_text text;
    fl_event out[FL_WRITER_EVENTS];
} fl_writer;

/* Makes ready: the recording starts now, its file is made later. False: no memory. */
bool fl_writer_begin(fl_writer *writer, const char *path, const char *meta);

/* Makes the file, if that has not been done or tried. False: it cannot be made. */
bool fl_writer_open(fl_writer *writer);

/* Writes the threads and the stacks that are new since the last call, if there are any. */
void fl_writer_threads(fl_writer *writer);
void fl_writer_stacks(fl_writer *writer);

/* Writes all counters as they are now. */
void fl_writer_counters(fl_writer *writer);

/* Writes the next stretch of a ring; false when it is empty. */
bool fl_writer_events(fl_writer *writer, fl_outlet *from);

/* Writes how many events were lost between which moments. */
void fl_writer_lost(fl_writer *writer, const fl_event *record, const fl_tick_line *line);

/* Writes the FULL block, after the last events. */
void fl_writer_full(fl_writer *writer);

/* Writes the END block, by which a reader knows that the file is complete, and closes the file. */
void fl_writer_end(fl_writer *writer);

/* Frees what fl_writer_begin has allocated. */
void fl_writer_free(fl_writer *writer);

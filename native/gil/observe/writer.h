/* writer: what a recorder writes, block by block. One thread at a time, and never one that holds a GIL. */
#ifndef FL_GIL_OBSERVE_WRITER_H
#define FL_GIL_OBSERVE_WRITER_H

#include "gil/trace/loops.h"
#include "gil/trace/recording.h"
#include "gil/trace/text.h"
#include "gil/threads/gil.h"
#include "gil/threads/load.h"
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
    bool loaded;  /* the system says what its cores do, */
    fl_load load; /* and had done by the start */
    fl_loops loops_base; /* counted before the start */
    /* Memory that is used again: the recorder's thread is another after each fork, and what that takes and
       gives back would stay behind in another of malloc's arenas each time. */
    fl_snapshot now;
    fl_thread_record *records;
    size_t records_room;
    uint32_t stacks_told;
    fl_text text;
    fl_event out[FL_WRITER_EVENTS];
} fl_writer;

/* Makes ready: the recording starts now, its file is made later. False: no memory. */
bool fl_writer_begin(fl_writer *writer, const char *path, const char *meta);

/* Makes the file, if that has not been done or tried. False: it cannot be made. */
bool fl_writer_open(fl_writer *writer);

/* What is new since the last time, if anything is. */
void fl_writer_threads(fl_writer *writer);
void fl_writer_stacks(fl_writer *writer);

/* All counters, as they are now. */
void fl_writer_counters(fl_writer *writer);

/* The next stretch of a ring; false when it is empty. */
bool fl_writer_events(fl_writer *writer, fl_outlet *from);

/* That events were lost between two moments. */
void fl_writer_lost(fl_writer *writer, const fl_event *record, const fl_tick_line *line);

/* The end, by which a reader knows that there is nothing more; and closes the file. */
void fl_writer_end(fl_writer *writer);

/* Gives back what was made ready. */
void fl_writer_free(fl_writer *writer);

#endif

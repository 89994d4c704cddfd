/* snapshot: all counters at one moment, and what was counted between two moments.
 *
 * Counters only grow, so what happened between two moments is a difference - but for maxima, which are kept
 * by window (gil/threads/windows.h): each snapshot takes every seat's maximum since the last snapshot into
 * all open windows.
 */
#pragma once

#include <stddef.h>

#include "gil/threads/gil.h"
#include "gil/threads/windows.h"

typedef struct {
    uint64_t birth; /* of the GIL: one that is gone may have had the same index */
    uint16_t gil;
    uint32_t serial; /* FL_SERIAL_ENDED: all threads that ended long ago */
    fl_tally tally;
} fl_seat_count;

typedef struct {
    uint64_t birth;
    uint16_t gil;
    fl_blame_pair pair;
} fl_pair_count;

typedef struct {
    uint64_t birth;
    uint16_t gil;
    fl_blame_loss loss;
} fl_loss_count;

typedef struct {
    uint64_t birth;
    uint16_t gil;
    fl_collection of;
} fl_collection_count;

typedef struct {
    uint64_t ticks;
    unsigned long interval_us; /* the main interpreter's switch interval; 0: not known */
    fl_seat_count *seats; /* in order of birth and serial, as are the others */
    fl_pair_count *pairs;
    fl_loss_count *losses;
    fl_collection_count *collections;
    size_t seat_count, pair_count, loss_count, collection_count;
    size_t seat_room, pair_room, loss_room, collection_room;
} fl_snapshot;

typedef enum {
    FL_WINDOW_OK,
    FL_WINDOW_TOO_MANY, /* FL_WINDOWS are open */
    FL_WINDOW_NO_MEMORY,
} fl_window_result;

/* Opens a window; `base` gets what has been counted before. */
fl_window_result fl_window_open(int *window, fl_snapshot *base);
void fl_window_close(int window);

/* Everything counted, ever; the maxima are those of the window. The snapshot is all zeros or an earlier one,
   whose memory is used again. False: no memory, and the snapshot is freed. */
bool fl_snapshot_take(fl_snapshot *snapshot, int window);

/* Leaves in `later` what was counted since `earlier`. Threads that counted nothing are left out. */
void fl_snapshot_subtract(fl_snapshot *later, const fl_snapshot *earlier);

void fl_snapshot_free(fl_snapshot *snapshot);

/* In the child of a fork: the windows stay open, and are empty. */
void fl_snapshot_fork(void);

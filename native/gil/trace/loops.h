/* loops: how late the callbacks of watched event loops ran, for readers without the GIL.
 *
 * fairlead.gil.watch_loop counts in Python and reports each beat here; the endpoint and the recorder read.
 * Sums are kept by the name of the loop's thread, and by callback. Names are never removed, and those that
 * find no place share the last. A reader takes no lock: each number is whole, and may be a beat older than
 * the next.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FL_LOOPS 64          /* watched at a time */
#define FL_LOOP_NAMES 16     /* the last: the others */
#define FL_LOOP_CALLBACKS 32 /* likewise */
#define FL_LOOP_NAME 200
#define FL_LOOP_OTHERS "(others)"

/* Delays are counted up to each of these, in ns, and above. */
#define FL_LOOP_BOUNDS 10
extern const uint64_t fl_loop_bounds[FL_LOOP_BOUNDS];

/* One callback of the watch. Times in ns. */
typedef struct {
    uint64_t delay;
    bool late;
    uint64_t own, gil, core; /* what the delay of a late one is made of */
} fl_loop_beat;

typedef struct {
    char name[FL_LOOP_NAME];
    uint64_t beats, late, delay, own, gil, core;
    uint64_t counts[FL_LOOP_BOUNDS + 1];
    uint64_t overdue; /* for how long the next beat of the worst of its loops is overdue; 0: it is not, or no
                         loop of this name is watched */
} fl_loop_sums;

typedef struct {
    char name[FL_LOOP_NAME];
    uint64_t own;
} fl_loop_callback;

typedef struct {
    fl_loop_sums loops[FL_LOOP_NAMES];
    fl_loop_callback callbacks[FL_LOOP_CALLBACKS];
    size_t loop_count, callback_count;
} fl_loops;

/* The next three by one thread at a time. */

/* A number for the loop of a thread of this name, -1: FL_LOOPS are watched. `due` is when its first beat is
   due, on the monotonic clock. */
int fl_loops_open(const char *name, uint64_t due);

/* Counts a beat; the next is due then. `callback`, which may be NULL, took the beat's own time. Nothing
   happens if that number is not open, as in a fork's child. */
void fl_loops_beat(int number, const fl_loop_beat *beat, const char *callback, uint64_t due);

void fl_loops_close(int number);

/* Everything since the start of the process. Any thread. */
void fl_loops_read(fl_loops *into);

/* Leaves in `later` what came since. */
void fl_loops_subtract(fl_loops *later, const fl_loops *earlier);

/* In the child of a fork: no loop is watched, nothing is counted. */
void fl_loops_fork(void);

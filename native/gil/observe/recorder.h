/* recorder: writes events and counters to a file while the program runs.
 *
 * The hooks put events into one ring per GIL; a thread of the recorder's own empties them, every 100 ms or
 * when one is half full. That thread never takes a GIL, runs no Python code and takes no signals. Memory is
 * bounded by the rings; events that find no room in them are counted, and the file has the count.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gil/threads/gil.h"

typedef struct {
    bool events; /* each of them; false: counters only */
    bool later; /* the file is made when there is something to write, and some time has passed: a forked child
                   that turns into another program at once leaves no file */
    uint64_t counters_ns; /* how often the counters are written */
    const char *lease; /* path of a file that the process which began the recording from outside keeps locked
                          (flock); the recording ends when it no longer is, unless the program has closed
                          this, too. NULL: none */
    uint64_t duration_ns; /* the recording ends after that; 0: it is ended */
    uint64_t most_bytes; /* a file of so much gets no more events; 0: it may be of any size */
    void (*expired)(void); /* called once it has ended by itself; by the recorder's thread */
} fl_recorder_options;

typedef enum {
    FL_RECORDER_OK,
    FL_RECORDER_BUSY,      /* a recording is going on */
    FL_RECORDER_NO_MEMORY, /* or no thread to be had */
    FL_RECORDER_TOO_MANY,  /* windows are open (snapshot.h) */
    FL_RECORDER_FILE,      /* *error says why */
} fl_recorder_result;

/* Begins a recording. `meta` is the META block without its last member and brace: start_ns and start_wall_ns
   are added here. The hooks are in and observed. May block; no lock may be held. */
fl_recorder_result fl_recorder_start(const char *path, const char *meta, fl_recorder_options options,
                                     int *error);

/* Writes what is left and closes the file; *error: what kept something from being written, or 0. Blocks until
   the recorder's thread has ended: not with the GIL held. False: no recording was going on. */
bool fl_recorder_stop(int *error);

/* Pause ends the recorder's thread until resume: for a fork in between. Events wait in the rings. Pause,
   like stop, must not be called with the GIL held; both calls are harmless when no recording is going on.
   If events are recorded, resume leaves it to the next event to start the thread: from 3.13 on the
   interpreter counts the threads of the process after all fork handlers have run, and warns of more than
   one. */
void fl_recorder_pause(void);
void fl_recorder_resume(void);

/* For the hooks, when fl_recorder_resumes is set. Under the mutex. */
extern atomic_bool fl_recorder_resumes;
void fl_recorder_resume_now(void);

/* For the hooks. Gives a GIL its ring, if a recording wants one. Under the mutex. */
void fl_recorder_attach(fl_gil *gil);
void fl_recorder_wake(void);

/* How many rings there are, and how many bytes they take. */
size_t fl_recorder_rings(size_t *bytes);

/* In the child of a fork: there is no recording. */
void fl_recorder_forked(void);

/* threads: which threads have been seen, what they are called, and how long that is remembered: while a
 * thread runs, and as long as anything still counts it (its seats). Any thread, with no lock of this file's
 * held; everything here takes the threads' lock for a moment, and no other. */
#pragma once

#include "gil/threads/gil.h"

/* Makes ready; errno or 0. Called with the GIL held, any number of times. `ends` is called in each thread
   that was seen when it ends. */
int fl_threads_prepare(void (*ends)(void *thread));

/* A record of the present thread, with one reference, which fl_threads_end gives back. NULL: no memory. */
fl_thread *fl_threads_new(uint16_t gil);

/* One reference less; with the last one the record goes. */
void fl_threads_release(fl_thread *thread);

/* The present thread ends. */
void fl_threads_end(fl_thread *thread);

typedef struct {
    uint32_t serial;
    pid_t native_id;
    uint16_t gil;
    bool ended;
    char name[FL_THREAD_NAME];
} fl_thread_record;

/* Copies of all threads, at most `room`, newest first; returns how many there are. `unrecorded`: only those
   whose present name the recording does not have; from now on they count as recorded. */
size_t fl_threads_copy(fl_thread_record *records, size_t room, bool unrecorded);

/* Likewise, of all threads; false: rather than wait for a lock past `until` (ticks) it copied none. */
bool fl_threads_copy_until(fl_thread_record *records, size_t room, size_t *count, uint64_t until);

typedef struct {
    pid_t native_id;
    const char *name; /* UTF-8, cut to fit */
    size_t size;
    bool given;
} fl_thread_name;

/* Gives threads their names, by the operating system's numbers, in rising order here: of several threads with
   the same number, which is used again, the latest is meant. */
void fl_threads_name(fl_thread_name *names, size_t count);

/* A recording begins: it has no names yet. */
void fl_threads_record_anew(void);

/* How many bytes the records take. */
size_t fl_threads_bytes(void);

/* In the child of a fork: forgets all but this one, which is as if it had just come; NULL: all. */
void fl_threads_fork(fl_thread *self, uint16_t gil);

/* registry: which GILs and threads there are, and how long their records live. */
#pragma once

#include "gil/threads/gil.h"

#define FL_GILS 1024        /* observed at once */
#define FL_DEAD_GILS 16     /* remembered */
#define FL_IDLE_GILS 64     /* of interpreters of their own, which may be gone, remembered */
#define FL_ENDED_SEATS 1024 /* of ended threads, remembered per GIL; let go half of them at a time */

/* Called for each seat that is made, and for each whose thread ends. Under the mutex. */
typedef void fl_registry_callback(fl_gil *gil, fl_seat *seat);

/* Makes ready; errno or 0. Called with the GIL held, any number of times. */
int fl_registry_prepare(fl_registry_callback *start, fl_registry_callback *end);

/* Begins to watch a GIL; returns it, or NULL when there are too many or memory is short. Its mutex may be
   held. `main` : it is the main interpreter's. */
fl_gil *fl_registry_add(fl_py_gil *py, bool main);

/* The GIL is about to be destroyed, or is no longer watched. Its mutex is not held. */
void fl_registry_forget(fl_gil *gil);

/* Forgets all GILs: the hooks are no longer in. */
void fl_registry_retire(void);

/* The present thread's seat at a GIL; makes it when there is none yet. NULL: no memory. Under the mutex. */
fl_seat *fl_registry_seat(fl_gil *gil);

/* Visits the record of every GIL, in order of birth, dead ones too. Calls `visit` with gil->life held, and
   the mutex as well when it is alive and not idle: what is "under the mutex" may be read and changed, and
   gil->py is not touched otherwise. */
void fl_registry_each(void (*visit)(fl_gil *gil, void *context), void *context);

/* Likewise, but rather than wait for a lock past `until` (ticks) it returns false, and some GILs are not
   visited. */
bool fl_registry_each_until(void (*visit)(fl_gil *gil, void *context), void *context, uint64_t until);

/* Adds up counts; of maxima the larger. */
void fl_tally_add(fl_tally *sum, const fl_tally *tally);

/* What was counted of GILs that have been let go. */
fl_tally fl_registry_departed(void);
bool fl_registry_departed_until(fl_tally *counted, uint64_t until); /* false: as above */

/* The records of GILs and of threads at GILs at the moment. */
typedef struct {
    size_t gils, alive, idle; /* records; of GILs that are watched; of those of them that may be gone */
    size_t seats, pairs, losses;
    size_t bytes; /* of all that */
} fl_registry_size;
fl_registry_size fl_registry_measure(void);

/* In the child of a fork, where one thread is left: forgets all GILs but `gil` (NULL: all of them), all
   threads but this one, and all that was counted. */
void fl_registry_fork(fl_gil *gil);

/* What the present thread is to the probe. */
typedef struct {
    fl_seat *seat; /* at the GIL that it had to do with last */
    fl_thread *thread;
    uint64_t
        began; /* when it began to wait for the GIL's mutex, or before that to be let go; 0: it did not */
} fl_here;

/* Initial-exec: one load, no call. 24 bytes of the room that the dynamic linker keeps for this. */
extern __thread fl_here fl_registry_here __attribute__((tls_model("initial-exec"), visibility("hidden")));

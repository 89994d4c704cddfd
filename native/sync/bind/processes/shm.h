/* What the types over shared memory are made of: a segment that is mapped, and the thread's wait
 * (sync/processes/shm.h).
 *
 * These types are bases: fairlead.sync.shared finds the segment's descriptor, by name or by pickle, and
 * adds the waits of tasks, which are made of _ask, _arm and _disarm of the common base.
 */
#pragma once

#include "sync/bind/base/state.h"

#include "sync/processes/notifier.h"
#include "sync/processes/shm.h"

#define FL_SHM_EVENTCOUNTS 4

typedef enum {
    FL_SHM_LOCK = 1,
    FL_SHM_PERMITS = 2,
    FL_SHM_EVENT = 3,
    FL_SHM_QUEUE = 4,
    FL_SHM_BARRIER = 5,
} fl_shm_kind;

/* A segment in this process: counted, by its object and by its notifiers. */
typedef struct {
    fl_atomic(uint32_t) refs;
    fl_shm_header *map;
    size_t size;
    uint32_t amount, flags; /* as in the header, which another process may change after it was checked */
    fl_atomic(uint32_t) spins; /* before a thread sleeps */
    fl_notifier notifiers[FL_SHM_EVENTCOUNTS];
} fl_shm_body;

/* How a kind of primitive is made and looked at. */
typedef struct {
    fl_shm_kind kind;
    size_t (*size)(uint32_t amount, uint32_t flags);           /* of what follows the header */
    void (*make)(void *part, uint32_t amount, uint32_t flags); /* zeroed memory; NULL: is fine as it is */
    size_t eventcounts, eventcount_at[FL_SHM_EVENTCOUNTS];     /* how many, and where in what follows */
    bool (*ready)(void *body, fl_shm_eventcount *eventcount);              /* trying might bring something */
} fl_shm_type;

typedef struct {
    PyObject_HEAD
    fl_shm_body *body;
    const fl_shm_type *kind;
    fl_state *state;
    uint32_t amount, flags; /* as in the body */
} fl_shm_object;

/* What follows the header. */
static inline void *fl_shm_part_of(const fl_shm_body *body)
{
    return body->map + 1;
}

/* Of a type that Python derived, too. */
static inline fl_state *fl_shm_state(PyObject *self)
{
    return ((fl_shm_object *)self)->state;
}

static inline void *fl_shm_part(PyObject *self)
{
    return fl_shm_part_of(((fl_shm_object *)self)->body);
}

/* The only constructor of the types, with a tuple: (fd, token, make, amount, flags). Takes no descriptor: the
   caller closes it. Maps the segment, and writes it first where `make` is true. */
PyObject *fl_shm_new(PyTypeObject *type, const fl_shm_type *kind, PyObject *args);

/* Tries; `turn` is to be set with FL_SHM_NOT. -1: an exception. Attached. */
typedef int (*fl_shm_attempt)(PyObject *self, void *call, bool look, fl_shm_eventcount **eventcount);
/* Until the attempt has another result than FL_SHM_NOT, which here means that the time is over. -1: an
   exception, of the attempt or of a signal handler. */
int fl_shm_wait_thread(PyObject *self, fl_shm_attempt attempt, void *call, int64_t deadline);

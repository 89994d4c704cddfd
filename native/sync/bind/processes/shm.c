/* See shm.h. */
#include "sync/bind/processes/shm.h"
#include "sync/bind/base/wrapper.h"

#include <errno.h>

#include "machine/segment.h"

#define FEWEST_SPINS 64u /* see spin() */
#define MOST_SPINS 2048u

static void body_unref(void *arg)
{
    fl_shm_body *body = arg;
    if (fl_fetch_sub(&body->refs, 1, acq_rel) == 1) { /* the others' use of it comes before */
        fl_segment_unmap(body->map, body->size);
        free(body);
    }
}

static void *wrong(fl_state *state, const char *what)
{
    return fl_raise(state, WrongSegmentError, what);
}

/* NULL with an exception: this is no segment that this process can use as one of that kind. */
static void *check(fl_state *state, const fl_shm_header *header, size_t size, fl_shm_kind kind,
                   const char *token)
{
    if (size < sizeof *header || header->magic != FL_SHM_MAGIC) {
        return wrong(state, "the segment is not one of fairlead's; choose another name");
    }
    if (header->version != FL_SHM_VERSION) {
        return wrong(state, "the segment was made by another version of fairlead; use the same one in all "
                     "processes, or another name");
    }
    if (header->kind != kind) {
        return wrong(state, "the segment is that of another kind of primitive; choose another name");
    }
    if (token != NULL && memcmp(header->token, token, sizeof header->token) != 0) {
        return fl_raise(state, HandleGoneError,
                        "the process that made this pickle no longer has the primitive; "
                        "keep it until it has arrived");
    }
    if (header->space != fl_process_space()) {
        return wrong(state,
                     "the segment belongs to another pid namespace, whose processes cannot be told dead or "
                     "alive from here; share it within one container, or give both the same pid namespace");
    }
    if (header->size != size) {
        return wrong(state, "the segment has been cut off; make it anew");
    }
    return (void *)(uintptr_t)header;
}

static fl_shm_header *map(int fd, size_t size)
{
    void *found = fl_segment_map(fd, size);
    return found == NULL ? PyErr_SetFromErrno(PyExc_OSError) : found;
}

static fl_shm_header *make(int fd, const fl_shm_type *kind, const char *token, uint32_t amount,
                           uint32_t flags, size_t *size)
{
    *size = sizeof(fl_shm_header) + kind->size(amount, flags);
    int error = fl_segment_reserve(fd, *size);
    if (error != 0) {
        errno = error;
        return (void *)PyErr_SetFromErrno(PyExc_OSError);
    }
    fl_shm_header *header = map(fd, *size);
    if (header != NULL) {
        *header = (fl_shm_header){
            .version = FL_SHM_VERSION,
            .kind = kind->kind,
            .size = *size,
            .space = fl_process_space(),
            .amount = amount,
            .flags = flags,
        };
        memcpy(header->token, token, sizeof header->token);
        if (kind->make != NULL) {
            kind->make(header + 1, amount, flags);
        }
        /* a process that reads the magic finds the rest whole */
        __atomic_store_n(&header->magic, FL_SHM_MAGIC, __ATOMIC_RELEASE);
    }
    return header;
}

static fl_shm_header *find(fl_state *state, int fd, const fl_shm_type *kind, const char *token,
                           uint32_t *amount, uint32_t *flags, size_t *size)
{
    int error = fl_segment_size(fd, size);
    if (error != 0) {
        errno = error;
        return (void *)PyErr_SetFromErrno(PyExc_OSError);
    }
    if (*size < sizeof(fl_shm_header)) {
        return wrong(state, "the segment is not one of fairlead's; choose another name");
    }
    fl_shm_header *header = map(fd, *size);
    if (header == NULL) {
        return NULL;
    }
    const fl_shm_header seen = *header; /* which another process may change from now on */
    atomic_signal_fence(memory_order_acq_rel); /* nothing of it is read a second time */
    *amount = seen.amount;
    *flags = seen.flags;
    if (check(state, &seen, *size, kind->kind, token) == NULL ||
        *size != sizeof seen + kind->size(seen.amount, seen.flags)) {
        if (!PyErr_Occurred()) {
            wrong(state, "the segment has been cut off; make it anew");
        }
        fl_segment_unmap(header, *size);
        return NULL;
    }
    return header;
}

PyObject *fl_shm_new(PyTypeObject *type, const fl_shm_type *kind, PyObject *args)
{
    fl_state *state = fl_type_state(type);
    int fd, making;
    const char *token;
    Py_ssize_t length;
    unsigned int amount, flags;
    if (state == NULL ||
        !PyArg_ParseTuple(args, "iz#pII:Segment", &fd, &token, &length, &making, &amount, &flags)) {
        return NULL;
    }
    if (token == NULL ? making : length != sizeof((fl_shm_header *)0)->token) {
        PyErr_SetString(PyExc_ValueError, "the token must have 16 bytes");
        return NULL;
    }
    if (fl_process_self() == 0) {
        return fl_raise(state, UsageError, "memory is shared on Linux only, where /proc shows this process");
    }
    size_t size = 0;
    fl_shm_header *header =
        making ? make(fd, kind, token, amount, flags, &size)
               : find(state, fd, kind, token, &amount, &flags, &size);
    fl_shm_body *body = header == NULL || fl_errors(state) == NULL ? NULL : calloc(1, sizeof *body);
    fl_shm_object *self = body == NULL ? NULL : (fl_shm_object *)type->tp_alloc(type, 0);
    if (self == NULL) {
        if (header != NULL) {
            fl_segment_unmap(header, size);
            free(body);
        }
        return PyErr_Occurred() ? NULL : PyErr_NoMemory();
    }
    *body = (fl_shm_body){
        .refs = 1, .map = header, .size = size, .amount = amount, .flags = flags, .spins = MOST_SPINS};
    for (int i = 0; i < FL_SHM_EVENTCOUNTS; i++) {
        body->notifiers[i].ready = kind->ready;
        body->notifiers[i].gone = body_unref;
        body->notifiers[i].owner = body;
    }
    self->body = body;
    self->kind = kind;
    self->state = state;
    self->amount = body->amount;
    self->flags = body->flags;
    return (PyObject *)self;
}

static void dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    fl_shm_body *body = ((fl_shm_object *)self)->body;
    if (body != NULL) {
        for (int i = 0; i < FL_SHM_EVENTCOUNTS; i++) {
            fl_notifier_end(&body->notifiers[i]);
        }
        body_unref(body);
    }
    type->tp_free(self);
    Py_DECREF(type);
}

/* A core that falls asleep is woken late, by tens of microseconds: more than an answer takes that is
   under way. So a waiter looks for a while first, and longer where that has paid. True: something has
   changed. */
static bool spin(fl_atomic(uint32_t) *spins, fl_shm_eventcount *eventcount, uint32_t seen)
{
    uint32_t most = fl_load(spins, relaxed); /* only a guess of how many are of use */
    for (uint32_t i = 0; i < most; i++) {
        if (fl_load(&eventcount->word, relaxed) != seen) { /* the re-check that follows is ordered */
            fl_store(spins, most < MOST_SPINS ? most * 2 : most, relaxed);
            return true;
        }
        fl_pause();
    }
    fl_store(spins, most > FEWEST_SPINS ? most / 2 : most, relaxed);
    return false;
}

int fl_shm_wait_thread(PyObject *self, fl_shm_attempt attempt, void *call, int64_t deadline)
{
    fl_shm_wait wait = {.look = deadline == 0};
    for (;;) {
        fl_shm_eventcount *eventcount = NULL;
        int result = attempt(self, call, wait.look, &eventcount);
        if (result != FL_SHM_NOT || wait.late || deadline == 0) {
            return result;
        }
        if (fl_shm_prepare(&wait, eventcount)) {
            continue;
        }
        Py_BEGIN_ALLOW_THREADS
        if (!spin(&((fl_shm_object *)self)->body->spins, eventcount, wait.seen)) {
            fl_shm_sleep(&wait, deadline);
        }
        wait.asked = false;
        Py_END_ALLOW_THREADS
        if (PyErr_CheckSignals() < 0) {
            fl_shm_pass_on(eventcount); /* it may have been woken */
            return -1;
        }
    }
}

static fl_shm_eventcount *eventcount_of(PyObject *self, PyObject *number, long *which)
{
    *which = PyLong_AsLong(number);
    const fl_shm_type *kind = ((fl_shm_object *)self)->kind;
    if (*which < 0 || (size_t)*which >= kind->eventcounts) {
        if (!PyErr_Occurred()) {
            PyErr_SetString(PyExc_ValueError, "this primitive has no eventcount of this number");
        }
        return NULL;
    }
    return (fl_shm_eventcount *)(void *)((char *)fl_shm_part(self) + kind->eventcount_at[*which]);
}

static PyObject *segment_ask(PyObject *self, PyObject *number)
{
    long which;
    fl_shm_eventcount *eventcount = eventcount_of(self, number, &which);
    if (eventcount == NULL) {
        return NULL;
    }
    fl_shm_wait wait = {0};
    fl_shm_prepare(&wait, eventcount);
    return PyLong_FromUnsignedLong(wait.seen);
}

static PyObject *segment_arm(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    long which;
    if (count != 3 || !Py_IS_TYPE(args[2], ((fl_shm_object *)self)->state->semaphore_type)) {
        PyErr_SetString(PyExc_TypeError, "_arm() takes two numbers and a Semaphore");
        return NULL;
    }
    uint32_t seen = (uint32_t)PyLong_AsUnsignedLongMask(args[1]);
    fl_shm_eventcount *eventcount = PyErr_Occurred() ? NULL : eventcount_of(self, args[0], &which);
    if (eventcount == NULL) {
        return NULL;
    }
    fl_shm_body *body = ((fl_shm_object *)self)->body;
    fl_fetch_add(&body->refs, 1, relaxed); /* the notifier's, should one start */
    fl_notifier_result result =
        fl_notifier_arm(&body->notifiers[which], eventcount, seen, fl_wrapper_waitq(args[2]));
    if (result != FL_NOTIFIER_STARTED) {
        fl_fetch_sub(&body->refs, 1, relaxed); /* not the last */
    }
    if (result == FL_NOTIFIER_FAILED) {
        PyErr_SetString(PyExc_RuntimeError, "can't start new thread");
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *segment_disarm(PyObject *self, PyObject *number)
{
    long which;
    if (eventcount_of(self, number, &which) == NULL) {
        return NULL;
    }
    fl_notifier_disarm(&((fl_shm_object *)self)->body->notifiers[which]);
    Py_RETURN_NONE;
}

static PyMemberDef members[] = {
    {"_amount", T_UINT, offsetof(fl_shm_object, amount), READONLY, NULL},
    {"_flags", T_UINT, offsetof(fl_shm_object, flags), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

PyType_Spec fl_segment_spec = FL_TYPE("fairlead._native.Segment", fl_shm_object,
    Py_TPFLAGS_BASETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    {Py_tp_members, members},
    {Py_tp_dealloc, (void *)dealloc},
    FL_SLOTS(Segment, segment_));

/* Tape and Reader: the last n objects that were sent, and one place in the line of all of them. What a
 * broadcast and a watched value are made of; fairlead.sync._channels has their faces.
 *
 * The cell's version counts what was ever sent; object k is at k % capacity until k + capacity is sent. To
 * send is one stretch of C: the object is stored and the version advances, under the GIL, or within the
 * tape's critical section, and where other interpreters have the tape with its lock. So is to read: the
 * version is looked at, the object taken, and the reader moved on. A reader moves only when it takes, so that
 * one who is cancelled has missed nothing.
 *
 * A tape that several interpreters have carries copies.
 */
#include "bind/codec.h"
#include "bind/queues.h"
#include "bind/wait.h"

#include "core/version.h"

/* All but the cell. Once several interpreters have it, its objects are copies, and `lock` is held. */
typedef struct {
    fl_mutex *lock; /* NULL: objects of one interpreter */
    uint32_t capacity;
    bool latest; /* who reads wants the newest, and misses nothing by it */
    void *at[];
} fl_strip;

typedef struct {
    fl_shell shell;
    fl_strip *strip; /* the shell's, or once it is shared that which is shared; NULL: being made */
} tape;

typedef struct {
    fl_shell shell; /* over the tape's cell */
    PyObject *tape;
    uint64_t place; /* within the tape's critical section: how many it has seen or missed */
} reader;

#define MOST 0x3fffffff

static void *closed(void)
{
    return fl_raise("ChannelClosedError", "the channel is closed, and there is nothing left to receive");
}

/* The last reference to what several interpreters have. */
static void strip_free(void *body)
{
    fl_strip *strip = body;
    for (uint32_t i = 0; i < strip->capacity; i++) {
        if (strip->at[i] != NULL) {
            fl_item_unref(strip->at[i]);
        }
    }
    PyMem_RawFree(strip);
}

fl_shared *fl_tape_share(PyObject *op, uint32_t type)
{
    tape *self = (tape *)op;
    uint64_t word;
    do { /* making bytes of an object runs Python, which may send, or share this very tape */
        fl_strip *objects = self->strip;
        if (objects->lock != NULL) {
            return fl_load(&self->shell.shared, relaxed); /* written under this object's lock */
        }
        word = fl_version_word(self->shell.cell);
        size_t size = sizeof(fl_strip) + objects->capacity * sizeof(void *);
        fl_strip *copy = PyMem_RawCalloc(1, size);
        if (copy == NULL) {
            return (fl_shared *)PyErr_NoMemory();
        }
        copy->capacity = objects->capacity;
        copy->latest = objects->latest;
        for (uint32_t i = 0; i < copy->capacity && self->strip == objects; i++) {
            PyObject *object = Py_XNewRef((PyObject *)objects->at[i]);
            copy->at[i] = object == NULL ? NULL : fl_encode(object);
            Py_XDECREF(object);
            if (object != NULL && copy->at[i] == NULL) {
                strip_free(copy);
                return NULL;
            }
        }
        if (self->strip != objects || word != fl_version_word(self->shell.cell)) {
            strip_free(copy);
            continue;
        }
        fl_shared *shared = fl_shared_new(self->shell.cell, type, copy, strip_free);
        if (shared == NULL) {
            strip_free(copy);
            return (fl_shared *)PyErr_NoMemory();
        }
        copy->lock = &shared->lock;
        self->strip = copy;
        fl_store(&self->shell.shared, shared, release); /* before a destructor can share it again */
        for (uint32_t i = 0; i < objects->capacity; i++) {
            Py_XDECREF((PyObject *)objects->at[i]);
        }
        PyMem_RawFree(objects);
        return shared;
    } while (true);
}

void fl_tape_attach(PyObject *op, fl_shared *shared)
{
    ((tape *)op)->strip = shared->body;
}

/* 1: sent; 0: what the tape carries has changed meanwhile; FL_REFUSAL: closed. */
static int try_to_put(tape *self, PyObject *object, fl_item *copy, void **gone, fl_port **port)
{
    int result = 0;
    FL_BEGIN_CRITICAL(self);
    fl_strip *strip = self->strip;
    if ((strip->lock != NULL) == (copy != NULL)) {
        fl_mutex_lock_if(strip->lock);
        uint64_t word = fl_version_word(self->shell.cell);
        if (word & FL_VERSION_CLOSED) {
            result = FL_REFUSAL;
        } else {
            void **at = &strip->at[word % strip->capacity];
            *gone = *at;
            *at = copy != NULL ? (void *)copy : (void *)Py_NewRef(object);
            fl_port_hush();
            fl_version_advance(self->shell.cell);
            *port = fl_port_unhush();
            result = 1;
        }
        fl_mutex_unlock_if(strip->lock);
    }
    FL_END_CRITICAL();
    return result;
}

/* Whether the tape carries copies by now. */
static bool is_shared(tape *self)
{
    bool shared;
    FL_BEGIN_CRITICAL(self);
    shared = self->strip->lock != NULL;
    FL_END_CRITICAL();
    return shared;
}

PyDoc_STRVAR(put_doc,
"put($self, item, /)\n"
"--\n"
"\n"
"Sends an object to every reader. Never waits. Raises ChannelClosedError.");

static PyObject *put(PyObject *op, PyObject *item)
{
    tape *self = (tape *)op;
    fl_item *copy = NULL;
    void *gone = NULL;
    fl_port *port = NULL;
    int result;
    do {
        if (copy == NULL && is_shared(self) && (copy = fl_encode(item)) == NULL) {
            return NULL;
        }
        result = try_to_put(self, item, copy, &gone, &port);
    } while (result == 0);
    if (port != NULL) {
        fl_port_tell(port);
    }
    if (result == FL_REFUSAL && copy != NULL) {
        fl_item_unref(copy);
    }
    if (gone != NULL && copy != NULL) {
        fl_item_unref(gone);
    } else {
        Py_XDECREF((PyObject *)gone);
    }
    if (result == FL_REFUSAL) {
        return fl_raise("ChannelClosedError", "the channel is closed, and takes nothing");
    }
    Py_RETURN_NONE;
}

PyDoc_STRVAR(close_doc,
"close($self, /)\n"
"--\n"
"\n"
"Nothing is sent any more; readers get what there is, and then ChannelClosedError. Never waits.");

static PyObject *tape_close(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    FL_WAKING(fl_version_close(fl_shell_cell(op)));
    Py_RETURN_NONE;
}

PyDoc_STRVAR(is_closed_doc,
"is_closed($self, /)\n"
"--\n"
"\n"
"Whether it was closed, a moment ago.");

static PyObject *is_closed(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    return PyBool_FromLong((fl_version_word(fl_shell_cell(op)) & FL_VERSION_CLOSED) != 0);
}

PyDoc_STRVAR(waiting_doc,
"waiting($self, /)\n"
"--\n"
"\n"
"How many wait for what is sent next.");

static PyObject *waiting(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    return PyLong_FromUnsignedLong(fl_cell_waiting(fl_shell_cell(op)));
}

static PyObject *reader_at(PyObject *op, uint64_t place)
{
    fl_cell *cell = fl_shell_cell(op);
    fl_cell_ref(cell);
    reader *made = (reader *)fl_shell_new(fl_shell_state(op)->reader_type, cell);
    if (made != NULL) {
        made->tape = Py_NewRef(op);
        made->place = place;
    }
    return (PyObject *)made;
}

PyDoc_STRVAR(read_doc,
"read($self, /)\n"
"--\n"
"\n"
"A Reader of what is sent from now on.");

static PyObject *read_from_now(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    return reader_at(op, fl_version_word(fl_shell_cell(op)) & ~FL_VERSION_CLOSED);
}

static tape *tape_of(reader *self)
{
    return (tape *)self->tape;
}

/* What looking at the tape from this place comes to. */
typedef enum { NOTHING, FOUND, MISSED, ENDED } outlook;

/* FOUND: *object is a new reference or NULL with an exception, and the reader has moved on; MISSED: so has
   it, by *missed. With `again`: the newest there is, seen or not, and the reader stays. */
static outlook look(reader *self, bool again, PyObject **object, uint64_t *missed)
{
    outlook found = NOTHING;
    fl_item *copy = NULL;
    *object = NULL;
    FL_BEGIN_CRITICAL(self->tape);
    fl_strip *strip = tape_of(self)->strip;
    fl_mutex_lock_if(strip->lock);
    uint64_t word = fl_version_word(self->shell.cell), sent = word & ~FL_VERSION_CLOSED;
    uint64_t place = strip->latest || again ? sent - 1 : self->place;
    if (sent == 0 || (self->place == sent && !again)) {
        found = word & FL_VERSION_CLOSED ? ENDED : NOTHING;
    } else if (sent - place > strip->capacity) {
        found = MISSED;
        *missed = sent - strip->capacity - place;
        self->place = sent - strip->capacity;
    } else {
        void *at = strip->at[place % strip->capacity];
        found = FOUND;
        self->place = again ? self->place : place + 1;
        if (strip->lock != NULL) {
            copy = at;
            fl_item_ref(copy);
        } else {
            *object = Py_NewRef((PyObject *)at);
        }
    }
    fl_mutex_unlock_if(strip->lock);
    FL_END_CRITICAL();
    if (copy != NULL) {
        *object = fl_decode(copy);
        fl_item_unref(copy);
    }
    return found;
}

static PyObject *raise_missed(uint64_t missed)
{
    PyObject *errors = PyImport_ImportModule("fairlead.errors");
    PyObject *error =
        errors == NULL ? NULL : PyObject_CallMethod(errors, "LaggedError", "K", (unsigned long long)missed);
    if (error != NULL) {
        PyErr_SetObject((PyObject *)Py_TYPE(error), error);
    }
    Py_XDECREF(error);
    Py_XDECREF(errors);
    return NULL;
}

/* The object, or NULL: with an exception, or *again. */
static PyObject *take(reader *self, bool *again)
{
    PyObject *object;
    uint64_t missed = 0;
    *again = false;
    switch (look(self, false, &object, &missed)) {
    case FOUND:
        return object;
    case MISSED:
        return raise_missed(missed);
    case ENDED:
        return closed();
    default:
        *again = true;
        return NULL;
    }
}

/* The place as a waiter wants it. */
static uint32_t seen(reader *self)
{
    uint64_t place;
    FL_BEGIN_CRITICAL(self->tape);
    place = self->place;
    FL_END_CRITICAL();
    return fl_version_seen(place);
}

static PyObject *receive_within(reader *self, int64_t deadline)
{
    for (;;) {
        bool again;
        PyObject *object = take(self, &again);
        if (!again) {
            return object;
        }
        int outcome =
            deadline == 0 ? 0 : fl_wait_thread((PyObject *)self, self->shell.cell, seen(self), 0, deadline);
        if (outcome < 0) {
            return NULL;
        }
        if (outcome == 0) {
            return fl_raise_queue_error("QueueEmpty", "there is nothing to receive");
        }
    }
}

PyDoc_STRVAR(receive_doc,
"receive($self, /, block=True, timeout=None)\n"
"--\n"
"\n"
"The next object, waiting for it if need be. For threads; tasks await receive_async(). Raises QueueEmpty (a\n"
"queue.Empty) if there is none, LaggedError once if some were missed, ChannelClosedError after the last.");

static PyObject *receive(PyObject *op, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    int64_t deadline;
    return fl_queue_arguments("receive", args, count, kwnames, &deadline) < 0
               ? NULL
               : receive_within((reader *)op, deadline);
}

static int attempt(PyObject *op, uint32_t *wanted)
{
    reader *self = (reader *)op;
    *wanted = seen(self);
    return fl_cell_refresh(self->shell.cell), self->shell.cell->kind->attempt(self->shell.cell, *wanted, 0);
}

static PyObject *conclude(PyObject *op, uint32_t Py_UNUSED(wanted), bool Py_UNUSED(refused))
{
    bool again;
    PyObject *object = take((reader *)op, &again);
    if (again) {
        PyErr_SetString(PyExc_RuntimeError, "another has received by this end meanwhile; clone it for each");
    }
    return object;
}

PyDoc_STRVAR(receive_async_doc,
"receive_async($self, /)\n"
"--\n"
"\n"
"As receive(), in an awaitable. A task that is cancelled has received nothing.");

static PyObject *receive_async(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    return fl_ticket_of(fl_shell_state(op), op, 0, attempt, conclude);
}

PyDoc_STRVAR(clone_doc,
"clone($self, /)\n"
"--\n"
"\n"
"A reader at the same place.");

static PyObject *clone_reader(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    uint64_t place;
    FL_BEGIN_CRITICAL(((reader *)op)->tape);
    place = ((reader *)op)->place;
    FL_END_CRITICAL();
    return reader_at(((reader *)op)->tape, place);
}

PyDoc_STRVAR(latest_doc,
"latest($self, /)\n"
"--\n"
"\n"
"The newest object, seen or not. Raises ChannelClosedError if nothing was ever sent.");

static PyObject *latest(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    PyObject *object;
    uint64_t missed;
    return look((reader *)op, true, &object, &missed) == FOUND ? object : closed();
}

PyDoc_STRVAR(pending_doc,
"pending($self, /)\n"
"--\n"
"\n"
"How many were sent that it has neither received nor been told of as missed.");

static PyObject *pending(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    uint64_t sent = fl_version_word(fl_shell_cell(op)) & ~FL_VERSION_CLOSED, place;
    FL_BEGIN_CRITICAL(((reader *)op)->tape);
    place = ((reader *)op)->place;
    FL_END_CRITICAL();
    return PyLong_FromUnsignedLongLong(sent - place);
}

static int reader_traverse(PyObject *op, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(op));
    Py_VISIT(((reader *)op)->tape);
    return 0;
}

static void reader_dealloc(PyObject *op)
{
    PyObject_GC_UnTrack(op);
    Py_CLEAR(((reader *)op)->tape);
    fl_shell_dealloc(op);
}

PyDoc_STRVAR(class_getitem_doc,
"__class_getitem__($type, item, /)\n"
"--\n"
"\n"
"Tape[int] is a Tape, and Reader[int] a Reader, for annotations.");

static PyMethodDef reader_methods[] = {
    {"__class_getitem__", Py_GenericAlias, METH_O | METH_CLASS, class_getitem_doc},
    {"receive", FL_METHOD(receive), METH_FASTCALL | METH_KEYWORDS, receive_doc},
    {"receive_async", receive_async, METH_NOARGS, receive_async_doc},
    {"clone", clone_reader, METH_NOARGS, clone_doc},
    {"latest", latest, METH_NOARGS, latest_doc},
    {"pending", pending, METH_NOARGS, pending_doc},
    {NULL, NULL, 0, NULL},
};

PyDoc_STRVAR(reader_doc,
"One place in the line of what is sent.");

static PyType_Slot reader_slots[] = {
    {Py_tp_dealloc, (void *)reader_dealloc},
    {Py_tp_traverse, (void *)reader_traverse},
    {Py_tp_methods, reader_methods},
    {Py_tp_members, fl_shell_members},
    {Py_tp_doc, (void *)(uintptr_t)reader_doc},
    {0, NULL},
};

static PyType_Spec reader_spec = {
    .name = "fairlead._native.Reader",
    .basicsize = sizeof(reader),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE |
             Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = reader_slots,
};

static char capacity_word[] = "capacity", latest_word[] = "latest"; /* not literals: see permits.c */

static PyObject *tape_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {capacity_word, latest_word, NULL};
    long long capacity;
    int newest = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "L|$p:Tape", names, &capacity, &newest)) {
        return NULL;
    }
    if (capacity < 1 || capacity > MOST) {
        PyErr_Format(PyExc_ValueError, "capacity must be one or more, and at most %u", MOST);
        return NULL;
    }
    tape *self = (tape *)fl_shell_new(type, fl_version_new());
    if (self == NULL) {
        return NULL;
    }
    self->strip = PyMem_RawCalloc(1, sizeof(fl_strip) + (size_t)capacity * sizeof(void *));
    if (self->strip == NULL) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    self->strip->capacity = (uint32_t)capacity;
    self->strip->latest = newest;
    return (PyObject *)self;
}

/* Copies, and what is not whole yet, are nothing to the collector. */
static bool has_objects(PyObject *op)
{
    const fl_strip *strip = ((tape *)op)->strip;
    return strip != NULL && strip->lock == NULL;
}

static int traverse(PyObject *op, visitproc visit, void *arg)
{
    const fl_strip *strip = ((tape *)op)->strip;
    Py_VISIT(Py_TYPE(op));
    for (uint32_t i = 0; has_objects(op) && i < strip->capacity; i++) {
        Py_VISIT((PyObject *)strip->at[i]);
    }
    return 0;
}

static int clear(PyObject *op)
{
    if (has_objects(op)) {
        fl_version_close(fl_shell_cell(op)); /* no reader finds a place without an object */
        fl_strip *strip = ((tape *)op)->strip;
        for (uint32_t i = 0; i < strip->capacity; i++) {
            PyObject *object = strip->at[i];
            strip->at[i] = object == NULL ? NULL : Py_NewRef(Py_None);
            Py_XDECREF(object);
        }
    }
    return 0;
}

static void dealloc(PyObject *op)
{
    fl_strip *strip = ((tape *)op)->strip;
    PyObject_GC_UnTrack(op);
    Py_TRASHCAN_BEGIN(op, dealloc)
    if (has_objects(op)) {
        for (uint32_t i = 0; i < strip->capacity; i++) {
            Py_XDECREF((PyObject *)strip->at[i]);
        }
        PyMem_RawFree(strip);
    }
    fl_shell_dealloc(op);
    Py_TRASHCAN_END
}

static PyMethodDef methods[] = {
    {"__class_getitem__", Py_GenericAlias, METH_O | METH_CLASS, class_getitem_doc},
    {"put", put, METH_O, put_doc},
    {"close", tape_close, METH_NOARGS, close_doc},
    {"is_closed", is_closed, METH_NOARGS, is_closed_doc},
    {"waiting", waiting, METH_NOARGS, waiting_doc},
    {"read", read_from_now, METH_NOARGS, read_doc},
    {NULL, NULL, 0, NULL},
};

PyDoc_STRVAR(type_doc,
"Tape(capacity, *, latest=False)\n"
"--\n"
"\n"
"The last objects that were sent, and any number of readers. With latest=True who reads gets the newest.");

static PyType_Slot slots[] = {
    {Py_tp_new, (void *)tape_new},
    {Py_tp_dealloc, (void *)dealloc},
    {Py_tp_traverse, (void *)traverse},
    {Py_tp_clear, (void *)clear},
    {Py_tp_methods, methods},
    {Py_tp_members, fl_shell_members},
    {Py_tp_doc, (void *)(uintptr_t)type_doc},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "fairlead._native.Tape",
    .basicsize = sizeof(tape),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};

int fl_tape_exec(PyObject *module)
{
    fl_state *state = fl_state_of(module);
    state->tape_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);
    state->reader_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &reader_spec, NULL);
    PyTypeObject *types[] = {state->tape_type, state->reader_type};
    return fl_add_types(module, types, Py_ARRAY_LENGTH(types));
}

/* StampedLock: the stamped lock in core, and the stamps of those who are inside.
 *
 * A stamp is a whole number of 63 bits: which lock, a number, and what it is for. That of one who only looks
 * has the version that it saw; that of one who is inside a number that was never given before, and is in
 * `holds` as long as it is inside, with its thread. So every other stamp is known to be none, and a thread
 * that would wait for itself is known, too.
 */
#include "bind/stamped.h"

#include "core/stamped.h"

typedef struct {
    fl_shell shell;
    PyObject *holds; /* a dict: the stamp, and the holder as fl_owner_* say */
    fl_atomic(uint64_t) numbers; /* given to those inside */
    fl_atomic(uint32_t) generation; /* of the process that `holds` is of */
    uint64_t tag; /* of this lock, in its place; constant */
} stamped;

#define KIND_BITS 2
#define NUMBER_BITS 48
#define TAGS 8191 /* locks that are told apart for certain, one after another */

typedef unsigned long long stamp;

static stamp stamp_of(const stamped *self, uint64_t number, int kind)
{
    return self->tag | (number << KIND_BITS & ((UINT64_C(1) << (NUMBER_BITS + KIND_BITS)) - 1)) | (stamp)kind;
}

static int kind_of(stamp given)
{
    return (int)(given & 3);
}

/* In a forked child only the thread that forked is inside, with its tasks, which will not go on. */
static void recover(stamped *self)
{
    FL_BEGIN_CRITICAL(self);
    if (fl_load(&self->generation, relaxed) != fl_fork_generation) { /* written under this lock */
        PyObject *key, *holder, *gone = PyList_New(0);
        Py_ssize_t at = 0;
        fl_cell *cell = self->shell.cell;
        bool written = false;
        while (gone != NULL && PyDict_Next(self->holds, &at, &key, &holder)) {
            uint64_t owner = PyLong_AsUnsignedLongLong(holder);
            bool writes = kind_of(PyLong_AsUnsignedLongLong(key)) == FL_STAMP_WRITES;
            if ((owner & ~(uint64_t)FL_OWNER_TASK) != fl_fork_thread) {
                PyList_Append(gone, key);
                continue;
            }
            fl_rw_survive(cell, writes ? FL_RW_WRITE : FL_RW_READ);
            if (writes) {
                written = true;
                fl_store(&cell->owner, owner, relaxed); /* published with the generation */
            }
        }
        for (Py_ssize_t i = 0; gone != NULL && i < PyList_GET_SIZE(gone); i++) {
            PyDict_DelItem(self->holds, PyList_GET_ITEM(gone, i));
        }
        Py_XDECREF(gone);
        PyErr_Clear(); /* no memory: those stay who do not exist */
        if (!written && (fl_stamped_look(cell) & 1)) {
            fl_stamped_end(cell); /* who wrote is not here: what it wrote may be half done */
        }
        fl_store(&self->generation, fl_fork_generation, release); /* pairs with begin */
    }
    FL_END_CRITICAL();
}

/* Begins every operation. */
static stamped *begin(PyObject *op)
{
    stamped *self = (stamped *)op;
    if (fl_load(&self->generation, acquire) != fl_fork_generation) { /* pairs with recover */
        recover(self);
    }
    return self;
}

static uint32_t mode_of(int kind)
{
    return kind == FL_STAMP_WRITES ? FL_RW_WRITE : FL_RW_READ;
}

/* Out of the lock. The version after it. */
static uint64_t lower(stamped *self, int kind, fl_rw_mode to)
{
    fl_cell *cell = self->shell.cell;
    uint64_t version = kind == FL_STAMP_WRITES ? fl_stamped_end(cell) : fl_stamped_look(cell);
    FL_WAKING(fl_rw_lower(cell, (fl_rw_mode)mode_of(kind), to));
    return version;
}

/* The caller has the cell's lock: its stamp, or NULL with an exception, and it has left. */
static PyObject *enlist(stamped *self, int kind, uint64_t owner)
{
    fl_cell *cell = self->shell.cell;
    uint64_t number = fl_fetch_add(&self->numbers, 1, relaxed); /* only unique */
    if (kind == FL_STAMP_WRITES) {
        fl_stamped_begin(cell);
    }
    PyObject *made = PyLong_FromUnsignedLongLong(stamp_of(self, number, kind));
    PyObject *holder = made == NULL ? NULL : PyLong_FromUnsignedLongLong(owner);
    if (holder == NULL || PyDict_SetItem(self->holds, made, holder) < 0) {
        Py_CLEAR(made);
        lower(self, kind, FL_RW_NONE);
    }
    Py_XDECREF(holder);
    return made;
}

/* Whether this thread, or a task of it, is inside: nobody else of it can leave while it waits. */
static bool own_thread_is_inside(stamped *self, uint64_t me)
{
    bool found = false;
    FL_BEGIN_CRITICAL(self->holds);
    PyObject *key, *holder;
    Py_ssize_t at = 0;
    while (!found && PyDict_Next(self->holds, &at, &key, &holder)) {
        found = (PyLong_AsUnsignedLongLong(holder) & ~(uint64_t)FL_OWNER_TASK) == me;
    }
    FL_END_CRITICAL();
    uint64_t writer = fl_load(&self->shell.cell->owner, relaxed); /* ours by what this thread did, or got */
    return found || (writer & ~(uint64_t)FL_OWNER_TASK) == me;
}

/* A stamp; 0 where it does not wait for so long; NULL: an exception. */
PyObject *fl_stamped_acquire(PyObject *op, int kind, int64_t deadline)
{
    stamped *self = begin(op);
    fl_cell *cell = self->shell.cell;
    uint64_t me = fl_owner_thread();
    int taken = fl_rw_try(cell, mode_of(kind), me);
    if (!taken && deadline != 0) {
        if (deadline == FL_FOREVER && own_thread_is_inside(self, me)) {
            int others_run = fl_in_greenlet();
            if (others_run == 0) {
                fl_raise("DeadlockError",
                         "this thread, or a task of it, is inside this lock, which is not reentrant, and "
                         "cannot leave while it waits: convert the stamp, release it, or use a timeout");
            }
            if (others_run <= 0) {
                return NULL;
            }
        }
        taken = fl_wait_thread(op, cell, mode_of(kind), me, deadline);
    }
    return taken < 0 ? NULL : taken == 0 ? PyLong_FromLong(0) : enlist(self, kind, me);
}

static PyObject *acquire_as(PyObject *op, int kind, const char *function, PyObject *const *args,
                            Py_ssize_t count, PyObject *kwnames)
{
    int64_t deadline;
    if (fl_acquire_arguments(function, args, count, kwnames, &deadline) < 0) {
        return NULL;
    }
    return fl_stamped_acquire(op, kind, deadline);
}

/* As an exception: it is of another lock. */
static int refuse_foreign(void)
{
    PyErr_SetString(PyExc_ValueError, "this is not a stamp of this lock");
    return -1;
}

/* A stamp of this lock; -1: an exception. 0, which stands for none, has the kind 0. */
static int parse(const stamped *self, PyObject *number, stamp *given)
{
    *given = PyLong_AsUnsignedLongLong(number);
    if (*given == (stamp)-1 && PyErr_Occurred()) {
        if (!PyErr_ExceptionMatches(PyExc_OverflowError)) {
            return -1;
        }
        PyErr_Clear();
        return refuse_foreign();
    }
    bool ours = *given >> (NUMBER_BITS + KIND_BITS) == self->tag >> (NUMBER_BITS + KIND_BITS);
    return *given == 0 || (ours && kind_of(*given) != 0) ? 0 : refuse_foreign();
}

/* 1: it is that of one who is inside; -1: an exception. */
static int is_held(stamped *self, PyObject *number, stamp given)
{
    return kind_of(given) < FL_STAMP_READS ? 0 : PyDict_Contains(self->holds, number);
}

static int refuse_stale(void)
{
    fl_raise("NotHeldError", "nobody is inside by this stamp: it was released, or converted to another");
    return -1;
}

/* Takes the stamp out of those that are inside, which only one does; -1: an exception. */
static int delist(stamped *self, PyObject *number)
{
    if (PyDict_DelItem(self->holds, number) == 0) {
        return 0;
    }
    if (PyErr_ExceptionMatches(PyExc_KeyError)) {
        PyErr_Clear();
        return refuse_stale();
    }
    return -1;
}

PyDoc_STRVAR(acquire_read_doc,
"acquire_read($self, /, blocking=True, timeout=None)\n"
"--\n"
"\n"
"Comes in to read, beside others who do, waiting if need be; returns a stamp, or 0 if it did not. For\n"
"threads; tasks await acquire_read_async(). blocking and timeout as of Lock.acquire().\n"
"\n"
"Raises DeadlockError if it would wait for ever while this thread or a task of it is inside.");

static PyObject *acquire_read(PyObject *op, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    return acquire_as(op, FL_STAMP_READS, "acquire_read", args, count, kwnames);
}

PyDoc_STRVAR(acquire_write_doc,
"acquire_write($self, /, blocking=True, timeout=None)\n"
"--\n"
"\n"
"As acquire_read(), to write, alone.");

static PyObject *acquire_write(PyObject *op, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    return acquire_as(op, FL_STAMP_WRITES, "acquire_write", args, count, kwnames);
}

/* The ticket's ending, in the task that awaits; or in a thread that selects. */
static PyObject *finish(PyObject *op, uint32_t wanted, bool Py_UNUSED(refused))
{
    return enlist(begin(op), wanted == FL_RW_WRITE ? FL_STAMP_WRITES : FL_STAMP_READS, fl_owner_task());
}

PyObject *fl_stamped_ticket(PyObject *op, int kind, fl_finish done, PyObject *item)
{
    begin(op);
    return fl_ticket_at(fl_shell_state(op), op, fl_shell_cell(op), mode_of(kind), done, item);
}

PyObject *fl_stamped_came_in(PyObject *op, int kind)
{
    return enlist(begin(op), kind, fl_owner_task());
}

PyDoc_STRVAR(acquire_read_async_doc,
"acquire_read_async($self, /)\n"
"--\n"
"\n"
"An awaitable that comes in to read and returns a stamp. For tasks, with the time-outs of their library. A\n"
"task that is cancelled is not inside.");

static PyObject *acquire_read_async(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    begin(op);
    return fl_ticket_of(fl_shell_state(op), op, FL_RW_READ, NULL, finish);
}

PyDoc_STRVAR(acquire_write_async_doc,
"acquire_write_async($self, /)\n"
"--\n"
"\n"
"As acquire_read_async(), to write.");

static PyObject *acquire_write_async(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    begin(op);
    return fl_ticket_of(fl_shell_state(op), op, FL_RW_WRITE, NULL, finish);
}

PyDoc_STRVAR(release_doc,
"release($self, stamp, /)\n"
"--\n"
"\n"
"Goes out; any thread or task may, never waits, and a signal handler or a destructor may call it. Raises\n"
"NotHeldError (a RuntimeError) for a stamp by which nobody is inside, ValueError for that of another lock.");

PyObject *fl_stamped_release(PyObject *op, PyObject *number)
{
    stamp given;
    stamped *self = begin(op);
    if (parse(self, number, &given) < 0) {
        return NULL;
    }
    if (kind_of(given) < FL_STAMP_READS) {
        fl_raise("NotHeldError", given == 0 ? "0 is no stamp: the lock was not acquired"
                                       : "this stamp is of one who only looks, and is not inside");
        return NULL;
    }
    if (delist(self, number) < 0) {
        return NULL;
    }
    lower(self, kind_of(given), FL_RW_NONE);
    Py_RETURN_NONE;
}

PyDoc_STRVAR(optimistic_doc,
"optimistic_read($self, /)\n"
"--\n"
"\n"
"A stamp for who reads without the lock, to be validated before what was read is used; 0 while somebody\n"
"writes. Never waits, and keeps nobody out. For threads and tasks.");

static PyObject *optimistic_read(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    stamped *self = begin(op);
    uint64_t version = fl_stamped_look(self->shell.cell);
    return PyLong_FromUnsignedLongLong(version & 1 ? 0 : stamp_of(self, version, FL_STAMP_LOOKS));
}

/* Whether nobody has written since this one looked. */
static bool unchanged(stamped *self, stamp given)
{
    fl_cell *cell = self->shell.cell;
    uint64_t version = fl_stamped_look(cell);
    return stamp_of(self, version, FL_STAMP_LOOKS) == given && !(version & 1) &&
           fl_stamped_same(cell, version);
}

PyDoc_STRVAR(validate_doc,
"validate($self, stamp, /)\n"
"--\n"
"\n"
"Whether nobody has begun to write since optimistic_read() gave this stamp: then what was read since is of\n"
"one moment. Of one who is inside: whether it still is. False for 0. ValueError for another lock's stamp.");

static PyObject *validate(PyObject *op, PyObject *number)
{
    stamp given;
    stamped *self = begin(op);
    fl_fence(acquire); /* pairs with the fence in fl_stamped_begin: what was read, was read before this */
    if (parse(self, number, &given) < 0) {
        return NULL;
    }
    int valid = kind_of(given) == FL_STAMP_LOOKS ? unchanged(self, given) : is_held(self, number, given);
    return valid < 0 ? NULL : PyBool_FromLong(valid);
}

/* The stamp to convert: 1: it is good; 0: it is none any more, which of one who only looks is no mistake. */
static int convertible(stamped *self, PyObject *number, stamp *given)
{
    if (parse(self, number, given) < 0) {
        return -1;
    }
    if (kind_of(*given) <= FL_STAMP_LOOKS) {
        return *given != 0 && unchanged(self, *given);
    }
    int held = is_held(self, number, *given);
    return held == 0 ? refuse_stale() : held;
}

/* True: there is nothing to convert: the answer is the stamp, of that kind already, or that it is no good. */
static bool is_converted(stamped *self, PyObject *number, int kind, stamp *given, PyObject **answer)
{
    int good = convertible(self, number, given);
    if (good > 0 && kind_of(*given) != kind) {
        return false;
    }
    *answer = good < 0 ? NULL : good == 0 ? PyLong_FromLong(0) : Py_NewRef(number);
    return true;
}

/* Comes in as one who has looked, if it need not wait and nobody has written. A stamp, 0, or NULL. */
static PyObject *enter_unchanged(stamped *self, stamp given, int kind)
{
    fl_cell *cell = self->shell.cell;
    uint64_t me = fl_owner_thread();
    if (!fl_rw_try(cell, mode_of(kind), me)) {
        return PyLong_FromLong(0);
    }
    if (unchanged(self, given)) {
        return enlist(self, kind, me);
    }
    FL_WAKING(fl_rw_lower(cell, (fl_rw_mode)mode_of(kind), FL_RW_NONE)); /* it has written nothing */
    return PyLong_FromLong(0);
}

PyDoc_STRVAR(to_write_doc,
"try_convert_to_write($self, stamp, /)\n"
"--\n"
"\n"
"A stamp of one who writes, and the one given is none any more; 0, and it is as it was, if that would have\n"
"to wait. One who writes already keeps its stamp. One who reads must be alone, but may pass those who wait;\n"
"one who only looks must find the lock free, and nothing written since. Raises NotHeldError for a stamp "
"of one\n"
"who has gone.");

static PyObject *try_convert_to_write(PyObject *op, PyObject *number)
{
    stamp given;
    PyObject *answer;
    stamped *self = begin(op);
    if (is_converted(self, number, FL_STAMP_WRITES, &given, &answer)) {
        return answer;
    }
    if (kind_of(given) == FL_STAMP_LOOKS) {
        return enter_unchanged(self, given, FL_STAMP_WRITES);
    }
    PyObject *holder = Py_XNewRef(PyDict_GetItemWithError(self->holds, number)), *result = NULL;
    if (holder == NULL || delist(self, number) < 0) { /* from here on nobody else can release it */
        if (holder == NULL && !PyErr_Occurred()) {
            refuse_stale();
        }
    } else if (fl_rw_raise_alone(self->shell.cell, fl_owner_thread())) {
        result = enlist(self, FL_STAMP_WRITES, fl_owner_thread());
    } else if (PyDict_SetItem(self->holds, number, holder) == 0) {
        result = PyLong_FromLong(0);
    } else {
        lower(self, FL_STAMP_READS, FL_RW_NONE);
    }
    Py_XDECREF(holder);
    return result;
}

PyDoc_STRVAR(to_read_doc,
"try_convert_to_read($self, stamp, /)\n"
"--\n"
"\n"
"A stamp of one who reads, as try_convert_to_write(). One who writes reads from now on, and nobody writes\n"
"in between; one who reads already keeps its stamp.");

static PyObject *try_convert_to_read(PyObject *op, PyObject *number)
{
    stamp given;
    PyObject *answer;
    stamped *self = begin(op);
    if (is_converted(self, number, FL_STAMP_READS, &given, &answer)) {
        return answer;
    }
    if (kind_of(given) == FL_STAMP_LOOKS) {
        return enter_unchanged(self, given, FL_STAMP_READS);
    }
    if (delist(self, number) < 0) {
        return NULL;
    }
    lower(self, FL_STAMP_WRITES, FL_RW_READ);
    return enlist(self, FL_STAMP_READS, fl_owner_thread());
}

PyDoc_STRVAR(to_optimistic_doc,
"try_convert_to_optimistic_read($self, stamp, /)\n"
"--\n"
"\n"
"Goes out, and returns a stamp as of optimistic_read(), valid if nobody has written since. One who only\n"
"looks keeps its stamp, or gets 0 if it is not valid any more.");

static PyObject *try_convert_to_optimistic_read(PyObject *op, PyObject *number)
{
    stamp given;
    PyObject *answer;
    stamped *self = begin(op);
    if (is_converted(self, number, FL_STAMP_LOOKS, &given, &answer)) {
        return answer;
    }
    if (delist(self, number) < 0) {
        return NULL;
    }
    uint64_t version = lower(self, kind_of(given), FL_RW_NONE);
    return PyLong_FromUnsignedLongLong(stamp_of(self, version, FL_STAMP_LOOKS));
}

PyDoc_STRVAR(statistics_doc,
"statistics($self, /)\n"
"--\n"
"\n"
"A record of the moment: readers, writing, waiting (threads and tasks). Who only looks is not seen.");

static PyObject *statistics(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    fl_cell *cell = begin(op)->shell.cell;
    uint64_t word = fl_rw_word(cell);
    long values[] = {(long)(uint32_t)word, (word & FL_RW_WRITER) != 0, (long)fl_cell_waiting(cell)};
    return fl_record(fl_shell_state(op)->stamped_statistics, values, 3, 2);
}

PyDoc_STRVAR(holders_doc,
"_holders($self, /)\n"
"--\n"
"\n"
"Who has it, a moment ago, as waits() wants it: a list of (owner, task or None, alone).");

static PyObject *holders(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    stamped *self = begin(op);
    bool writes = fl_rw_word(self->shell.cell) & FL_RW_WRITER;
    PyObject *list = PyList_New(0), *key, *holder;
    Py_ssize_t at = 0;
    FL_BEGIN_CRITICAL(self->holds);
    while (list != NULL && PyDict_Next(self->holds, &at, &key, &holder)) {
        list = fl_holders_append(list, PyLong_AsUnsignedLongLong(holder), NULL, writes);
    }
    FL_END_CRITICAL();
    return list;
}

int fl_stamped_gone(PyObject *op)
{
    stamped *self = begin(op);
    PyObject *key, *holder;
    Py_ssize_t at = 0;
    bool gone = false;
    FL_BEGIN_CRITICAL(self->holds);
    for (int i = 0; i < FL_LOOKED_AT && !gone && PyDict_Next(self->holds, &at, &key, &holder); i++) {
        gone = fl_owner_is_gone(PyLong_AsUnsignedLongLong(holder));
    }
    FL_END_CRITICAL();
    return gone ? FL_THREAD_GONE : FL_NONE_GONE;
}

static PyObject *repr(PyObject *op)
{
    fl_cell *cell = begin(op)->shell.cell;
    uint64_t word = fl_rw_word(cell);
    return PyUnicode_FromFormat("<%s %s, %u readers, %u waiting, at %p>", Py_TYPE(op)->tp_name,
                                word & FL_RW_WRITER ? "writing" : "open", (unsigned)word,
                                (unsigned)fl_cell_waiting(cell), (void *)op);
}

static PyObject *stamped_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static fl_atomic(uint64_t) locks;
    static char *names[] = {NULL};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, ":StampedLock", names)) {
        return NULL;
    }
    stamped *self = (stamped *)fl_shell_new(type, fl_stamped_new());
    if (self == NULL) {
        return NULL;
    }
    uint64_t number = fl_fetch_add(&locks, 1, relaxed); /* only another one */
    self->tag = (number % TAGS + 1) << (NUMBER_BITS + KIND_BITS);
    fl_store(&self->generation, fl_fork_generation, relaxed); /* nobody else has it yet */
    self->holds = PyDict_New();
    if (self->holds == NULL) {
        Py_CLEAR(self);
    }
    return (PyObject *)self;
}

/* Numbers only: no cycle goes through it. */
static void dealloc(PyObject *op)
{
    Py_XDECREF(((stamped *)op)->holds);
    fl_shell_dealloc(op);
}

static PyMethodDef methods[] = {
    {"acquire_read", FL_METHOD(acquire_read), METH_FASTCALL | METH_KEYWORDS, acquire_read_doc},
    {"acquire_write", FL_METHOD(acquire_write), METH_FASTCALL | METH_KEYWORDS, acquire_write_doc},
    {"acquire_read_async", acquire_read_async, METH_NOARGS, acquire_read_async_doc},
    {"acquire_write_async", acquire_write_async, METH_NOARGS, acquire_write_async_doc},
    {"release", fl_stamped_release, METH_O, release_doc},
    {"optimistic_read", optimistic_read, METH_NOARGS, optimistic_doc},
    {"validate", validate, METH_O, validate_doc},
    {"try_convert_to_write", try_convert_to_write, METH_O, to_write_doc},
    {"try_convert_to_read", try_convert_to_read, METH_O, to_read_doc},
    {"try_convert_to_optimistic_read", try_convert_to_optimistic_read, METH_O, to_optimistic_doc},
    {"statistics", statistics, METH_NOARGS, statistics_doc},
    {"_holders", holders, METH_NOARGS, holders_doc},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef getters[] = {
    {"reading", fl_stamped_visiting, NULL, "For one `with`, to read.", (void *)FL_STAMP_READS},
    {"writing", fl_stamped_visiting, NULL, "For one `with`, to write.", (void *)FL_STAMP_WRITES},
    {NULL, NULL, NULL, NULL, NULL},
};

PyDoc_STRVAR(type_doc,
"StampedLock()\n"
"--\n"
"\n"
"Many read, or one writes; and who only looks needs no lock, and learns afterwards whether somebody wrote.\n"
"\n"
"Stamps are whole numbers: of one who is inside by acquire_read() or acquire_write(), to release() or to\n"
"convert, or of one who only looks, by optimistic_read(), to validate(). It is not reentrant: who is inside\n"
"and comes again waits for itself, or is told DeadlockError. Who waits is served in phases, as of an\n"
"RWLock. In a forked child only the thread that forked is inside.");

static PyType_Slot slots[] = {
    {Py_tp_new, (void *)stamped_new},
    {Py_tp_dealloc, (void *)dealloc},
    {Py_tp_repr, (void *)repr},
    {Py_tp_methods, methods},
    {Py_tp_getset, getters},
    {Py_tp_members, fl_shell_members},
    {Py_tp_doc, (void *)(uintptr_t)type_doc},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "fairlead.sync.StampedLock",
    .basicsize = sizeof(stamped),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};

static PyStructSequence_Field fields[] = {
    {"readers", "threads and tasks that are inside to read"},
    {"writing", "whether one is inside to write"},
    {"waiting", "threads and tasks that wait"},
    {NULL, NULL},
};

static PyStructSequence_Desc desc = {
    .name = "fairlead.sync.StampedLockStatistics",
    .doc = "A stamped lock at one moment.",
    .fields = fields,
    .n_in_sequence = 3,
};

int fl_stamped_exec(PyObject *module)
{
    fl_state *state = fl_state_of(module);
    state->stamped_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);
    state->visit_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &fl_stamped_visit_spec, NULL);
    state->stamped_statistics = PyStructSequence_NewType(&desc);
    PyTypeObject *types[] = {state->stamped_type, state->visit_type, state->stamped_statistics};
    return fl_add_types(module, types, Py_ARRAY_LENGTH(types));
}

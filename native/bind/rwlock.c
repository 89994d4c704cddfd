/* RWLock: the readers-writer lock in core, and who is inside it.
 *
 * The cell knows how many are inside, `holders` knows who, and how often each has come in. Only the first
 * time of coming in, and the last of leaving, is the cell's business; what is between, its holder's own.
 * Invariant: an entry of `holders` says of its holder what the cell counts of it, whenever that holder is
 * not inside a function of this file. So coming in again is never kept out by those who wait.
 */
#include "bind/holders.h"

#include "core/rwlock.h"

typedef struct {
    fl_shell shell;
    fl_holders holders;
    fl_atomic(uint32_t) generation; /* of the process that `holders` is of */
} rwlock;

/* One of the three faces: for reading, for reading with a right to write next, for writing. */
typedef struct {
    fl_shell shell; /* over the lock's cell */
    PyObject *lock;
    uint32_t mode;
} side;

static rwlock *lock_of(PyObject *op)
{
    return (rwlock *)((side *)op)->lock;
}

static fl_rw_mode level(const fl_hold *hold)
{
    return hold->writes     ? FL_RW_WRITE
           : hold->upgrades ? FL_RW_UPGRADE
           : hold->reads    ? FL_RW_READ
                            : FL_RW_NONE;
}

static uint32_t *times(fl_hold *hold, uint32_t mode)
{
    return mode == FL_RW_WRITE ? &hold->writes : mode == FL_RW_UPGRADE ? &hold->upgrades : &hold->reads;
}

/* In a forked child only the thread that forked is inside, with its tasks, which will not go on. */
static void recover(rwlock *self)
{
    FL_BEGIN_CRITICAL(self);
    if (fl_load(&self->generation, relaxed) != fl_fork_generation) { /* written under this lock */
        fl_holders before = self->holders;
        self->holders = (fl_holders){0};
        for (uint32_t i = 0; i < before.room; i++) {
            fl_hold *hold = &before.at[i], *kept;
            const fl_caller who = {hold->thread, hold->task};
            /* the references of those that are gone are, too: their tasks are frozen in their loops */
            if (hold->thread == fl_fork_thread && (kept = fl_holders_add(&self->holders, &who)) != NULL) {
                kept->reads = hold->reads;
                kept->upgrades = hold->upgrades;
                kept->writes = hold->writes;
                fl_rw_survive(self->shell.cell, level(kept));
            }
        }
        PyMem_RawFree(before.at);
        fl_store(&self->generation, fl_fork_generation, release); /* pairs with begin */
    }
    FL_END_CRITICAL();
}

/* Begins every operation. */
static rwlock *begin(PyObject *op)
{
    rwlock *self = (rwlock *)op;
    if (fl_load(&self->generation, acquire) != fl_fork_generation) { /* pairs with recover */
        recover(self);
    }
    return self;
}

static int refuse_upgrade(void)
{
    fl_raise("DeadlockError",
             "the caller reads, and can neither write nor become upgradable as long as it does: begin with "
             "`upgradable`, or release first");
    return -1;
}

/* 1: the caller is inside so that it may just come in again; 0: *wanted is to be had; -1: an exception. */
static int plan(rwlock *self, const fl_caller *me, uint32_t mode, uint32_t *wanted)
{
    int result = 0;
    *wanted = mode;
    FL_BEGIN_CRITICAL(self);
    const fl_hold *hold = fl_holders_find(&self->holders, me);
    fl_rw_mode inside = hold == NULL ? FL_RW_NONE : level(hold);
    if (inside == FL_RW_NONE) {
        result = 0;
    } else if (inside >= mode) {
        result = 1;
    } else if (inside == FL_RW_UPGRADE) {
        *wanted = FL_RW_RAISE;
    } else {
        result = -1;
    }
    FL_END_CRITICAL();
    return result < 0 ? refuse_upgrade() : result;
}

/* Lets go of what an entry says more than `to`, and of the entry if that is nothing. */
static void lower(rwlock *self, fl_rw_mode from, fl_rw_mode to)
{
    if (from != to) {
        FL_WAKING(fl_rw_lower(self->shell.cell, from, to));
    }
}

/* The caller has come in once more; by what plan() said, the cell knows. -1: an exception, and the cell was
   told otherwise. */
static int enlist(rwlock *self, const fl_caller *me, uint32_t mode)
{
    fl_rw_mode before = FL_RW_NONE;
    bool done = false;
    FL_BEGIN_CRITICAL(self);
    fl_hold *hold = fl_holders_find(&self->holders, me);
    if (hold != NULL) {
        before = level(hold);
    } else {
        hold = fl_holders_add(&self->holders, me);
    }
    if (hold != NULL && *times(hold, mode) < UINT32_MAX) {
        ++*times(hold, mode);
        done = true;
    }
    FL_END_CRITICAL();
    if (done) {
        return 0;
    }
    if (before < mode) {
        lower(self, (fl_rw_mode)mode, before);
        PyErr_NoMemory();
    } else {
        PyErr_SetString(PyExc_OverflowError, "the lock is held as often as it can count");
    }
    return -1;
}

/* Whether another task of this thread, or the thread beneath this task, is in the way of what is wanted. */
static bool own_thread_is_in_the_way(rwlock *self, const fl_caller *me, uint32_t wanted)
{
    bool barred = fl_rw_word(self->shell.cell) & FL_RW_BARRED;
    uint64_t writer = fl_load(&self->shell.cell->owner, relaxed); /* ours by what this thread did, or got */
    bool found = (writer & ~(uint64_t)FL_OWNER_TASK) == me->thread;
    FL_BEGIN_CRITICAL(self);
    const fl_hold *mine = fl_holders_find(&self->holders, me);
    for (uint32_t i = 0; i < self->holders.room; i++) {
        const fl_hold *hold = &self->holders.at[i];
        if (hold->thread == me->thread && hold != mine) {
            fl_rw_mode inside = level(hold);
            found = found || barred || wanted >= FL_RW_WRITE || inside == FL_RW_WRITE ||
                    (wanted == FL_RW_UPGRADE && inside == FL_RW_UPGRADE);
        }
    }
    FL_END_CRITICAL();
    return found;
}

/* As fl_wait_thread, at once or later. */
static int take(PyObject *op, rwlock *self, const fl_caller *me, uint32_t wanted, int64_t deadline)
{
    if (fl_rw_try(self->shell.cell, wanted, fl_caller_owner(me))) {
        return 1;
    }
    if (deadline == 0) {
        return 0;
    }
    if (deadline == FL_FOREVER && own_thread_is_in_the_way(self, me, wanted)) {
        int others_run = fl_in_greenlet();
        if (others_run <= 0) {
            if (others_run == 0) {
                fl_raise("DeadlockError",
                         "a task of this thread, or the thread beneath this task, is inside this lock and "
                         "cannot leave while this one waits; use `async with`, or a timeout");
            }
            return -1;
        }
    }
    return fl_wait_thread(op, self->shell.cell, wanted, fl_caller_owner(me), deadline);
}

static int acquire_within(PyObject *op, int64_t deadline)
{
    fl_caller me;
    uint32_t wanted;
    rwlock *self = begin((PyObject *)lock_of(op));
    if (fl_caller_here(fl_shell_state(op), &me) < 0) {
        return -1;
    }
    int taken = plan(self, &me, ((side *)op)->mode, &wanted);
    if (taken == 0) {
        taken = take(op, self, &me, wanted, deadline);
    }
    if (taken == 1 && enlist(self, &me, ((side *)op)->mode) < 0) {
        taken = -1;
    }
    Py_XDECREF(me.task);
    return taken;
}

/* One time less by `mode`, and one more by `instead`, if that is not NONE. */
static int leave(rwlock *self, uint32_t mode, uint32_t instead)
{
    fl_caller me;
    if (fl_caller_here(fl_shell_state((PyObject *)self), &me) < 0) {
        return -1;
    }
    bool held = false;
    fl_rw_mode from = FL_RW_NONE, to = FL_RW_NONE;
    PyObject *task = NULL;
    FL_BEGIN_CRITICAL(self);
    fl_hold *hold = fl_holders_find(&self->holders, &me);
    held = hold != NULL && *times(hold, mode) > 0;
    if (held) {
        from = level(hold);
        --*times(hold, mode);
        if (instead != FL_RW_NONE) {
            ++*times(hold, instead);
        }
        to = level(hold);
        if (to == FL_RW_NONE) {
            task = fl_holders_remove(&self->holders, hold);
        }
    }
    FL_END_CRITICAL();
    if (held) {
        lower(self, from, to);
    } else {
        fl_raise("NotHeldError",
                 "cannot release what the caller has not acquired; another thread or task may");
    }
    Py_XDECREF(task);
    Py_XDECREF(me.task);
    return held ? 0 : -1;
}

/* The ticket's two hooks. They run in the task that awaits. */
static int attempt(PyObject *op, uint32_t *wanted)
{
    fl_caller me;
    rwlock *self = begin((PyObject *)lock_of(op));
    if (fl_caller_here(fl_shell_state(op), &me) < 0) {
        return -1;
    }
    if (me.task == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "a readers-writer lock is held by a task, and none runs here; "
                                            "threads use the call without _async");
        return -1;
    }
    int taken = plan(self, &me, ((side *)op)->mode, wanted);
    if (taken == 0) {
        taken = fl_rw_try(self->shell.cell, *wanted, fl_owner_task());
    } else {
        *wanted = FL_RW_NONE; /* the cell is not asked */
    }
    Py_DECREF(me.task);
    return taken;
}

static PyObject *finish(PyObject *op, uint32_t wanted, bool Py_UNUSED(refused))
{
    rwlock *self = begin((PyObject *)lock_of(op));
    fl_caller me;
    int failed = fl_caller_here(fl_shell_state(op), &me);
    if (failed == 0 && me.task != NULL) {
        failed = enlist(self, &me, ((side *)op)->mode);
        Py_DECREF(me.task);
        return failed ? NULL : Py_NewRef(Py_True);
    }
    lower(self, wanted == FL_RW_RAISE ? FL_RW_WRITE : (fl_rw_mode)wanted,
          wanted == FL_RW_RAISE ? FL_RW_UPGRADE : FL_RW_NONE);
    if (failed == 0) {
        PyErr_SetString(PyExc_RuntimeError, "a readers-writer lock was granted to a task that does not run");
    }
    return NULL;
}

PyDoc_STRVAR(acquire_doc,
"acquire($self, /, blocking=True, timeout=None)\n"
"--\n"
"\n"
"Comes in, again if the caller is inside, waiting if need be; says whether it did. As RLock.acquire().\n"
"\n"
"The caller is the task that runs in this thread, or the thread. Raises DeadlockError for what could never\n"
"be: to write as one who reads, or to wait for ever for another task of this thread's loop.");

static PyObject *acquire(PyObject *op, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    int64_t deadline;
    if (fl_acquire_arguments("acquire", args, count, kwnames, &deadline) < 0) {
        return NULL;
    }
    int taken = acquire_within(op, deadline);
    return taken < 0 ? NULL : PyBool_FromLong(taken);
}

PyDoc_STRVAR(acquire_async_doc,
"acquire_async($self, /)\n"
"--\n"
"\n"
"As acquire(), in an awaitable that returns True. Await it in the task that is to be inside.");

static PyObject *acquire_async(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    return fl_ticket_of(fl_shell_state(op), op, ((side *)op)->mode, attempt, finish);
}

PyDoc_STRVAR(release_doc,
"release($self, /)\n"
"--\n"
"\n"
"Undoes one acquire() of this face by the caller. Never waits. Raises NotHeldError (a RuntimeError) if "
"there was\n"
"none.");

static PyObject *release(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    if (leave(begin((PyObject *)lock_of(op)), ((side *)op)->mode, FL_RW_NONE) < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

PyDoc_STRVAR(locked_doc,
"locked($self, /)\n"
"--\n"
"\n"
"Whether one who is not inside could not have come in by this face, a moment ago.");

static PyObject *locked(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    uint64_t word = fl_rw_word(begin((PyObject *)lock_of(op))->shell.cell);
    uint32_t mode = ((side *)op)->mode;
    return PyBool_FromLong(!fl_rw_fits(word, mode));
}

PyDoc_STRVAR(holders_doc,
"_holders($self, /)\n"
"--\n"
"\n"
"Who has it, a moment ago, as waits() wants it: a list of (owner, task or None, alone).");

static PyObject *side_holders(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    rwlock *self = begin((PyObject *)lock_of(op));
    PyObject *list = PyList_New(0);
    FL_BEGIN_CRITICAL(self);
    for (uint32_t i = 0; list != NULL && i < self->holders.room; i++) {
        const fl_hold *hold = &self->holders.at[i];
        uint64_t owner = hold->task != NULL ? hold->thread | FL_OWNER_TASK : hold->thread;
        list = fl_holders_append(list, owner, hold->task, hold->writes > 0);
    }
    FL_END_CRITICAL();
    return list;
}

static bool is_inside(rwlock *self, PyObject *task)
{
    bool inside = false;
    FL_BEGIN_CRITICAL(self);
    for (uint32_t i = 0; i < self->holders.room && !inside; i++) {
        inside = self->holders.at[i].task == task;
    }
    FL_END_CRITICAL();
    return inside;
}

int fl_rwlock_face_gone(PyObject *op)
{
    rwlock *self = begin((PyObject *)lock_of(op));
    PyObject *tasks[FL_LOOKED_AT];
    uint32_t seen = 0, count = 0;
    int gone = FL_NONE_GONE;
    FL_BEGIN_CRITICAL(self);
    for (uint32_t i = 0; i < self->holders.room && seen < FL_LOOKED_AT && gone == FL_NONE_GONE; i++) {
        const fl_hold *hold = &self->holders.at[i];
        seen += hold->thread != 0;
        if (fl_owner_is_gone(hold->thread)) {
            gone = FL_THREAD_GONE;
        } else if (hold->task != NULL) {
            tasks[count++] = Py_NewRef(hold->task);
        }
    }
    FL_END_CRITICAL();
    for (uint32_t i = 0; i < count; i++) {
        if (gone == FL_NONE_GONE) {
            gone = fl_task_ended(fl_shell_state(op), tasks[i]);
            if (gone > 0) { /* or it has let go, and ended, since it was seen inside */
                gone = is_inside(self, tasks[i]) ? FL_TASK_GONE : FL_NONE_GONE;
            }
        }
        Py_DECREF(tasks[i]);
    }
    return gone;
}

PyDoc_STRVAR(enter_doc,
"__enter__($self, /)\n"
"--\n"
"\n"
"As acquire().");

static PyObject *enter(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    int taken = acquire_within(op, FL_FOREVER);
    return taken < 0 ? NULL : PyBool_FromLong(taken);
}

PyDoc_STRVAR(exit_doc,
"__exit__($self, /, *exc_info)\n"
"--\n"
"\n"
"As release().");

static PyObject *side_exit(PyObject *op, PyObject *const *Py_UNUSED(args), Py_ssize_t Py_UNUSED(count))
{
    return release(op, NULL);
}

PyDoc_STRVAR(aenter_doc,
"__aenter__($self, /)\n"
"--\n"
"\n"
"As acquire_async().");

PyDoc_STRVAR(aexit_doc,
"__aexit__($self, /, *exc_info)\n"
"--\n"
"\n"
"As release(), in an awaitable that is done.");

static PyObject *aexit(PyObject *op, PyObject *const *Py_UNUSED(args), Py_ssize_t Py_UNUSED(count))
{
    PyObject *released = release(op, NULL);
    Py_XDECREF(released);
    return released == NULL ? NULL : fl_ticket_done(fl_shell_state(op));
}

static const char *const mode_names[] = {"", "reading", "upgradable", "writing"};

static PyObject *side_repr(PyObject *op)
{
    return PyUnicode_FromFormat("<%s %s of %R>", Py_TYPE(op)->tp_name, mode_names[((side *)op)->mode],
                                (PyObject *)lock_of(op));
}

static int side_traverse(PyObject *op, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(op));
    Py_VISIT(((side *)op)->lock);
    return 0;
}

static void side_dealloc(PyObject *op)
{
    PyObject_GC_UnTrack(op);
    Py_CLEAR(((side *)op)->lock);
    fl_shell_dealloc(op);
}

static PyMethodDef side_methods[] = {
    {"acquire", FL_METHOD(acquire), METH_FASTCALL | METH_KEYWORDS, acquire_doc},
    {"release", release, METH_NOARGS, release_doc},
    {"locked", locked, METH_NOARGS, locked_doc},
    {"_holders", side_holders, METH_NOARGS, holders_doc},
    {"acquire_async", acquire_async, METH_NOARGS, acquire_async_doc},
    {"__enter__", enter, METH_NOARGS, enter_doc},
    {"__exit__", FL_METHOD(side_exit), METH_FASTCALL, exit_doc},
    {"__aenter__", acquire_async, METH_NOARGS, aenter_doc},
    {"__aexit__", FL_METHOD(aexit), METH_FASTCALL, aexit_doc},
    {NULL, NULL, 0, NULL},
};

PyDoc_STRVAR(side_doc,
"One face of an RWLock: for reading, for reading with the right to write next, or for writing.");

static PyType_Slot side_slots[] = {
    {Py_tp_dealloc, (void *)side_dealloc},
    {Py_tp_traverse, (void *)side_traverse},
    {Py_tp_repr, (void *)side_repr},
    {Py_tp_methods, side_methods},
    {Py_tp_members, fl_shell_members},
    {Py_tp_doc, (void *)(uintptr_t)side_doc},
    {0, NULL},
};

static PyType_Spec side_spec = {
    .name = "fairlead.sync.RWLockFace",
    .basicsize = sizeof(side),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE |
             Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = side_slots,
};

/* A face is made when it is asked for: kept in the lock it would be a cycle. */
static PyObject *face(PyObject *op, void *mode)
{
    fl_cell *cell = fl_shell_cell(op);
    fl_cell_ref(cell);
    side *made = (side *)fl_shell_new(fl_shell_state(op)->side_type, cell);
    if (made != NULL) {
        made->lock = Py_NewRef(op);
        made->mode = (uint32_t)(uintptr_t)mode;
    }
    return (PyObject *)made;
}

PyDoc_STRVAR(downgrade_doc,
"downgrade($self, /)\n"
"--\n"
"\n"
"The caller, who writes or reads upgradably, reads from now on, and nobody writes in between. What it\n"
"acquired by `writing` or `upgradable` is to be released by `reading`. Raises NotHeldError if it does "
"neither.");

static PyObject *downgrade(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    rwlock *self = begin(op);
    fl_caller me;
    if (fl_caller_here(fl_shell_state(op), &me) < 0) {
        return NULL;
    }
    fl_rw_mode inside = FL_RW_NONE;
    FL_BEGIN_CRITICAL(self);
    const fl_hold *hold = fl_holders_find(&self->holders, &me);
    inside = hold == NULL ? FL_RW_NONE : level(hold);
    FL_END_CRITICAL();
    Py_XDECREF(me.task);
    if (inside < FL_RW_UPGRADE) {
        return fl_raise("NotHeldError", "cannot downgrade: the caller neither writes nor reads upgradably");
    }
    if (leave(self, inside, FL_RW_READ) < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

PyDoc_STRVAR(statistics_doc,
"statistics($self, /)\n"
"--\n"
"\n"
"A record of the moment: readers (without the upgradable one), upgradable, writing, waiting (threads and\n"
"tasks).");

static PyObject *statistics(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    fl_cell *cell = begin(op)->shell.cell;
    uint64_t word = fl_rw_word(cell);
    long values[] = {(long)(uint32_t)word, (word & FL_RW_UPGRADABLE) != 0, (word & FL_RW_WRITER) != 0,
                     (long)fl_cell_waiting(cell)};
    return fl_record(fl_shell_state(op)->rwlock_statistics, values, 4, 6);
}

static PyObject *repr(PyObject *op)
{
    fl_cell *cell = begin(op)->shell.cell;
    uint64_t word = fl_rw_word(cell);
    const char *state = word & FL_RW_WRITER ? "writing" : word & FL_RW_UPGRADABLE ? "upgradable" : "open";
    return PyUnicode_FromFormat("<%s %s, %u readers, %u waiting, at %p>", Py_TYPE(op)->tp_name, state,
                                (unsigned)word, (unsigned)fl_cell_waiting(cell), (void *)op);
}

static PyObject *rwlock_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {NULL};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, ":RWLock", names)) {
        return NULL;
    }
    rwlock *self = (rwlock *)fl_shell_new(type, fl_rw_new());
    if (self != NULL) {
        fl_store(&self->generation, fl_fork_generation, relaxed); /* nobody else has it yet */
    }
    return (PyObject *)self;
}

static int traverse(PyObject *op, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(op));
    const fl_holders *holders = &((rwlock *)op)->holders;
    for (uint32_t i = 0; i < holders->room; i++) {
        Py_VISIT(holders->at[i].task);
    }
    return 0;
}

static int clear(PyObject *op)
{
    fl_holders gone = ((rwlock *)op)->holders;
    ((rwlock *)op)->holders = (fl_holders){0};
    for (uint32_t i = 0; i < gone.room; i++) {
        Py_XDECREF(gone.at[i].task);
    }
    PyMem_RawFree(gone.at);
    return 0;
}

static void dealloc(PyObject *op)
{
    PyObject_GC_UnTrack(op);
    clear(op);
    fl_shell_dealloc(op);
}

static PyMethodDef methods[] = {
    {"downgrade", downgrade, METH_NOARGS, downgrade_doc},
    {"statistics", statistics, METH_NOARGS, statistics_doc},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef getters[] = {
    {"reading", face, NULL, "The face for those who read.", (void *)FL_RW_READ},
    {"upgradable", face, NULL, "The face for one who reads, and may write next.", (void *)FL_RW_UPGRADE},
    {"writing", face, NULL, "The face for one who writes.", (void *)FL_RW_WRITE},
    {NULL, NULL, NULL, NULL, NULL},
};

PyDoc_STRVAR(type_doc,
"RWLock()\n"
"--\n"
"\n"
"Many read, or one writes: `with lock.reading:`, `with lock.writing:`, and in tasks `async with`.\n"
"\n"
"Phases of reading and writing alternate while both are wanted: who wants to read waits for one phase of\n"
"writing at most, and no stream of readers starves a writer. Who is inside may come in again, by any face\n"
"that asks for no more than it has; who is inside by `upgradable`, which one at a time is beside those who\n"
"read, may go on to `writing`, and nobody writes in between. In a forked child only the thread that forked\n"
"is inside.");

static PyType_Slot slots[] = {
    {Py_tp_new, (void *)rwlock_new},
    {Py_tp_dealloc, (void *)dealloc},
    {Py_tp_traverse, (void *)traverse},
    {Py_tp_clear, (void *)clear},
    {Py_tp_repr, (void *)repr},
    {Py_tp_methods, methods},
    {Py_tp_getset, getters},
    {Py_tp_members, fl_shell_members},
    {Py_tp_doc, (void *)(uintptr_t)type_doc},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "fairlead.sync.RWLock",
    .basicsize = sizeof(rwlock),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};

static PyStructSequence_Field fields[] = {
    {"readers", "threads and tasks that read, without the upgradable one"},
    {"upgradable", "whether one reads who may write next"},
    {"writing", "whether one writes"},
    {"waiting", "threads and tasks that wait"},
    {NULL, NULL},
};

static PyStructSequence_Desc desc = {
    .name = "fairlead.sync.RWLockStatistics",
    .doc = "A readers-writer lock at one moment.",
    .fields = fields,
    .n_in_sequence = 4,
};

int fl_rwlock_exec(PyObject *module)
{
    fl_state *state = fl_state_of(module);
    state->rwlock_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);
    state->side_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &side_spec, NULL);
    state->rwlock_statistics = PyStructSequence_NewType(&desc);
    PyTypeObject *types[] = {state->rwlock_type, state->side_type, state->rwlock_statistics};
    return fl_add_types(module, types, Py_ARRAY_LENGTH(types));
}

/* RWLock and its three views: the readers-writer lock in core, by the books of rwlock_holding.c. */
#include "sync/bind/locks/rwlock_holding.h"

FL_DOC(acquire_doc, "acquire($self, /, blocking=True, timeout=None)",
"Acquires, again if the caller holds it, waiting if need be; returns whether it did. As RLock.acquire().\n"
"\n"
"The caller is the task that runs in this thread, or the thread. Raises DeadlockError for what could\n"
"never be: a reader that asks to write, or a wait for ever for another task of this thread's loop.");

static PyObject *acquire(PyObject *op, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    int64_t deadline;
    if (fl_acquire_arguments("acquire", args, count, kwnames, &deadline) < 0) {
        return NULL;
    }
    int taken = fl_rwlock_come_in(op, deadline);
    return taken < 0 ? NULL : PyBool_FromLong(taken);
}

FL_DOC(acquire_async_doc, "acquire_async($self, /)",
"As acquire(), in an awaitable that returns True. Await it in the task that is to be inside.");

static PyObject *acquire_async(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    return fl_operation_of(fl_wrapper_state(op), op, ((fl_rwlock_view *)op)->mode, fl_rwlock_attempt,
                           fl_rwlock_finish);
}

FL_DOC(release_doc, "release($self, /)",
"Undoes one acquire() of this view by the caller. Never waits. Raises NotHeldError (a RuntimeError) if\n"
"there was none.");

static PyObject *release(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    if (fl_rwlock_leave(fl_rwlock_of_view(op), ((fl_rwlock_view *)op)->mode, FL_RW_NONE) < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

FL_DOC(locked_doc, "locked($self, /)",
"Whether a newcomer could not have acquired this view, a moment ago.");

static PyObject *locked(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    uint64_t word = fl_rw_word(fl_rwlock_of_view(op)->wrapper.waitq);
    uint32_t mode = ((fl_rwlock_view *)op)->mode;
    return PyBool_FromLong(!fl_rw_fits(word, mode));
}

FL_DOC(holders_doc, "_holders($self, /)",
"Who has it, a moment ago, as waits() wants it: a list of (owner, task or None, alone).");

static PyObject *side_holders(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    fl_rwlock *self = fl_rwlock_of_view(op);
    PyObject *list = PyList_New(0);
    FL_BEGIN_CRITICAL(self);
    for (uint32_t i = 0; list != NULL && i < self->holders.room; i++) {
        const fl_rw_hold *hold = &self->holders.at[i];
        uint64_t owner = hold->task != NULL ? hold->thread | FL_OWNER_TASK : hold->thread;
        list = fl_holders_append(list, owner, hold->task, hold->writes > 0);
    }
    FL_END_CRITICAL();
    return list;
}

FL_DOC(enter_doc, "__enter__($self, /)",
"As acquire().");

static PyObject *enter(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    int taken = fl_rwlock_come_in(op, FL_FOREVER);
    return taken < 0 ? NULL : PyBool_FromLong(taken);
}

FL_DOC(exit_doc, "__exit__($self, /, *exc_info)",
"As release().");

static PyObject *side_exit(PyObject *op, PyObject *const *Py_UNUSED(args), Py_ssize_t Py_UNUSED(count))
{
    return release(op, NULL);
}

FL_DOC(aenter_doc, "__aenter__($self, /)",
"As acquire_async().");

FL_DOC(aexit_doc, "__aexit__($self, /, *exc_info)",
"As release(), in an awaitable that is done.");

static PyObject *aexit(PyObject *op, PyObject *const *Py_UNUSED(args), Py_ssize_t Py_UNUSED(count))
{
    PyObject *released = release(op, NULL);
    Py_XDECREF(released);
    return released == NULL ? NULL : fl_operation_done(fl_wrapper_state(op));
}

static const char *const mode_names[] = {"", "reading", "upgradable", "writing"};

static PyObject *side_repr(PyObject *op)
{
    const fl_rwlock_view *view = (fl_rwlock_view *)op;
    return PyUnicode_FromFormat("<%s %s of %R>", Py_TYPE(op)->tp_name, mode_names[view->mode], view->lock);
}

static int side_traverse(PyObject *op, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(op));
    Py_VISIT(((fl_rwlock_view *)op)->lock);
    return 0;
}

static void side_dealloc(PyObject *op)
{
    PyObject_GC_UnTrack(op);
    Py_CLEAR(((fl_rwlock_view *)op)->lock);
    fl_wrapper_dealloc(op);
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
"One view of an RWLock: for reading, for reading with the right to write next, or for writing.");

static PyType_Slot side_slots[] = {
    {Py_tp_dealloc, (void *)side_dealloc},
    {Py_tp_traverse, (void *)side_traverse},
    {Py_tp_repr, (void *)side_repr},
    {Py_tp_methods, side_methods},
    {Py_tp_members, fl_wrapper_members},
    {Py_tp_doc, (void *)(uintptr_t)side_doc},
    {0, NULL},
};

static PyType_Spec side_spec =
    FL_TYPE("fairlead.sync.RWLockView", sizeof(fl_rwlock_view),
            Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION, side_slots);

/* A face is made when it is asked for: kept in the lock it would be a cycle. */
static PyObject *view(PyObject *op, void *mode)
{
    fl_waitq *waitq = fl_wrapper_waitq(op);
    fl_waitq_ref(waitq);
    fl_rwlock_view *made = (fl_rwlock_view *)fl_wrapper_new(fl_wrapper_state(op)->side_type, waitq);
    if (made != NULL) {
        made->lock = Py_NewRef(op);
        made->mode = (uint32_t)(uintptr_t)mode;
    }
    return (PyObject *)made;
}

FL_DOC(downgrade_doc, "downgrade($self, /)",
"Makes the caller, a writer or the upgradable holder, a reader, with no other writer in between. What it\n"
"acquired by `writing` or `upgradable` is to be released by `reading`. Raises NotHeldError if it does\n"
"neither.");

static PyObject *downgrade(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    fl_rwlock *self = fl_rwlock_begin(op);
    fl_caller me;
    if (fl_caller_here(fl_wrapper_state(op), &me) < 0) {
        return NULL;
    }
    fl_rw_mode inside = FL_RW_NONE;
    FL_BEGIN_CRITICAL(self);
    const fl_rw_hold *hold = fl_holders_find(&self->holders, &me);
    inside = hold == NULL ? FL_RW_NONE : fl_rwlock_level(hold);
    FL_END_CRITICAL();
    Py_XDECREF(me.task);
    if (inside < FL_RW_UPGRADE) {
        return fl_raise("NotHeldError", "cannot downgrade: the caller neither writes nor reads upgradably");
    }
    if (fl_rwlock_leave(self, inside, FL_RW_READ) < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

FL_DOC(statistics_doc, "statistics($self, /)",
"A record of the moment: readers (without the upgradable one), upgradable, writing, waiting (threads and\n"
"tasks).");

static PyObject *statistics(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    fl_waitq *waitq = fl_rwlock_begin(op)->wrapper.waitq;
    uint64_t word = fl_rw_word(waitq);
    long values[] = {(long)(uint32_t)word, (word & FL_RW_UPGRADABLE) != 0, (word & FL_RW_WRITER) != 0,
                     (long)fl_waitq_waiting(waitq)};
    return fl_record(fl_wrapper_state(op)->rwlock_statistics, values, 4, 6);
}

static PyObject *repr(PyObject *op)
{
    fl_waitq *waitq = fl_rwlock_begin(op)->wrapper.waitq;
    uint64_t word = fl_rw_word(waitq);
    const char *state = word & FL_RW_WRITER ? "writing" : word & FL_RW_UPGRADABLE ? "upgradable" : "open";
    return PyUnicode_FromFormat("<%s %s, %u readers, %u waiting, at %p>", Py_TYPE(op)->tp_name, state,
                                (unsigned)word, (unsigned)fl_waitq_waiting(waitq), (void *)op);
}

static PyObject *rwlock_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {NULL};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, ":RWLock", names)) {
        return NULL;
    }
    fl_rwlock *self = (fl_rwlock *)fl_wrapper_new(type, fl_rw_new());
    if (self != NULL) {
        fl_store(&self->generation, fl_fork_generation, relaxed); /* nobody else has it yet */
    }
    return (PyObject *)self;
}

static int traverse(PyObject *op, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(op));
    const fl_holders *holders = &((fl_rwlock *)op)->holders;
    for (uint32_t i = 0; i < holders->room; i++) {
        Py_VISIT(holders->at[i].task);
    }
    return 0;
}

static int clear(PyObject *op)
{
    fl_holders gone = ((fl_rwlock *)op)->holders;
    ((fl_rwlock *)op)->holders = (fl_holders){0};
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
    fl_wrapper_dealloc(op);
}

static PyMethodDef methods[] = {
    {"downgrade", downgrade, METH_NOARGS, downgrade_doc},
    {"statistics", statistics, METH_NOARGS, statistics_doc},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef getters[] = {
    {"reading", view, NULL, "The view of readers.", (void *)FL_RW_READ},
    {"upgradable", view, NULL, "The view of a reader that may write next.", (void *)FL_RW_UPGRADE},
    {"writing", view, NULL, "The view of writers.", (void *)FL_RW_WRITE},
    {NULL, NULL, NULL, NULL, NULL},
};

FL_DOC(type_doc, "RWLock()",
"Many read, or one writes: `with lock.reading:`, `with lock.writing:`, and in tasks `async with`.\n"
"\n"
"Phases of reading and writing alternate while both are wanted: a reader waits for one writer at most,\n"
"and no stream of readers starves a writer. A holder may acquire again, by any view that asks for no more\n"
"than it has. The holder of `upgradable`, one at a time beside the readers, may acquire `writing`, with\n"
"no other writer in between. In a forked child only the thread that forked holds it.");

static PyType_Slot slots[] = {
    {Py_tp_new, (void *)rwlock_new},
    {Py_tp_dealloc, (void *)dealloc},
    {Py_tp_traverse, (void *)traverse},
    {Py_tp_clear, (void *)clear},
    {Py_tp_repr, (void *)repr},
    {Py_tp_methods, methods},
    {Py_tp_getset, getters},
    {Py_tp_members, fl_wrapper_members},
    {Py_tp_doc, (void *)(uintptr_t)type_doc},
    {0, NULL},
};

static PyType_Spec spec = FL_TYPE("fairlead.sync.RWLock", sizeof(fl_rwlock), Py_TPFLAGS_HAVE_GC, slots);

FL_RECORD(desc, "fairlead.sync.RWLockStatistics", "A readers-writer lock at one moment.",
    {"readers", "threads and tasks that read, without the upgradable one"},
    {"upgradable", "whether the upgradable view is held"},
    {"writing", "whether one writes"},
    {"waiting", "threads and tasks that wait"}
);

int fl_rwlock_exec(PyObject *module)
{
    fl_state *state = fl_state_of(module);
    state->rwlock_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);
    state->side_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &side_spec, NULL);
    state->rwlock_statistics = PyStructSequence_NewType(&desc);
    PyTypeObject *types[] = {state->rwlock_type, state->side_type, state->rwlock_statistics};
    return fl_add_types(module, types, Py_ARRAY_LENGTH(types));
}

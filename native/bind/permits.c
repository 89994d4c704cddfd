/* Lock, Semaphore and BoundedSemaphore: three faces of the semaphore in core. */
#include "bind/wait.h"

#include <string.h>

static int raise_broken(void)
{
    fl_raise("BrokenLockError", "the thread that held this lock has ended without releasing it");
    return -1;
}

/* 1: taken; 0: not within the time; -1: an exception. */
static int take(PyObject *self, uint32_t wanted, int64_t deadline)
{
    fl_cell *cell = fl_shell_cell(self);
    uint64_t owner = fl_owner_thread();
    if (fl_sem_try(cell, wanted, owner)) {
        return 1;
    }
    if (cell->flags & FL_CELL_BREAKS && (fl_sem_closed(cell) || fl_cell_orphaned(cell))) {
        fl_holder_ended(self, cell);
        return raise_broken();
    }
    if (deadline == 0) {
        return 0;
    }
    uint64_t holder = fl_load(&cell->owner, relaxed); /* ours only by what this thread did, or is given */
    if (deadline == FL_FOREVER && fl_owner_place(holder) == fl_owner_task()) {
        fl_raise("DeadlockError",
                 "a task of this thread's event loop holds this lock, and cannot release it while the "
                 "thread waits; use `async with`, or a timeout");
        return -1;
    }
    int taken = fl_wait_thread(self, cell, wanted, owner, deadline);
    return taken == FL_REFUSAL ? raise_broken() : taken;
}

static int give(PyObject *self, uint32_t count)
{
    fl_cell *cell = fl_shell_cell(self);
    if (cell->flags & FL_CELL_BREAKS && fl_sem_closed(cell)) {
        return raise_broken(); /* it would be free, and no lock: the next who waits is refused */
    }
    if (fl_permits_give(cell, count) == FL_SEM_OK) {
        return 0;
    }
    if (cell->flags & FL_CELL_OWNED) {
        fl_raise("NotHeldError", "release unlocked lock");
    } else {
        fl_raise("TooManyReleasesError", "Semaphore released too many times");
    }
    return -1;
}

/* How many permits: a whole number from 1 on; -1 with an exception set. */
static int64_t parse_count(fl_cell *cell, PyObject *number)
{
    if (number == NULL) {
        return 1;
    }
    long long count = PyLong_AsLongLong(number);
    if (count == -1 && PyErr_Occurred()) {
        return -1;
    }
    if (count < 1 || count > cell->limit) {
        PyErr_Format(PyExc_ValueError, "n must be one or more, and at most %u", cell->limit);
        return -1;
    }
    return count;
}

static PyObject *truth(int value)
{
    return value < 0 ? NULL : PyBool_FromLong(value);
}

PyDoc_STRVAR(lock_acquire_doc,
"acquire($self, /, blocking=True, timeout=None)\n"
"--\n"
"\n"
"Takes the lock, waiting for it if need be; says whether it was taken. For threads; tasks await\n"
"acquire_async().\n"
"\n"
"timeout is in seconds; None, and as in threading -1, is for ever. Signal handlers run while it waits; when\n"
"one raises, the lock is not taken.");

static PyObject *lock_acquire(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    int64_t deadline;
    if (fl_acquire_arguments("acquire", args, count, kwnames, &deadline) < 0) {
        return NULL;
    }
    return truth(take(self, 1, deadline));
}

PyDoc_STRVAR(semaphore_acquire_doc,
"acquire($self, /, blocking=True, timeout=None, n=1)\n"
"--\n"
"\n"
"Takes n permits at once, waiting for them if need be; says whether they were taken. For threads; tasks\n"
"await acquire_async().\n"
"\n"
"timeout is in seconds; None, and as in threading -1, is for ever. Signal handlers run while it waits; when\n"
"one raises, nothing is taken.");

static PyObject *semaphore_acquire(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    int64_t deadline = FL_FOREVER, wanted = 1;
    if (count > 0 || kwnames != NULL) {
        static const char *const names[] = {"blocking", "timeout", "n", NULL};
        PyObject *values[3];
        if (fl_arguments("acquire", names, args, count, kwnames, values) < 0 ||
            fl_deadline_parse(values[0], values[1], &deadline) < 0 ||
            (wanted = parse_count(fl_shell_cell(self), values[2])) < 0) {
            return NULL;
        }
    }
    return truth(take(self, (uint32_t)wanted, deadline));
}

static PyObject *finish_lock(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(item), bool refused)
{
    if (refused) {
        raise_broken();
        return NULL;
    }
    Py_RETURN_TRUE;
}

PyDoc_STRVAR(lock_acquire_async_doc,
"acquire_async($self, /)\n"
"--\n"
"\n"
"An awaitable that takes the lock and returns True. For tasks, with the time-outs of their library. A task\n"
"that is cancelled has taken nothing. What is free is taken without a switch to another task.");

static PyObject *lock_acquire_async(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    return fl_ticket_new(fl_shell_state(self), self, 1, finish_lock);
}

PyDoc_STRVAR(acquire_async_doc,
"acquire_async($self, /, n=1)\n"
"--\n"
"\n"
"An awaitable that takes n permits and returns True. For tasks, with the time-outs of their library. A task\n"
"that is cancelled has taken nothing. What is free is taken without a switch to another task.");

static PyObject *acquire_async(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    int64_t wanted = 1;
    if (count > 0 || kwnames != NULL) {
        static const char *const names[] = {"n", NULL};
        PyObject *value;
        if (fl_arguments("acquire_async", names, args, count, kwnames, &value) < 0 ||
            (wanted = parse_count(fl_shell_cell(self), value)) < 0) {
            return NULL;
        }
    }
    return fl_ticket_new(fl_shell_state(self), self, (uint32_t)wanted, NULL);
}

PyDoc_STRVAR(lock_release_doc,
"release($self, /)\n"
"--\n"
"\n"
"Gives the lock back. Any thread or task may, never waits, and a signal handler or a destructor may call\n"
"it. Raises NotHeldError (a RuntimeError) when it is not locked.");

static PyObject *lock_release(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    if (give(self, 1) < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

PyDoc_STRVAR(semaphore_release_doc,
"release($self, /, n=1)\n"
"--\n"
"\n"
"Gives n permits. Never waits, and a signal handler or a destructor may call it. Raises "
"TooManyReleasesError\n"
"(a ValueError) when there would be more than a BoundedSemaphore began with; then none is given.");

static PyObject *semaphore_release(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    int64_t number = 1;
    if (count > 0 || kwnames != NULL) {
        static const char *const names[] = {"n", NULL};
        PyObject *value;
        if (fl_arguments("release", names, args, count, kwnames, &value) < 0 ||
            (number = parse_count(fl_shell_cell(self), value)) < 0) {
            return NULL;
        }
    }
    if (give(self, (uint32_t)number) < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

PyDoc_STRVAR(withdraw_doc,
"_withdraw($self, n, /)\n"
"--\n"
"\n"
"Takes n permits away for good, without waiting: those that are free, and the rest as they are given.");

static PyObject *withdraw(PyObject *self, PyObject *number)
{
    int64_t count = parse_count(fl_shell_cell(self), number);
    if (count < 0) {
        return NULL;
    }
    fl_sem_withdraw(fl_shell_cell(self), (uint32_t)count);
    Py_RETURN_NONE;
}

PyDoc_STRVAR(locked_doc,
"locked($self, /)\n"
"--\n"
"\n"
"Whether there was nothing to take, a moment ago.");

static PyObject *locked(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    return PyBool_FromLong(fl_sem_value(fl_shell_cell(self)) == 0);
}

PyDoc_STRVAR(lock_statistics_doc,
"statistics($self, /)\n"
"--\n"
"\n"
"A record of the moment: locked, waiting (threads and tasks), fair.");

static PyObject *lock_statistics(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    fl_cell *cell = fl_shell_cell(self);
    long values[] = {fl_sem_value(cell) == 0, (long)fl_cell_waiting(cell), cell->flags & FL_CELL_FAIR};
    return fl_record(fl_shell_state(self)->lock_statistics, values, 3, 5);
}

PyDoc_STRVAR(semaphore_statistics_doc,
"statistics($self, /)\n"
"--\n"
"\n"
"A record of the moment: value (permits that are free), waiting (threads and tasks), fair.");

static PyObject *semaphore_statistics(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    fl_cell *cell = fl_shell_cell(self);
    long values[] = {(long)fl_sem_value(cell), (long)fl_cell_waiting(cell), cell->flags & FL_CELL_FAIR};
    return fl_record(fl_shell_state(self)->semaphore_statistics, values, 3, 4);
}

PyDoc_STRVAR(holders_doc,
"_holders($self, /)\n"
"--\n"
"\n"
"Who has it, a moment ago, as waits() wants it: a list of (owner, task or None, alone).");

static PyObject *holders(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    fl_cell *cell = fl_shell_cell(self);
    fl_cell_refresh(cell);
    return fl_holders_append(PyList_New(0), fl_load(&cell->owner, relaxed), NULL, true); /* to show */
}

static PyObject *lock_repr(PyObject *self)
{
    fl_cell *cell = fl_shell_cell(self);
    return PyUnicode_FromFormat("<%s %s, %u waiting, at %p>", Py_TYPE(self)->tp_name,
                                fl_sem_value(cell) == 0 ? "locked" : "unlocked",
                                (unsigned)fl_cell_waiting(cell), (void *)self);
}

static PyObject *semaphore_repr(PyObject *self)
{
    fl_cell *cell = fl_shell_cell(self);
    return PyUnicode_FromFormat("<%s value=%u, %u waiting, at %p>", Py_TYPE(self)->tp_name,
                                (unsigned)fl_sem_value(cell), (unsigned)fl_cell_waiting(cell), (void *)self);
}

PyDoc_STRVAR(enter_doc,
"__enter__($self, /)\n"
"--\n"
"\n"
"As acquire().");

static PyObject *enter(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    return truth(take(self, 1, FL_FOREVER));
}

PyDoc_STRVAR(exit_doc,
"__exit__($self, /, *exc_info)\n"
"--\n"
"\n"
"As release().");

static PyObject *leave(PyObject *self, PyObject *const *Py_UNUSED(args), Py_ssize_t Py_UNUSED(count))
{
    return lock_release(self, NULL);
}

PyDoc_STRVAR(aenter_doc,
"__aenter__($self, /)\n"
"--\n"
"\n"
"As acquire_async(), but what is free is taken by the call, which `async with` awaits at once.");

static PyObject *aenter(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    fl_state *state = fl_shell_state(self);
    if (fl_sem_try(fl_shell_cell(self), 1, fl_owner_named(state))) {
        return fl_ticket_done(state);
    }
    return fl_ticket_new(state, self, 1, Py_TYPE(self) == state->lock_type ? finish_lock : NULL);
}

PyDoc_STRVAR(aexit_doc,
"__aexit__($self, /, *exc_info)\n"
"--\n"
"\n"
"As release(), in an awaitable that is done.");

static PyObject *aexit(PyObject *self, PyObject *const *Py_UNUSED(args), Py_ssize_t Py_UNUSED(count))
{
    return give(self, 1) < 0 ? NULL : fl_ticket_done(fl_shell_state(self));
}

static PyObject *make(PyTypeObject *type, long long value, int fair, int bounded)
{
    if (value < 0 || value > FL_SEM_MOST) {
        PyErr_Format(PyExc_ValueError, "semaphore initial value must be >= 0, and at most %u", FL_SEM_MOST);
        return NULL;
    }
    uint32_t limit = bounded ? (uint32_t)value : FL_SEM_MOST;
    return fl_shell_new(type, fl_sem_new((uint32_t)value, limit, fair ? FL_CELL_FAIR : 0));
}

/* Not literals: up to 3.12 PyArg_ParseTupleAndKeywords wants words that could be written to. */
static char value_word[] = "value", fair_word[] = "fair", death_word[] = "on_owner_death";

static PyObject *semaphore_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {value_word, fair_word, NULL};
    long long value = 1;
    int fair = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|L$p:Semaphore", names, &value, &fair)) {
        return NULL;
    }
    return make(type, value, fair, 0);
}

static PyObject *bounded_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {value_word, fair_word, NULL};
    long long value = 1;
    int fair = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|L$p:BoundedSemaphore", names, &value, &fair)) {
        return NULL;
    }
    return make(type, value, fair, 1);
}

static PyObject *lock_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {fair_word, death_word, NULL};
    int fair = 0;
    const char *death = "warn";
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$ps:Lock", names, &fair, &death)) {
        return NULL;
    }
    bool breaks = strcmp(death, "break") == 0;
    if (!breaks && strcmp(death, "warn") != 0) {
        return fl_raise("UsageError", "on_owner_death is 'warn' or 'break'");
    }
    return fl_shell_new(type, fl_sem_new(1, 1, FL_CELL_OWNED | (fair ? FL_CELL_FAIR : 0) |
                                                   (breaks ? FL_CELL_BREAKS : 0)));
}

static PyObject *on_owner_death(PyObject *self, void *Py_UNUSED(closure))
{
    return PyUnicode_FromString(fl_shell_cell(self)->flags & FL_CELL_BREAKS ? "break" : "warn");
}

static PyGetSetDef lock_fields_got[] = {
    {"on_owner_death", on_owner_death, NULL, "What is done when its holder ends: 'warn' or 'break'.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef lock_methods[] = {
    {"acquire", FL_METHOD(lock_acquire), METH_FASTCALL | METH_KEYWORDS, lock_acquire_doc},
    {"release", lock_release, METH_NOARGS, lock_release_doc},
    {"locked", locked, METH_NOARGS, locked_doc},
    {"acquire_async", lock_acquire_async, METH_NOARGS, lock_acquire_async_doc},
    {"statistics", lock_statistics, METH_NOARGS, lock_statistics_doc},
    {"_holders", holders, METH_NOARGS, holders_doc},
    {"__enter__", enter, METH_NOARGS, enter_doc},
    {"__exit__", FL_METHOD(leave), METH_FASTCALL, exit_doc},
    {"__aenter__", aenter, METH_NOARGS, aenter_doc},
    {"__aexit__", FL_METHOD(aexit), METH_FASTCALL, aexit_doc},
    {NULL, NULL, 0, NULL},
};

static PyMethodDef semaphore_methods[] = {
    {"acquire", FL_METHOD(semaphore_acquire), METH_FASTCALL | METH_KEYWORDS, semaphore_acquire_doc},
    {"release", FL_METHOD(semaphore_release), METH_FASTCALL | METH_KEYWORDS, semaphore_release_doc},
    {"locked", locked, METH_NOARGS, locked_doc},
    {"acquire_async", FL_METHOD(acquire_async), METH_FASTCALL | METH_KEYWORDS, acquire_async_doc},
    {"statistics", semaphore_statistics, METH_NOARGS, semaphore_statistics_doc},
    {"__enter__", enter, METH_NOARGS, enter_doc},
    {"__exit__", FL_METHOD(leave), METH_FASTCALL, exit_doc},
    {"__aenter__", aenter, METH_NOARGS, aenter_doc},
    {"__aexit__", FL_METHOD(aexit), METH_FASTCALL, aexit_doc},
    {"_withdraw", withdraw, METH_O, withdraw_doc},
    {NULL, NULL, 0, NULL},
};

PyDoc_STRVAR(lock_type_doc,
"Lock(*, fair=False, on_owner_death='warn')\n"
"--\n"
"\n"
"A lock for threads and tasks alike: `with lock:` in a thread, `async with lock:` in a task.\n"
"\n"
"It does not care who releases it. Free, it is anybody's; who has waited for half a millisecond is served\n"
"before anyone who comes, and with fair=True everyone is served in the order in which they began to wait.\n"
"In a forked child it is free unless the thread that forked held it.\n"
"\n"
"When the thread that holds it ends, or that of the task that does, a warning tells who waits or comes to\n"
"wait (OwnerDeathWarning); with on_owner_death='break' all who want it get BrokenLockError from then\n"
"on.");

PyDoc_STRVAR(semaphore_type_doc,
"Semaphore(value=1, *, fair=False)\n"
"--\n"
"\n"
"Permits for threads and tasks alike, any number at a time.\n"
"\n"
"Order and fairness as of a Lock. Who waits for many is not starved by those who want one. In a forked\n"
"child the permits that were free are free, those that other threads had are lost.");

PyDoc_STRVAR(bounded_type_doc,
"BoundedSemaphore(value=1, *, fair=False)\n"
"--\n"
"\n"
"A Semaphore that never has more permits than it began with.");

static PyType_Slot lock_slots[] = {
    {Py_tp_new, (void *)lock_new},
    {Py_tp_dealloc, (void *)fl_shell_dealloc},
    {Py_tp_repr, (void *)lock_repr},
    {Py_tp_methods, lock_methods},
    {Py_tp_getset, lock_fields_got},
    {Py_tp_members, fl_shell_members},
    {Py_tp_doc, (void *)(uintptr_t)lock_type_doc},
    {0, NULL},
};

static PyType_Slot semaphore_slots[] = {
    {Py_tp_new, (void *)semaphore_new},
    {Py_tp_dealloc, (void *)fl_shell_dealloc},
    {Py_tp_repr, (void *)semaphore_repr},
    {Py_tp_methods, semaphore_methods},
    {Py_tp_members, fl_shell_members},
    {Py_tp_doc, (void *)(uintptr_t)semaphore_type_doc},
    {0, NULL},
};

static PyType_Slot bounded_slots[] = {
    {Py_tp_new, (void *)bounded_new},
    {Py_tp_dealloc, (void *)fl_shell_dealloc},
    {Py_tp_repr, (void *)semaphore_repr},
    {Py_tp_methods, semaphore_methods},
    {Py_tp_members, fl_shell_members},
    {Py_tp_doc, (void *)(uintptr_t)bounded_type_doc},
    {0, NULL},
};

static PyType_Spec lock_spec = {
    .name = "fairlead.sync.Lock",
    .basicsize = sizeof(fl_shell),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = lock_slots,
};

static PyType_Spec semaphore_spec = {
    .name = "fairlead.sync.Semaphore",
    .basicsize = sizeof(fl_shell),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = semaphore_slots,
};

static PyType_Spec bounded_spec = {
    .name = "fairlead.sync.BoundedSemaphore",
    .basicsize = sizeof(fl_shell),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = bounded_slots,
};

static PyStructSequence_Field lock_fields[] = {
    {"locked", "whether somebody holds it"},
    {"waiting", "threads and tasks that wait"},
    {"fair", "whether everyone is served in order"},
    {NULL, NULL},
};

static PyStructSequence_Desc lock_desc = {
    .name = "fairlead.sync.LockStatistics",
    .doc = "A lock at one moment.",
    .fields = lock_fields,
    .n_in_sequence = 3,
};

static PyStructSequence_Field semaphore_fields[] = {
    {"value", "permits that are free"},
    {"waiting", "threads and tasks that wait"},
    {"fair", "whether everyone is served in order"},
    {NULL, NULL},
};

static PyStructSequence_Desc semaphore_desc = {
    .name = "fairlead.sync.SemaphoreStatistics",
    .doc = "A semaphore at one moment.",
    .fields = semaphore_fields,
    .n_in_sequence = 3,
};

int fl_permits_exec(PyObject *module)
{
    fl_state *state = fl_state_of(module);
    state->lock_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &lock_spec, NULL);
    state->semaphore_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &semaphore_spec, NULL);
    state->bounded_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &bounded_spec, NULL);
    state->lock_statistics = PyStructSequence_NewType(&lock_desc);
    state->semaphore_statistics = PyStructSequence_NewType(&semaphore_desc);
    PyTypeObject *types[] = {state->lock_type, state->semaphore_type, state->bounded_type,
                             state->lock_statistics, state->semaphore_statistics};
    return fl_add_types(module, types, Py_ARRAY_LENGTH(types));
}

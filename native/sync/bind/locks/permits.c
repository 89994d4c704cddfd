/* Lock, Semaphore and BoundedSemaphore: three faces of the semaphore in core. */
#include "sync/bind/base/wait.h"

#include <string.h>

static int raise_broken(void)
{
    fl_raise("BrokenLockError", "the thread that held this lock has ended without releasing it");
    return -1;
}

/* 1: taken; 0: not within the time; -1: an exception. */
static int take(PyObject *self, uint32_t wanted, int64_t deadline)
{
    fl_waitq *waitq = fl_wrapper_waitq(self);
    uint64_t owner = fl_owner_thread();
    if (fl_sem_try(waitq, wanted, owner)) {
        return 1;
    }
    if (waitq->flags & FL_WAITQ_BREAKS && (fl_sem_closed(waitq) || fl_waitq_orphaned(waitq))) {
        fl_holder_ended(self, waitq);
        return raise_broken();
    }
    if (deadline == 0) {
        return 0;
    }
    uint64_t holder = fl_load(&waitq->owner, relaxed); /* ours only by what this thread did, or is given */
    if (deadline == FL_FOREVER && fl_owner_place(holder) == fl_owner_task()) {
        fl_raise("DeadlockError",
                 "a task of this thread's event loop holds this lock, and cannot release it while the "
                 "thread waits; use `async with`, or a timeout");
        return -1;
    }
    int taken = fl_wait_thread(self, waitq, wanted, owner, deadline);
    return taken == FL_REFUSAL ? raise_broken() : taken;
}

static int give(PyObject *self, uint32_t count)
{
    fl_waitq *waitq = fl_wrapper_waitq(self);
    if (waitq->flags & FL_WAITQ_BREAKS && fl_sem_closed(waitq)) {
        return raise_broken(); /* it would be free, and no lock: the next who waits is refused */
    }
    if (fl_permits_give(waitq, count) == FL_SEM_OK) {
        return 0;
    }
    if (waitq->flags & FL_WAITQ_OWNED) {
        fl_raise("NotHeldError", "release unlocked lock");
    } else {
        fl_raise("TooManyReleasesError", "Semaphore released too many times");
    }
    return -1;
}

/* How many permits: a whole number from 1 on; -1 with an exception set. */
static int64_t parse_count(fl_waitq *waitq, PyObject *number)
{
    if (number == NULL) {
        return 1;
    }
    long long count = PyLong_AsLongLong(number);
    if (count == -1 && PyErr_Occurred()) {
        return -1;
    }
    if (count < 1 || count > waitq->limit) {
        PyErr_Format(PyExc_ValueError, "n must be one or more, and at most %u", waitq->limit);
        return -1;
    }
    return count;
}

/* Likewise, of a method whose one argument is n=1. */
static int64_t parse_n(const char *method, PyObject *self, PyObject *const *args, Py_ssize_t count,
                       PyObject *kwnames)
{
    static const char *const names[] = {"n", NULL};
    PyObject *value = NULL;
    if ((count > 0 || kwnames != NULL) && fl_arguments(method, names, args, count, kwnames, &value) < 0) {
        return -1;
    }
    return parse_count(fl_wrapper_waitq(self), value);
}

static PyObject *truth(int value)
{
    return value < 0 ? NULL : PyBool_FromLong(value);
}

FL_DOC(lock_acquire_doc, "acquire($self, /, blocking=True, timeout=None)",
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

FL_DOC(semaphore_acquire_doc, "acquire($self, /, blocking=True, timeout=None, n=1)",
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
            (wanted = parse_count(fl_wrapper_waitq(self), values[2])) < 0) {
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

FL_DOC(lock_acquire_async_doc, "acquire_async($self, /)",
"An awaitable that takes the lock and returns True. For tasks, with the time-outs of their library. A task\n"
"that is cancelled has taken nothing. What is free is taken without a switch to another task.");

static PyObject *lock_acquire_async(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    return fl_operation_new(fl_wrapper_state(self), self, 1, finish_lock);
}

FL_DOC(acquire_async_doc, "acquire_async($self, /, n=1)",
"An awaitable that takes n permits and returns True. For tasks, with the time-outs of their library. A task\n"
"that is cancelled has taken nothing. What is free is taken without a switch to another task.");

static PyObject *acquire_async(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    int64_t wanted = parse_n("acquire_async", self, args, count, kwnames);
    return wanted < 0 ? NULL : fl_operation_new(fl_wrapper_state(self), self, (uint32_t)wanted, NULL);
}

FL_DOC(lock_release_doc, "release($self, /)",
"Gives the lock back. Any thread or task may, never waits, and a signal handler or a destructor may call\n"
"it. Raises NotHeldError (a RuntimeError) when it is not locked.");

static PyObject *lock_release(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    return give(self, 1) < 0 ? NULL : Py_NewRef(Py_None);
}

FL_DOC(semaphore_release_doc, "release($self, /, n=1)",
"Gives n permits. Never waits, and a signal handler or a destructor may call it. Raises\n"
"TooManyReleasesError (a ValueError) when there would be more than a BoundedSemaphore began with; then none\n"
"is given.");

static PyObject *semaphore_release(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    int64_t number = parse_n("release", self, args, count, kwnames);
    return number < 0 || give(self, (uint32_t)number) < 0 ? NULL : Py_NewRef(Py_None);
}

FL_DOC(withdraw_doc, "_withdraw($self, n, /)",
"Takes n permits away for good, without waiting: those that are free, and the rest as they are given.");

static PyObject *withdraw(PyObject *self, PyObject *number)
{
    int64_t count = parse_count(fl_wrapper_waitq(self), number);
    if (count < 0) {
        return NULL;
    }
    fl_sem_withdraw(fl_wrapper_waitq(self), (uint32_t)count);
    Py_RETURN_NONE;
}

FL_DOC(locked_doc, "locked($self, /)",
"Whether there was nothing to take, a moment ago.");

static PyObject *locked(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    return PyBool_FromLong(fl_sem_value(fl_wrapper_waitq(self)) == 0);
}

FL_DOC(lock_statistics_doc, "statistics($self, /)",
"A record of the moment: locked, waiting (threads and tasks), fair.");

static PyObject *lock_statistics(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    fl_waitq *waitq = fl_wrapper_waitq(self);
    long values[] = {fl_sem_value(waitq) == 0, (long)fl_waitq_waiting(waitq), waitq->flags & FL_WAITQ_FAIR};
    return fl_record(fl_wrapper_state(self)->lock_statistics, values, 3, 5);
}

FL_DOC(semaphore_statistics_doc, "statistics($self, /)",
"A record of the moment: value (permits that are free), waiting (threads and tasks), fair.");

static PyObject *semaphore_statistics(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    fl_waitq *waitq = fl_wrapper_waitq(self);
    long values[] = {(long)fl_sem_value(waitq), (long)fl_waitq_waiting(waitq), waitq->flags & FL_WAITQ_FAIR};
    return fl_record(fl_wrapper_state(self)->semaphore_statistics, values, 3, 4);
}

FL_DOC(holders_doc, "_holders($self, /)",
"Who has it, a moment ago, as waits() wants it: a list of (owner, task or None, alone).");

static PyObject *holders(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    fl_waitq *waitq = fl_wrapper_waitq(self);
    fl_waitq_refresh(waitq);
    return fl_holders_append(PyList_New(0), fl_load(&waitq->owner, relaxed), NULL, true); /* to show */
}

static PyObject *lock_repr(PyObject *self)
{
    fl_waitq *waitq = fl_wrapper_waitq(self);
    return PyUnicode_FromFormat("<%s %s, %u waiting, at %p>", Py_TYPE(self)->tp_name,
                                fl_sem_value(waitq) == 0 ? "locked" : "unlocked",
                                (unsigned)fl_waitq_waiting(waitq), (void *)self);
}

static PyObject *semaphore_repr(PyObject *self)
{
    fl_waitq *waitq = fl_wrapper_waitq(self);
    return PyUnicode_FromFormat("<%s value=%u, %u waiting, at %p>", Py_TYPE(self)->tp_name,
                                (unsigned)fl_sem_value(waitq), (unsigned)fl_waitq_waiting(waitq),
                                (void *)self);
}

FL_DOC(enter_doc, "__enter__($self, /)",
"As acquire().");

static PyObject *enter(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    return truth(take(self, 1, FL_FOREVER));
}

FL_DOC(exit_doc, "__exit__($self, /, *exc_info)",
"As release().");

static PyObject *leave(PyObject *self, PyObject *const *Py_UNUSED(args), Py_ssize_t Py_UNUSED(count))
{
    return lock_release(self, NULL);
}

FL_DOC(aenter_doc, "__aenter__($self, /)",
"As acquire_async(), but what is free is taken by the call, which `async with` awaits at once.");

static PyObject *aenter(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    fl_state *state = fl_wrapper_state(self);
    if (fl_sem_try(fl_wrapper_waitq(self), 1, fl_owner_named(state))) {
        return fl_operation_done(state);
    }
    return fl_operation_new(state, self, 1, Py_TYPE(self) == state->lock_type ? finish_lock : NULL);
}

FL_DOC(aexit_doc, "__aexit__($self, /, *exc_info)",
"As release(), in an awaitable that is done.");

static PyObject *aexit(PyObject *self, PyObject *const *Py_UNUSED(args), Py_ssize_t Py_UNUSED(count))
{
    return give(self, 1) < 0 ? NULL : fl_operation_done(fl_wrapper_state(self));
}

/* Not literals: up to 3.12 PyArg_ParseTupleAndKeywords wants words that could be written to. */
static char value_word[] = "value", fair_word[] = "fair", death_word[] = "on_owner_death";

static PyObject *new_by(PyTypeObject *type, PyObject *args, PyObject *kwargs, const char *format,
                        bool bounded)
{
    static char *names[] = {value_word, fair_word, NULL};
    long long value = 1;
    int fair = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, format, names, &value, &fair)) {
        return NULL;
    }
    if (value < 0 || value > FL_SEM_MOST) {
        PyErr_Format(PyExc_ValueError, "semaphore initial value must be >= 0, and at most %u", FL_SEM_MOST);
        return NULL;
    }
    uint32_t limit = bounded ? (uint32_t)value : FL_SEM_MOST;
    return fl_wrapper_new(type, fl_sem_new((uint32_t)value, limit, fair ? FL_WAITQ_FAIR : 0));
}

static PyObject *semaphore_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    return new_by(type, args, kwargs, "|L$p:Semaphore", false);
}

static PyObject *bounded_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    return new_by(type, args, kwargs, "|L$p:BoundedSemaphore", true);
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
    return fl_wrapper_new(type, fl_sem_new(1, 1, FL_WAITQ_OWNED | (fair ? FL_WAITQ_FAIR : 0) |
                                                   (breaks ? FL_WAITQ_BREAKS : 0)));
}

static PyObject *on_owner_death(PyObject *self, void *Py_UNUSED(closure))
{
    return PyUnicode_FromString(fl_wrapper_waitq(self)->flags & FL_WAITQ_BREAKS ? "break" : "warn");
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

FL_DOC(lock_type_doc, "Lock(*, fair=False, on_owner_death='warn')",
"A lock for threads and tasks alike: `with lock:` in a thread, `async with lock:` in a task.\n"
"\n"
"Any thread or task may release it. A newcomer may take a free lock before the waiters (barging) until\n"
"the first has waited for half a millisecond; after that it is handed over in the order of waiting. With\n"
"fair=True no newcomer ever passes. In a forked child it is free unless the thread that forked held it.\n"
"\n"
"When the thread that holds it ends, or that of the task that does, present and later waiters get a\n"
"warning (OwnerDeathWarning); with on_owner_death='break' every call gets BrokenLockError from then on.");

FL_DOC(semaphore_type_doc, "Semaphore(value=1, *, fair=False)",
"Permits for threads and tasks alike, any number at a time.\n"
"\n"
"Order and fairness as of a Lock. A waiter for many is not starved by waiters for one. In a forked child\n"
"the permits that were free are free, those that other threads had are lost.");

FL_DOC(bounded_type_doc, "BoundedSemaphore(value=1, *, fair=False)",
"A Semaphore that never has more permits than it began with.");

static PyType_Slot lock_slots[] = {
    {Py_tp_new, (void *)lock_new},
    {Py_tp_dealloc, (void *)fl_wrapper_dealloc},
    {Py_tp_repr, (void *)lock_repr},
    {Py_tp_methods, lock_methods},
    {Py_tp_getset, lock_fields_got},
    {Py_tp_members, fl_wrapper_members},
    {Py_tp_doc, (void *)(uintptr_t)lock_type_doc},
    {0, NULL},
};

static PyType_Slot semaphore_slots[] = {
    {Py_tp_new, (void *)semaphore_new},
    {Py_tp_dealloc, (void *)fl_wrapper_dealloc},
    {Py_tp_repr, (void *)semaphore_repr},
    {Py_tp_methods, semaphore_methods},
    {Py_tp_members, fl_wrapper_members},
    {Py_tp_doc, (void *)(uintptr_t)semaphore_type_doc},
    {0, NULL},
};

static PyType_Slot bounded_slots[] = {
    {Py_tp_new, (void *)bounded_new},
    {Py_tp_dealloc, (void *)fl_wrapper_dealloc},
    {Py_tp_repr, (void *)semaphore_repr},
    {Py_tp_methods, semaphore_methods},
    {Py_tp_members, fl_wrapper_members},
    {Py_tp_doc, (void *)(uintptr_t)bounded_type_doc},
    {0, NULL},
};

static PyType_Spec lock_spec = FL_TYPE("fairlead.sync.Lock", sizeof(fl_wrapper), 0, lock_slots);

static PyType_Spec semaphore_spec =
    FL_TYPE("fairlead.sync.Semaphore", sizeof(fl_wrapper), 0, semaphore_slots);

static PyType_Spec bounded_spec =
    FL_TYPE("fairlead.sync.BoundedSemaphore", sizeof(fl_wrapper), 0, bounded_slots);

FL_RECORD(lock_desc, "fairlead.sync.LockStatistics", "A lock at one moment.",
    {"locked", "whether it is held"},
    {"waiting", "threads and tasks that wait"},
    {"fair", "whether everyone is served in order"}
);

FL_RECORD(semaphore_desc, "fairlead.sync.SemaphoreStatistics", "A semaphore at one moment.",
    {"value", "permits that are free"},
    {"waiting", "threads and tasks that wait"},
    {"fair", "whether everyone is served in order"}
);

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

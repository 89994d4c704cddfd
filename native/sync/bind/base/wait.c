/* The thread's ending of a wait, and what the wrappers share. */
#include "sync/bind/base/wait.h"

#include <math.h>
#include <signal.h>

#include "machine/clock.h"
#include "sync/locks/rwlock.h"

PyMemberDef fl_wrapper_members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(fl_wrapper, weak), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

PyObject *fl_wrapper_new(PyTypeObject *type, fl_waitq *waitq)
{
    if (waitq == NULL) {
        return PyErr_NoMemory();
    }
    PyObject *errors = fl_errors(fl_type_state(type));
    fl_wrapper *self = errors == NULL ? NULL : (fl_wrapper *)type->tp_alloc(type, 0);
    if (self == NULL) {
        fl_waitq_unref(waitq);
        return NULL;
    }
    self->waitq = waitq;
    return (PyObject *)self;
}

void fl_wrapper_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    if (((fl_wrapper *)self)->weak != NULL) {
        PyObject_ClearWeakRefs(self);
    }
    fl_shared *shared = fl_load(&((fl_wrapper *)self)->shared, relaxed); /* no other thread has this object */
    if (shared != NULL) {
        fl_shared_unref(shared);
    }
    if (((fl_wrapper *)self)->waitq != NULL) {
        fl_waitq_unref(((fl_wrapper *)self)->waitq);
    }
    type->tp_free(self);
    Py_DECREF(type);
}

PyObject *fl_refuse_copy(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    PyErr_Format(PyExc_TypeError, "cannot copy a %s: pass on the object itself", Py_TYPE(self)->tp_name);
    return NULL;
}

fl_handoff *fl_handoff_new(PyObject *object)
{
    fl_handoff *handoff = PyMem_RawMalloc(sizeof *handoff);
    if (handoff == NULL) {
        return (fl_handoff *)PyErr_NoMemory();
    }
    *handoff = (fl_handoff){.object = Py_NewRef(object)};
    return handoff;
}

void fl_handoff_drop(fl_handoff *handoff)
{
    if (handoff != NULL) {
        PyObject *object = handoff->object;
        PyMem_RawFree(handoff);
        Py_DECREF(object);
    }
}

/* threading.TIMEOUT_MAX: what fits a signed 64-bit number of nanoseconds. */
#define LONGEST_SECONDS 9223372036.0

/* As a truth value that is a number, of which True is one. */
static bool is_zero_or_one(PyObject *number)
{
    int overflow;
    long value = PyLong_AsLongAndOverflow(number, &overflow);
    return !overflow && (value == 0 || value == 1);
}

/* `lock`: -1 is for ever, as of threading's Lock and RLock. *wait is in nanoseconds, or FL_FOREVER. */
static int parse_wait(PyObject *blocking, PyObject *timeout, bool lock, int64_t *wait)
{
    int block = blocking == NULL ? 1 : PyObject_IsTrue(blocking);
    if (block < 0) {
        return -1;
    }
    if (blocking != NULL && PyLong_CheckExact(blocking) && !is_zero_or_one(blocking)) {
        PyErr_Format(PyExc_TypeError,
                     "whether to block is True or False, not %R; of n permits give the name: acquire(n=%R)",
                     blocking, blocking);
        return -1;
    }
    double seconds = -1;
    if (timeout != NULL && timeout != Py_None) {
        seconds = PyFloat_AsDouble(timeout); /* once: an object may say another number each time */
        if (seconds == -1 && PyErr_Occurred()) {
            return -1;
        }
        if (isnan(seconds)) {
            PyErr_SetString(PyExc_ValueError, "timeout value must be a number of seconds, or None");
            return -1;
        }
        if (seconds > LONGEST_SECONDS) {
            PyErr_SetString(PyExc_OverflowError, "timeout value is too large, use None to wait for ever");
            return -1;
        }
        if (lock && seconds == -1) {
            timeout = NULL;
        } else if (!block) {
            PyErr_SetString(PyExc_ValueError, "can't specify a timeout for a non-blocking call");
            return -1;
        }
    }
    bool endless = timeout == NULL || timeout == Py_None;
    *wait = !block ? 0 : endless ? FL_FOREVER : seconds <= 0 ? 0 : (int64_t)ceil(seconds * 1e9);
    return 0;
}

int fl_wait_parse(PyObject *blocking, PyObject *timeout, int64_t *wait)
{
    return parse_wait(blocking, timeout, false, wait);
}

static int64_t deadline_of(int64_t wait)
{
    int64_t now = wait == 0 || wait == FL_FOREVER ? 0 : fl_clock_now();
    return wait == FL_FOREVER ? wait : wait < FL_FOREVER - 1 - now ? now + wait : FL_FOREVER - 1;
}

int fl_deadline_parse(PyObject *blocking, PyObject *timeout, int64_t *deadline)
{
    int64_t wait = 0;
    int parsed = parse_wait(blocking, timeout, false, &wait);
    *deadline = deadline_of(wait);
    return parsed;
}

/* A signal that comes after the last look at it and before the thread sleeps, or that the kernel gives to
   another thread, interrupts no sleep. So the thread that runs the handlers looks by itself: soon after it
   fell asleep, when that is likely, and at last once a second. */
#define FIRST_LOOK_NS 1000000
#define LAST_LOOK 10 /* doublings */

int64_t fl_next_look(int *looks)
{
    if (!fl_park_misses_signals()) {
        return FL_FOREVER;
    }
    int64_t pause = (int64_t)FIRST_LOOK_NS << *looks;
    *looks += *looks < LAST_LOOK;
    return fl_clock_now() + pause;
}

#define A_THREAD "a thread that has ended, or by a task of it,"

/* -1: it raised. */
static int warn_of_death(PyObject *what, const char *holder)
{
    PyObject *errors = fl_errors(fl_wrapper_state(what));
    return errors == NULL ? -1
                          : PyErr_WarnFormat(PyTuple_GET_ITEM(errors, FL_ERROR_OwnerDeathWarning), 1,
                                             "%R is held by %s and is waited for; the waiter goes on only "
                                             "if another thread or task releases it",
                                             what, holder);
}

int fl_holder_ended(PyObject *what, fl_waitq *waitq)
{
    if (waitq->flags & FL_WAITQ_BREAKS) {
        FL_WAKING(fl_sem_close(waitq));
        return FL_REFUSAL;
    }
    return warn_of_death(what, A_THREAD);
}

int fl_warn_if_gone(PyObject *what, fl_gone gone)
{
    if (gone == FL_NONE_GONE) {
        return 0;
    }
    return warn_of_death(what, gone == FL_TASK_GONE ? "a task that has ended" : A_THREAD);
}

fl_atomic(bool) fl_blocking_allowed;

int fl_refuse_to_block(fl_state *state)
{
    if (fl_load(&fl_blocking_allowed, relaxed)) { /* set by the program, before */
        return 0;
    }
    PyObject *task = fl_task_here(state);
    if (task == NULL) {
        return PyErr_Occurred() ? -1 : 0;
    }
    Py_DECREF(task);
    int notebook = PyDict_Contains(state->modules, state->name_ipykernel); /* its cells are tasks */
    if (notebook == 0) {
        fl_raise(state, DeadlockError,
                 "a task that waits in its loop's thread stops every task of the loop; await the call with "
                 "_async, use `async with`, or see fairlead.sync.blocking_in_tasks()");
    }
    return notebook > 0 ? 0 : -1;
}

#ifdef PYPY_VERSION
int fl_run_handlers(void)
{
    /* PyPy looks for signals when its counter of instructions is below 0. A signal sets the counter so, and
       another thread, which counts at that moment, sets it back: then the handlers run 10,000 instructions
       later, and a thread that sleeps runs none. This function runs them whatever the counter says. */
    static PyObject *mask, *nothing;
    PyObject *signal = mask != NULL ? NULL : PyImport_ImportModule("_signal");
    if (signal != NULL) {
        mask = PyObject_GetAttrString(signal, "pthread_sigmask");
        Py_DECREF(signal);
    }
    if (mask == NULL || (nothing == NULL && (nothing = Py_BuildValue("(i())", SIG_BLOCK)) == NULL)) {
        return -1;
    }
    PyObject *result = PyObject_CallObject(mask, nothing);
    Py_XDECREF(result);
    return result == NULL ? -1 : 0;
}
#endif

fl_waiter *fl_waiter_for(PyObject *what, fl_waitq *waitq, uint32_t wanted, fl_stake stake)
{
    fl_waiter *waiter = fl_thread_waiter(waitq, wanted, stake);
    if (waiter == NULL) {
        return (fl_waiter *)PyErr_NoMemory();
    }
    waiter->request = what;
    return waiter;
}

int fl_sleep(fl_waiter *waiter, int64_t deadline, int *looks)
{
    bool told = waiter->told;
    fl_wait_result result;
    int64_t signals = fl_next_look(looks);
    FL_BEGIN_SLEEP(waiter, deadline)
    result = fl_waitq_wait(waiter, deadline, signals);
    FL_END_SLEEP
    if (result == FL_WAIT_REFUSED || result == FL_WAIT_TIMED_OUT) {
        return result == FL_WAIT_REFUSED ? FL_REFUSAL : 0;
    }
    if (fl_load(&waiter->state, acquire) == FL_DONE) { /* for good; pairs with fl_combine_done */
        return 1;
    }
    if (PyErr_CheckSignals() < 0) { /* also when it was granted: what is raised takes nothing along */
        return -1;
    }
    if (result == FL_WAIT_GRANTED) {
        return 1;
    }
    if (!told && waiter->told && fl_holder_ended(waiter->request, waiter->waitq) < 0) {
        return -1;
    }
    if (waiter->generation != fl_fork_generation && /* the handler forked, and this is the child */
        fl_load(&waiter->state, acquire) == FL_WAITING && /* pairs with settle */
        fl_waitq_enter(waiter)) {
        return 1;
    }
    return FL_AGAIN;
}

int fl_wait_in_place(fl_state *state, fl_waiter *waiter, int64_t deadline)
{
    int looks = 0, outcome = FL_REFUSAL;
    if (fl_load(&waiter->state, acquire) != FL_REFUSED) { /* pairs with settle */
        outcome = deadline != 0 && fl_refuse_to_block(state) < 0 ? -1 : FL_AGAIN;
    }
    while (outcome == FL_AGAIN) {
        outcome = fl_sleep(waiter, deadline, &looks);
    }
    if (outcome < 0 && !fl_waiter_abandon(waiter, FL_CANCELLED) && waiter->final &&
        fl_load(&waiter->state, acquire) == FL_GRANTED) { /* pairs with settle */
        fl_raise_later(waiter->request);
        outcome = 1;
    }
    return outcome;
}

int fl_wait_thread(PyObject *what, fl_waitq *waitq, uint32_t wanted, fl_stake stake, int64_t deadline)
{
    return fl_wait_thread_unless(what, waitq, wanted, stake, deadline, NULL);
}

int fl_wait_thread_unless(PyObject *what, fl_waitq *waitq, uint32_t wanted, fl_stake stake,
                          int64_t deadline, fl_refuses refuses)
{
    int outcome = fl_wait_greenlet(what, waitq, wanted, stake, deadline);
    if (outcome != FL_NO_GREENLET) {
        return outcome;
    }
    fl_waiter *waiter = fl_waiter_for(what, waitq, wanted, stake);
    if (waiter == NULL) {
        return -1;
    }
    bool taken = fl_waitq_enter(waiter);
    if (!taken && refuses != NULL) {
        refuses(what);
    }
    outcome = taken ? 1 : fl_wait_in_place(fl_wrapper_state(what), waiter, deadline);
    fl_thread_waiter_done(waiter);
    return outcome;
}

void fl_keep_last(PyObject **type, PyObject **value, PyObject **traceback)
{
    Py_XDECREF(*type);
    Py_XDECREF(*value);
    Py_XDECREF(*traceback);
    PyErr_Fetch(type, value, traceback);
}

int fl_wait_thread_always(PyObject *what, fl_waitq *waitq, fl_stake stake)
{
    PyObject *type = NULL, *value = NULL, *traceback = NULL;
    int outcome, looks = 0;
    while ((outcome = fl_wait_greenlet(what, waitq, 1, stake, FL_FOREVER)) < 0) {
        fl_keep_last(&type, &value, &traceback);
    }
    if (outcome == FL_NO_GREENLET) {
        fl_waiter *waiter;
        while ((waiter = fl_waiter_for(what, waitq, 1, stake)) == NULL) { /* for lack of memory */
            fl_keep_last(&type, &value, &traceback);
        }
        outcome = fl_waitq_enter(waiter);
        while (outcome != 1) {
            outcome = fl_sleep(waiter, FL_FOREVER, &looks);
            if (outcome < 0) {
                fl_keep_last(&type, &value, &traceback);
            }
        }
        fl_thread_waiter_done(waiter);
    }
    PyErr_Restore(type, value, traceback);
    return type == NULL ? 0 : -1;
}

fl_sem_result fl_permits_give_slow(fl_waitq *waitq, uint32_t count)
{
    fl_sem_result result;
    FL_WAKING(result = fl_sem_give_slow(waitq, count));
    return result;
}

PyObject *fl_record(PyTypeObject *type, const long *values, int count, int booleans)
{
    PyObject *record = PyStructSequence_New(type);
    for (int i = 0; record != NULL && i < count; i++) {
        PyObject *value = booleans >> i & 1 ? PyBool_FromLong(values[i]) : PyLong_FromLong(values[i]);
        if (value == NULL) {
            Py_CLEAR(record);
        } else {
            PyStructSequence_SetItem(record, i, value);
        }
    }
    return record;
}

/* In the main thread, between two instructions of Python. */
static int raise_now(void *error)
{
    PyErr_SetObject((PyObject *)Py_TYPE((PyObject *)error), error);
    Py_DECREF((PyObject *)error);
    return -1;
}

void fl_raise_later(PyObject *where)
{
    PyObject *type, *error, *traceback;
    PyErr_Fetch(&type, &error, &traceback);
    PyErr_NormalizeException(&type, &error, &traceback);
    bool later = false;
    if (PyErr_GivenExceptionMatches(type, PyExc_Warning)) { /* never a handler's */
    } else if (fl_in_main_thread() && PyInterpreterState_Get() == PyInterpreterState_Main()) {
        if (traceback != NULL) {
            PyException_SetTraceback(error, traceback);
        }
        later = Py_AddPendingCall(raise_now, Py_NewRef(error)) == 0;
    } else if (!PyErr_GivenExceptionMatches(type, PyExc_Exception)) { /* sent by PyThreadState_SetAsyncExc */
        later = PyThreadState_SetAsyncExc(PyThread_get_thread_ident(), type) == 1;
    }
    if (later) {
        Py_XDECREF(type);
        Py_XDECREF(error);
        Py_XDECREF(traceback);
        return;
    }
    PyErr_Restore(type, error, traceback);
    PyErr_WriteUnraisable(where);
}

PyObject *fl_dict_get(PyObject *dict, PyObject *key)
{
    PyObject *found;
#if PY_VERSION_HEX >= 0x030D0000
    PyDict_GetItemRef(dict, key, &found);
#else
    found = Py_XNewRef(PyDict_GetItemWithError(dict, key));
#endif
    return found;
}

int fl_arguments(const char *function, const char *const *names, PyObject *const *args, Py_ssize_t count,
                 PyObject *kwnames, PyObject **values)
{
    Py_ssize_t most = 0;
    for (; names[most] != NULL; most++) {
        values[most] = most < count ? args[most] : NULL;
    }
    if (count > most) {
        PyErr_Format(PyExc_TypeError, "%s() takes at most %zd arguments (%zd given)", function, most, count);
        return -1;
    }
    for (Py_ssize_t i = 0; kwnames != NULL && i < PyTuple_GET_SIZE(kwnames); i++) {
        PyObject *name = PyTuple_GET_ITEM(kwnames, i);
        Py_ssize_t at = 0;
        while (names[at] != NULL && PyUnicode_CompareWithASCIIString(name, names[at]) != 0) {
            at++;
        }
        if (names[at] == NULL || values[at] != NULL) {
            PyErr_Format(PyExc_TypeError, "%s() got an unexpected or repeated argument '%U'", function, name);
            return -1;
        }
        values[at] = args[count + i];
    }
    return 0;
}

int fl_acquire_parse(const char *function, PyObject *const *args, Py_ssize_t count, PyObject *kwnames,
                     int64_t *deadline)
{
    static const char *const names[] = {"blocking", "timeout", NULL};
    PyObject *values[2];
    if (fl_arguments(function, names, args, count, kwnames, values) < 0) {
        return -1;
    }
    int64_t wait = 0;
    int parsed = parse_wait(values[0], values[1], true, &wait);
    *deadline = deadline_of(wait);
    return parsed;
}

int fl_timeout_argument(const char *function, PyObject *const *args, Py_ssize_t count, PyObject *kwnames,
                        int64_t *deadline)
{
    static const char *const names[] = {"timeout", NULL};
    PyObject *timeout;
    if (fl_arguments(function, names, args, count, kwnames, &timeout) < 0) {
        return -1;
    }
    return fl_deadline_parse(NULL, timeout, deadline);
}

int64_t fl_whole(const char *name, PyObject *number, int64_t least, int64_t most, const char *limit)
{
    long long value = PyLong_AsLongLong(number);
    if (value == -1 && PyErr_Occurred()) {
        return -1;
    }
    if (value < least || value > most) {
        PyErr_Format(PyExc_ValueError, "%s must be %lld or more, and at most %lld%s", name, (long long)least,
                     (long long)most, limit);
        return -1;
    }
    return value;
}

int64_t fl_permits_parse(const fl_waitq *waitq, PyObject *number, const char *limit)
{
    return number == NULL ? 1 : fl_whole("n", number, 1, waitq->limit, limit);
}

int64_t fl_permits_argument(const char *method, const fl_waitq *waitq, PyObject *const *args,
                            Py_ssize_t count, PyObject *kwnames, const char *limit)
{
    static const char *const names[] = {"n", NULL};
    PyObject *value = NULL;
    if ((count > 0 || kwnames != NULL) && fl_arguments(method, names, args, count, kwnames, &value) < 0) {
        return -1;
    }
    return fl_permits_parse(waitq, value, limit);
}

/* StampedLock: the stamped lock in core, by the books of stamps.c. */
#include "sync/bind/locks/stamps.h"

/* A stamp; 0 where it does not wait for so long; NULL: an exception. */
PyObject *fl_stamped_acquire(PyObject *op, int kind, int64_t deadline)
{
    fl_stamp_lock *self = fl_stamps_begin(op);
    fl_waitq *waitq = self->wrapper.waitq;
    uint64_t me = fl_owner_thread();
    int taken = fl_rw_try(waitq, fl_stamp_mode(kind), me);
    if (!taken && deadline != 0) {
        if (deadline == FL_FOREVER && fl_stamps_of_this_thread(self, me)) {
            int others_run = fl_in_greenlet(fl_wrapper_state(op));
            if (others_run == 0) {
                fl_raise(fl_wrapper_state(op), DeadlockError,
                         "this thread, or a task of its loop, holds this lock, which is not reentrant, and "
                         "cannot release it while it waits: convert the stamp, release it, or use a timeout");
            }
            if (others_run <= 0) {
                return NULL;
            }
        }
        taken = fl_wait_thread(op, waitq, fl_stamp_mode(kind), FL_HOLDER(me), deadline);
    }
    return taken < 0 ? NULL : taken == 0 ? PyLong_FromLong(0) : fl_stamps_add(self, kind, me);
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

static PyObject *stamped_acquire_read(PyObject *op, PyObject *const *args, Py_ssize_t count,
                                      PyObject *kwnames)
{
    return acquire_as(op, FL_STAMP_READS, "acquire_read", args, count, kwnames);
}

static PyObject *stamped_acquire_write(PyObject *op, PyObject *const *args, Py_ssize_t count,
                                       PyObject *kwnames)
{
    return acquire_as(op, FL_STAMP_WRITES, "acquire_write", args, count, kwnames);
}

/* The operation's ending, in the task that awaits; or in a thread that selects. */
static PyObject *finish(PyObject *op, uint32_t wanted, bool Py_UNUSED(refused))
{
    return fl_stamps_add(fl_stamps_begin(op), wanted == FL_RW_WRITE ? FL_STAMP_WRITES : FL_STAMP_READS,
                         fl_owner_task());
}

PyObject *fl_stamped_operation(PyObject *op, int kind, fl_finish done, PyObject *item)
{
    fl_stamps_begin(op);
    return fl_operation_at(fl_wrapper_state(op), op, fl_wrapper_waitq(op), fl_stamp_mode(kind), done, item);
}

PyObject *fl_stamped_came_in(PyObject *op, int kind)
{
    return fl_stamps_add(fl_stamps_begin(op), kind, fl_owner_task());
}

static PyObject *stamped_acquire_read_async(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    fl_stamps_begin(op);
    return fl_operation_of(fl_wrapper_state(op), op, FL_RW_READ, NULL, finish);
}

static PyObject *stamped_acquire_write_async(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    fl_stamps_begin(op);
    return fl_operation_of(fl_wrapper_state(op), op, FL_RW_WRITE, NULL, finish);
}

PyObject *fl_stamped_release(PyObject *op, PyObject *number)
{
    fl_stamp given;
    fl_stamp_lock *self = fl_stamps_begin(op);
    if (fl_stamps_parse(self, number, &given) < 0) {
        return NULL;
    }
    if (fl_stamp_kind(given) < FL_STAMP_READS) {
        fl_raise(fl_wrapper_state(op), NotHeldError,
                 given == 0 ? "0 is no stamp: the lock was not acquired"
                            : "this stamp is an optimistic reader's: it holds nothing");
        return NULL;
    }
    if (fl_stamps_remove(self, number) < 0) {
        return NULL;
    }
    fl_stamps_lower(self, fl_stamp_kind(given), FL_RW_NONE);
    Py_RETURN_NONE;
}

static PyObject *stamped_optimistic_read(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    fl_stamp_lock *self = fl_stamps_begin(op);
    uint64_t version = fl_stamped_look(self->wrapper.waitq);
    return PyLong_FromUnsignedLongLong(version & 1 ? 0 : fl_stamp_of(self, version, FL_STAMP_LOOKS));
}

/* Whether no writer has held the lock since this read began. */
static bool unchanged(fl_stamp_lock *self, fl_stamp given)
{
    fl_waitq *waitq = self->wrapper.waitq;
    uint64_t version = fl_stamped_look(waitq);
    return fl_stamp_of(self, version, FL_STAMP_LOOKS) == given && !(version & 1) &&
           fl_stamped_same(waitq, version);
}

static PyObject *stamped_validate(PyObject *op, PyObject *number)
{
    fl_stamp given;
    fl_stamp_lock *self = fl_stamps_begin(op);
    fl_fence(acquire); /* pairs with the fence in fl_stamped_begin: what was read, was read before this */
    if (fl_stamps_parse(self, number, &given) < 0) {
        return NULL;
    }
    int valid = fl_stamp_kind(given) == FL_STAMP_LOOKS ? unchanged(self, given)
                                                       : fl_stamps_hold(self, number, given);
    return valid < 0 ? NULL : PyBool_FromLong(valid);
}

/* The stamp to convert: 1: it is good; 0: it is none any more, which is no mistake of an optimistic
   reader. */
static int convertible(fl_stamp_lock *self, PyObject *number, fl_stamp *given)
{
    if (fl_stamps_parse(self, number, given) < 0) {
        return -1;
    }
    if (fl_stamp_kind(*given) <= FL_STAMP_LOOKS) {
        return *given != 0 && unchanged(self, *given);
    }
    int held = fl_stamps_hold(self, number, *given);
    return held == 0 ? fl_stamps_refuse(self) : held;
}

/* True: there is nothing to convert: the answer is the stamp, of that kind already, or that it is no good. */
static bool is_converted(fl_stamp_lock *self, PyObject *number, int kind, fl_stamp *given, PyObject **answer)
{
    int good = convertible(self, number, given);
    if (good > 0 && fl_stamp_kind(*given) != kind) {
        return false;
    }
    *answer = good < 0 ? NULL : good == 0 ? PyLong_FromLong(0) : Py_NewRef(number);
    return true;
}

/* An optimistic reader becomes a holder, if it need not wait and no writer has held the lock. A stamp, 0, or
   NULL. */
static PyObject *enter_unchanged(fl_stamp_lock *self, fl_stamp given, int kind)
{
    fl_waitq *waitq = self->wrapper.waitq;
    uint64_t me = fl_owner_thread();
    if (!fl_rw_try(waitq, fl_stamp_mode(kind), me)) {
        return PyLong_FromLong(0);
    }
    if (unchanged(self, given)) {
        return fl_stamps_add(self, kind, me);
    }
    FL_WAKING(fl_rw_lower(waitq, (fl_rw_mode)fl_stamp_mode(kind), FL_RW_NONE)); /* it has written nothing */
    return PyLong_FromLong(0);
}

static PyObject *stamped_try_convert_to_write(PyObject *op, PyObject *number)
{
    fl_stamp given;
    PyObject *answer;
    fl_stamp_lock *self = fl_stamps_begin(op);
    if (is_converted(self, number, FL_STAMP_WRITES, &given, &answer)) {
        return answer;
    }
    if (fl_stamp_kind(given) == FL_STAMP_LOOKS) {
        return enter_unchanged(self, given, FL_STAMP_WRITES);
    }
    PyObject *holder = fl_dict_get(self->holds, number), *result = NULL;
    if (holder == NULL || fl_stamps_remove(self, number) < 0) { /* now no other thread can release it */
        if (holder == NULL && !PyErr_Occurred()) {
            fl_stamps_refuse(self);
        }
    } else if (fl_rw_raise_alone(self->wrapper.waitq, fl_owner_thread())) {
        result = fl_stamps_add(self, FL_STAMP_WRITES, fl_owner_thread());
    } else if (PyDict_SetItem(self->holds, number, holder) == 0) {
        result = PyLong_FromLong(0);
    } else {
        fl_stamps_lower(self, FL_STAMP_READS, FL_RW_NONE);
    }
    Py_XDECREF(holder);
    return result;
}

static PyObject *stamped_try_convert_to_read(PyObject *op, PyObject *number)
{
    fl_stamp given;
    PyObject *answer;
    fl_stamp_lock *self = fl_stamps_begin(op);
    if (is_converted(self, number, FL_STAMP_READS, &given, &answer)) {
        return answer;
    }
    if (fl_stamp_kind(given) == FL_STAMP_LOOKS) {
        return enter_unchanged(self, given, FL_STAMP_READS);
    }
    if (fl_stamps_remove(self, number) < 0) {
        return NULL;
    }
    fl_stamps_lower(self, FL_STAMP_WRITES, FL_RW_READ);
    return fl_stamps_add(self, FL_STAMP_READS, fl_owner_thread());
}

static PyObject *stamped_try_convert_to_optimistic_read(PyObject *op, PyObject *number)
{
    fl_stamp given;
    PyObject *answer;
    fl_stamp_lock *self = fl_stamps_begin(op);
    if (is_converted(self, number, FL_STAMP_LOOKS, &given, &answer)) {
        return answer;
    }
    if (fl_stamps_remove(self, number) < 0) {
        return NULL;
    }
    uint64_t version = fl_stamps_lower(self, fl_stamp_kind(given), FL_RW_NONE);
    return PyLong_FromUnsignedLongLong(fl_stamp_of(self, version, FL_STAMP_LOOKS));
}

static PyObject *stamped_statistics(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    fl_waitq *waitq = fl_stamps_begin(op)->wrapper.waitq;
    uint64_t word = fl_rw_word(waitq);
    long values[] = {(long)(uint32_t)word, (word & FL_RW_WRITER) != 0, (long)fl_waitq_waiting(waitq)};
    return fl_record(fl_wrapper_state(op)->stamped_statistics, values, 3, 2);
}

static PyObject *stamped_holders(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    fl_stamp_lock *self = fl_stamps_begin(op);
    bool writes = fl_rw_word(self->wrapper.waitq) & FL_RW_WRITER;
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
    fl_stamp_lock *self = fl_stamps_begin(op);
    PyObject *key, *holder;
    Py_ssize_t at = 0;
    bool gone = false;
    FL_BEGIN_CRITICAL(self->holds);
    for (int i = 0; i < FL_HOLDERS_CHECKED && !gone && PyDict_Next(self->holds, &at, &key, &holder); i++) {
        gone = fl_owner_is_gone(PyLong_AsUnsignedLongLong(holder));
    }
    FL_END_CRITICAL();
    return gone ? FL_THREAD_GONE : FL_NONE_GONE;
}

static PyObject *repr(PyObject *op)
{
    fl_waitq *waitq = fl_stamps_begin(op)->wrapper.waitq;
    uint64_t word = fl_rw_word(waitq);
    return PyUnicode_FromFormat("<%s %s, %u readers, %u waiting, at %p>", Py_TYPE(op)->tp_name,
                                word & FL_RW_WRITER ? "writing" : "open", (unsigned)word,
                                (unsigned)fl_waitq_waiting(waitq), (void *)op);
}

static PyObject *stamped_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static fl_atomic(uint64_t) locks;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, ":StampedLock", FL_PARAMETERS(StampedLock))) {
        return NULL;
    }
    fl_stamp_lock *self = (fl_stamp_lock *)fl_wrapper_new(type, fl_stamped_new());
    if (self == NULL) {
        return NULL;
    }
    uint64_t number = fl_fetch_add(&locks, 1, relaxed); /* only another one */
    self->tag = (number % FL_STAMP_TAGS + 1) << FL_STAMP_TAG_AT;
    fl_store(&self->generation, fl_fork_generation, relaxed); /* no other thread has it yet */
    self->holds = PyDict_New();
    if (self->holds == NULL) {
        Py_CLEAR(self);
    }
    return (PyObject *)self;
}

/* Numbers only: no cycle goes through it. */
static void dealloc(PyObject *op)
{
    Py_XDECREF(((fl_stamp_lock *)op)->holds);
    fl_wrapper_dealloc(op);
}

#define stamped_release fl_stamped_release

static PyGetSetDef getters[] = {
    {"reading", fl_stamped_visiting, NULL, "For one `with`, to read.", (void *)FL_STAMP_READS},
    {"writing", fl_stamped_visiting, NULL, "For one `with`, to write.", (void *)FL_STAMP_WRITES},
    {NULL, NULL, NULL, NULL, NULL},
};

PyType_Spec fl_stamped_spec = FL_TYPE("fairlead.sync.StampedLock", fl_stamp_lock, 0,
    {Py_tp_new, (void *)stamped_new},
    {Py_tp_dealloc, (void *)dealloc},
    {Py_tp_repr, (void *)repr},
    {Py_tp_getset, getters},
    FL_WRAPPER_SLOTS(StampedLock, stamped_));

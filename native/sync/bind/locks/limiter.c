/* CapacityLimiter: permits that are lent, one to each borrower.
 *
 * A loan is a tuple (borrower, thread), and the loans are a dictionary by borrower. The borrower of a call is
 * its task, or (this type, number of the thread), which no other object is equal to, or the object on whose
 * behalf it is called: then the thread is 0, and any thread or task may give the token back.
 *
 * A token is taken first, and then lent: one that cannot be lent goes back. It is taken out of the dictionary
 * first, and then given. So a token is never lent twice, and between two steps of Python none is lost.
 */
#include "sync/bind/base/arguments.h"
#include "sync/bind/base/task.h"
#include "sync/bind/wait/blocking.h"
#include "sync/bind/wait/gone.h"
#include "sync/bind/wait/mailbox.h"
#include "sync/bind/wait/operation.h"

#include <math.h>

#define ENDLESS (-1)

typedef struct {
    fl_wrapper wrapper; /* over a semaphore, of the tokens that are free */
    PyObject *lent;
    fl_atomic(int64_t) total; /* or ENDLESS; written within the critical section */
} limiter;

static PyObject *lent(PyObject *self)
{
    return ((limiter *)self)->lent;
}

static PyObject *new_loan(PyObject *borrower, uint64_t thread)
{
    return Py_BuildValue("(OK)", borrower, (unsigned long long)thread);
}

static PyObject *borrower_of(PyObject *loan)
{
    return PyTuple_GET_ITEM(loan, 0);
}

/* The caller's own, made or to be made. */
static PyObject *loan_here(PyObject *self)
{
    fl_caller me;
    if (fl_caller_here(self, &me) < 0) {
        return NULL;
    }
    PyObject *borrower = me.task != NULL ? me.task : new_loan((PyObject *)Py_TYPE(self), me.thread);
    PyObject *loan = borrower == NULL ? NULL : new_loan(borrower, me.thread);
    Py_XDECREF(borrower);
    return loan;
}

static int raise_second(PyObject *self)
{
    fl_raise(fl_wrapper_state(self), AlreadyHeldError, "this borrower has a token of this limiter");
    return -1;
}

/* With a token that was taken. 1; -1: an exception, and the token has gone back. */
static int lend(PyObject *self, PyObject *loan)
{
    PyObject *first = PyDict_SetDefault(lent(self), borrower_of(loan), loan);
    if (first == loan) {
        return 1;
    }
    PyObject *error = first == NULL ? fl_caught() : NULL;
    fl_permits_give(fl_wrapper_waitq(self), 1);
    if (error == NULL) {
        return raise_second(self);
    }
    fl_raise_again(error);
    return -1;
}

/* Whether the borrower of a loan has ended, and has the token still; -1: an exception. */
static int gone(PyObject *self, PyObject *loan)
{
    uint64_t thread = PyLong_AsUnsignedLongLong(PyTuple_GET_ITEM(loan, 1));
    PyObject *borrower = borrower_of(loan);
    bool is_thread = PyTuple_CheckExact(borrower) && PyTuple_GET_SIZE(borrower) == 2 &&
                     borrower_of(borrower) == (PyObject *)Py_TYPE(self);
    int how = FL_NONE_GONE;
    if (thread != 0 && fl_thread_table_ident(thread) == 0) {
        how = FL_THREAD_GONE;
    } else if (thread != 0 && !is_thread) {
        int ended = fl_task_ended(fl_wrapper_state(self), borrower);
        how = ended > 0 ? FL_TASK_GONE : ended;
    }
    if (how > FL_NONE_GONE) { /* it may have given the token back before it ended */
        PyObject *now = fl_dict_get(lent(self), borrower);
        Py_XDECREF(now);
        how = now == loan ? how : PyErr_Occurred() ? -1 : FL_NONE_GONE;
    }
    return how;
}

/* Before a wait: warns if one of the oldest loans has no borrower any more. -1: an exception. */
static int look_at_borrowers(PyObject *self)
{
    PyObject *oldest[FL_HOLDERS_CHECKED], *loan;
    Py_ssize_t at = 0;
    int count = 0, how = FL_NONE_GONE;
    FL_BEGIN_CRITICAL(lent(self));
    while (count < FL_HOLDERS_CHECKED && PyDict_Next(lent(self), &at, NULL, &loan)) {
        oldest[count++] = Py_NewRef(loan);
    }
    FL_END_CRITICAL();
    for (int i = 0; i < count; i++) {
        how = how == FL_NONE_GONE ? gone(self, oldest[i]) : how;
        Py_DECREF(oldest[i]);
    }
    return how < 0 ? -1 : fl_warn_if_gone(self, (fl_gone)how);
}

/* Takes a token that is free. 1, 0, or -1: an exception, as where the borrower has one. */
static int take_free(PyObject *self, PyObject *loan)
{
    int has = PyDict_Contains(lent(self), borrower_of(loan));
    return has > 0 ? raise_second(self) : has < 0 ? -1 : fl_sem_try(fl_wrapper_waitq(self), 1, 0);
}

/* Of a thread; steals the loan, which may be NULL. */
static PyObject *acquire(PyObject *self, PyObject *loan, int64_t deadline)
{
    int taken = loan == NULL ? -1 : take_free(self, loan);
    if (taken == 0 && deadline != 0) {
        taken = look_at_borrowers(self);
        if (taken == 0) {
            taken = fl_wait_thread(self, fl_wrapper_waitq(self), 1, (fl_stake){0}, deadline);
        }
    }
    if (taken == 1) {
        taken = lend(self, loan);
    }
    Py_XDECREF(loan);
    return fl_truth(taken);
}

/* Of a task. What is taken at once is lent at once, and nothing is left for `finish`. */
static int attempt(PyObject *self, PyObject *loan, uint32_t *wanted)
{
    int taken = take_free(self, loan);
    if (taken == 1) {
        *wanted = 0;
        return lend(self, loan);
    }
    return taken < 0 ? -1 : look_at_borrowers(self);
}

static PyObject *finish(PyObject *self, fl_end end)
{
    return end.wanted > 0 && lend(self, end.item) < 0 ? NULL : Py_NewRef(Py_True);
}

typedef PyObject *(*operation_maker)(fl_state *, PyObject *, PyObject *, uint32_t, fl_attempt, fl_finish);

/* Steals the loan, which may be NULL. */
static PyObject *operation(operation_maker make, PyObject *self, PyObject *loan)
{
    PyObject *made =
        loan == NULL ? NULL : make(fl_wrapper_state(self), self, loan, 1, attempt, finish);
    Py_XDECREF(loan);
    return made;
}

/* 0; -1: an exception, as where it has none. */
static int take_back(PyObject *self, PyObject *borrower)
{
    if (PyDict_DelItem(lent(self), borrower) == 0) {
        fl_permits_give(fl_wrapper_waitq(self), 1);
        return 0;
    }
    if (PyErr_ExceptionMatches(PyExc_KeyError)) {
        PyErr_Clear();
        fl_raise(fl_wrapper_state(self), NotHeldError, "this borrower has no token of this limiter");
    }
    return -1;
}

static int release(PyObject *self)
{
    PyObject *loan = loan_here(self);
    int failed = loan == NULL ? -1 : take_back(self, borrower_of(loan));
    Py_XDECREF(loan);
    return failed;
}

static PyObject *limiter_acquire(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    int64_t deadline;
    return fl_acquire_arguments("acquire", args, count, kwnames, &deadline) < 0
               ? NULL
               : acquire(self, loan_here(self), deadline);
}

static PyObject *limiter_acquire_on_behalf_of(PyObject *self, PyObject *const *args, Py_ssize_t count,
                                              PyObject *kwnames)
{
    int64_t deadline;
    if (count == 0) {
        PyErr_SetString(PyExc_TypeError, "acquire_on_behalf_of() takes a borrower");
        return NULL;
    }
    return fl_acquire_arguments("acquire_on_behalf_of", args + 1, count - 1, kwnames, &deadline) < 0
               ? NULL
               : acquire(self, new_loan(args[0], 0), deadline);
}

static PyObject *limiter_acquire_async(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    return operation(fl_operation_of, self, loan_here(self));
}

static PyObject *limiter_acquire_on_behalf_of_async(PyObject *self, PyObject *borrower)
{
    return operation(fl_operation_of, self, new_loan(borrower, 0));
}

static PyObject *limiter_release(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    return fl_none(release(self));
}

static PyObject *limiter_release_on_behalf_of(PyObject *self, PyObject *borrower)
{
    return fl_none(take_back(self, borrower));
}

static PyObject *limiter_enter(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    return acquire(self, loan_here(self), FL_FOREVER);
}

static PyObject *limiter_exit(PyObject *self, PyObject *const *Py_UNUSED(args), Py_ssize_t Py_UNUSED(count))
{
    return limiter_release(self, NULL);
}

static PyObject *limiter_aenter(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    return operation(fl_operation_enter, self, loan_here(self));
}

static PyObject *limiter_aexit(PyObject *self, PyObject *const *Py_UNUSED(args), Py_ssize_t Py_UNUSED(count))
{
    return release(self) < 0 ? NULL : fl_operation_done(fl_wrapper_state(self));
}

static int64_t permits(int64_t total)
{
    return total == ENDLESS ? FL_SEM_MOST : total;
}

static int64_t total_of(PyObject *self)
{
    return fl_load(&((limiter *)self)->total, relaxed); /* a figure to show */
}

static int64_t borrowed(PyObject *self)
{
    fl_waitq *waitq = fl_wrapper_waitq(self);
    return permits(total_of(self)) - fl_sem_value(waitq) + (int64_t)fl_sem_withdraw(waitq, 0);
}

/* What there is, less `taken`. */
static PyObject *number_of(int64_t total, int64_t taken)
{
    return total == ENDLESS ? PyFloat_FromDouble(INFINITY) : PyLong_FromLongLong(total - taken);
}

static PyObject *get_total(PyObject *self, void *Py_UNUSED(closure))
{
    return number_of(total_of(self), 0);
}

static PyObject *get_borrowed(PyObject *self, void *Py_UNUSED(closure))
{
    return PyLong_FromLongLong(borrowed(self));
}

static PyObject *get_available(PyObject *self, void *Py_UNUSED(closure))
{
    return number_of(total_of(self), borrowed(self));
}

/* -1: an exception. */
static int parse_total(PyObject *value, int64_t *total)
{
    if (value != NULL && PyFloat_Check(value) && PyFloat_AS_DOUBLE(value) == INFINITY) {
        *total = ENDLESS;
        return 0;
    }
    if (value == NULL || !PyLong_Check(value)) {
        PyErr_SetString(PyExc_TypeError, "total_tokens must be a whole number, or math.inf");
        return -1;
    }
    *total = fl_whole("total_tokens", value, 0, FL_SEM_MOST, " or math.inf");
    return *total < 0 ? -1 : 0;
}

static int set_total(PyObject *self, PyObject *value, void *Py_UNUSED(closure))
{
    int64_t total;
    if (parse_total(value, &total) < 0) {
        return -1;
    }
    FL_BEGIN_CRITICAL(self);
    int64_t more = permits(total) - permits(total_of(self));
    fl_store(&((limiter *)self)->total, total, relaxed); /* a figure to show */
    if (more > 0) {
        fl_permits_give(fl_wrapper_waitq(self), (uint32_t)more);
    } else if (more < 0) {
        fl_sem_withdraw(fl_wrapper_waitq(self), (uint32_t)-more);
    }
    FL_END_CRITICAL();
    return 0;
}

static PyObject *limiter_statistics(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    fl_waitq *waitq = fl_wrapper_waitq(self);
    long values[] = {(long)borrowed(self), 0, (long)fl_waitq_waiting(waitq), waitq->flags & FL_WAITQ_FAIR};
    PyObject *total = get_total(self, NULL);
    PyObject *record =
        total == NULL ? NULL : fl_record(fl_wrapper_state(self)->limiter_statistics, values, 4, 8);
    if (record == NULL) {
        Py_XDECREF(total);
        return NULL;
    }
    Py_DECREF(PyStructSequence_GetItem(record, 1));
    PyStructSequence_SetItem(record, 1, total);
    return record;
}

static PyObject *limiter_repr(PyObject *self)
{
    PyObject *total = get_total(self, NULL);
    PyObject *text = total == NULL ? NULL
                                   : PyUnicode_FromFormat("<%s %lld of %S borrowed, %u waiting>",
                                                          Py_TYPE(self)->tp_name, (long long)borrowed(self),
                                                          total,
                                                          (unsigned)fl_waitq_waiting(fl_wrapper_waitq(self)));
    Py_XDECREF(total);
    return text;
}

static PyObject *limiter_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *value;
    int64_t total;
    int fair = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$p:CapacityLimiter", FL_PARAMETERS(CapacityLimiter),
                                     &value, &fair) ||
        parse_total(value, &total) < 0) {
        return NULL;
    }
    fl_waitq *waitq = fl_sem_new((uint32_t)permits(total), FL_SEM_MOST, fair ? FL_WAITQ_FAIR : 0);
    PyObject *self = fl_wrapper_new(type, waitq);
    if (self != NULL) {
        fl_store(&((limiter *)self)->total, total, relaxed); /* no other thread has it yet */
        ((limiter *)self)->lent = PyDict_New();
        if (((limiter *)self)->lent == NULL) {
            Py_CLEAR(self);
        }
    }
    return self;
}

static int traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(lent(self));
    return 0;
}

static int clear(PyObject *self)
{
    if (lent(self) != NULL) {
        PyDict_Clear(lent(self)); /* which stays: a finalizer may still ask */
    }
    return 0;
}

static void dealloc(PyObject *self)
{
    PyObject *loans = lent(self);
    PyObject_GC_UnTrack(self);
    ((limiter *)self)->lent = NULL;
    fl_wrapper_dealloc(self);
    Py_XDECREF(loans);
}

static PyGetSetDef getters[] = {
    {"total_tokens", get_total, set_total, FL_DOC(CapacityLimiter, total_tokens), NULL},
    {"borrowed_tokens", get_borrowed, NULL, FL_DOC(CapacityLimiter, borrowed_tokens), NULL},
    {"available_tokens", get_available, NULL, FL_DOC(CapacityLimiter, available_tokens), NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyType_Spec fl_limiter_spec = FL_TYPE("fairlead.sync.CapacityLimiter", limiter, Py_TPFLAGS_HAVE_GC,
    {Py_tp_new, (void *)limiter_new},
    {Py_tp_traverse, (void *)traverse},
    {Py_tp_clear, (void *)clear},
    {Py_tp_repr, (void *)limiter_repr},
    {Py_tp_getset, getters},
    FL_WRAPPER_SLOTS_AND(CapacityLimiter, limiter_, dealloc));

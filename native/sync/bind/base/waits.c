/* What fairlead.sync.waits() is made of: one look at every thread and task that waits.
 *
 * Three steps. Under the locks of the thread table and the mailboxes what is there is copied, and nothing
 * else: counting references needs neither Python nor memory. Then waits that are over are left out: a thread
 * that was granted a lock is listed until its system has woken it, and owns the lock by then. This is decided
 * under the queue lock, where the owner and the waiter's state change together. Last, objects are made. A
 * thread that was found asleep is held until its stack has been read, which is C that runs no Python and,
 * where the collector could run in an allocation, with it switched off; so what a stack shows is where that
 * very wait was begun.
 *
 * Of another interpreter's waits only numbers and the name of the type are taken.
 */
#include "gil/interpreter/compat.h"
#include "sync/bind/base/state.h"

#include <frameobject.h>
#include <stdlib.h>
#include <string.h>

#include "sync/wait/choice.h"
#include "sync/wait/mailbox.h"
#include "sync/wait/thread_table.h"

typedef struct {
    fl_waitq *waitq;
    PyObject *what, *future; /* of this interpreter; NULL otherwise */
    fl_parked *parked;     /* held; NULL: a task */
    fl_waiter *waiter; /* there while the parked thread is held, or counted; NULL: the interpreter ends */
    PyObject *stack;
    uint64_t number, ident, owner;
    int64_t since, deadline, space;
    uint32_t one_of;
    bool owned, over;
    char name[48];
} sight;

typedef struct {
    sight *at;
    size_t count, room;
    int64_t here; /* this interpreter */
    bool ends;    /* the threads that sleep will not come back, and their states may be gone */
    bool failed;
} sights;

static sight *another(sights *found)
{
    if (found->count == found->room) {
        size_t room = found->room ? 2 * found->room : 64;
        sight *larger = realloc(found->at, room * sizeof *larger);
        if (larger == NULL) {
            found->failed = true;
            return NULL;
        }
        found->at = larger;
        found->room = room;
    }
    return memset(&found->at[found->count++], 0, sizeof *found->at);
}

/* Under the lock that keeps the waiter there. */
static sight *copy(sights *found, const fl_waiter *waiter, int64_t space)
{
    sight *seen = another(found);
    if (seen == NULL) {
        return NULL;
    }
    fl_waitq *waitq = fl_load(&waiter->waitq, acquire); /* pairs with fl_condition_give */
    fl_waitq_ref(waitq);
    seen->waitq = waitq;
    seen->owned = waitq->flags & FL_WAITQ_OWNED;
    seen->owner = fl_load(&waitq->owner, relaxed); /* statistics only */
    /* of a task's it is written once, under another lock, by when it is queued */
    seen->since = __atomic_load_n(&waiter->since, __ATOMIC_RELAXED);
    seen->space = space;
    seen->one_of = waiter->choice != NULL ? waiter->choice->count : 1;
    PyObject *what = waiter->request;
    if (what != NULL) {
        /* a type that cannot change, of an object that is there: also in another interpreter */
        strncpy(seen->name, Py_TYPE(what)->tp_name, sizeof seen->name - 1);
        seen->what = space == found->here ? Py_NewRef(what) : NULL;
    }
    return seen;
}

static void see_thread(void *context, fl_parked *parked)
{
    sights *found = context;
    fl_waiter *first = parked->waiter;
    uint32_t count = first->choice != NULL ? first->choice->count : 1;
    for (uint32_t i = 0; i < count; i++) {
        fl_waiter *waiter = first->choice != NULL ? first->choice->waiters[i] : first;
        sight *seen = copy(found, waiter, parked->space);
        if (seen == NULL) {
            return;
        }
        seen->number = parked->number;
        seen->ident = parked->ident;
        seen->deadline = parked->deadline;
        if (!found->ends) {
            fl_thread_table_hold(parked);
            seen->parked = parked;
            seen->waiter = waiter;
        }
    }
}

static void see_task(void *context, const fl_mailbox *mailbox, fl_waiter *waiter)
{
    sights *found = context;
    PyObject *future = fl_load(&waiter->payload, acquire); /* pairs with the operation's store */
    sight *seen = future == NULL ? NULL : copy(found, waiter, mailbox->space); /* NULL: it has yet to begin */
    if (seen == NULL) {
        return;
    }
    seen->number = fl_load(&mailbox->home, relaxed) | FL_OWNER_TASK; /* statistics only */
    if (seen->owned) { /* the holder-to-be; elsewhere the field may mean something else */
        seen->number |= waiter->stake.holder & ~FL_OWNER_PLACE;
    }
    seen->deadline = FL_FOREVER;
    fl_waiter_ref(waiter);
    seen->waiter = waiter;
    if (mailbox->space == found->here) {
        seen->future = Py_NewRef(future); /* its taker lets go of it with the lock, or the GIL */
    }
}

/* ((code, line), ...), innermost first; NULL without an exception: none is to be had. The thread is held. */
static PyObject *stack_of(const fl_parked *parked)
{
#ifdef PYPY_VERSION /* frames of other threads are not shown to C there */
    (void)parked;
    return NULL;
#else
    PyObject *stack = PyList_New(0);
    PyFrameObject *frame = PyThreadState_GetFrame(parked->state);
    while (frame != NULL && stack != NULL) {
        PyFrameObject *back = PyFrame_GetBack(frame);
        PyObject *place = Py_BuildValue("(Ni)", (PyObject *)PyFrame_GetCode(frame),
                                        PyFrame_GetLineNumber(frame));
        stack = fl_appended(stack, place);
        Py_DECREF(frame);
        frame = back;
    }
    Py_XDECREF(frame);
    PyErr_Clear();
    return stack;
#endif
}

/* After the lists' locks. */
static void leave_out_what_is_over(sights *found)
{
    for (size_t i = 0; i < found->count; i++) {
        sight *seen = &found->at[i];
        seen->over = seen->waiter != NULL && !fl_waiter_waits(seen->waiter);
        if (seen->waiter != NULL && seen->parked == NULL) {
            fl_waiter_unref(seen->waiter);
        }
    }
}

/* All threads go on afterwards. */
static void read_stacks(sights *found)
{
    int collects = PyGC_Disable();
    for (size_t i = 0; i < found->count; i++) {
        sight *seen = &found->at[i];
        if (seen->parked != NULL) {
            seen->stack = seen->space == found->here ? stack_of(seen->parked) : NULL;
            fl_thread_table_release(seen->parked);
        }
    }
    if (collects) {
        PyGC_Enable();
    }
}

static PyObject *or_none(PyObject *op)
{
    return op == NULL ? Py_None : op;
}

static PyObject *as_tuple(const sight *seen)
{
    PyObject *deadline =
        seen->deadline == FL_FOREVER ? Py_NewRef(Py_None) : PyFloat_FromDouble((double)seen->deadline / 1e9);
    return Py_BuildValue("(OsKKKKLdNIOO)", or_none(seen->what), seen->name,
                         (unsigned long long)(uintptr_t)seen->waitq,
                         (unsigned long long)(seen->owned ? seen->owner : 0),
                         (unsigned long long)seen->number, (unsigned long long)seen->ident,
                         (long long)seen->space, (double)seen->since / 1e9, deadline, seen->one_of,
                         or_none(seen->future), or_none(seen->stack));
}

static PyObject *waits(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    sights found = {.here = PyInterpreterState_GetID(PyInterpreterState_Get()), .ends = fl_finalizing()};
    fl_thread_table_parked(see_thread, &found);
    found.failed |= !fl_thread_table_tasks(see_task, &found);
    leave_out_what_is_over(&found);
    read_stacks(&found);
    PyObject *result = found.failed ? PyErr_NoMemory() : PyList_New(0);
    for (size_t i = 0; i < found.count; i++) {
        sight *seen = &found.at[i];
        if (result != NULL && !seen->over) {
            result = fl_appended(result, as_tuple(seen));
        }
        Py_XDECREF(seen->what);
        Py_XDECREF(seen->future);
        Py_XDECREF(seen->stack);
        fl_waitq_unref(seen->waitq);
    }
    free(found.at);
    return result;
}

static PyObject *thread_of(PyObject *Py_UNUSED(module), PyObject *number)
{
    unsigned long long owner = PyLong_AsUnsignedLongLong(number);
    if (owner == (unsigned long long)-1 && PyErr_Occurred()) {
        return NULL;
    }
    return PyLong_FromUnsignedLongLong(fl_thread_table_ident(owner));
}

static PyObject *interpreter(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    return PyLong_FromLongLong(PyInterpreterState_GetID(PyInterpreterState_Get()));
}

PyMethodDef fl_waits_functions[] = {
    {"interpreter", interpreter, METH_NOARGS, FL_DOC(module, interpreter)},
    {"waits", waits, METH_NOARGS, FL_DOC(module, waits)},
    {"thread_of", thread_of, METH_O, FL_DOC(module, thread_of)},
    {NULL, NULL, 0, NULL},
};

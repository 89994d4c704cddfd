/* Mailbox: what an event loop polls and calls so that its tasks can be woken from anywhere. */
#include "sync/bind/wait/mailbox.h"

#include <errno.h>
#include <math.h>

#include "sync/bind/base/task.h"
#include "sync/bind/wait/future.h"
#include "sync/bind/wait/gone.h"
#include "sync/wait/choice.h"

typedef struct {
    PyObject_HEAD
    fl_mailbox *body;
    PyObject *make_future;
    PyObject *running;    /* NULL: never known */
    PyObject *call_later; /* NULL: it has no timers */
    PyObject *shield;     /* NULL: its futures need none */
    PyObject *weak;
#ifdef Py_GIL_DISABLED
    PyObject *self_ref; /* a weak reference to this object, for a thread that has found it in `body` */
#endif
} mailbox;

/* From here on no thread finds this object by its body. */
static void hide(mailbox *self)
{
    if (self->body != NULL) {
        fl_mailbox_lock(self->body);
        fl_store(&self->body->wrapper, NULL, relaxed); /* pairs with mailbox_of, by the lock or the GIL */
        fl_mutex_unlock(&self->body->lock);
    }
}

/* The mailbox of this body, a new reference; NULL: there is none any more, or it is another interpreter's. A
   task may have called into another interpreter, which must not touch its loop's objects. */
static mailbox *mailbox_of(fl_mailbox *body)
{
    if (body->space != PyInterpreterState_GetID(PyInterpreterState_Get())) {
        return NULL;
    }
#ifdef Py_GIL_DISABLED
    /* another thread may drop the last reference meanwhile, and then it cannot be counted any more */
    PyObject *found = NULL;
    fl_mailbox_lock(body);
    mailbox *self = fl_load(&body->wrapper, relaxed); /* pairs with hide, by the lock */
    PyObject *self_ref = self == NULL ? NULL : Py_NewRef(self->self_ref);
    fl_mutex_unlock(&body->lock);
    if (self_ref != NULL) {
        PyWeakref_GetRef(self_ref, &found);
        Py_DECREF(self_ref);
    }
    return (mailbox *)found;
#else
    return (mailbox *)Py_XNewRef(fl_load(&body->wrapper, relaxed)); /* under the GIL */
#endif
}

static PyObject *mailbox_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *make_future, *running = Py_None, *call_later = Py_None, *shield = Py_None;
    if (kwargs != NULL && PyDict_GET_SIZE(kwargs) > 0) {
        PyErr_SetString(PyExc_TypeError, "a mailbox takes no keyword arguments");
        return NULL;
    }
    if (!PyArg_UnpackTuple(args, "Mailbox", 1, 4, &make_future, &running, &call_later, &shield)) {
        return NULL;
    }
    mailbox *self = (mailbox *)type->tp_alloc(type, 0);
    if (self == NULL) {
        return NULL;
    }
    self->make_future = Py_NewRef(make_future);
    self->running = running == Py_None ? NULL : Py_NewRef(running);
    self->call_later = call_later == Py_None ? NULL : Py_NewRef(call_later);
    self->shield = shield == Py_None ? NULL : Py_NewRef(shield);
    self->body = fl_mailbox_new();
    if (self->body == NULL) {
        Py_DECREF(self);
        return PyErr_SetFromErrno(PyExc_OSError);
    }
#ifdef Py_GIL_DISABLED
    self->self_ref = PyWeakref_NewRef((PyObject *)self, NULL);
    if (self->self_ref == NULL) {
        fl_mailbox_unref(self->body);
        self->body = NULL;
        Py_DECREF(self);
        return NULL;
    }
#endif
    fl_store(&self->body->wrapper, self, relaxed); /* no other thread knows the body yet */
    fl_thread_table_add(self->body, PyInterpreterState_GetID(PyInterpreterState_Get()));
    return (PyObject *)self;
}

static int mailbox_traverse(PyObject *op, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(op));
    Py_VISIT(((mailbox *)op)->make_future);
    Py_VISIT(((mailbox *)op)->running);
    Py_VISIT(((mailbox *)op)->call_later);
    Py_VISIT(((mailbox *)op)->shield);
    return 0;
}

PyObject *fl_waiter_swap_future(fl_waiter *waiter, PyObject *future)
{
#ifdef Py_GIL_DISABLED /* else waits(), which looks at it under this lock, has the GIL */
    fl_mailbox_lock(waiter->mailbox);
#endif
    PyObject *before = fl_exchange(&waiter->payload, future, acq_rel); /* pairs with itself */
#ifdef Py_GIL_DISABLED
    fl_mutex_unlock(&waiter->mailbox->lock);
#endif
    return before;
}

/* Of a mailbox that is dropped: the waits end, and if this is the loop's thread, their tasks resume. */
static void end_waits(mailbox *self, fl_state *state)
{
    PyObject *type, *value, *traceback; /* an exception may be on its way */
    PyErr_Fetch(&type, &value, &traceback);
    bool resume = state != NULL &&
                  fl_load(&self->body->home, relaxed) == fl_owner_thread(); /* ours if it is this thread's */
    fl_waiter *waiter;
    while (resume && (waiter = fl_mailbox_break(self->body)) != NULL) {
        PyObject *future = fl_waiter_swap_future(waiter, NULL);
        if (future != NULL && fl_future_complete(state, future) < 0) {
            resume = !fl_future_refused();
            resume ? fl_future_complete_again(state, future) : PyErr_Clear();
        }
        Py_XDECREF(future);
        fl_waiter_unref(waiter);
    }
    fl_mailbox_close(self->body);
    PyErr_Restore(type, value, traceback);
}

static int mailbox_clear(PyObject *op)
{
    mailbox *self = (mailbox *)op;
    PyObject *module = ((PyHeapTypeObject *)Py_TYPE(op))->ht_module; /* NULL: the type was cleared first */
    if (module != NULL && fl_state_of(module)->recent_mailbox == op) {
        fl_state_of(module)->recent_loop = fl_state_of(module)->recent_mailbox = NULL;
    }
    hide(self); /* no task of its loop is woken through it any more */
    if (self->body != NULL) {
        end_waits(self, module == NULL ? NULL : fl_state_of(module));
    }
#ifdef Py_GIL_DISABLED
    Py_CLEAR(self->self_ref);
#endif
    Py_CLEAR(self->make_future);
    Py_CLEAR(self->running);
    Py_CLEAR(self->call_later);
    Py_CLEAR(self->shield);
    return 0;
}

static void mailbox_dealloc(PyObject *op)
{
    mailbox *self = (mailbox *)op;
    PyTypeObject *type = Py_TYPE(op);
    PyObject_GC_UnTrack(op);
    hide(self); /* first: a callback of a weak reference may release a lock, and wake a task of this loop */
    if (self->weak != NULL) {
        PyObject_ClearWeakRefs(op);
    }
    mailbox_clear(op);
    if (self->body != NULL) {
        fl_thread_table_remove(self->body);
        fl_mailbox_unref(self->body);
    }
    type->tp_free(op);
    Py_DECREF(type);
}

#define LONGEST_TIMER 86400e9 /* a timer that fires too early is set again */

PyObject *fl_mailbox_timer(PyObject *op, int64_t sleep, PyObject *function)
{
    PyObject *call_later = ((mailbox *)op)->call_later;
    if (call_later == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "this event loop's mailbox was made without call_later, so its "
                                            "tasks cannot wait for a rate limiter");
        return NULL;
    }
    return PyObject_CallFunction(call_later, "dO", fmin((double)sleep, LONGEST_TIMER) / 1e9, function);
}

/* The finder is Python, and is asked at every wait. As long as a mailbox is there, so is its loop, which its
   make_future is a method of: so the same loop has the same mailbox. */
static PyObject *mailbox_here(fl_state *state)
{
    PyObject *loop = NULL;
#ifndef Py_GIL_DISABLED
    if (fl_runs_task_still(state->recent_loop)) {
        return Py_NewRef(state->recent_mailbox);
    }
    int trio = PyDict_Contains(state->modules, state->name_trio);
    if (trio < 0 || (!trio && (loop = fl_running_loop(state)) == NULL && PyErr_Occurred())) {
        return NULL;
    }
    Py_XDECREF(loop); /* runs, and so lives */
    if (loop != NULL && loop == state->recent_loop) {
        return Py_NewRef(state->recent_mailbox);
    }
#endif
    if (state->current_mailbox == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "import fairlead.wait before you await something");
        return NULL;
    }
    PyObject *found = PyObject_CallNoArgs(state->current_mailbox);
    if (found != NULL && !PyObject_TypeCheck(found, state->mailbox_type)) {
        PyErr_SetString(PyExc_TypeError, "the finder of mailboxes returned something else");
        Py_CLEAR(found);
    }
    if (found != NULL && loop != NULL) {
        state->recent_loop = loop;
        state->recent_mailbox = found;
    }
    return found;
}

/* Of its loop. */
static PyObject *make_future(mailbox *self, bool shielded)
{
    fl_store(&self->body->home, fl_owner_thread(), relaxed); /* read by this thread */
    PyObject *future = PyObject_CallNoArgs(self->make_future);
    if (future != NULL && shielded && self->shield != NULL) {
        PyObject *done = PyObject_CallOneArg(self->shield, future);
        if (done == NULL) {
            Py_CLEAR(future);
        }
        Py_XDECREF(done);
    }
    return future;
}

/* *inner becomes the iterator of the future; -1 with an exception. */
static int await_future(PyObject *future, PyObject **inner)
{
    PyAsyncMethods *async = Py_TYPE(future)->tp_as_async;
    if (async == NULL || async->am_await == NULL) {
        PyErr_SetString(PyExc_TypeError, "the future of a mailbox's make_future() cannot be awaited");
        return -1;
    }
    Py_XSETREF(*inner, async->am_await(future));
    return *inner == NULL ? -1 : 0;
}

PyObject *fl_await_here(fl_state *state, bool shielded, PyObject **inner, fl_mailbox **body,
                        PyObject **future)
{
    PyObject *here = mailbox_here(state);
    *future = here == NULL ? NULL : make_future((mailbox *)here, shielded);
    if (*future == NULL || await_future(*future, inner) < 0) {
        Py_CLEAR(*future);
        Py_XDECREF(here);
        return NULL;
    }
    *body = ((mailbox *)here)->body;
    return here;
}

fl_waiter *fl_task_waiter(PyObject *what, fl_mailbox *body, fl_waitq *waitq, uint32_t wanted, fl_stake stake,
                          PyObject *future)
{
    fl_waiter *waiter = fl_mailbox_waiter(body, waitq, wanted, stake);
    if (waiter == NULL) {
        return fl_raise(fl_wrapper_state(what), LoopClosedError,
                        "the event loop of this task has been closed");
    }
    waiter->request = what;
    fl_store(&waiter->payload, Py_NewRef(future), release); /* pairs with fl_waiter_swap_future */
    return waiter;
}

void fl_task_waiter_done(fl_waiter *waiter)
{
    PyObject *future = fl_waiter_swap_future(waiter, NULL);
    fl_mailbox_forget(waiter);
    Py_XDECREF(future);
}

bool fl_mailbox_complete(fl_state *state, fl_waiter *waiter)
{
    PyObject *future = fl_waiter_swap_future(waiter, NULL);
    if (future == NULL) {
        return true;
    }
    int was_done = fl_future_complete(state, future);
    if (was_done < 0) {
        fl_future_complete_again(state, future);
    }
    Py_DECREF(future);
    return was_done <= 0;
}

/* What was granted to a cancelled task goes on at once, as asyncio's does: not when the task has its turn.
   Whether that was to a task of this very mailbox. */
static bool pass_on(mailbox *self, fl_waiter *waiter)
{
    fl_mailbox_batch();
    fl_waiter_abandon(waiter, FL_CANCELLED);
    fl_mailbox *told = fl_mailbox_flush();
    if (told == NULL) {
        return false;
    }
    if (told != self->body) {
        fl_mailbox_deliver(told);
        return false;
    }
    fl_mailbox_unref(told);
    return true;
}

/* A waiter that was woken has found nothing: perhaps because the holder is no more. */
static void look_for_holder(fl_waiter *waiter)
{
    /* it waits still, and so its operation is there, with what it is for: both are of this thread */
    if (!waiter->told && (waiter->choice == NULL || !fl_choice_decided(waiter->choice)) &&
        fl_waitq_orphaned(waiter->waitq) && fl_load(&waiter->payload, acquire) != NULL) {
        waiter->told = true; /* `payload` pairs with the operation's store */
        if (fl_holder_ended(waiter->request, waiter->waitq) < 0) {
            fl_raise_later(waiter->request);
        }
    }
}

/* Whether there is more by now. */
static bool drain_once(mailbox *self)
{
    bool more = false;
    fl_state *module = fl_wrapper_state((PyObject *)self);
    fl_waiter *waiter = fl_mailbox_drain(self->body);
    while (waiter != NULL) {
        fl_waiter *next = waiter->ready;
        fl_mailbox_seen(waiter);
        if (fl_load(&waiter->state, acquire) == FL_WOKEN) { /* pairs with the wake */
            if (!fl_waitq_retry(waiter)) {
                if (waiter->waitq->ops->look != NULL) {
                    fl_mailbox_complete(module, waiter); /* the task sets its timer anew */
                } else {
                    look_for_holder(waiter);
                }
            }
        }
        uint32_t state = fl_load(&waiter->state, acquire); /* pairs with the grant */
        if (state == FL_GRANTED || state == FL_DONE || state == FL_REFUSED || state == FL_BROKEN) {
            more |= !fl_mailbox_complete(module, waiter) && state == FL_GRANTED && pass_on(self, waiter);
        }
        fl_waiter_unref(waiter);
        waiter = next;
    }
    return more;
}

static void drain(mailbox *self)
{
    while (drain_once(self)) {
    }
}

/* Whether a task of its loop runs in this thread; with an exception set, it does not. */
static bool runs_here(mailbox *self)
{
    PyObject *found;
#ifndef Py_GIL_DISABLED
    fl_state *state = fl_wrapper_state((PyObject *)self);
    if (state->recent_mailbox == (PyObject *)self) { /* asyncio's: its adapter, in Python, is not asked */
        return fl_runs_task_of(state, state->recent_loop);
    }
#endif
    found = self->running == NULL ? NULL : PyObject_CallNoArgs(self->running);
    Py_XDECREF(found);
    return found != NULL && found != Py_None && found != Py_False;
}

void fl_mailbox_deliver(fl_mailbox *body)
{
    PyObject *type, *value, *traceback; /* a destructor may release while an exception is on its way */
    PyErr_Fetch(&type, &value, &traceback);
    mailbox *self = mailbox_of(body);
    if (self != NULL && runs_here(self)) {
        drain(self);
    } else {
        if (PyErr_Occurred()) {
            fl_raise_later((PyObject *)self);
        }
        fl_wakeup_ring(&body->wakeup);
    }
    Py_XDECREF(self);
    PyErr_Restore(type, value, traceback);
    fl_mailbox_unref(body);
}

fl_sem_result fl_permits_give_slow(fl_waitq *waitq, uint32_t count)
{
    fl_sem_result result;
    FL_WAKING(result = fl_sem_give_slow(waitq, count));
    return result;
}

static PyObject *mailbox_call(PyObject *op, PyObject *args, PyObject *kwargs)
{
    if (PyTuple_GET_SIZE(args) > 0 || (kwargs != NULL && PyDict_GET_SIZE(kwargs) > 0)) {
        PyErr_SetString(PyExc_TypeError, "a mailbox is called without arguments");
        return NULL;
    }
    fl_mailbox_hear(((mailbox *)op)->body); /* first: a post after the stack was taken rings again */
    drain((mailbox *)op);
    Py_RETURN_NONE;
}

static PyObject *mailbox_fileno(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    return PyLong_FromLong(((mailbox *)op)->body->wakeup.poll.number);
}

static PyObject *mailbox_close(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    fl_state *state = fl_wrapper_state(op);
    fl_waiter *waiter;
    while ((waiter = fl_mailbox_break(((mailbox *)op)->body)) != NULL) {
        fl_mailbox_complete(state, waiter);
        fl_waiter_unref(waiter);
    }
    Py_RETURN_NONE;
}

static PyMemberDef mailbox_members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(mailbox, weak), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

PyType_Spec fl_mailbox_spec = FL_TYPE("fairlead.wait.Mailbox", mailbox, Py_TPFLAGS_HAVE_GC,
    {Py_tp_new, (void *)mailbox_new},
    {Py_tp_call, (void *)mailbox_call},
    {Py_tp_traverse, (void *)mailbox_traverse},
    {Py_tp_clear, (void *)mailbox_clear},
    {Py_tp_dealloc, (void *)mailbox_dealloc},
    {Py_tp_members, mailbox_members},
    FL_SLOTS(Mailbox, mailbox_));

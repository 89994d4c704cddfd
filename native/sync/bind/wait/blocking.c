/* The endings of a wait that block the caller.
 *
 * A thread sleeps, and looks for signals. Where gevent runs in it, only the greenlet that calls waits: by an
 * operation, as a task does, that fairlead.wait._gevent drives. The future of the hub's mailbox switches to
 * the hub and comes back. What gevent throws into a greenlet that waits (GreenletExit, its Timeout) comes
 * out of the operation, which has left the queue by then or given back what it was granted.
 */
#include "sync/bind/wait/blocking.h"

#include "machine/clock.h"
#include "sync/bind/base/arguments.h"
#include "sync/bind/base/task.h"
#include "sync/bind/wait/gone.h"
#include "sync/bind/wait/operation.h"
#include "sync/coordination/event.h"

static PyObject *end_of_wait(PyObject *Py_UNUSED(wrapper), fl_end end)
{
    return PyLong_FromLong(end.refused ? FL_REFUSAL : 1);
}

int fl_in_greenlet(fl_state *state)
{
    PyObject *asked;
    int here = fl_of_adapter(state, &state->in_greenlet, state->name_gevent, "fairlead.wait._gevent",
                             "in_greenlet", &asked);
    if (here > 0) {
        PyObject *answer = PyObject_CallNoArgs(asked);
        here = answer == NULL ? -1 : answer == Py_True;
        Py_XDECREF(answer);
    }
    return here;
}

PyObject *fl_greenlet_wait(PyObject *operation, int64_t deadline)
{
    PyObject *wait = operation == NULL ? NULL
                                       : fl_imported(&fl_wrapper_state(operation)->greenlet_wait,
                                                     "fairlead.wait._gevent", "wait");
    PyObject *result = NULL;
    if (wait != NULL) {
        int64_t left = deadline == FL_FOREVER ? 0 : deadline - fl_clock_now();
        PyObject *seconds = deadline == FL_FOREVER ? Py_NewRef(Py_None)
                                                   : PyFloat_FromDouble(left > 0 ? (double)left / 1e9 : 0);
        result = PyObject_CallFunction(wait, "ON", operation, seconds);
    }
    Py_XDECREF(operation);
    return result;
}

/* As fl_wait_thread, in a thread where gevent's hub runs; FL_NO_GREENLET: none of its greenlets calls. */
int fl_wait_greenlet(PyObject *what, fl_waitq *waitq, uint32_t wanted, fl_stake stake, int64_t deadline)
{
    fl_state *state = fl_wrapper_state(what);
    int here = fl_in_greenlet(state);
    if (here <= 0) {
        return here < 0 ? -1 : FL_NO_GREENLET;
    }
    PyObject *operation = fl_operation_at(state, what, waitq, wanted, end_of_wait, NULL);
    if (operation != NULL) {
        fl_operation_for(operation, stake);
    }
    PyObject *result = fl_greenlet_wait(operation, deadline);
    int outcome = result == NULL ? -1 : result == Py_None ? 0 : (int)PyLong_AsLong(result);
    Py_XDECREF(result);
    return outcome;
}

/* A signal that comes after the last look at it and before the thread sleeps, or that the kernel gives to
   another thread, interrupts no sleep. So the thread that runs the handlers looks by itself: soon after it
   fell asleep, when that is likely, and at last once a second. */
#define FIRST_LOOK_NS 1000000
#define LAST_LOOK 10 /* doublings */

/* When a thread that waits looks for signals next; *looks is 0 at first. */
static int64_t next_look(int *looks)
{
    if (!fl_park_misses_signals()) {
        return FL_FOREVER;
    }
    int64_t pause = (int64_t)FIRST_LOOK_NS << *looks;
    *looks += *looks < LAST_LOOK;
    return fl_clock_now() + pause;
}

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
    int64_t signals = next_look(looks);
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

int fl_wait_thread_always(PyObject *what, fl_waitq *waitq, fl_stake stake)
{
    PyObject *error = NULL; /* the last one */
    int outcome, looks = 0;
    while ((outcome = fl_wait_greenlet(what, waitq, 1, stake, FL_FOREVER)) < 0) {
        Py_XSETREF(error, fl_caught());
    }
    if (outcome == FL_NO_GREENLET) {
        fl_waiter *waiter;
        while ((waiter = fl_waiter_for(what, waitq, 1, stake)) == NULL) { /* for lack of memory */
            Py_XSETREF(error, fl_caught());
        }
        outcome = fl_waitq_enter(waiter);
        while (outcome != 1) {
            outcome = fl_sleep(waiter, FL_FOREVER, &looks);
            if (outcome < 0) {
                Py_XSETREF(error, fl_caught());
            }
        }
        fl_thread_waiter_done(waiter);
    }
    if (error == NULL) {
        return 0;
    }
    fl_raise_again(error);
    return -1;
}

PyObject *fl_wait_for_zero(const char *function, PyObject *what, PyObject *const *args, Py_ssize_t count,
                           PyObject *kwnames)
{
    int64_t deadline;
    if (fl_timeout_argument(function, args, count, kwnames, &deadline) < 0) {
        return NULL;
    }
    int zero = fl_flag_is_set(fl_wrapper_waitq(what));
    if (!zero && deadline > 0) {
        zero = fl_wait_thread(what, fl_wrapper_waitq(what), 0, (fl_stake){0}, deadline);
    }
    return fl_truth(zero);
}

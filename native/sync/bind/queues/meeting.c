/* Rendezvous, the line of a channel without room: a newcomer meets another
 * (sync/coordination/meeting.h).
 *
 * A handoff is swapped attached only, by the side that enters or gives back, so that the collector finds
 * every object in one place: with a thread that waits, which holds it, in the operation of a task, or among
 * those that came back.
 */
#include "sync/bind/queues/queues.h"
#include "sync/bind/base/wait.h"

static void *raise_unmet(PyObject *self, int result, fl_meeting_side side)
{
    if (result == FL_REFUSAL) {
        return fl_raise(fl_wrapper_state(self), QueueShutDown,
                        "the other end of the channel has been closed");
    }
    if (result == 0 && side == FL_MEET_SEND) {
        return fl_raise(fl_wrapper_state(self), QueueFull,
                        "there was no receiver, and the channel has no room");
    }
    if (result == 0) {
        return fl_raise(fl_wrapper_state(self), QueueEmpty, "there was no sender");
    }
    return NULL;
}

static PyObject *finish_send(PyObject *self, PyObject *Py_UNUSED(item), bool refused)
{
    if (refused) {
        return raise_unmet(self, FL_REFUSAL, FL_MEET_SEND);
    }
    Py_RETURN_NONE;
}

static PyObject *finish_receive(PyObject *self, PyObject *item, bool refused)
{
    return refused ? raise_unmet(self, FL_REFUSAL, FL_MEET_RECEIVE) : Py_NewRef(item);
}

/* What a greenlet's wait ends with is never None, which says that its time was over. */
static PyObject *finish_in_greenlet(PyObject *Py_UNUSED(self), PyObject *item, bool refused)
{
    return refused ? PyLong_FromLong(FL_REFUSAL) : PyTuple_Pack(1, item == NULL ? Py_None : item);
}

/* A greenlet's stack is not in its place while it waits, but its operation is. */
static PyObject *meet_in_greenlet(PyObject *self, fl_meeting_side side, fl_handoff *handoff, int64_t deadline)
{
    PyObject *operation =
        fl_operation_meeting(fl_wrapper_state(self), self, side, handoff, finish_in_greenlet);
    PyObject *result = fl_greenlet_wait(operation, deadline), *came = NULL;
    if (result != NULL && PyTuple_Check(result)) {
        came = Py_NewRef(PyTuple_GET_ITEM(result, 0));
    } else if (result != NULL) {
        raise_unmet(self, result == Py_None ? 0 : FL_REFUSAL, side);
    }
    Py_XDECREF(result);
    return came;
}

/* As fl_wait_thread. */
static int meet_in_thread(PyObject *self, fl_meeting_side side, fl_handoff **place, int64_t deadline)
{
    fl_waitq *waitq = fl_wrapper_waitq(self);
    bool met;
    FL_WAKING(met = fl_meeting_try(waitq, side, place));
    if (met) {
        return 1;
    }
    if (deadline == 0) {
        return fl_meeting_closed(waitq) ? FL_REFUSAL : 0;
    }
    return fl_wait_thread(self, waitq, side, fl_meeting_place(place), deadline);
}

/* Steals the handoff. A new reference to what came, None for a sender; NULL with an exception. */
static PyObject *meet_within(PyObject *self, fl_meeting_side side, fl_handoff *handoff, int64_t deadline)
{
    int greenlet = deadline > 0 ? fl_in_greenlet(fl_wrapper_state(self)) : 0;
    if (greenlet > 0) {
        return meet_in_greenlet(self, side, handoff, deadline);
    }
    int result = greenlet < 0 ? -1 : meet_in_thread(self, side, &handoff, deadline);
    PyObject *came = NULL;
    if (result == 1) {
        came = Py_NewRef(handoff == NULL ? Py_None : (PyObject *)handoff->object);
    }
    fl_handoff_drop(handoff); /* of what stays here the caller has a reference */
    return result == 1 ? came : raise_unmet(self, result, side);
}

static PyObject *send_within(PyObject *self, PyObject *item, int64_t deadline)
{
    fl_handoff *handoff = fl_handoff_new(item);
    return handoff == NULL ? NULL : meet_within(self, FL_MEET_SEND, handoff, deadline);
}

static PyObject *receive_within(PyObject *self, int64_t deadline)
{
    return meet_within(self, FL_MEET_RECEIVE, NULL, deadline);
}

static PyObject *rendezvous_put(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    static const char *const names[] = {"item", "block", "timeout", NULL};
    PyObject *values[3];
    int64_t deadline;
    if (fl_arguments("put", names, args, count, kwnames, values) < 0) {
        return NULL;
    }
    if (values[0] == NULL) {
        PyErr_SetString(PyExc_TypeError, "put() missing required argument 'item'");
        return NULL;
    }
    return fl_queue_deadline(values[1], values[2], &deadline) < 0 ? NULL
                                                                  : send_within(self, values[0], deadline);
}

static PyObject *rendezvous_put_nowait(PyObject *self, PyObject *item)
{
    return send_within(self, item, 0);
}

static PyObject *rendezvous_put_async(PyObject *self, PyObject *item)
{
    fl_handoff *handoff = fl_handoff_new(item);
    return handoff == NULL
               ? NULL
               : fl_operation_meeting(fl_wrapper_state(self), self, FL_MEET_SEND, handoff, finish_send);
}

static PyObject *rendezvous_get(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    int64_t deadline;
    return fl_queue_arguments("get", args, count, kwnames, &deadline) < 0 ? NULL
                                                                          : receive_within(self, deadline);
}

static PyObject *rendezvous_get_nowait(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    return receive_within(self, 0);
}

static PyObject *rendezvous_get_async(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    return fl_operation_meeting(fl_wrapper_state(self), self, FL_MEET_RECEIVE, NULL, finish_receive);
}

/* Whatever destructors do meanwhile. */
static void drop_listed(PyObject *self)
{
    fl_handoff *next;
    for (fl_handoff *handoff = fl_meeting_clear(fl_wrapper_waitq(self)); handoff != NULL; handoff = next) {
        next = handoff->next;
        fl_handoff_drop(handoff);
    }
}

static PyObject *rendezvous_shutdown(PyObject *self, PyObject *const *args, Py_ssize_t count,
                                     PyObject *kwnames)
{
    int immediate = fl_shutdown_arguments(args, count, kwnames);
    if (immediate < 0) {
        return NULL;
    }
    FL_WAKING(fl_meeting_close(fl_wrapper_waitq(self)));
    if (immediate) {
        drop_listed(self);
    }
    Py_RETURN_NONE;
}

static PyObject *rendezvous_statistics(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    fl_waitq *waitq = fl_wrapper_waitq(self);
    return Py_BuildValue("IIIO", (unsigned)fl_meeting_listed(waitq),
                         (unsigned)fl_meeting_waiting(waitq, FL_MEET_SEND),
                         (unsigned)fl_meeting_waiting(waitq, FL_MEET_RECEIVE),
                         fl_meeting_closed(waitq) ? Py_True : Py_False);
}

static PyObject *rendezvous_reduce(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(ignored))
{
    PyErr_SetString(PyExc_TypeError,
                    "cannot pickle a channel without room, which stays in its interpreter: channel(1) goes");
    return NULL;
}

static PyObject *rendezvous_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    return PyArg_ParseTupleAndKeywords(args, kwargs, ":Rendezvous", FL_PARAMETERS(Rendezvous))
               ? fl_wrapper_new(type, fl_meeting_new())
               : NULL;
}

static int traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    if (fl_wrapper_waitq(self) != NULL) {
        fl_handoff *handoff = fl_meeting_list(fl_wrapper_waitq(self));
        for (; handoff != NULL; handoff = handoff->next) {
            Py_VISIT((PyObject *)handoff->object);
        }
    }
    return 0;
}

static int clear(PyObject *self)
{
    if (fl_wrapper_waitq(self) != NULL) {
        drop_listed(self);
    }
    return 0;
}

static void dealloc(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    Py_TRASHCAN_BEGIN(self, dealloc)
    clear(self);
    fl_wrapper_dealloc(self);
    Py_TRASHCAN_END
}

PyType_Spec fl_rendezvous_spec = FL_TYPE("fairlead._native.Rendezvous", fl_wrapper, Py_TPFLAGS_HAVE_GC,
    {Py_tp_new, (void *)rendezvous_new},
    {Py_tp_traverse, (void *)traverse},
    {Py_tp_clear, (void *)clear},
    {Py_tp_dealloc, (void *)dealloc},
    FL_WRAPPER_SLOTS(Rendezvous, rendezvous_));

/* Rendezvous, the line of a channel without room, at which its ends (ends.c) meet: see meeting.h.
 *
 * A handoff is swapped attached only, by the side that enters or gives back, so that the collector finds
 * every object in one place: with a thread that waits, which holds it, in the operation of a task, or among
 * those that came back.
 */
#include "sync/bind/queues/queues.h"
#include "sync/bind/wait/mailbox.h"
#include "sync/bind/wait/operation.h"

/* Whatever destructors do meanwhile. */
static void drop_listed(PyObject *self)
{
    fl_handoff *next;
    for (fl_handoff *handoff = fl_meeting_clear(fl_wrapper_waitq(self)); handoff != NULL; handoff = next) {
        next = handoff->next;
        fl_handoff_drop(handoff);
    }
}

void fl_rendezvous_shutdown(PyObject *self, bool immediate)
{
    FL_WAKING(fl_meeting_close(fl_wrapper_waitq(self)));
    if (immediate) {
        drop_listed(self);
    }
}

static PyObject *rendezvous_statistics(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    fl_waitq *waitq = fl_wrapper_waitq(self);
    fl_meeting_figures figures = fl_meeting_count(waitq);
    return Py_BuildValue("IIIO", (unsigned)figures.listed, (unsigned)figures.waiting[FL_MEET_SEND],
                         (unsigned)figures.waiting[FL_MEET_RECEIVE],
                         fl_meeting_closed(waitq) ? Py_True : Py_False);
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

PyType_Spec fl_rendezvous_spec = FL_TYPE("fairlead._native.Rendezvous", fl_wrapper, Py_TPFLAGS_HAVE_GC,
    {Py_tp_new, (void *)rendezvous_new},
    {Py_tp_traverse, (void *)traverse},
    {Py_tp_clear, (void *)clear},
    FL_WRAPPER_SLOTS(Rendezvous, rendezvous_));

/* Rendezvous: the line of a channel without room. Who sends meets who receives (core/meeting.h).
 *
 * A parcel is swapped attached only, by who enters or gives back, so that the collector finds every object in
 * one place: with a thread that waits, which holds it, in the ticket of a task, or among those that came
 * back.
 */
#include "bind/queues.h"
#include "bind/wait.h"

/* As fl_wait_thread, with a way out for greenlets, whose stack is not in its place while they wait. */
static int wait_to_meet(PyObject *self, fl_meeting_side side, fl_parcel **place, int64_t deadline)
{
    fl_cell *cell = fl_shell_cell(self);
    bool met;
    FL_WAKING(met = fl_meeting_try(cell, side, place));
    if (met) {
        return 1;
    }
    if (deadline == 0) {
        return fl_meeting_closed(cell) ? FL_REFUSAL : 0;
    }
    return fl_wait_thread(cell, side, fl_meeting_place(place), deadline);
}

static void *raise_unmet(int result, bool sending)
{
    if (result == FL_REFUSAL) {
        return fl_raise_queue_error("QueueShutDown", "the other end of the channel has been closed");
    }
    if (result == 0 && sending) {
        return fl_raise_queue_error("QueueFull", "nobody was there to receive it; the channel has no room");
    }
    if (result == 0) {
        return fl_raise_queue_error("QueueEmpty", "nobody was there who sends");
    }
    return NULL;
}

static PyObject *finish_send(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(item), bool refused)
{
    if (refused) {
        return raise_unmet(FL_REFUSAL, true);
    }
    Py_RETURN_NONE;
}

static PyObject *finish_receive(PyObject *Py_UNUSED(self), PyObject *item, bool refused)
{
    return refused ? raise_unmet(FL_REFUSAL, false) : Py_NewRef(item);
}

/* What a greenlet's wait ends with is never None, which says that its time was over. */
static PyObject *finish_in_greenlet(PyObject *Py_UNUSED(self), PyObject *item, bool refused)
{
    return refused ? PyLong_FromLong(FL_REFUSAL) : PyTuple_Pack(1, item == NULL ? Py_None : item);
}

/* A new reference to what came, None for who sends; NULL with an exception. */
static PyObject *meet_in_greenlet(PyObject *self, fl_meeting_side side, fl_parcel *parcel, int64_t deadline)
{
    PyObject *ticket = fl_ticket_meeting(fl_shell_state(self), self, side, parcel, finish_in_greenlet);
    PyObject *result = ticket == NULL ? NULL : fl_greenlet_wait(ticket, deadline), *came = NULL;
    Py_XDECREF(ticket);
    if (result != NULL && PyTuple_Check(result)) {
        came = Py_NewRef(PyTuple_GET_ITEM(result, 0));
    } else if (result != NULL) {
        raise_unmet(result == Py_None ? 0 : FL_REFUSAL, side == FL_MEET_SEND);
    }
    Py_XDECREF(result);
    return came;
}

static PyObject *send_within(PyObject *self, PyObject *item, int64_t deadline)
{
    fl_parcel *parcel = fl_parcel_new(item);
    if (parcel == NULL) {
        return NULL;
    }
    int greenlet = deadline > 0 ? fl_in_greenlet() : 0;
    if (greenlet > 0) {
        return meet_in_greenlet(self, FL_MEET_SEND, parcel, deadline);
    }
    int result = greenlet < 0 ? -1 : wait_to_meet(self, FL_MEET_SEND, &parcel, deadline);
    if (result == 1) {
        Py_RETURN_NONE;
    }
    fl_parcel_drop(parcel);
    return raise_unmet(result, true);
}

static PyObject *receive_within(PyObject *self, int64_t deadline)
{
    int greenlet = deadline > 0 ? fl_in_greenlet() : 0;
    if (greenlet != 0) {
        return greenlet < 0 ? NULL : meet_in_greenlet(self, FL_MEET_RECEIVE, NULL, deadline);
    }
    fl_parcel *parcel = NULL;
    int result = wait_to_meet(self, FL_MEET_RECEIVE, &parcel, deadline);
    if (result != 1) {
        return raise_unmet(result, false);
    }
    PyObject *item = Py_NewRef((PyObject *)parcel->object);
    fl_parcel_drop(parcel);
    return item;
}

PyDoc_STRVAR(put_doc,
"put($self, /, item, block=True, timeout=None)\n"
"--\n"
"\n"
"Hands an object over, waiting for somebody who gets one. For threads. Raises QueueFull when nobody does at\n"
"once, or within the time, and QueueShutDown; then the object stays here.");

static PyObject *put(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
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

PyDoc_STRVAR(put_nowait_doc,
"put_nowait($self, item, /)\n"
"--\n"
"\n"
"As put(item, False). A signal handler or a destructor may call it.");

static PyObject *put_nowait(PyObject *self, PyObject *item)
{
    return send_within(self, item, 0);
}

PyDoc_STRVAR(put_async_doc,
"put_async($self, item, /)\n"
"--\n"
"\n"
"As put(item), in an awaitable.");

static PyObject *put_async(PyObject *self, PyObject *item)
{
    fl_parcel *parcel = fl_parcel_new(item);
    return parcel == NULL
               ? NULL
               : fl_ticket_meeting(fl_shell_state(self), self, FL_MEET_SEND, parcel, finish_send);
}

PyDoc_STRVAR(get_doc,
"get($self, /, block=True, timeout=None)\n"
"--\n"
"\n"
"Takes an object from somebody who puts one, waiting for that. For threads. Raises QueueEmpty when nobody\n"
"does at once, or within the time, and QueueShutDown.");

static PyObject *get(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    int64_t deadline;
    return fl_queue_arguments("get", args, count, kwnames, &deadline) < 0 ? NULL
                                                                          : receive_within(self, deadline);
}

PyDoc_STRVAR(get_nowait_doc,
"get_nowait($self, /)\n"
"--\n"
"\n"
"As get(False).");

static PyObject *get_nowait(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    return receive_within(self, 0);
}

PyDoc_STRVAR(get_async_doc,
"get_async($self, /)\n"
"--\n"
"\n"
"As get(), in an awaitable. What came for a task that is cancelled before it has run goes to the next.");

static PyObject *get_async(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    return fl_ticket_meeting(fl_shell_state(self), self, FL_MEET_RECEIVE, NULL, finish_receive);
}

/* Whatever destructors do meanwhile. */
static void drop_listed(PyObject *self)
{
    fl_parcel *next;
    for (fl_parcel *parcel = fl_meeting_clear(fl_shell_cell(self)); parcel != NULL; parcel = next) {
        next = parcel->next;
        fl_parcel_drop(parcel);
    }
}

PyDoc_STRVAR(shutdown_doc,
"shutdown($self, /, immediate=False)\n"
"--\n"
"\n"
"Nobody meets any more: who waits, and who comes, gets QueueShutDown. What was given back by cancelled\n"
"tasks can be got still; immediate=True throws it away.");

static PyObject *shutdown(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    static const char *const names[] = {"immediate", NULL};
    PyObject *value;
    if (fl_arguments("shutdown", names, args, count, kwnames, &value) < 0) {
        return NULL;
    }
    int immediate = value == NULL ? 0 : PyObject_IsTrue(value);
    if (immediate < 0) {
        return NULL;
    }
    FL_WAKING(fl_meeting_close(fl_shell_cell(self)));
    if (immediate) {
        drop_listed(self);
    }
    Py_RETURN_NONE;
}

PyDoc_STRVAR(statistics_doc,
"statistics($self, /)\n"
"--\n"
"\n"
"Of the moment: objects that were given back, who puts, who gets, and whether it is shut down.");

static PyObject *statistics(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    fl_cell *cell = fl_shell_cell(self);
    return Py_BuildValue("IIIO", (unsigned)fl_meeting_listed(cell),
                         (unsigned)fl_meeting_waiting(cell, FL_MEET_SEND),
                         (unsigned)fl_meeting_waiting(cell, FL_MEET_RECEIVE),
                         fl_meeting_closed(cell) ? Py_True : Py_False);
}

PyDoc_STRVAR(reduce_doc,
"__reduce__($self, /)\n"
"--\n"
"\n"
"Refused.");

static PyObject *reduce(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(ignored))
{
    PyErr_SetString(PyExc_TypeError,
                    "cannot pickle a channel without room, which stays in its interpreter: channel(1) goes");
    return NULL;
}

static PyObject *rendezvous_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {NULL};
    return PyArg_ParseTupleAndKeywords(args, kwargs, ":Rendezvous", names)
               ? fl_shell_new(type, fl_meeting_new())
               : NULL;
}

static int traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    if (fl_shell_cell(self) != NULL) {
        fl_parcel *parcel = fl_meeting_list(fl_shell_cell(self));
        for (; parcel != NULL; parcel = parcel->next) {
            Py_VISIT((PyObject *)parcel->object);
        }
    }
    return 0;
}

static int clear(PyObject *self)
{
    if (fl_shell_cell(self) != NULL) {
        drop_listed(self);
    }
    return 0;
}

static void dealloc(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    clear(self);
    fl_shell_dealloc(self);
}

PyDoc_STRVAR(class_getitem_doc,
"__class_getitem__($type, item, /)\n"
"--\n"
"\n"
"Rendezvous[int] is a Rendezvous, for annotations.");

static PyMethodDef methods[] = {
    {"__class_getitem__", Py_GenericAlias, METH_O | METH_CLASS, class_getitem_doc},
    {"__reduce__", reduce, METH_NOARGS, reduce_doc},
    {"put", FL_METHOD(put), METH_FASTCALL | METH_KEYWORDS, put_doc},
    {"put_nowait", put_nowait, METH_O, put_nowait_doc},
    {"put_async", put_async, METH_O, put_async_doc},
    {"get", FL_METHOD(get), METH_FASTCALL | METH_KEYWORDS, get_doc},
    {"get_nowait", get_nowait, METH_NOARGS, get_nowait_doc},
    {"get_async", get_async, METH_NOARGS, get_async_doc},
    {"shutdown", FL_METHOD(shutdown), METH_FASTCALL | METH_KEYWORDS, shutdown_doc},
    {"statistics", statistics, METH_NOARGS, statistics_doc},
    {NULL, NULL, 0, NULL},
};

PyDoc_STRVAR(type_doc,
"Rendezvous()\n"
"--\n"
"\n"
"What a channel without room is made of: who puts an object waits for who gets it.");

static PyType_Slot slots[] = {
    {Py_tp_new, (void *)rendezvous_new},
    {Py_tp_traverse, (void *)traverse},
    {Py_tp_clear, (void *)clear},
    {Py_tp_dealloc, (void *)dealloc},
    {Py_tp_methods, methods},
    {Py_tp_members, fl_shell_members},
    {Py_tp_doc, (void *)(uintptr_t)type_doc},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "fairlead._native.Rendezvous",
    .basicsize = sizeof(fl_shell),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};

int fl_meeting_exec(PyObject *module)
{
    fl_state *state = fl_state_of(module);
    state->rendezvous_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);
    PyTypeObject *types[] = {state->rendezvous_type};
    return fl_add_types(module, types, Py_ARRAY_LENGTH(types));
}

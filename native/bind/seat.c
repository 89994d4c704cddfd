/* Seat: what a worker, in an interpreter of its own, takes calls from and replies to. The board's other side
 * is board.c.
 */
#include "bind/board.h"

typedef struct {
    PyObject_HEAD
    fl_board *board;
    fl_seat *seat; /* the engine's fl_board_leave frees it, after this interpreter has run its last */
} seat_object;

PyDoc_STRVAR(take_doc,
"take($self, /)\n"
"--\n"
"\n"
"Waits for a call and returns it; raises what is wrong with it, which is to be replied to as any. None:\n"
"there will be no more.");

static PyObject *take(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    seat_object *self = (seat_object *)op;
    if (self->seat->job != NULL) {
        PyErr_SetString(PyExc_RuntimeError, "reply to the last call first");
        return NULL;
    }
    fl_job *job = NULL;
    while (job == NULL) {
        int got = fl_wait_permit(op, self->board->work, &self->board->for_work, FL_FOREVER);
        if (got != 1) {
            return got < 0 ? NULL : Py_NewRef(Py_None);
        }
        job = fl_board_take(self->board, self->seat);
    }
    PyObject *value = fl_unpack(fl_shell_state(op), job->call);
    fl_item_unref(job->call); /* what it refers to is let go of before the reply */
    job->call = NULL;
    return value;
}

/* A worker's news: their value, packed, and their kind. NULL without an exception: they are none. */
static fl_item *news_in(PyObject *op, PyObject *const *args, Py_ssize_t count, uint8_t *kind)
{
    long number = count == 2 ? PyLong_AsLong(args[0]) : FL_NEWS_BEGUN;
    if (number <= FL_NEWS_BEGUN || number >= FL_NEWS_UNREADABLE) {
        return NULL;
    }
    *kind = (uint8_t)number;
    return fl_pack(args[1], &(fl_sending){fl_shell_state(op), NULL});
}

PyDoc_STRVAR(reply_doc,
"reply($self, kind, value, /)\n"
"--\n"
"\n"
"Replies to the call that was taken. False: nobody wants it, and this worker is to end.");

static PyObject *reply(PyObject *op, PyObject *const *args, Py_ssize_t count)
{
    seat_object *self = (seat_object *)op;
    uint8_t kind;
    fl_item *item = self->seat->job == NULL ? NULL : news_in(op, args, count, &kind);
    if (item == NULL) {
        if (!PyErr_Occurred()) {
            PyErr_SetString(PyExc_ValueError, "reply() takes a kind and a value, once for each call");
        }
        return NULL;
    }
    return PyBool_FromLong(fl_board_reply(self->board, self->seat, kind, item));
}

PyDoc_STRVAR(tell_doc,
"tell($self, kind, value, /)\n"
"--\n"
"\n"
"Says something that is no reply.");

static PyObject *tell(PyObject *op, PyObject *const *args, Py_ssize_t count)
{
    seat_object *self = (seat_object *)op;
    uint8_t kind;
    fl_item *item = news_in(op, args, count, &kind);
    if (item == NULL) {
        if (!PyErr_Occurred()) {
            PyErr_SetString(PyExc_ValueError, "tell() takes a kind and a value");
        }
        return NULL;
    }
    if (!fl_board_tell(self->board, self->seat->worker, kind, item)) {
        return PyErr_NoMemory();
    }
    Py_RETURN_NONE;
}

static PyObject *seat_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char board_name[] = "board", worker_name[] = "worker";
    static char *names[] = {board_name, worker_name, NULL};
    unsigned long long number;
    unsigned int worker;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "KI:Seat", names, &number, &worker)) {
        return NULL;
    }
    fl_board *board = fl_board_find(number);
    if (board == NULL) {
        return fl_raise("HandleGoneError", "there is no board with this number any more");
    }
    seat_object *self = (seat_object *)type->tp_alloc(type, 0);
    fl_seat *seat = self == NULL ? NULL
                                 : fl_board_sit(board, worker, PyInterpreterState_Get(),
                                                PyThread_get_thread_ident());
    if (self == NULL) {
        fl_board_unref(board);
        return NULL;
    }
    self->board = board;
    self->seat = seat;
    if (seat == NULL) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    return (PyObject *)self;
}

static void seat_dealloc(PyObject *op)
{
    PyTypeObject *type = Py_TYPE(op);
    fl_board_unref(((seat_object *)op)->board);
    type->tp_free(op);
    Py_DECREF(type);
}

static PyMethodDef seat_methods[] = {
    {"take", take, METH_NOARGS, take_doc},
    {"reply", FL_METHOD(reply), METH_FASTCALL, reply_doc},
    {"tell", FL_METHOD(tell), METH_FASTCALL, tell_doc},
    {NULL, NULL, 0, NULL},
};

PyDoc_STRVAR(seat_doc,
"Seat(board, worker)\n"
"--\n"
"\n"
"A worker's place at the board with this number; for the thread that makes it. The engine's leave() ends\n"
"it.");

static PyType_Slot seat_slots[] = {
    {Py_tp_new, (void *)seat_new},
    {Py_tp_dealloc, (void *)seat_dealloc},
    {Py_tp_methods, seat_methods},
    {Py_tp_doc, (void *)(uintptr_t)seat_doc},
    {0, NULL},
};

static PyType_Spec seat_spec = {
    .name = "fairlead._native.Seat",
    .basicsize = sizeof(seat_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = seat_slots,
};

int fl_seat_exec(PyObject *module)
{
    fl_state *state = fl_state_of(module);
    state->seat_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &seat_spec, NULL);
    return fl_add_types(module, &state->seat_type, 1);
}

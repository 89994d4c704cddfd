/* Queue, LifoQueue, PriorityQueue and SimpleQueue: four wrappers of what bounded.c does. */
#include "sync/bind/queues/bounded.h"
#include "sync/bind/queues/queues.h"
#include "sync/bind/base/arguments.h"
#include "sync/bind/wait/blocking.h"
#include "sync/bind/wait/operation.h"

static PyObject *put_within(fl_bounded *self, PyObject *item, int64_t deadline)
{
    int result = fl_bounded_take(self, self->storage->slots, deadline);
    if (result != 1) {
        return fl_bounded_raise(self, result, true);
    }
    return fl_none(fl_bounded_store(self, item));
}

static PyObject *get_within(fl_bounded *self, int64_t deadline)
{
    int result = fl_bounded_take(self, fl_bounded_objects(self), deadline);
    return result == 1 ? fl_bounded_fetch(self) : fl_bounded_raise(self, result, false);
}

static PyObject *peek_within(fl_bounded *self, int64_t deadline)
{
    if (fl_sem_value(fl_bounded_objects(self)) > 0) {
        /* without a permit, so that no other thread finds the queue empty */
        PyObject *object = fl_bounded_look_at(self);
        if (object != NULL || PyErr_Occurred()) {
            return object;
        }
    }
    int result = fl_bounded_take(self, fl_bounded_objects(self), deadline);
    return result == 1 ? fl_bounded_look(self) : fl_bounded_raise(self, result, false);
}

static PyObject *queue_put(PyObject *op, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    PyObject *values[3] = {count > 0 ? args[0] : NULL};
    int64_t deadline = FL_FOREVER;
    fl_bounded *self = fl_bounded_begin(op);
    if (count != 1 || kwnames != NULL) {
        static const char *const names[] = {"!item", "block", "timeout", NULL};
        if (fl_arguments("put", names, args, count, kwnames, values) < 0 ||
            (self->storage->slots != NULL && fl_queue_deadline(values[1], values[2], &deadline) < 0)) {
            return NULL;
        }
    }
    return put_within(self, values[0], deadline);
}

/* The one argument of a call; NULL with an exception set. */
static PyObject *item_of(const char *function, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    static const char *const names[] = {"!item", NULL};
    PyObject *item = count == 1 ? args[0] : NULL;
    if (count == 1 && kwnames == NULL) {
        return item;
    }
    return fl_arguments(function, names, args, count, kwnames, &item) < 0 ? NULL : item;
}

static PyObject *queue_put_nowait(PyObject *op, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    PyObject *item = item_of("put_nowait", args, count, kwnames);
    return item == NULL ? NULL : put_within(fl_bounded_begin(op), item, 0);
}

static PyObject *finish_put(PyObject *op, fl_end end)
{
    if (end.refused) {
        return fl_bounded_raise((fl_bounded *)op, FL_REFUSAL, true);
    }
    return fl_none(fl_bounded_store((fl_bounded *)op, end.item));
}

static PyObject *queue_put_async(PyObject *op, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    PyObject *item = item_of("put_async", args, count, kwnames);
    if (item == NULL) {
        return NULL;
    }
    fl_waitq *slots = fl_bounded_begin(op)->storage->slots;
    if (slots == NULL) {
        return fl_bounded_store((fl_bounded *)op, item) < 0 ? NULL : fl_operation_done(fl_wrapper_state(op));
    }
    return fl_operation_at(fl_wrapper_state(op), op, slots, 1, finish_put, item);
}

static PyObject *queue_get(PyObject *op, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    int64_t deadline;
    return fl_queue_arguments("get", args, count, kwnames, &deadline) < 0
               ? NULL
               : get_within(fl_bounded_begin(op), deadline);
}

static PyObject *queue_get_nowait(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    return get_within(fl_bounded_begin(op), 0);
}

static PyObject *finish_get(PyObject *op, fl_end end)
{
    fl_bounded *self = (fl_bounded *)op;
    return end.refused ? fl_bounded_raise(self, FL_REFUSAL, false) : fl_bounded_fetch(self);
}

static PyObject *queue_get_async(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    fl_bounded_begin(op);
    return fl_operation_new(fl_wrapper_state(op), op, 1, finish_get);
}

static PyObject *queue_peek(PyObject *op, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    int64_t deadline;
    return fl_queue_arguments("peek", args, count, kwnames, &deadline) < 0
               ? NULL
               : peek_within(fl_bounded_begin(op), deadline);
}

static PyObject *queue_peek_nowait(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    return peek_within(fl_bounded_begin(op), 0);
}

static PyObject *finish_peek(PyObject *op, fl_end end)
{
    fl_bounded *self = (fl_bounded *)op;
    return end.refused ? fl_bounded_raise(self, FL_REFUSAL, false) : fl_bounded_look(self);
}

static PyObject *queue_peek_async(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    fl_bounded_begin(op);
    return fl_operation_new(fl_wrapper_state(op), op, 1, finish_peek);
}

static PyObject *queue_task_done(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    if (!fl_bounded_task_done(fl_bounded_begin(op))) {
        PyErr_SetString(PyExc_ValueError, "task_done() called too many times");
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *queue_join(PyObject *op, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    int64_t deadline;
    if (fl_timeout_argument("join", args, count, kwnames, &deadline) < 0) {
        return NULL;
    }
    fl_bounded *self = fl_bounded_begin(op);
    int done = fl_bounded_begin_join(self);
    if (done == 0 && deadline > 0) {
        done = fl_wait_thread(op, fl_load(&self->storage->finished, relaxed), 0, (fl_stake){0},
                              deadline); /* it stays */
    }
    return fl_truth(done);
}

static PyObject *finish_join(PyObject *Py_UNUSED(op), fl_end Py_UNUSED(end))
{
    Py_RETURN_NONE;
}

static PyObject *queue_join_async(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    fl_bounded *self = fl_bounded_begin(op);
    int done = fl_bounded_begin_join(self);
    if (done != 0) {
        return done < 0 ? NULL : fl_operation_done(fl_wrapper_state(op));
    }
    fl_waitq *finished = fl_load(&self->storage->finished, relaxed); /* it stays */
    return fl_operation_at(fl_wrapper_state(op), op, finished, 0, finish_join, NULL);
}

static PyObject *queue_shutdown(PyObject *op, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    int immediate = fl_shutdown_arguments(args, count, kwnames);
    if (immediate < 0) {
        return NULL;
    }
    fl_bounded_shutdown(fl_bounded_begin(op), immediate);
    Py_RETURN_NONE;
}

static int parse_maxsize(long long maxsize, uint32_t *parsed)
{
    if (maxsize > FL_SEM_MOST) {
        PyErr_Format(PyExc_ValueError, "maxsize must be at most %u; 0 is no bound", FL_SEM_MOST);
        return -1;
    }
    *parsed = maxsize > 0 ? (uint32_t)maxsize : 0;
    return 0;
}

static int resize_to(fl_bounded *self, PyObject *number)
{
    long long wanted = PyLong_AsLongLong(number);
    uint32_t maxsize;
    if ((wanted == -1 && PyErr_Occurred()) || parse_maxsize(wanted, &maxsize) < 0) {
        return -1;
    }
    fl_bounded_resize(self, maxsize);
    return 0;
}

static PyObject *queue_resize(PyObject *op, PyObject *number)
{
    return fl_none(resize_to(fl_bounded_begin(op), number));
}

static PyObject *queue_qsize(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    return PyLong_FromUnsignedLong(fl_bounded_size(fl_bounded_begin(op)));
}

static PyObject *queue_empty(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    return PyBool_FromLong(fl_bounded_size(fl_bounded_begin(op)) == 0);
}

static PyObject *queue_full(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    return PyBool_FromLong(fl_sem_value(fl_bounded_begin(op)->storage->slots) == 0);
}

static PyObject *queue_statistics(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    fl_bounded *self = fl_bounded_begin(op);
    if (self->storage->slots == NULL) {
        long values[] = {(long)fl_bounded_size(self), (long)fl_waitq_waiting(fl_bounded_objects(self))};
        return fl_record(fl_wrapper_state(op)->simple_queue_statistics, values, 2, 0);
    }
    fl_waitq *finished = fl_load(&self->storage->finished, acquire); /* pairs with fl_bounded_begin_join */
    long values[] = {
        (long)fl_bounded_size(self),
        (long)self->storage->maxsize,
        (long)fl_waitq_waiting(fl_bounded_objects(self)),
        (long)fl_waitq_waiting(self->storage->slots),
        finished == NULL ? 0 : (long)fl_waitq_waiting(finished),
        (long)self->storage->unfinished,
        fl_load(&self->storage->shut, relaxed), /* a figure to show */
        fl_bounded_objects(self)->flags & FL_WAITQ_FAIR,
    };
    return fl_record(fl_wrapper_state(op)->queue_statistics, values, 8, 0xc0);
}

static PyObject *repr(PyObject *op)
{
    fl_bounded *self = fl_bounded_begin(op);
    const char *shut = fl_load(&self->storage->shut, relaxed) ? ", shut down" : ""; /* to show */
    return PyUnicode_FromFormat("<%s of %u, maxsize=%u, %u getting, %u putting%s, at %p>",
                                Py_TYPE(op)->tp_name, (unsigned)fl_bounded_size(self),
                                (unsigned)self->storage->maxsize,
                                (unsigned)fl_waitq_waiting(fl_bounded_objects(self)),
                                (unsigned)fl_waitq_waiting(self->storage->slots), shut, (void *)op);
}

static PyObject *simple_repr(PyObject *op)
{
    return fl_wrapper_repr(op, "of %u", (unsigned)fl_bounded_size(fl_bounded_begin(op)));
}

static PyObject *queue_sizeof(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    const fl_bounded *self = fl_bounded_begin(op);
    const fl_storage *storage = self->storage;
    bool joined = fl_load(&storage->finished, relaxed) != NULL; /* a figure to show */
    size_t waitqs = 1u + (storage->slots != NULL) + joined;
    size_t elements = storage->elements.room * sizeof(void *);
    return PyLong_FromSize_t(sizeof *self + sizeof *storage + waitqs * sizeof(fl_waitq) + elements);
}

static PyObject *get_maxsize(PyObject *op, void *Py_UNUSED(closure))
{
    return PyLong_FromUnsignedLong(fl_bounded_begin(op)->storage->maxsize);
}

static int set_maxsize(PyObject *op, PyObject *value, void *Py_UNUSED(closure))
{
    if (value == NULL) {
        PyErr_SetString(PyExc_AttributeError, "maxsize cannot be deleted");
        return -1;
    }
    return resize_to(fl_bounded_begin(op), value);
}

static PyObject *get_unfinished(PyObject *op, void *Py_UNUSED(closure))
{
    return PyLong_FromUnsignedLongLong(fl_bounded_begin(op)->storage->unfinished);
}

static PyObject *get_is_shutdown(PyObject *op, void *Py_UNUSED(closure))
{
    return PyBool_FromLong(fl_load(&fl_bounded_begin(op)->storage->shut, relaxed)); /* a figure to show */
}

static PyGetSetDef getset[] = {
    {"maxsize", get_maxsize, set_maxsize, "How many objects there is room for; 0: any number.", NULL},
    {"unfinished_tasks", get_unfinished, NULL, FL_DOC(Queue, unfinished_tasks), NULL},
    {"is_shutdown", get_is_shutdown, NULL, FL_DOC(Queue, is_shutdown), NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyObject *new_by(PyTypeObject *type, PyObject *args, PyObject *kwargs, const char *format,
                        fl_order order)
{
    long long wanted = 0;
    int fair = 0;
    uint32_t maxsize;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, format, FL_PARAMETERS(Queue), &wanted, &fair) ||
        parse_maxsize(wanted, &maxsize) < 0) {
        return NULL;
    }
    return fl_bounded_new(type, order, maxsize, fair);
}

static PyObject *queue_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    return new_by(type, args, kwargs, "|L$p:Queue", FL_FIFO);
}

static PyObject *lifo_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    return new_by(type, args, kwargs, "|L$p:LifoQueue", FL_LIFO);
}

static PyObject *priority_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    return new_by(type, args, kwargs, "|L$p:PriorityQueue", FL_PRIORITY);
}

static PyObject *simple_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    return PyArg_ParseTupleAndKeywords(args, kwargs, ":SimpleQueue", FL_PARAMETERS(SimpleQueue))
               ? fl_bounded_new(type, FL_SIMPLE, 0, false)
               : NULL;
}

/* Copies, and what is not whole yet, are nothing to the collector. */
static bool has_objects(PyObject *op)
{
    fl_storage *storage = ((fl_bounded *)op)->storage;
    return storage != NULL && storage->elements.lock == NULL;
}

static int queue_traverse(PyObject *op, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(op));
    return has_objects(op) ? fl_elements_traverse(&((fl_bounded *)op)->storage->elements, visit, arg) : 0;
}

/* What a destructor does with the queue meanwhile finds it whole, and empty. */
static int queue_clear(PyObject *op)
{
    if (has_objects(op)) {
        fl_bounded_clear((fl_bounded *)op);
    }
    return 0;
}

#define QUEUE(type, prefix, new, ...)                                                                       \
    FL_TYPE("fairlead.sync." #type, fl_bounded, Py_TPFLAGS_HAVE_GC,                                        \
            {Py_tp_new, (void *)(new)},                                                                    \
            {Py_tp_traverse, (void *)queue_traverse},                                                      \
            {Py_tp_clear, (void *)queue_clear},                                                            \
            __VA_ARGS__,                                                                                   \
            FL_WRAPPER_SLOTS_AND(type, prefix, fl_bounded_dealloc))

#define SHOWN {Py_tp_repr, (void *)repr}, {Py_tp_getset, getset}

PyType_Spec fl_queue_spec = QUEUE(Queue, queue_, queue_new, SHOWN);
PyType_Spec fl_lifo_spec = QUEUE(LifoQueue, queue_, lifo_new, SHOWN);
PyType_Spec fl_priority_spec = QUEUE(PriorityQueue, queue_, priority_new, SHOWN);
PyType_Spec fl_simple_queue_spec = QUEUE(SimpleQueue, queue_, simple_new, {Py_tp_repr, (void *)simple_repr});

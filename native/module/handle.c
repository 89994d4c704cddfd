/* Handles: a primitive of this interpreter as a number, and the number as a primitive of another one. */
#include "interpreters/bind/codec.h"
#include "sync/bind/base/wrapper.h"
#include "sync/bind/coordination/barrier.h"
#include "sync/bind/coordination/condition.h"
#include "sync/bind/queues/bounded.h"
#include "sync/bind/queues/broadcast.h"

#include <unistd.h>

#include "machine/clock.h"

static fl_shared *share_waitq(PyObject *op, uint32_t type)
{
    fl_shared *shared = fl_shared_new(fl_wrapper_waitq(op), type, NULL, NULL);
    return shared != NULL ? shared : (fl_shared *)PyErr_NoMemory();
}

/* A type, by its place in every interpreter's state; what makes an object of it common property, and what
   another interpreter's object for it needs besides. */
static const struct {
    size_t type;
    fl_shared *(*share)(PyObject *op, uint32_t type);
    void (*attach)(PyObject *op, fl_shared *shared);
} types[] = {
    {offsetof(fl_state, lock_type), share_waitq, NULL},
    {offsetof(fl_state, semaphore_type), share_waitq, NULL},
    {offsetof(fl_state, bounded_type), share_waitq, NULL},
    {offsetof(fl_state, rate_type), share_waitq, NULL},
    {offsetof(fl_state, event_type), share_waitq, NULL},
    {offsetof(fl_state, countdown_type), share_waitq, NULL},
    {offsetof(fl_state, condition_type), share_waitq, NULL},
    {offsetof(fl_state, barrier_type), fl_barrier_share, NULL},
    {offsetof(fl_state, simple_queue_type), fl_bounded_share, fl_bounded_attach},
    {offsetof(fl_state, queue_type), fl_bounded_share, fl_bounded_attach},
    {offsetof(fl_state, lifo_type), fl_bounded_share, fl_bounded_attach},
    {offsetof(fl_state, priority_type), fl_bounded_share, fl_bounded_attach},
    {offsetof(fl_state, broadcast_type), fl_broadcast_share, fl_broadcast_attach},
};
#define TYPES (sizeof types / sizeof types[0])

static PyTypeObject *type_at(fl_state *state, size_t which)
{
    return *(PyTypeObject **)((char *)state + types[which].type);
}

static fl_shared *share(PyObject *op, uint32_t type)
{
    fl_wrapper *wrapper = (fl_wrapper *)op;
    fl_shared *shared;
    FL_BEGIN_CRITICAL(op);
    shared = fl_load(&wrapper->shared, relaxed); /* written under this lock */
    if (shared == NULL) {
        shared = types[type].share(op, type);
        fl_store(&wrapper->shared, shared, release); /* pairs with a queue's put and get */
    }
    FL_END_CRITICAL();
    return shared;
}

static PyObject *handle(PyObject *module, PyObject *primitive)
{
    fl_state *state = fl_state_of(module);
    for (uint32_t i = 0; i < TYPES; i++) {
        if (Py_TYPE(primitive) == type_at(state, i)) {
            fl_shared *shared = share(primitive, i);
            return shared == NULL ? NULL : PyLong_FromUnsignedLongLong(fl_shared_handle(shared));
        }
    }
    const char *name = Py_TYPE(primitive)->tp_name;
    PyErr_Format(PyExc_TypeError, "a %s cannot be handed to another interpreter", name);
    return NULL;
}

static PyObject *attach(PyObject *module, PyObject *args)
{
    unsigned long long value;
    PyObject *lock = Py_None; /* of a condition */
    if (!PyArg_ParseTuple(args, "K|O:attach", &value, &lock)) {
        return NULL;
    }
    fl_shared *shared = fl_shared_find(value);
    if (shared == NULL) {
        return fl_raise(fl_state_of(module), HandleGoneError,
                        "no interpreter of this process has the object with this handle any more: keep it "
                        "until it has arrived");
    }
    fl_waitq_ref(shared->waitq);
    PyObject *op = lock != Py_None ? fl_condition_with(lock, shared->waitq)
                                : fl_wrapper_new(type_at(fl_state_of(module), shared->type), shared->waitq);
    if (op == NULL) {
        fl_shared_unref(shared);
    } else {
        fl_store(&((fl_wrapper *)op)->shared, shared, release); /* pairs with a queue's put and get */
        if (types[shared->type].attach != NULL) {
            types[shared->type].attach(op, shared);
        }
    }
    return op;
}

static PyObject *process(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    static fl_atomic(int64_t) since;
    int64_t none = 0;
    fl_cas(&since, &none, fl_clock_now(), relaxed, relaxed); /* any thread's will do */
    return Py_BuildValue("iIL", (int)getpid(), (unsigned)fl_fork_generation,
                         (long long)fl_load(&since, relaxed)); /* never changes again */
}

static PyObject *in_main_interpreter(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    return PyBool_FromLong(PyInterpreterState_Get() == PyInterpreterState_Main());
}

static PyObject *is_shared(PyObject *Py_UNUSED(module), PyObject *primitive)
{
    void *shared = fl_load(&((fl_wrapper *)primitive)->shared, acquire); /* pairs with share() */
    return PyBool_FromLong(fl_sharing || shared != NULL);
}

static PyObject *sharing(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *dumps, *object, *result;
    if (!PyArg_ParseTuple(args, "OO:sharing", &dumps, &object)) {
        return NULL;
    }
    FL_SHARING(result = PyObject_CallOneArg(dumps, object));
    return result;
}

PyMethodDef fl_handle_functions[] = {
    {"is_shared", is_shared, METH_O, FL_DOC(module, is_shared)},
    {"sharing", sharing, METH_VARARGS, FL_DOC(module, sharing)},
    {"handle", handle, METH_O, FL_DOC(module, handle)},
    {"attach", attach, METH_VARARGS, FL_DOC(module, attach)},
    {"process", process, METH_NOARGS, FL_DOC(module, process)},
    {"in_main_interpreter", in_main_interpreter, METH_NOARGS, FL_DOC(module, in_main_interpreter)},
    {NULL, NULL, 0, NULL},
};

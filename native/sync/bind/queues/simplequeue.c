/* SimpleQueue: objects in a ring of this interpreter, and a semaphore that counts them.
 *
 * A permit is the right to take one object, whichever is first by then: no object is ever assigned to a
 * getter that has not come to take it, so that a getter which is cancelled or times out gives back a
 * permit, and nothing moves. Invariant: the ring holds at least as many objects as there are permits, free
 * and granted, because an object goes in before its permit is given and comes out after it was taken.
 *
 * The ring is touched attached only: the GIL protects it, or where there is none the object's own lock.
 *
 * A queue that was handed to another interpreter has the line in interpreters/shared.h instead of the ring,
 * and carries copies: an object never leaves its interpreter.
 */
#include "interpreters/bind/codec.h"
#include "sync/bind/queues/queues.h"
#include "sync/bind/queues/elements.h"
#include "sync/bind/base/wait.h"

typedef struct {
    fl_wrapper wrapper;
    fl_elements elements;
    fl_atomic(uint32_t) generation;
} simple_queue;

/* What getters of the parent's other threads had been granted is still on the elements. A task of the thread
   that forked may go on here, and take what it was granted. */
static void put_in_order(simple_queue *self)
{
    FL_BEGIN_CRITICAL(self);
    if (fl_load(&self->generation, relaxed) != fl_fork_generation) { /* within the critical section */
        uint32_t known = fl_sem_value(self->wrapper.waitq) + fl_thread_table_granted(self->wrapper.waitq);
        if (self->elements.count > known) {
            fl_sem_give(self->wrapper.waitq, self->elements.count - known);
        }
        fl_store(&self->generation, fl_fork_generation, release); /* pairs with begin */
    }
    FL_END_CRITICAL();
}

/* Begins every operation. */
static fl_waitq *begin(PyObject *op)
{
    simple_queue *self = (simple_queue *)op;
    if (fl_load(&self->generation, acquire) != fl_fork_generation) { /* pairs with put_in_order */
        put_in_order(self);
    }
    return self->wrapper.waitq;
}

static fl_shared *shared_of(PyObject *op)
{
    return fl_load(&((fl_wrapper *)op)->shared, acquire); /* pairs with the store in handle.c */
}

fl_shared *fl_simplequeue_share(PyObject *op, uint32_t type)
{
    if (((simple_queue *)op)->elements.count > 0) {
        return fl_raise("UsageError", "hand a queue to another interpreter before something is put into it");
    }
    fl_shared *shared = fl_shared_new(fl_wrapper_waitq(op), type, NULL, NULL);
    return shared != NULL ? shared : (fl_shared *)PyErr_NoMemory();
}

static int push_copy(fl_shared *shared, PyObject *object)
{
    fl_item *item = fl_encode(object);
    if (item == NULL) {
        return -1;
    }
    fl_line_put(shared, item);
    fl_permits_give(shared->waitq, 1); /* at most as many as items */
    return 0;
}

static int push(PyObject *op, PyObject *item)
{
    fl_waitq *waitq = begin(op);
    fl_elements *elements = &((simple_queue *)op)->elements;
    fl_shared *shared;
    int failed;
    FL_BEGIN_CRITICAL(op);
    failed = -1;
    shared = shared_of(op);
    if (shared != NULL) {
        /* below: making a copy may run anything */
    } else if (elements->count == FL_SEM_MOST) {
        PyErr_SetString(PyExc_OverflowError, "the queue holds all the objects that it can count");
    } else if (!fl_elements_reserve(elements)) {
        PyErr_NoMemory();
    } else {
        fl_elements_push(elements, Py_NewRef(item));
        failed = 0;
    }
    FL_END_CRITICAL();
    if (shared != NULL) {
        return push_copy(shared, item);
    }
    if (!failed) {
        fl_permits_give(waitq, 1); /* at most as many as objects */
    }
    return failed;
}

/* With a permit in hand. */
static PyObject *pop(PyObject *op)
{
    fl_shared *shared = shared_of(op);
    if (shared != NULL) {
        fl_item *copy = fl_line_get(shared);
        PyObject *object = fl_decode(copy);
        fl_item_unref(copy);
        return object;
    }
    PyObject *item;
    FL_BEGIN_CRITICAL(op);
    item = fl_elements_first(&((simple_queue *)op)->elements);
    FL_END_CRITICAL();
    return item;
}

static PyObject *simple_put_nowait(PyObject *op, PyObject *item)
{
    if (push(op, item) < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *simple_put(PyObject *op, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    if (count == 1 && kwnames == NULL) {
        return simple_put_nowait(op, args[0]);
    }
    static const char *const names[] = {"item", "block", "timeout", NULL};
    PyObject *values[3];
    if (fl_arguments("put", names, args, count, kwnames, values) < 0) {
        return NULL;
    }
    if (values[0] == NULL) {
        PyErr_SetString(PyExc_TypeError, "put() missing required argument 'item'");
        return NULL;
    }
    return simple_put_nowait(op, values[0]);
}

static PyObject *simple_put_async(PyObject *op, PyObject *item)
{
    return push(op, item) < 0 ? NULL : fl_operation_done(fl_wrapper_state(op));
}

static PyObject *get_within(PyObject *op, int64_t deadline)
{
    fl_waitq *waitq = begin(op);
    int taken = fl_sem_try(waitq, 1, 0);
    if (!taken && deadline > 0) {
        taken = fl_wait_thread(op, waitq, 1, 0, deadline);
    }
    if (taken > 0) {
        return pop(op);
    }
    return taken < 0 ? NULL : fl_raise_queue_error("QueueEmpty", "the queue is empty");
}

static PyObject *simple_get(PyObject *op, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    int64_t deadline;
    if (fl_queue_arguments("get", args, count, kwnames, &deadline) < 0) {
        return NULL;
    }
    return get_within(op, deadline);
}

static PyObject *simple_get_nowait(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    return get_within(op, 0);
}

static PyObject *finish(PyObject *op, PyObject *Py_UNUSED(item), bool Py_UNUSED(refused))
{
    return pop(op);
}

static PyObject *simple_get_async(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    begin(op);
    return fl_operation_new(fl_wrapper_state(op), op, 1, finish);
}

static PyObject *simple_qsize(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    return PyLong_FromUnsignedLong(fl_sem_value(begin(op)));
}

static PyObject *simple_empty(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    return PyBool_FromLong(fl_sem_value(begin(op)) == 0);
}

static PyObject *simple_statistics(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    fl_waitq *waitq = begin(op);
    long values[] = {(long)fl_sem_value(waitq), (long)fl_waitq_waiting(waitq)};
    return fl_record(fl_wrapper_state(op)->simple_queue_statistics, values, 2, 0);
}

static PyObject *repr(PyObject *op)
{
    fl_waitq *waitq = begin(op);
    return PyUnicode_FromFormat("<%s of %u, %u waiting, at %p>", Py_TYPE(op)->tp_name,
                                (unsigned)fl_sem_value(waitq), (unsigned)fl_waitq_waiting(waitq), (void *)op);
}

static PyObject *queue_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {NULL};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, ":SimpleQueue", names)) {
        return NULL;
    }
    PyObject *self = fl_wrapper_new(type, fl_sem_new(0, FL_SEM_MOST, 0));
    if (self != NULL) {
        fl_store(&((simple_queue *)self)->generation, fl_fork_generation, relaxed); /* not shared yet */
    }
    return self;
}

static int queue_traverse(PyObject *op, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(op));
    return fl_elements_traverse(&((simple_queue *)op)->elements, visit, arg);
}

/* As get() without a caller, so that what a destructor puts or gets meanwhile finds the queue whole. */
static int queue_clear(PyObject *op)
{
    while (shared_of(op) == NULL && fl_sem_try(fl_wrapper_waitq(op), 1, 0)) {
        Py_DECREF(pop(op));
    }
    return 0;
}

static void queue_dealloc(PyObject *op)
{
    PyObject_GC_UnTrack(op);
    Py_TRASHCAN_BEGIN(op, queue_dealloc)
    if (fl_wrapper_waitq(op) != NULL) {
        queue_clear(op);
    }
    fl_elements_drop(&((simple_queue *)op)->elements);
    fl_wrapper_dealloc(op);
    Py_TRASHCAN_END
}

PyType_Spec fl_simple_queue_spec = FL_TYPE("fairlead.sync.SimpleQueue", simple_queue, Py_TPFLAGS_HAVE_GC,
    {Py_tp_new, (void *)queue_new},
    {Py_tp_traverse, (void *)queue_traverse},
    {Py_tp_clear, (void *)queue_clear},
    {Py_tp_dealloc, (void *)queue_dealloc},
    {Py_tp_repr, (void *)repr},
    FL_WRAPPER_SLOTS(SimpleQueue, simple_));

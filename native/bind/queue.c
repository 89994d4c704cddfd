/* Queue, LifoQueue and PriorityQueue: a shelf of objects between two semaphores.
 *
 * `shell.cell` counts the objects that are to be had, `slots` the room that is left. Who puts has first
 * taken a slot, who gets an object's permit; neither names a certain object or place, so that one who is
 * cancelled or timed out gives back a number and nothing moves. What is to happen at one instant (an object
 * on the shelf, its permit, the count of unfinished ones; shutting down) is one stretch of C under the GIL,
 * or where there is none within the queue's critical section. Hence:
 * 1. The shelf holds at least as many objects as there are permits, free and granted, until shutdown has
 *    emptied it; who then comes with a permit is told that it is shut down.
 * 2. Nothing is put after a shutdown, and nobody is refused while there is something to get, so that those
 *    who get until they are refused have got everything, but for what a cancelled getter gives back later.
 * native/tests/test_model.c tries the orders in which all this can happen.
 *
 * Rejected. Handing an object to a certain getter is a lost or a reordered object when that one is cancelled.
 * A mutex around the shelf would be held over the comparisons of a PriorityQueue, which are Python: a signal
 * handler or a destructor that puts meanwhile would wait for itself.
 */
#include "bind/queues.h"
#include "bind/shelf.h"
#include "bind/wait.h"

#include "core/event.h"

typedef enum { FIFO, LIFO, PRIORITY } order;

typedef struct {
    fl_shell shell;
    fl_cell *slots;
    fl_atomic(fl_cell *) finished; /* a flag that joiners wait for; made by the first of them */
    fl_shelf shelf;
    uint64_t unfinished;
    uint32_t maxsize; /* 0: none */
    fl_atomic(uint32_t) generation;
    fl_atomic(bool) shut;
    bool emptied; /* by a shutdown */
    uint8_t order;
} queue;

static fl_cell *objects(queue *self)
{
    return self->shell.cell;
}

/* Within the critical section, which tell() is called after: the tasks of this thread's own loop. */
static void give(fl_cell *cell, uint32_t count, fl_port **port)
{
    if (fl_cell_waiting(cell) > 0) {
        fl_port_hush();
        fl_sem_give(cell, count);
        *port = fl_port_unhush();
    } else {
        fl_sem_give(cell, count);
    }
}

static void tell(fl_port *port)
{
    if (port != NULL) {
        fl_port_tell(port);
    }
}

/* What other threads of the parent had in hand is on the shelf, or free room, and nobody will use it. */
static void put_in_order(queue *self)
{
    FL_BEGIN_CRITICAL(self);
    if (fl_load(&self->generation, relaxed) != fl_fork_generation) { /* within the critical section */
        uint32_t known = fl_sem_value(objects(self));
        int64_t room = (int64_t)(self->maxsize ? self->maxsize : FL_SEM_MOST) - self->shelf.count;
        int64_t free = (int64_t)fl_sem_value(self->slots) - (int64_t)fl_sem_withdraw(self->slots, 0);
        if (self->shelf.count > known) {
            fl_sem_give(objects(self), self->shelf.count - known);
        }
        if (room > free) {
            fl_sem_give(self->slots, (uint32_t)(room - free));
        }
        fl_store(&self->generation, fl_fork_generation, release); /* pairs with begin */
    }
    FL_END_CRITICAL();
}

/* Begins every operation. */
static queue *begin(PyObject *op)
{
    queue *self = (queue *)op;
    if (fl_load(&self->generation, acquire) != fl_fork_generation) { /* pairs with put_in_order */
        put_in_order(self);
    }
    return self;
}

/* Raises what a wait without success means; NULL. */
static void *raise_failure(int result, bool putting)
{
    if (result == FL_REFUSAL) {
        return fl_raise_queue_error("QueueShutDown", "the queue has been shut down");
    }
    if (result == 0 && putting) {
        return fl_raise_queue_error("QueueFull", "the queue is full");
    }
    if (result == 0) {
        return fl_raise_queue_error("QueueEmpty", "the queue is empty");
    }
    return NULL;
}

/* 1: taken; 0: not within the time; FL_REFUSAL: shut down; -1: an exception. */
static int take_one(fl_cell *cell, int64_t deadline)
{
    if (fl_sem_try(cell, 1, 0)) {
        return 1;
    }
    if (deadline == 0) {
        return fl_sem_closed(cell) ? FL_REFUSAL : 0;
    }
    return fl_wait_thread(cell, 1, 0, deadline);
}

/* With a slot in hand. 1: it is on the shelf; 0: the shelf has changed; FL_REFUSAL, -1. */
static int try_to_store(queue *self, PyObject *item)
{
    int result = -1;
    fl_port *port = NULL;
    FL_BEGIN_CRITICAL(self);
    fl_heap_way way;
    if (self->order == PRIORITY && fl_heap_find_push(&self->shelf, item, &way) < 0) {
        result = -1;
    } else if (fl_load(&self->shut, relaxed)) { /* within the critical section */
        result = FL_REFUSAL;
    } else if (fl_shelf_reserve(&self->shelf) == 0) {
        result = 1;
        if (self->order != PRIORITY) {
            fl_shelf_push(&self->shelf, item);
        } else if (!fl_heap_push(&self->shelf, item, &way)) {
            result = 0;
        }
        if (result == 1) {
            self->unfinished++;
            give(objects(self), 1, &port);
        }
    }
    FL_END_CRITICAL();
    tell(port);
    return result;
}

static int store(queue *self, PyObject *item)
{
    int result;
    do {
        result = try_to_store(self, item);
    } while (result == 0);
    if (result != 1) {
        fl_permits_give(self->slots, 1); /* waits for nothing, and sets no exception */
        raise_failure(result, true);
        return -1;
    }
    return 0;
}

/* With a permit in hand. 1: *item is the caller's; 0: the shelf has changed; FL_REFUSAL, -1. */
static int try_to_fetch(queue *self, PyObject **item)
{
    int result = 1;
    FL_BEGIN_CRITICAL(self);
    fl_heap_way way;
    if (self->shelf.count == 0) {
        result = FL_REFUSAL;
    } else if (self->order == FIFO) {
        *item = fl_shelf_first(&self->shelf);
    } else if (self->order == LIFO) {
        *item = fl_shelf_last(&self->shelf);
    } else if (fl_heap_find_pop(&self->shelf, &way) < 0) {
        result = -1;
    } else {
        *item = fl_heap_pop(&self->shelf, &way);
        result = *item != NULL;
    }
    FL_END_CRITICAL();
    return result;
}

static PyObject *fetch(queue *self)
{
    PyObject *item = NULL;
    int result;
    do {
        result = try_to_fetch(self, &item);
    } while (result == 0);
    if (result == 1) {
        fl_permits_give(self->slots, 1);
        return item;
    }
    fl_permits_give(objects(self), 1);
    return raise_failure(result, false);
}

/* What a get would return; NULL without an exception: nothing. */
static PyObject *look(queue *self)
{
    PyObject *item = NULL;
    FL_BEGIN_CRITICAL(self);
    if (self->shelf.count > 0) {
        item = Py_NewRef(*fl_shelf_place(&self->shelf, self->order == LIFO ? self->shelf.count - 1 : 0));
    }
    FL_END_CRITICAL();
    return item;
}

/* With a permit in hand, which goes back. */
static PyObject *look_and_give_back(queue *self)
{
    PyObject *item = look(self);
    fl_permits_give(objects(self), 1);
    return item != NULL ? item : raise_failure(FL_REFUSAL, false);
}

static PyObject *put_within(queue *self, PyObject *item, int64_t deadline)
{
    int result = take_one(self->slots, deadline);
    if (result != 1) {
        return raise_failure(result, true);
    }
    if (store(self, item) < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *get_within(queue *self, int64_t deadline)
{
    int result = take_one(objects(self), deadline);
    return result == 1 ? fetch(self) : raise_failure(result, false);
}

PyDoc_STRVAR(put_doc,
"put($self, /, item, block=True, timeout=None)\n"
"--\n"
"\n"
"Puts an object in, waiting for room if need be. For threads; tasks await put_async(). Raises QueueFull\n"
"(a queue.Full) when there is no room and the call does not block, or within the time, and QueueShutDown.");

static PyObject *put(PyObject *op, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    PyObject *values[3] = {count > 0 ? args[0] : NULL};
    int64_t deadline = FL_FOREVER;
    if (count != 1 || kwnames != NULL) {
        static const char *const names[] = {"item", "block", "timeout", NULL};
        if (fl_arguments("put", names, args, count, kwnames, values) < 0) {
            return NULL;
        }
        if (values[0] == NULL) {
            PyErr_SetString(PyExc_TypeError, "put() missing required argument 'item'");
            return NULL;
        }
        if (fl_queue_deadline(values[1], values[2], &deadline) < 0) {
            return NULL;
        }
    }
    return put_within(begin(op), values[0], deadline);
}

PyDoc_STRVAR(put_nowait_doc,
"put_nowait($self, item, /)\n"
"--\n"
"\n"
"As put(item, False). A signal handler or a destructor may call it.");

static PyObject *put_nowait(PyObject *op, PyObject *item)
{
    return put_within(begin(op), item, 0);
}

static PyObject *finish_put(PyObject *op, PyObject *item, bool refused)
{
    if (refused) {
        return raise_failure(FL_REFUSAL, true);
    }
    if (store((queue *)op, item) < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

PyDoc_STRVAR(put_async_doc,
"put_async($self, item, /)\n"
"--\n"
"\n"
"An awaitable that puts an object in, once there is room for it. For tasks. A task that is cancelled has\n"
"put nothing.");

static PyObject *put_async(PyObject *op, PyObject *item)
{
    return fl_ticket_at(fl_shell_state(op), op, begin(op)->slots, 1, finish_put, item);
}

PyDoc_STRVAR(get_doc,
"get($self, /, block=True, timeout=None)\n"
"--\n"
"\n"
"Takes the next object out, waiting for one if need be. For threads; tasks await get_async(). Raises\n"
"QueueEmpty (a queue.Empty) when there is none and the call does not block, or within the time, and\n"
"QueueShutDown when there is none and the queue has been shut down.");

static PyObject *get(PyObject *op, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    int64_t deadline;
    if (fl_queue_arguments("get", args, count, kwnames, &deadline) < 0) {
        return NULL;
    }
    return get_within(begin(op), deadline);
}

PyDoc_STRVAR(get_nowait_doc,
"get_nowait($self, /)\n"
"--\n"
"\n"
"As get(False).");

static PyObject *get_nowait(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    return get_within(begin(op), 0);
}

static PyObject *finish_get(PyObject *op, PyObject *Py_UNUSED(item), bool refused)
{
    return refused ? raise_failure(FL_REFUSAL, false) : fetch((queue *)op);
}

PyDoc_STRVAR(get_async_doc,
"get_async($self, /)\n"
"--\n"
"\n"
"An awaitable that takes the next object out and returns it. For tasks. A task that is cancelled has taken\n"
"nothing, and the order of the objects stays.");

static PyObject *get_async(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    return fl_ticket_at(fl_shell_state(op), op, objects(begin(op)), 1, finish_get, NULL);
}

static PyObject *peek_within(queue *self, int64_t deadline)
{
    if (fl_sem_value(objects(self)) > 0) {
        PyObject *item = look(self); /* without a permit, so that nobody else finds the queue empty */
        if (item != NULL) {
            return item;
        }
    }
    int result = take_one(objects(self), deadline);
    return result == 1 ? look_and_give_back(self) : raise_failure(result, false);
}

PyDoc_STRVAR(peek_doc,
"peek($self, /, block=True, timeout=None)\n"
"--\n"
"\n"
"What get() would return, which stays in the queue. Waits and raises as get() does.");

static PyObject *peek(PyObject *op, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    int64_t deadline;
    if (fl_queue_arguments("peek", args, count, kwnames, &deadline) < 0) {
        return NULL;
    }
    return peek_within(begin(op), deadline);
}

PyDoc_STRVAR(peek_nowait_doc,
"peek_nowait($self, /)\n"
"--\n"
"\n"
"As peek(False).");

static PyObject *peek_nowait(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    return peek_within(begin(op), 0);
}

static PyObject *finish_peek(PyObject *op, PyObject *Py_UNUSED(item), bool refused)
{
    return refused ? raise_failure(FL_REFUSAL, false) : look_and_give_back((queue *)op);
}

PyDoc_STRVAR(peek_async_doc,
"peek_async($self, /)\n"
"--\n"
"\n"
"An awaitable that returns what get_async() would, and leaves it in the queue. For tasks.");

static PyObject *peek_async(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    return fl_ticket_at(fl_shell_state(op), op, objects(begin(op)), 1, finish_peek, NULL);
}

/* Within the critical section, so that no join begins between the end of the work and the word of it. */
static void wake_joiners(queue *self)
{
    fl_cell *finished = fl_load(&self->finished, relaxed); /* within the critical section */
    if (finished != NULL) {
        fl_flag_set(finished);
    }
}

PyDoc_STRVAR(task_done_doc,
"task_done($self, /)\n"
"--\n"
"\n"
"Says that the work on one object that was got is done. Raises ValueError when it is said more often than\n"
"objects were put.");

static PyObject *task_done(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    queue *self = begin(op);
    fl_port *port = NULL;
    bool too_many;
    FL_BEGIN_CRITICAL(op);
    too_many = self->unfinished == 0;
    if (!too_many && --self->unfinished == 0) {
        fl_port_hush();
        wake_joiners(self);
        port = fl_port_unhush();
    }
    FL_END_CRITICAL();
    tell(port);
    if (too_many) {
        PyErr_SetString(PyExc_ValueError, "task_done() called too many times");
        return NULL;
    }
    Py_RETURN_NONE;
}

/* 1: nothing is unfinished; 0: there is a flag to wait for, which is not set; -1: no memory. */
static int begin_join(queue *self)
{
    int done;
    FL_BEGIN_CRITICAL(self);
    done = self->unfinished == 0;
    if (!done) {
        fl_cell *finished = fl_load(&self->finished, relaxed); /* within the critical section */
        if (finished == NULL) {
            finished = fl_flag_new();
            fl_store(&self->finished, finished, relaxed); /* as above */
        } else if (fl_flag_is_set(finished)) {
            fl_flag_clear(finished);
        }
        if (finished == NULL) {
            PyErr_NoMemory();
            done = -1;
        }
    }
    FL_END_CRITICAL();
    return done;
}

PyDoc_STRVAR(join_doc,
"join($self, /, timeout=None)\n"
"--\n"
"\n"
"Waits until task_done() was called for every object that was put; False: the time was over first. For\n"
"threads; tasks await join_async().");

static PyObject *join(PyObject *op, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    static const char *const names[] = {"timeout", NULL};
    PyObject *timeout;
    int64_t deadline;
    if (fl_arguments("join", names, args, count, kwnames, &timeout) < 0 ||
        fl_queue_deadline(NULL, timeout, &deadline) < 0) {
        return NULL;
    }
    queue *self = begin(op);
    int done = begin_join(self);
    if (done == 0 && deadline > 0) {
        done = fl_wait_thread(fl_load(&self->finished, relaxed), 0, 0, deadline); /* it stays */
    }
    return done < 0 ? NULL : PyBool_FromLong(done);
}

static PyObject *finish_join(PyObject *Py_UNUSED(op), PyObject *Py_UNUSED(item), bool Py_UNUSED(refused))
{
    Py_RETURN_NONE;
}

PyDoc_STRVAR(join_async_doc,
"join_async($self, /)\n"
"--\n"
"\n"
"An awaitable that waits until task_done() was called for every object that was put. For tasks.");

static PyObject *join_async(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    queue *self = begin(op);
    int done = begin_join(self);
    if (done != 0) {
        return done < 0 ? NULL : fl_ticket_done(fl_shell_state(op));
    }
    return fl_ticket_at(fl_shell_state(op), op, fl_load(&self->finished, relaxed), 0, finish_join, NULL);
}

/* Within the critical section. Takes everything off the shelf, and leaves nothing for those who come. */
static fl_shelf empty_for_ever(queue *self)
{
    fl_shelf all = fl_shelf_empty(&self->shelf);
    self->unfinished -= all.count < self->unfinished ? all.count : self->unfinished;
    if (!self->emptied) {
        self->emptied = true;
        fl_sem_withdraw(objects(self), FL_SEM_MOST);
    }
    return all;
}

PyDoc_STRVAR(shutdown_doc,
"shutdown($self, /, immediate=False)\n"
"--\n"
"\n"
"From now on nothing can be put, and once what is in the queue was got, nothing can be got: QueueShutDown\n"
"is raised, and in all that wait. immediate=True throws away what is in the queue, and counts it as done.");

static PyObject *shutdown(PyObject *op, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
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
    queue *self = begin(op);
    fl_shelf all = {0};
    fl_port *port;
    FL_BEGIN_CRITICAL(op);
    fl_port_hush();
    fl_store(&self->shut, true, relaxed); /* read within the critical section, or to be shown */
    if (immediate) {
        all = empty_for_ever(self);
    }
    fl_sem_close(objects(self));
    fl_sem_close(self->slots);
    if (all.count > 0) {
        fl_sem_give(self->slots, all.count);
    }
    if (immediate && self->unfinished == 0) {
        wake_joiners(self);
    }
    port = fl_port_unhush();
    FL_END_CRITICAL();
    tell(port);
    fl_shelf_drop(&all);
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

static int resize_to(queue *self, PyObject *number)
{
    long long wanted = PyLong_AsLongLong(number);
    uint32_t maxsize;
    if ((wanted == -1 && PyErr_Occurred()) || parse_maxsize(wanted, &maxsize) < 0) {
        return -1;
    }
    fl_port *port = NULL;
    FL_BEGIN_CRITICAL(self);
    uint32_t before = self->maxsize ? self->maxsize : FL_SEM_MOST, after = maxsize ? maxsize : FL_SEM_MOST;
    self->maxsize = maxsize;
    if (after > before) {
        give(self->slots, after - before, &port);
    } else {
        fl_sem_withdraw(self->slots, before - after);
    }
    FL_END_CRITICAL();
    tell(port);
    return 0;
}

PyDoc_STRVAR(resize_doc,
"resize($self, maxsize, /)\n"
"--\n"
"\n"
"Changes how many objects there is room for; 0 and less: any number. What is in the queue stays, and who\n"
"waits for room that there is now gets it.");

static PyObject *resize(PyObject *op, PyObject *number)
{
    if (resize_to(begin(op), number) < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

/* A getter who gave its permit back after everything was thrown away may have left one. */
static uint32_t size(queue *self)
{
    return self->emptied ? 0 : fl_sem_value(objects(self));
}

PyDoc_STRVAR(qsize_doc,
"qsize($self, /)\n"
"--\n"
"\n"
"How many objects there were to get, a moment ago.");

static PyObject *qsize(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    return PyLong_FromUnsignedLong(size(begin(op)));
}

PyDoc_STRVAR(empty_doc,
"empty($self, /)\n"
"--\n"
"\n"
"Whether there was nothing to get, a moment ago.");

static PyObject *empty(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    return PyBool_FromLong(size(begin(op)) == 0);
}

PyDoc_STRVAR(full_doc,
"full($self, /)\n"
"--\n"
"\n"
"Whether there was no room, a moment ago.");

static PyObject *full(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    return PyBool_FromLong(fl_sem_value(begin(op)->slots) == 0);
}

PyDoc_STRVAR(statistics_doc,
"statistics($self, /)\n"
"--\n"
"\n"
"A record of the moment: size, maxsize, getting, putting and joining (threads and tasks that wait),\n"
"unfinished (objects without a task_done()), is_shutdown, fair.");

static PyObject *statistics(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    queue *self = begin(op);
    fl_cell *finished = fl_load(&self->finished, acquire); /* pairs with begin_join */
    long values[] = {
        (long)size(self),
        (long)self->maxsize,
        (long)fl_cell_waiting(objects(self)),
        (long)fl_cell_waiting(self->slots),
        finished == NULL ? 0 : (long)fl_cell_waiting(finished),
        (long)self->unfinished,
        fl_load(&self->shut, relaxed), /* a figure to show */
        objects(self)->flags & FL_CELL_FAIR,
    };
    return fl_record(fl_shell_state(op)->queue_statistics, values, 8, 0xc0);
}

static PyObject *repr(PyObject *op)
{
    queue *self = begin(op);
    const char *shut = fl_load(&self->shut, relaxed) ? ", shut down" : ""; /* to show */
    return PyUnicode_FromFormat("<%s of %u, maxsize=%u, %u getting, %u putting%s, at %p>",
                                Py_TYPE(op)->tp_name, (unsigned)size(self), (unsigned)self->maxsize,
                                (unsigned)fl_cell_waiting(objects(self)),
                                (unsigned)fl_cell_waiting(self->slots), shut, (void *)op);
}

PyDoc_STRVAR(sizeof_doc,
"__sizeof__($self, /)\n"
"--\n"
"\n"
"The memory of the queue in bytes, without the objects in it.");

static PyObject *size_of(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    queue *self = begin(op);
    size_t cells = fl_load(&self->finished, relaxed) == NULL ? 2 : 3; /* a figure to show */
    return PyLong_FromSize_t(sizeof *self + cells * sizeof(fl_cell) + self->shelf.room * sizeof(PyObject *));
}

static PyObject *get_maxsize(PyObject *op, void *Py_UNUSED(closure))
{
    return PyLong_FromUnsignedLong(begin(op)->maxsize);
}

static int set_maxsize(PyObject *op, PyObject *value, void *Py_UNUSED(closure))
{
    if (value == NULL) {
        PyErr_SetString(PyExc_AttributeError, "maxsize cannot be deleted");
        return -1;
    }
    return resize_to(begin(op), value);
}

static PyObject *get_unfinished(PyObject *op, void *Py_UNUSED(closure))
{
    return PyLong_FromUnsignedLongLong(begin(op)->unfinished);
}

static PyObject *get_is_shutdown(PyObject *op, void *Py_UNUSED(closure))
{
    return PyBool_FromLong(fl_load(&begin(op)->shut, relaxed)); /* a figure to show */
}

static PyGetSetDef getset[] = {
    {"maxsize", get_maxsize, set_maxsize, "How many objects there is room for; 0: any number.", NULL},
    {"unfinished_tasks", get_unfinished, NULL, "Objects for which there was no task_done() yet.", NULL},
    {"is_shutdown", get_is_shutdown, NULL, "Whether it has been shut down.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

/* Not literals: up to 3.12 PyArg_ParseTupleAndKeywords wants words that could be written to. */
static char maxsize_word[] = "maxsize", fair_word[] = "fair";

static PyObject *make(PyTypeObject *type, order by, long long wanted, int fair)
{
    uint32_t maxsize, flags = fair ? FL_CELL_FAIR : 0;
    if (parse_maxsize(wanted, &maxsize) < 0) {
        return NULL;
    }
    queue *self = (queue *)fl_shell_new(type, fl_sem_new(0, FL_SEM_MOST, flags));
    if (self == NULL) {
        return NULL;
    }
    self->order = (uint8_t)by;
    self->maxsize = maxsize;
    fl_store(&self->generation, fl_fork_generation, relaxed); /* nobody else has it yet */
    self->slots = fl_sem_new(maxsize ? maxsize : FL_SEM_MOST, FL_SEM_MOST, flags);
    if (self->slots == NULL) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    return (PyObject *)self;
}

static PyObject *queue_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {maxsize_word, fair_word, NULL};
    long long maxsize = 0;
    int fair = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|L$p:Queue", names, &maxsize, &fair)) {
        return NULL;
    }
    return make(type, FIFO, maxsize, fair);
}

static PyObject *lifo_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {maxsize_word, fair_word, NULL};
    long long maxsize = 0;
    int fair = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|L$p:LifoQueue", names, &maxsize, &fair)) {
        return NULL;
    }
    return make(type, LIFO, maxsize, fair);
}

static PyObject *priority_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {maxsize_word, fair_word, NULL};
    long long maxsize = 0;
    int fair = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|L$p:PriorityQueue", names, &maxsize, &fair)) {
        return NULL;
    }
    return make(type, PRIORITY, maxsize, fair);
}

static int queue_traverse(PyObject *op, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(op));
    return fl_shelf_traverse(&((queue *)op)->shelf, visit, arg);
}

/* What a destructor does with the queue meanwhile finds it whole, and empty. */
static int queue_clear(PyObject *op)
{
    fl_shelf all;
    FL_BEGIN_CRITICAL(op);
    all = empty_for_ever((queue *)op);
    FL_END_CRITICAL();
    fl_shelf_drop(&all);
    return 0;
}

static void queue_dealloc(PyObject *op)
{
    queue *self = (queue *)op;
    PyObject_GC_UnTrack(op);
    fl_shelf_drop(&self->shelf);
    fl_cell *finished = fl_load(&self->finished, relaxed); /* the last reference */
    if (finished != NULL) {
        fl_cell_unref(finished);
    }
    if (self->slots != NULL) {
        fl_cell_unref(self->slots);
    }
    fl_shell_dealloc(op);
}

PyDoc_STRVAR(class_getitem_doc,
"__class_getitem__($type, item, /)\n"
"--\n"
"\n"
"Queue[int] is a Queue, for annotations.");

static PyMethodDef methods[] = {
    {"__class_getitem__", Py_GenericAlias, METH_O | METH_CLASS, class_getitem_doc},
    {"__sizeof__", size_of, METH_NOARGS, sizeof_doc},
    {"put", FL_METHOD(put), METH_FASTCALL | METH_KEYWORDS, put_doc},
    {"get", FL_METHOD(get), METH_FASTCALL | METH_KEYWORDS, get_doc},
    {"peek", FL_METHOD(peek), METH_FASTCALL | METH_KEYWORDS, peek_doc},
    {"put_nowait", put_nowait, METH_O, put_nowait_doc},
    {"get_nowait", get_nowait, METH_NOARGS, get_nowait_doc},
    {"peek_nowait", peek_nowait, METH_NOARGS, peek_nowait_doc},
    {"put_async", put_async, METH_O, put_async_doc},
    {"get_async", get_async, METH_NOARGS, get_async_doc},
    {"peek_async", peek_async, METH_NOARGS, peek_async_doc},
    {"task_done", task_done, METH_NOARGS, task_done_doc},
    {"join", FL_METHOD(join), METH_FASTCALL | METH_KEYWORDS, join_doc},
    {"join_async", join_async, METH_NOARGS, join_async_doc},
    {"shutdown", FL_METHOD(shutdown), METH_FASTCALL | METH_KEYWORDS, shutdown_doc},
    {"resize", resize, METH_O, resize_doc},
    {"qsize", qsize, METH_NOARGS, qsize_doc},
    {"empty", empty, METH_NOARGS, empty_doc},
    {"full", full, METH_NOARGS, full_doc},
    {"statistics", statistics, METH_NOARGS, statistics_doc},
    {NULL, NULL, 0, NULL},
};

PyDoc_STRVAR(queue_type_doc,
"Queue(maxsize=0, *, fair=False)\n"
"--\n"
"\n"
"A first-in first-out queue of objects between threads and tasks, as queue.Queue and asyncio.Queue.\n"
"\n"
"With a maxsize above 0 there is room for so many objects, and who puts waits for room. In a forked child\n"
"it has the objects that it had, and nobody waits.");

PyDoc_STRVAR(lifo_type_doc,
"LifoQueue(maxsize=0, *, fair=False)\n"
"--\n"
"\n"
"A Queue from which the object that was put last is got first.");

PyDoc_STRVAR(priority_type_doc,
"PriorityQueue(maxsize=0, *, fair=False)\n"
"--\n"
"\n"
"A Queue from which the smallest object is got first. Among equal ones the order is that of heapq.\n"
"\n"
"Comparisons may be written in Python, raise (then nothing was put, or got), and use the queue.");

#define SLOTS(new, doc)                                                                                     \
    {                                                                                                      \
        {Py_tp_new, (void *)new}, {Py_tp_traverse, (void *)queue_traverse},                                \
            {Py_tp_clear, (void *)queue_clear}, {Py_tp_dealloc, (void *)queue_dealloc},                    \
            {Py_tp_repr, (void *)repr}, {Py_tp_methods, methods}, {Py_tp_members, fl_shell_members},       \
            {Py_tp_getset, getset}, {Py_tp_doc, (void *)(uintptr_t)doc}, {0, NULL},                        \
    }

static PyType_Slot queue_slots[] = SLOTS(queue_new, queue_type_doc);
static PyType_Slot lifo_slots[] = SLOTS(lifo_new, lifo_type_doc);
static PyType_Slot priority_slots[] = SLOTS(priority_new, priority_type_doc);

#define FLAGS (Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE)

static PyType_Spec queue_spec = {
    .name = "fairlead.sync.Queue", .basicsize = sizeof(queue), .flags = FLAGS, .slots = queue_slots};
static PyType_Spec lifo_spec = {
    .name = "fairlead.sync.LifoQueue", .basicsize = sizeof(queue), .flags = FLAGS, .slots = lifo_slots};
static PyType_Spec priority_spec = {
    .name = "fairlead.sync.PriorityQueue",
    .basicsize = sizeof(queue),
    .flags = FLAGS,
    .slots = priority_slots,
};

static PyStructSequence_Field fields[] = {
    {"size", "objects that nobody has been promised"},
    {"maxsize", "how many there is room for; 0: any number"},
    {"getting", "threads and tasks that want an object"},
    {"putting", "threads and tasks that wait for room"},
    {"joining", "threads and tasks that wait for the end of all work"},
    {"unfinished", "objects for which there was no task_done() yet"},
    {"is_shutdown", "whether it has been shut down"},
    {"fair", "whether everyone is served in order"},
    {NULL, NULL},
};

static PyStructSequence_Desc desc = {
    .name = "fairlead.sync.QueueStatistics",
    .doc = "A queue at one moment.",
    .fields = fields,
    .n_in_sequence = 8,
};

static int add(PyObject *module, PyType_Spec *spec)
{
    PyObject *type = PyType_FromModuleAndSpec(module, spec, NULL);
    int failed = type == NULL ? -1 : PyModule_AddType(module, (PyTypeObject *)type);
    Py_XDECREF(type);
    return failed;
}

int fl_queue_exec(PyObject *module)
{
    fl_state *state = fl_state_of(module);
    state->queue_statistics = PyStructSequence_NewType(&desc);
    if (state->queue_statistics == NULL || PyModule_AddType(module, state->queue_statistics) < 0) {
        return -1;
    }
    return add(module, &queue_spec) < 0 || add(module, &lifo_spec) < 0 ? -1 : add(module, &priority_spec);
}

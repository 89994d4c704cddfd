/* A shelf of objects between two semaphores: what Queue, LifoQueue and PriorityQueue do.
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
 *
 * A queue that several interpreters have carries copies. They are made before there is a lock, and made
 * objects of again when there is none any more; until then they are a putter's or a getter's as objects are.
 * A PriorityQueue compares objects that it makes of copies for that.
 */
#include "bind/bounded.h"

#include "bind/codec.h"
#include "bind/queues.h"

/* The queue's critical section; where other interpreters have the queue, which its own lock cannot keep out,
   the shelf's lock as well. Whoever forks has that lock (core/shared.h). No Python between the two. */
#define BEGIN_DESK(self)                                                                                    \
    FL_BEGIN_CRITICAL(self);                                                                                \
    fl_mutex_lock_if((self)->desk->shelf.lock)
#define END_DESK(self)                                                                                      \
    fl_mutex_unlock_if((self)->desk->shelf.lock);                                                           \
    FL_END_CRITICAL()

static void desk_free(void *body)
{
    fl_desk *desk = body;
    fl_cell *finished = fl_load(&desk->finished, relaxed); /* the last reference */
    fl_shelf_drop(&desk->shelf);
    if (finished != NULL) {
        fl_cell_unref(finished);
    }
    fl_cell_unref(desk->slots);
    PyMem_RawFree(desk);
}

static fl_desk *desk_new(fl_order order, uint32_t maxsize, uint32_t flags)
{
    fl_desk *desk = PyMem_RawCalloc(1, sizeof *desk);
    fl_cell *slots = desk == NULL ? NULL : fl_sem_new(maxsize ? maxsize : FL_SEM_MOST, FL_SEM_MOST, flags);
    if (slots == NULL) {
        PyMem_RawFree(desk);
        return NULL;
    }
    desk->slots = slots;
    desk->order = (uint8_t)order;
    desk->maxsize = maxsize;
    fl_store(&desk->generation, fl_fork_generation, relaxed); /* nobody else has it yet */
    return desk;
}

PyObject *fl_bounded_new(PyTypeObject *type, fl_order order, uint32_t maxsize, bool fair)
{
    uint32_t flags = fair ? FL_CELL_FAIR : 0;
    fl_bounded *self = (fl_bounded *)fl_shell_new(type, fl_sem_new(0, FL_SEM_MOST, flags));
    if (self == NULL) {
        return NULL;
    }
    self->desk = desk_new(order, maxsize, flags);
    if (self->desk == NULL) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    return (PyObject *)self;
}

void fl_bounded_dealloc(fl_bounded *self)
{
    fl_shared *shared = fl_load(&self->shell.shared, relaxed); /* nobody else has this object */
    if (self->desk != NULL && shared == NULL) {
        desk_free(self->desk);
    }
    fl_shell_dealloc((PyObject *)self);
}

fl_shared *fl_bounded_share(PyObject *op, uint32_t type)
{
    fl_desk *desk = ((fl_bounded *)op)->desk;
    if (desk->shelf.count > 0) {
        return fl_raise("UsageError", "hand a queue to another interpreter before something is put into it");
    }
    fl_shared *shared = fl_shared_new(fl_shell_cell(op), type, desk, desk_free);
    if (shared == NULL) {
        return (fl_shared *)PyErr_NoMemory();
    }
    desk->shelf.lock = &shared->lock;
    return shared;
}

void fl_bounded_attach(PyObject *op, fl_shared *shared)
{
    ((fl_bounded *)op)->desk = shared->body;
}

/* With the desk, which tell() is called after: the tasks of this thread's own loop. */
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

/* What other threads of the parent had in hand is on the shelf, or free room, and nobody will use it; but for
   what was granted to tasks of the thread that forked, which may go on here. */
void fl_bounded_recover(fl_bounded *self)
{
    fl_desk *desk = self->desk;
    uint32_t objects = fl_roster_granted(fl_bounded_objects(self)), slots = fl_roster_granted(desk->slots);
    BEGIN_DESK(self);
    if (fl_load(&desk->generation, relaxed) != fl_fork_generation) { /* with the desk */
        uint32_t known = fl_sem_value(fl_bounded_objects(self)) + objects;
        int64_t room = (int64_t)(desk->maxsize ? desk->maxsize : FL_SEM_MOST) - desk->shelf.count;
        int64_t free = (int64_t)fl_sem_value(desk->slots) - (int64_t)fl_sem_withdraw(desk->slots, 0) + slots;
        if (desk->shelf.count > known) {
            fl_sem_give(fl_bounded_objects(self), desk->shelf.count - known);
        }
        if (room > free) {
            fl_sem_give(desk->slots, (uint32_t)(room - free));
        }
        fl_store(&desk->generation, fl_fork_generation, release); /* pairs with fl_bounded_begin */
    }
    END_DESK(self);
}

void *fl_bounded_raise(int result, bool putting)
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
static int take_one(fl_bounded *self, fl_cell *cell, int64_t deadline)
{
    if (fl_sem_try(cell, 1, 0)) {
        return 1;
    }
    if (deadline == 0) {
        return fl_sem_closed(cell) ? FL_REFUSAL : 0;
    }
    return fl_wait_thread((PyObject *)self, cell, 1, 0, deadline);
}

/* With a slot in hand, and where the queue is shared a copy. 1: it is on the shelf; 0: the shelf has changed;
   FL_REFUSAL, -1. */
static int try_to_store(fl_bounded *self, PyObject *object, fl_item *copy)
{
    fl_desk *desk = self->desk;
    int result = -1;
    bool room = true;
    fl_port *port = NULL;
    FL_BEGIN_CRITICAL(self);
    fl_heap_way way;
    if (desk->order != FL_PRIORITY || fl_heap_find_push(&desk->shelf, object, &way) == 0) {
        fl_mutex_lock_if(desk->shelf.lock);
        if (fl_load(&desk->shut, relaxed)) { /* with the desk */
            result = FL_REFUSAL;
        } else if ((desk->shelf.lock == NULL) != (copy == NULL)) {
            result = 0;
        } else if ((room = fl_shelf_reserve(&desk->shelf))) {
            void *element = copy != NULL ? (void *)copy : (void *)object;
            result = 1;
            if (desk->order != FL_PRIORITY) {
                fl_shelf_push(&desk->shelf, element);
            } else {
                result = fl_heap_push(&desk->shelf, element, &way);
            }
        }
        if (result == 1) {
            if (copy == NULL) {
                Py_INCREF(object);
            }
            desk->unfinished++;
            give(fl_bounded_objects(self), 1, &port);
        }
        fl_mutex_unlock_if(desk->shelf.lock);
    }
    FL_END_CRITICAL();
    tell(port);
    if (!room) {
        PyErr_NoMemory();
    }
    return result;
}

int fl_bounded_store(fl_bounded *self, PyObject *object)
{
    fl_item *copy = NULL;
    int result;
    do {
        bool shared = fl_load(&self->shell.shared, acquire) != NULL; /* pairs with the store in handle.c */
        if (shared && copy == NULL && (copy = fl_encode(object)) == NULL) {
            result = -1;
        } else {
            result = try_to_store(self, object, copy);
        }
    } while (result == 0);
    if (result == 1) {
        return 0;
    }
    if (copy != NULL) {
        fl_item_unref(copy);
    }
    fl_permits_give(self->desk->slots, 1); /* waits for nothing, and sets no exception */
    fl_bounded_raise(result, true);
    return -1;
}

/* Of a copy, whose reference it steals. */
static PyObject *made_of(fl_item *copy)
{
    PyObject *object = fl_decode(copy);
    fl_item_unref(copy);
    return object;
}

/* With a permit in hand. 1: *element is the caller's, and *copied what it is; 0: the shelf has changed;
   FL_REFUSAL, -1. */
static int try_to_fetch(fl_bounded *self, void **element, bool *copied)
{
    fl_desk *desk = self->desk;
    int result = -1;
    FL_BEGIN_CRITICAL(self);
    fl_heap_way way;
    if (desk->order != FL_PRIORITY || fl_heap_find_pop(&desk->shelf, &way) == 0) {
        fl_mutex_lock_if(desk->shelf.lock);
        result = 1;
        if (desk->shelf.count == 0) {
            result = FL_REFUSAL;
        } else if (desk->order == FL_FIFO) {
            *element = fl_shelf_first(&desk->shelf);
        } else if (desk->order == FL_LIFO) {
            *element = fl_shelf_last(&desk->shelf);
        } else {
            *element = fl_heap_pop(&desk->shelf, &way);
            result = *element != NULL;
        }
        *copied = desk->shelf.lock != NULL;
        fl_mutex_unlock_if(desk->shelf.lock);
    }
    FL_END_CRITICAL();
    return result;
}

PyObject *fl_bounded_fetch(fl_bounded *self)
{
    void *element = NULL;
    bool copied = false;
    int result;
    do {
        result = try_to_fetch(self, &element, &copied);
    } while (result == 0);
    if (result == 1) {
        fl_permits_give(self->desk->slots, 1);
        return copied ? made_of(element) : element;
    }
    fl_permits_give(fl_bounded_objects(self), 1);
    return fl_bounded_raise(result, false);
}

/* What a get would return; NULL without an exception: nothing. */
static PyObject *look(fl_bounded *self)
{
    fl_desk *desk = self->desk;
    PyObject *object = NULL;
    fl_item *copy = NULL;
    BEGIN_DESK(self);
    if (desk->shelf.count > 0) {
        uint32_t next = desk->order == FL_LIFO ? desk->shelf.count - 1 : 0;
        void *element = *fl_shelf_place(&desk->shelf, next);
        if (desk->shelf.lock != NULL) {
            copy = element;
            fl_item_ref(copy);
        } else {
            object = Py_NewRef((PyObject *)element);
        }
    }
    END_DESK(self);
    return copy != NULL ? made_of(copy) : object;
}

PyObject *fl_bounded_look(fl_bounded *self)
{
    PyObject *object = look(self);
    fl_permits_give(fl_bounded_objects(self), 1);
    return object != NULL || PyErr_Occurred() ? object : fl_bounded_raise(FL_REFUSAL, false);
}

PyObject *fl_bounded_put(fl_bounded *self, PyObject *item, int64_t deadline)
{
    int result = take_one(self, self->desk->slots, deadline);
    if (result != 1) {
        return fl_bounded_raise(result, true);
    }
    if (fl_bounded_store(self, item) < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

PyObject *fl_bounded_get(fl_bounded *self, int64_t deadline)
{
    int result = take_one(self, fl_bounded_objects(self), deadline);
    return result == 1 ? fl_bounded_fetch(self) : fl_bounded_raise(result, false);
}

PyObject *fl_bounded_peek(fl_bounded *self, int64_t deadline)
{
    if (fl_sem_value(fl_bounded_objects(self)) > 0) {
        PyObject *object = look(self); /* without a permit, so that nobody else finds the queue empty */
        if (object != NULL || PyErr_Occurred()) {
            return object;
        }
    }
    int result = take_one(self, fl_bounded_objects(self), deadline);
    return result == 1 ? fl_bounded_look(self) : fl_bounded_raise(result, false);
}

/* With the desk, so that no join begins between the end of the work and the word of it. */
static void wake_joiners(fl_bounded *self)
{
    fl_cell *finished = fl_load(&self->desk->finished, relaxed); /* with the desk */
    if (finished != NULL) {
        fl_flag_set(finished);
    }
}

bool fl_bounded_task_done(fl_bounded *self)
{
    fl_port *port = NULL;
    bool too_many;
    BEGIN_DESK(self);
    too_many = self->desk->unfinished == 0;
    if (!too_many && --self->desk->unfinished == 0) {
        fl_port_hush();
        wake_joiners(self);
        port = fl_port_unhush();
    }
    END_DESK(self);
    tell(port);
    return !too_many;
}

int fl_bounded_begin_join(fl_bounded *self)
{
    int done;
    BEGIN_DESK(self);
    done = self->desk->unfinished == 0;
    if (!done) {
        fl_cell *finished = fl_load(&self->desk->finished, relaxed); /* with the desk */
        if (finished == NULL) {
            finished = fl_flag_new();
            fl_store(&self->desk->finished, finished, relaxed); /* as above */
        } else if (fl_flag_is_set(finished)) {
            fl_flag_clear(finished);
        }
        if (finished == NULL) {
            done = -1;
        }
    }
    END_DESK(self);
    if (done < 0) {
        PyErr_NoMemory();
    }
    return done;
}

/* With the desk. Takes everything off the shelf, and leaves nothing for those who come. */
static fl_shelf empty_for_ever(fl_bounded *self)
{
    fl_shelf all = fl_shelf_empty(&self->desk->shelf);
    self->desk->unfinished -= all.count < self->desk->unfinished ? all.count : self->desk->unfinished;
    if (!self->desk->emptied) {
        self->desk->emptied = true;
        fl_sem_withdraw(fl_bounded_objects(self), FL_SEM_MOST);
    }
    return all;
}

void fl_bounded_shutdown(fl_bounded *self, bool immediate)
{
    fl_shelf all = {0};
    fl_port *port;
    BEGIN_DESK(self);
    fl_port_hush();
    fl_store(&self->desk->shut, true, relaxed); /* read with the desk, or to be shown */
    if (immediate) {
        all = empty_for_ever(self);
    }
    fl_sem_close(fl_bounded_objects(self));
    fl_sem_close(self->desk->slots);
    if (all.count > 0) {
        fl_sem_give(self->desk->slots, all.count);
    }
    if (immediate && self->desk->unfinished == 0) {
        wake_joiners(self);
    }
    port = fl_port_unhush();
    END_DESK(self);
    tell(port);
    fl_shelf_drop(&all);
}

void fl_bounded_resize(fl_bounded *self, uint32_t maxsize)
{
    fl_port *port = NULL;
    BEGIN_DESK(self);
    uint32_t before = self->desk->maxsize ? self->desk->maxsize : FL_SEM_MOST;
    uint32_t after = maxsize ? maxsize : FL_SEM_MOST;
    self->desk->maxsize = maxsize;
    if (after > before) {
        give(self->desk->slots, after - before, &port);
    } else {
        fl_sem_withdraw(self->desk->slots, before - after);
    }
    END_DESK(self);
    tell(port);
}

/* A getter who gave its permit back after everything was thrown away may have left one. */
uint32_t fl_bounded_size(fl_bounded *self)
{
    return self->desk->emptied ? 0 : fl_sem_value(fl_bounded_objects(self));
}

void fl_bounded_clear(fl_bounded *self)
{
    fl_shelf all;
    BEGIN_DESK(self);
    all = empty_for_ever(self);
    END_DESK(self);
    fl_shelf_drop(&all);
}

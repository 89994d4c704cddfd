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
 */
#include "bind/bounded.h"

#include "bind/queues.h"

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
void fl_bounded_recover(fl_bounded *self)
{
    FL_BEGIN_CRITICAL(self);
    if (fl_load(&self->generation, relaxed) != fl_fork_generation) { /* within the critical section */
        uint32_t known = fl_sem_value(fl_bounded_objects(self));
        int64_t room = (int64_t)(self->maxsize ? self->maxsize : FL_SEM_MOST) - self->shelf.count;
        int64_t free = (int64_t)fl_sem_value(self->slots) - (int64_t)fl_sem_withdraw(self->slots, 0);
        if (self->shelf.count > known) {
            fl_sem_give(fl_bounded_objects(self), self->shelf.count - known);
        }
        if (room > free) {
            fl_sem_give(self->slots, (uint32_t)(room - free));
        }
        fl_store(&self->generation, fl_fork_generation, release); /* pairs with fl_bounded_begin */
    }
    FL_END_CRITICAL();
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
static int try_to_store(fl_bounded *self, PyObject *item)
{
    int result = -1;
    fl_port *port = NULL;
    FL_BEGIN_CRITICAL(self);
    fl_heap_way way;
    if (self->order == FL_PRIORITY && fl_heap_find_push(&self->shelf, item, &way) < 0) {
        result = -1;
    } else if (fl_load(&self->shut, relaxed)) { /* within the critical section */
        result = FL_REFUSAL;
    } else if (fl_shelf_reserve(&self->shelf) == 0) {
        result = 1;
        if (self->order != FL_PRIORITY) {
            fl_shelf_push(&self->shelf, item);
        } else if (!fl_heap_push(&self->shelf, item, &way)) {
            result = 0;
        }
        if (result == 1) {
            self->unfinished++;
            give(fl_bounded_objects(self), 1, &port);
        }
    }
    FL_END_CRITICAL();
    tell(port);
    return result;
}

int fl_bounded_store(fl_bounded *self, PyObject *item)
{
    int result;
    do {
        result = try_to_store(self, item);
    } while (result == 0);
    if (result != 1) {
        fl_permits_give(self->slots, 1); /* waits for nothing, and sets no exception */
        fl_bounded_raise(result, true);
        return -1;
    }
    return 0;
}

/* With a permit in hand. 1: *item is the caller's; 0: the shelf has changed; FL_REFUSAL, -1. */
static int try_to_fetch(fl_bounded *self, PyObject **item)
{
    int result = 1;
    FL_BEGIN_CRITICAL(self);
    fl_heap_way way;
    if (self->shelf.count == 0) {
        result = FL_REFUSAL;
    } else if (self->order == FL_FIFO) {
        *item = fl_shelf_first(&self->shelf);
    } else if (self->order == FL_LIFO) {
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

PyObject *fl_bounded_fetch(fl_bounded *self)
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
    fl_permits_give(fl_bounded_objects(self), 1);
    return fl_bounded_raise(result, false);
}

/* What a get would return; NULL without an exception: nothing. */
static PyObject *look(fl_bounded *self)
{
    PyObject *item = NULL;
    FL_BEGIN_CRITICAL(self);
    if (self->shelf.count > 0) {
        item = Py_NewRef(*fl_shelf_place(&self->shelf, self->order == FL_LIFO ? self->shelf.count - 1 : 0));
    }
    FL_END_CRITICAL();
    return item;
}

PyObject *fl_bounded_look(fl_bounded *self)
{
    PyObject *item = look(self);
    fl_permits_give(fl_bounded_objects(self), 1);
    return item != NULL ? item : fl_bounded_raise(FL_REFUSAL, false);
}

PyObject *fl_bounded_put(fl_bounded *self, PyObject *item, int64_t deadline)
{
    int result = take_one(self->slots, deadline);
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
    int result = take_one(fl_bounded_objects(self), deadline);
    return result == 1 ? fl_bounded_fetch(self) : fl_bounded_raise(result, false);
}

PyObject *fl_bounded_peek(fl_bounded *self, int64_t deadline)
{
    if (fl_sem_value(fl_bounded_objects(self)) > 0) {
        PyObject *item = look(self); /* without a permit, so that nobody else finds the queue empty */
        if (item != NULL) {
            return item;
        }
    }
    int result = take_one(fl_bounded_objects(self), deadline);
    return result == 1 ? fl_bounded_look(self) : fl_bounded_raise(result, false);
}

/* Within the critical section, so that no join begins between the end of the work and the word of it. */
static void wake_joiners(fl_bounded *self)
{
    fl_cell *finished = fl_load(&self->finished, relaxed); /* within the critical section */
    if (finished != NULL) {
        fl_flag_set(finished);
    }
}

bool fl_bounded_task_done(fl_bounded *self)
{
    fl_port *port = NULL;
    bool too_many;
    FL_BEGIN_CRITICAL(self);
    too_many = self->unfinished == 0;
    if (!too_many && --self->unfinished == 0) {
        fl_port_hush();
        wake_joiners(self);
        port = fl_port_unhush();
    }
    FL_END_CRITICAL();
    tell(port);
    return !too_many;
}

int fl_bounded_begin_join(fl_bounded *self)
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

/* Within the critical section. Takes everything off the shelf, and leaves nothing for those who come. */
static fl_shelf empty_for_ever(fl_bounded *self)
{
    fl_shelf all = fl_shelf_empty(&self->shelf);
    self->unfinished -= all.count < self->unfinished ? all.count : self->unfinished;
    if (!self->emptied) {
        self->emptied = true;
        fl_sem_withdraw(fl_bounded_objects(self), FL_SEM_MOST);
    }
    return all;
}

void fl_bounded_shutdown(fl_bounded *self, bool immediate)
{
    fl_shelf all = {0};
    fl_port *port;
    FL_BEGIN_CRITICAL(self);
    fl_port_hush();
    fl_store(&self->shut, true, relaxed); /* read within the critical section, or to be shown */
    if (immediate) {
        all = empty_for_ever(self);
    }
    fl_sem_close(fl_bounded_objects(self));
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
}

void fl_bounded_resize(fl_bounded *self, uint32_t maxsize)
{
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
}

/* A getter who gave its permit back after everything was thrown away may have left one. */
uint32_t fl_bounded_size(fl_bounded *self)
{
    return self->emptied ? 0 : fl_sem_value(fl_bounded_objects(self));
}

void fl_bounded_clear(fl_bounded *self)
{
    fl_shelf all;
    FL_BEGIN_CRITICAL(self);
    all = empty_for_ever(self);
    FL_END_CRITICAL();
    fl_shelf_drop(&all);
}

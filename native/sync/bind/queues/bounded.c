/* Objects between two semaphores: what Queue, LifoQueue and PriorityQueue do; and SimpleQueue, which has room
 * for any number, and no semaphore that says so.
 *
 * `wrapper.waitq` counts the objects that are to be had, `slots` the room that is left. A putter has first
 * taken a slot, a getter an object's permit; neither names a certain object or place, so that one that is
 * cancelled or timed out gives back a number and nothing moves. What is to happen at one instant (an object
 * among the elements, its permit, the count of unfinished ones; shutting down) is one stretch of C under the
 * GIL, or where there is none within the queue's critical section. Hence:
 * 1. The elements are at least as many objects as there are permits, free and granted, until shutdown has
 *    removed them; a getter that then arrives with a permit learns that it is shut down.
 * 2. Nothing is put after a shutdown, and no waiter is refused while there is something to get, so that
 *    getters that go on until they are refused have got everything, but for what a cancelled getter gives
 *    back later.
 * native/tests/model/test_model.c tries the orders in which all this can happen.
 *
 * Rejected. Handing an object to a certain getter is a lost or a reordered object when that one is cancelled.
 * A mutex around the elements would be held over the comparisons of a PriorityQueue, which are Python: a
 * signal handler or a destructor that puts meanwhile would wait for itself.
 *
 * A queue that several interpreters have carries copies. They are made before there is a lock, and made
 * objects of again when there is none any more; until then they are a putter's or a getter's as objects are.
 * A PriorityQueue compares objects that it makes of copies for that.
 */
#include "sync/bind/queues/bounded.h"

#include "interpreters/bind/codec.h"
#include "sync/bind/wait/blocking.h"
#include "sync/bind/wait/mailbox.h"

/* The queue's critical section; where other interpreters have the queue, which its own lock cannot keep out,
   the elements's lock as well. A forking thread has that lock (interpreters/shared.h). No Python between the
   two. */
#define BEGIN_STORAGE(self)                                                                                 \
    FL_BEGIN_CRITICAL(self);                                                                                \
    fl_mutex_lock_if((self)->storage->elements.lock)
#define END_STORAGE(self)                                                                                   \
    fl_mutex_unlock_if((self)->storage->elements.lock);                                                     \
    FL_END_CRITICAL()

static void storage_free(void *body)
{
    fl_storage *storage = body;
    fl_waitq *finished = fl_load(&storage->finished, relaxed); /* the last reference */
    fl_elements_drop(&storage->elements);
    if (finished != NULL) {
        fl_waitq_unref(finished);
    }
    if (storage->slots != NULL) {
        fl_waitq_unref(storage->slots);
    }
    PyMem_RawFree(storage);
}

static fl_storage *storage_new(fl_order order, uint32_t maxsize, uint32_t flags)
{
    fl_storage *storage = PyMem_RawCalloc(1, sizeof *storage);
    if (storage == NULL) {
        return NULL;
    }
    if (order != FL_SIMPLE &&
        !(storage->slots = fl_sem_new(maxsize ? maxsize : FL_SEM_MOST, FL_SEM_MOST, flags))) {
        PyMem_RawFree(storage);
        return NULL;
    }
    storage->order = (uint8_t)order;
    storage->maxsize = maxsize;
    fl_store(&storage->generation, fl_fork_generation, relaxed); /* no other thread has it yet */
    return storage;
}

PyObject *fl_bounded_new(PyTypeObject *type, fl_order order, uint32_t maxsize, bool fair)
{
    uint32_t flags = fair ? FL_WAITQ_FAIR : 0;
    fl_bounded *self = (fl_bounded *)fl_wrapper_new(type, fl_sem_new(0, FL_SEM_MOST, flags));
    if (self == NULL) {
        return NULL;
    }
    self->storage = storage_new(order, maxsize, flags);
    if (self->storage == NULL) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    return (PyObject *)self;
}

void fl_bounded_dealloc(PyObject *op)
{
    fl_bounded *self = (fl_bounded *)op;
    PyObject_GC_UnTrack(op);
    Py_TRASHCAN_BEGIN(op, fl_bounded_dealloc)
    fl_storage *storage = self->storage;
    self->storage = NULL;
    if (storage != NULL && fl_load(&self->wrapper.shared, relaxed) == NULL) { /* no other thread has it */
        storage_free(storage);
    }
    fl_wrapper_dealloc(op);
    Py_TRASHCAN_END
}

static fl_state *state_of(fl_bounded *self)
{
    return fl_wrapper_state((PyObject *)self);
}

fl_shared *fl_bounded_share(PyObject *op, uint32_t type)
{
    fl_storage *storage = ((fl_bounded *)op)->storage;
    if (storage->elements.count > 0) {
        return fl_raise(fl_wrapper_state(op), UsageError,
                        "share() a queue before something is put into it");
    }
    fl_shared *shared = fl_shared_new(fl_wrapper_waitq(op), type, storage, storage_free);
    if (shared == NULL) {
        return (fl_shared *)PyErr_NoMemory();
    }
    storage->elements.lock = &shared->lock;
    return shared;
}

void fl_bounded_attach(PyObject *op, fl_shared *shared)
{
    ((fl_bounded *)op)->storage = shared->body;
}

/* With the storage, which deliver() is called after: the tasks of this thread's own loop. */
static void give(fl_waitq *waitq, uint32_t count, fl_mailbox **mailbox)
{
    if (fl_waitq_waiting(waitq) > 0) {
        fl_mailbox_batch();
        fl_sem_give(waitq, count);
        *mailbox = fl_mailbox_flush();
    } else {
        fl_sem_give(waitq, count);
    }
}

static void deliver(fl_mailbox *mailbox)
{
    if (mailbox != NULL) {
        fl_mailbox_deliver(mailbox);
    }
}

/* What other threads of the parent had in hand is on the elements, or free room, and no thread will use it;
   but for what was granted to tasks of the thread that forked, which may go on here. */
void fl_bounded_recover(fl_bounded *self)
{
    fl_storage *storage = self->storage;
    fl_waitq *objects = fl_bounded_objects(self), *slots = storage->slots;
    uint32_t objects_granted = fl_thread_table_granted(objects),
             slots_granted = slots != NULL ? fl_thread_table_granted(slots) : 0;
    BEGIN_STORAGE(self);
    if (fl_load(&storage->generation, relaxed) != fl_fork_generation) { /* with the storage */
        uint32_t known = fl_sem_value(objects) + objects_granted;
        int64_t room = (int64_t)(storage->maxsize ? storage->maxsize : FL_SEM_MOST) - storage->elements.count;
        int64_t free = slots == NULL ? room
                                     : (int64_t)fl_sem_value(slots) - (int64_t)fl_sem_withdraw(slots, 0) +
                                           slots_granted;
        if (storage->elements.count > known) {
            fl_sem_give(objects, storage->elements.count - known);
        }
        if (room > free) {
            fl_sem_give(slots, (uint32_t)(room - free));
        }
        fl_store(&storage->generation, fl_fork_generation, release); /* pairs with fl_bounded_begin */
    }
    END_STORAGE(self);
}

void *fl_bounded_raise(fl_bounded *self, int result, bool putting)
{
    fl_state *state = state_of(self);
    if (result == FL_REFUSAL) {
        return fl_raise(state, QueueShutDown, "the queue has been shut down");
    }
    if (result == 0 && putting) {
        return fl_raise(state, QueueFull, "the queue is full");
    }
    if (result == 0) {
        return fl_raise(state, QueueEmpty, "the queue is empty");
    }
    return NULL;
}

int fl_bounded_wait(fl_bounded *self, fl_waitq *waitq, int64_t deadline)
{
    if (deadline == 0) {
        return fl_sem_closed(waitq) ? FL_REFUSAL : 0;
    }
    return fl_wait_thread((PyObject *)self, waitq, 1, (fl_stake){0}, deadline);
}

/* After an object has gone, or was not put. Waits for nothing, and sets no exception. */
static void free_slot(fl_storage *storage)
{
    if (storage->slots != NULL) {
        fl_permits_give(storage->slots, 1);
    }
}

/* With a slot in hand, and where the queue is shared a copy. 1: it is on the elements; 0: the elements has
   changed; FL_REFUSAL, -1. */
static int try_to_store(fl_bounded *self, PyObject *object, fl_item *copy)
{
    fl_storage *storage = self->storage;
    fl_elements *elements = &storage->elements;
    int result = -1;
    bool room = true;
    fl_mailbox *mailbox = NULL;
    FL_BEGIN_CRITICAL(self);
    fl_heap_path path;
    if (storage->order != FL_PRIORITY || fl_heap_find_push(state_of(self), elements, object, &path) == 0) {
        fl_mutex_lock_if(elements->lock);
        if (fl_load(&storage->shut, relaxed)) { /* with the storage */
            result = FL_REFUSAL;
        } else if ((elements->lock == NULL) != (copy == NULL)) {
            result = 0;
        } else if ((room = elements->count < FL_SEM_MOST && fl_elements_reserve(elements))) {
            void *element = copy != NULL ? (void *)copy : (void *)object;
            result = 1;
            if (storage->order != FL_PRIORITY) {
                fl_elements_push(elements, element);
            } else {
                result = fl_heap_push(elements, element, &path);
            }
        }
        if (result == 1) {
            if (copy == NULL) {
                Py_INCREF(object);
            }
            storage->unfinished++;
            give(fl_bounded_objects(self), 1, &mailbox);
        }
        fl_mutex_unlock_if(elements->lock);
    }
    FL_END_CRITICAL();
    deliver(mailbox);
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
        bool shared = fl_load(&self->wrapper.shared, acquire) != NULL; /* pairs with the store in handle.c */
        if (shared && copy == NULL && (copy = fl_pack(state_of(self), object, NULL)) == NULL) {
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
    free_slot(self->storage);
    fl_bounded_raise(self, result, true);
    return -1;
}

/* Of a copy, whose reference it steals. */
static PyObject *made_of(fl_bounded *self, fl_item *copy)
{
    PyObject *object = fl_unpack(state_of(self), copy);
    fl_item_unref(copy);
    return object;
}

/* With a permit in hand. 1: *element is the caller's, and *copied what it is; 0: the elements has changed;
   FL_REFUSAL, -1. */
static int try_to_fetch(fl_bounded *self, void **element, bool *copied)
{
    fl_storage *storage = self->storage;
    int result = -1;
    FL_BEGIN_CRITICAL(self);
    fl_heap_path path;
    if (storage->order != FL_PRIORITY || fl_heap_find_pop(state_of(self), &storage->elements, &path) == 0) {
        fl_mutex_lock_if(storage->elements.lock);
        result = 1;
        if (storage->elements.count == 0) {
            result = FL_REFUSAL;
        } else if (storage->order == FL_PRIORITY) {
            *element = fl_heap_pop(&storage->elements, &path);
            result = *element != NULL;
        } else if (storage->order == FL_LIFO) {
            *element = fl_elements_last(&storage->elements);
        } else {
            *element = fl_elements_first(&storage->elements);
        }
        *copied = storage->elements.lock != NULL;
        fl_mutex_unlock_if(storage->elements.lock);
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
        free_slot(self->storage);
        return copied ? made_of(self, element) : element;
    }
    fl_permits_give(fl_bounded_objects(self), 1);
    return fl_bounded_raise(self, result, false);
}

PyObject *fl_bounded_look_at(fl_bounded *self)
{
    fl_storage *storage = self->storage;
    PyObject *object = NULL;
    fl_item *copy = NULL;
    BEGIN_STORAGE(self);
    if (storage->elements.count > 0) {
        uint32_t next = storage->order == FL_LIFO ? storage->elements.count - 1 : 0;
        void *element = *fl_elements_place(&storage->elements, next);
        if (storage->elements.lock != NULL) {
            copy = element;
            fl_item_ref(copy);
        } else {
            object = Py_NewRef((PyObject *)element);
        }
    }
    END_STORAGE(self);
    return copy != NULL ? made_of(self, copy) : object;
}

PyObject *fl_bounded_look(fl_bounded *self)
{
    PyObject *object = fl_bounded_look_at(self);
    fl_permits_give(fl_bounded_objects(self), 1);
    return object != NULL || PyErr_Occurred() ? object : fl_bounded_raise(self, FL_REFUSAL, false);
}

/* With the storage, so that no join begins between the end of the work and the word of it. */
static void wake_joiners(fl_bounded *self)
{
    fl_waitq *finished = fl_load(&self->storage->finished, relaxed); /* with the storage */
    if (finished != NULL) {
        fl_flag_set(finished);
    }
}

bool fl_bounded_task_done(fl_bounded *self)
{
    fl_mailbox *mailbox = NULL;
    bool too_many;
    BEGIN_STORAGE(self);
    too_many = self->storage->unfinished == 0;
    if (!too_many && --self->storage->unfinished == 0) {
        fl_mailbox_batch();
        wake_joiners(self);
        mailbox = fl_mailbox_flush();
    }
    END_STORAGE(self);
    deliver(mailbox);
    return !too_many;
}

int fl_bounded_begin_join(fl_bounded *self)
{
    int done;
    BEGIN_STORAGE(self);
    done = self->storage->unfinished == 0;
    if (!done) {
        fl_waitq *finished = fl_load(&self->storage->finished, relaxed); /* with the storage */
        if (finished == NULL) {
            finished = fl_flag_new();
            fl_store(&self->storage->finished, finished, relaxed); /* as above */
        } else if (fl_flag_is_set(finished)) {
            fl_flag_clear(finished);
        }
        if (finished == NULL) {
            done = -1;
        }
    }
    END_STORAGE(self);
    if (done < 0) {
        PyErr_NoMemory();
    }
    return done;
}

/* With the storage. Takes everything off the elements, and leaves nothing for later getters. */
static fl_elements empty_for_ever(fl_bounded *self)
{
    fl_elements all = fl_elements_empty(&self->storage->elements);
    self->storage->unfinished -=
        all.count < self->storage->unfinished ? all.count : self->storage->unfinished;
    if (!self->storage->emptied) {
        self->storage->emptied = true;
        fl_sem_withdraw(fl_bounded_objects(self), FL_SEM_MOST);
    }
    return all;
}

void fl_bounded_shutdown(fl_bounded *self, bool immediate)
{
    fl_elements all = {0};
    fl_mailbox *mailbox;
    BEGIN_STORAGE(self);
    fl_mailbox_batch();
    fl_store(&self->storage->shut, true, relaxed); /* read with the storage, or to be shown */
    if (immediate) {
        all = empty_for_ever(self);
    }
    fl_sem_close(fl_bounded_objects(self));
    fl_sem_close(self->storage->slots);
    if (all.count > 0) {
        fl_sem_give(self->storage->slots, all.count);
    }
    if (immediate && self->storage->unfinished == 0) {
        wake_joiners(self);
    }
    mailbox = fl_mailbox_flush();
    END_STORAGE(self);
    deliver(mailbox);
    fl_elements_drop(&all);
}

void fl_bounded_resize(fl_bounded *self, uint32_t maxsize)
{
    fl_mailbox *mailbox = NULL;
    BEGIN_STORAGE(self);
    uint32_t before = self->storage->maxsize ? self->storage->maxsize : FL_SEM_MOST;
    uint32_t after = maxsize ? maxsize : FL_SEM_MOST;
    self->storage->maxsize = maxsize;
    if (after > before) {
        give(self->storage->slots, after - before, &mailbox);
    } else {
        fl_sem_withdraw(self->storage->slots, before - after);
    }
    END_STORAGE(self);
    deliver(mailbox);
}

/* A getter that gave its permit back after everything was thrown away may have left one. */
uint32_t fl_bounded_size(fl_bounded *self)
{
    return self->storage->emptied ? 0 : fl_sem_value(fl_bounded_objects(self));
}

void fl_bounded_clear(fl_bounded *self)
{
    fl_elements all;
    BEGIN_STORAGE(self);
    all = empty_for_ever(self);
    END_STORAGE(self);
    fl_elements_drop(&all);
}

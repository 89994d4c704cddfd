/* The table of what is shared. See shared.h. */
#include "interpreters/shared.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "interpreters/pin.h"
#include "machine/thread.h"

static struct {
    fl_mutex lock;
    uint32_t size, generation;
    fl_shared **slots;
} table;

static void before_fork(void)
{
    fl_mutex_lock(&table.lock);
    for (uint32_t slot = 0; slot < table.size; slot++) {
        if (table.slots[slot] != NULL) {
            fl_mutex_lock(&table.slots[slot]->lock); /* whose holder wants no other lock of this file */
        }
    }
}

/* In the parent and in the child, by the thread that forked. */
static void after_fork(void)
{
    for (uint32_t slot = 0; slot < table.size; slot++) {
        if (table.slots[slot] != NULL) {
            fl_mutex_unlock(&table.slots[slot]->lock);
        }
    }
    fl_mutex_unlock(&table.lock);
}

static bool fork_handled;

static void handle_fork(void)
{
    fork_handled = fl_fork_call(before_fork, after_fork, after_fork);
}

/* The table's lock; the size when there is no room. */
static uint32_t free_slot(void)
{
    uint32_t slot = 0;
    while (slot < table.size && table.slots[slot] != NULL) {
        slot++;
    }
    return slot;
}

/* The table's lock. Whether it has got a slot. */
static bool enter(fl_shared *shared)
{
    uint32_t slot = free_slot();
    if (slot == table.size) {
        return false;
    }
    shared->slot = slot;
    table.generation += table.generation == UINT32_MAX ? 2 : 1; /* no handle is 0 */
    shared->generation = table.generation;
    table.slots[slot] = shared;
    return true;
}

/* Makes the table twice as large, unless another thread has; false: no memory. */
static bool grow(uint32_t size)
{
    uint32_t larger = size ? 2 * size : 64;
    fl_shared **room = calloc(larger, sizeof *room); /* not under the lock, which is held briefly */
    if (room == NULL) {
        return false;
    }
    fl_mutex_lock(&table.lock);
    if (table.size == size) {
        if (size > 0) {
            memcpy(room, table.slots, size * sizeof *room);
        }
        fl_shared **old = table.slots;
        table.slots = room;
        table.size = larger;
        room = old;
    }
    fl_mutex_unlock(&table.lock);
    free(room);
    return true;
}

fl_shared *fl_shared_new(fl_waitq *waitq, uint32_t type, void *body, void (*drop)(void *body))
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, handle_fork);
    fl_shared *shared = fork_handled ? calloc(1, sizeof *shared) : NULL;
    if (shared == NULL) {
        return NULL;
    }
    *shared = (fl_shared){.waitq = waitq, .refs = 1, .type = type, .body = body, .drop = drop};
    for (;;) {
        fl_mutex_lock(&table.lock);
        uint32_t size = table.size;
        bool entered = enter(shared);
        fl_mutex_unlock(&table.lock);
        if (entered) {
            fl_waitq_ref(waitq);
            return shared;
        }
        if (!grow(size)) {
            free(shared);
            return NULL;
        }
    }
}

fl_shared *fl_shared_find(uint64_t handle)
{
    uint32_t slot = (uint32_t)handle;
    fl_mutex_lock(&table.lock);
    fl_shared *found = slot < table.size ? table.slots[slot] : NULL;
    if (found != NULL && fl_shared_handle(found) == handle) {
        found->refs++;
    } else {
        found = NULL;
    }
    fl_mutex_unlock(&table.lock);
    return found;
}

void fl_shared_unref(fl_shared *shared)
{
    fl_mutex_lock(&table.lock);
    bool last = --shared->refs == 0;
    if (last) {
        table.slots[shared->slot] = NULL;
    }
    fl_mutex_unlock(&table.lock);
    if (last) {
        if (shared->body != NULL) {
            shared->drop(shared->body);
        }
        fl_waitq_unref(shared->waitq);
        free(shared);
    }
}

void fl_item_ref(fl_item *item)
{
    fl_fetch_add(&item->refs, 1, relaxed); /* the caller holds a reference, or the lock */
}

void fl_item_unref(fl_item *item)
{
    if (item != NULL && fl_fetch_sub(&item->refs, 1, acq_rel) == 1) { /* pairs with itself */
        for (size_t i = 0; i < item->pinned; i++) {
            fl_pin_unref(item->pins[i]);
        }
        free(item->pins);
        free(item);
    }
}

size_t fl_item_size(const fl_item *item)
{
    size_t size = item->size;
    for (size_t i = 0; i < item->pinned; i++) {
        size += item->pins[i]->size;
    }
    return size;
}

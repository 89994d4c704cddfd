/* The table of what is shared. See shared.h. */
#include "core/shared.h"

#include <stdlib.h>
#include <string.h>

static struct {
    fl_mutex lock;
    fl_atomic(uint32_t) forks;
    uint32_t size, generation;
    fl_shared **slots;
} table = {.forks = 1};

static void lock_table(void)
{
    fl_fork_unlock(&table.forks, &table.lock);
    fl_mutex_lock(&table.lock);
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
    lock_table();
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

fl_shared *fl_shared_new(fl_cell *cell, uint32_t type)
{
    fl_shared *shared = calloc(1, sizeof *shared);
    if (shared == NULL) {
        return NULL;
    }
    *shared = (fl_shared){.cell = cell, .refs = 1, .type = type, .forks = fl_fork_generation};
    for (;;) {
        lock_table();
        uint32_t size = table.size;
        bool entered = enter(shared);
        fl_mutex_unlock(&table.lock);
        if (entered) {
            fl_cell_ref(cell);
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
    lock_table();
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
    lock_table();
    bool last = --shared->refs == 0;
    if (last) {
        table.slots[shared->slot] = NULL;
    }
    fl_mutex_unlock(&table.lock);
    if (last) {
        fl_item *item;
        while ((item = fl_line_get(shared)) != NULL) {
            free(item);
        }
        fl_cell_unref(shared->cell);
        free(shared);
    }
}

/* In a forked child another thread of the parent may have left it locked; the line is whole at any moment. */
static void lock_line(fl_shared *shared)
{
    fl_fork_unlock(&shared->forks, &shared->lock);
    fl_mutex_lock(&shared->lock);
}

void fl_line_put(fl_shared *shared, fl_item *item)
{
    item->next = NULL;
    lock_line(shared);
    *(shared->last != NULL ? &shared->last->next : &shared->first) = item;
    shared->last = item;
    fl_mutex_unlock(&shared->lock);
}

fl_item *fl_line_get(fl_shared *shared)
{
    lock_line(shared);
    fl_item *item = shared->first;
    if (item != NULL) {
        shared->first = item->next;
        if (shared->first == NULL) {
            shared->last = NULL;
        }
    }
    fl_mutex_unlock(&shared->lock);
    return item;
}

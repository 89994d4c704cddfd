#include "gil/trace/pool.h"

#include <stdlib.h>
#include <string.h>

#include "machine/aligned.h"

/* Under the lock. */
static void add_slab(fl_pool *pool)
{
    char *slab = fl_aligned_alloc(FL_POOL_ALIGNMENT, FL_POOL_SLAB * pool->size);
    for (size_t i = FL_POOL_SLAB; slab && i > 0; i--) {
        fl_pool_room *room = (fl_pool_room *)(void *)(slab + (i - 1) * pool->size);
        room->next = pool->first;
        pool->first = room;
    }
    pool->free += slab ? FL_POOL_SLAB : 0;
}

void *fl_pool_take(fl_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    if (pool->first == NULL) {
        add_slab(pool);
    }
    fl_pool_room *room = pool->first;
    if (room) {
        pool->first = room->next;
        pool->used++;
        pool->free--;
    }
    pthread_mutex_unlock(&pool->lock);
    return room ? memset(room, 0, pool->size) : NULL;
}

void fl_pool_give(fl_pool *pool, void *thing)
{
    fl_pool_room *room = thing;
    pthread_mutex_lock(&pool->lock);
    room->next = pool->first;
    pool->first = room;
    pool->used--;
    pool->free++;
    pthread_mutex_unlock(&pool->lock);
}

void fl_pool_measure(fl_pool *pool, size_t *used, size_t *free)
{
    pthread_mutex_lock(&pool->lock);
    *used = pool->used * pool->size;
    *free = pool->free * pool->size;
    pthread_mutex_unlock(&pool->lock);
}

void fl_pool_fork(fl_pool *pool, size_t used)
{
    pthread_mutex_init(&pool->lock, NULL);
    pool->first = NULL;
    pool->free = 0;
    pool->used = used;
}

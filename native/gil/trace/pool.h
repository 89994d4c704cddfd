/* pool: memory for many things of one size that come and go, taken by one thread and given back by another.
 *
 * An allocator with an arena for each thread gets such things back in an arena that no longer needs them:
 * the allocating thread's arena never has enough free memory, and the others have ever more. This pool
 * reuses first what was freed last, so it has room for as many things as ever were in use at once, and for
 * no more.
 *
 * Any thread; takes a lock of its own for a few instructions, and allocates once in FL_POOL_SLAB times at
 * the most. The pool frees no memory.
 */
#pragma once

#include <pthread.h>
#include <stddef.h>

#define FL_POOL_SLAB 64      /* things */
#define FL_POOL_ALIGNMENT 64 /* bytes: a cache line, for things of a size that is a multiple of it */

typedef struct fl_pool_room {
    struct fl_pool_room *next;
} fl_pool_room;

typedef struct {
    pthread_mutex_t lock;
    size_t size; /* of one */
    fl_pool_room *first;
    size_t used, free;
} fl_pool;

/* The first value of a pool. */
#define FL_POOL_OF(type) {.lock = PTHREAD_MUTEX_INITIALIZER, .size = sizeof(type)}

/* Room for one, all zeros; NULL: no memory. */
void *fl_pool_take(fl_pool *pool);
void fl_pool_give(fl_pool *pool, void *room);

/* How many bytes of the pool are in use, and are free. */
void fl_pool_measure(fl_pool *pool, size_t *used, size_t *free);

/* In the child of a fork: the pool is empty, and `used` of what it gave out are still in use. What was free
   is lost to this process: another thread may have been about to take it. */
void fl_pool_fork(fl_pool *pool, size_t used);

/* See queue.h. */
#include "sync/processes/queue.h"

#include <string.h>

_Static_assert(sizeof(fl_shm_queue) == 192 && offsetof(fl_shm_queue, getting) == 64 &&
                   offsetof(fl_shm_queue, filled) == 128,
               "putters and getters have a cache line each");

/* Tries a few times: the lock is held for the time of a copy. */
static fl_shm_result enter(fl_shm_lock *end, uint64_t me, bool look, uint64_t *dead)
{
    fl_shm_result result = fl_shm_lock_try(end, me, false, true, dead);
    for (int i = 0; i < FL_SPINS && result == FL_SHM_NOT; i++) {
        fl_pause();
        result = fl_shm_lock_try(end, me, false, true, dead);
    }
    return result == FL_SHM_NOT && look ? fl_shm_lock_try(end, me, true, true, dead) : result;
}

void fl_shm_queue_give_up(fl_shm_lock *end, uint64_t me)
{
    fl_shm_lock_release(end, me);
}

fl_shm_result fl_shm_queue_begin_put(fl_shm_queue *queue, uint64_t capacity, uint64_t length, uint64_t me,
                                     bool look, fl_shm_eventcount **eventcount, uint64_t *dead)
{
    fl_shm_result result = enter(&queue->putting, me, look, dead);
    if (result == FL_SHM_NOT) {
        *eventcount = &queue->putting.eventcount;
    } else if (result == FL_SHM_DONE) {
        uint64_t used = fl_load(&queue->tail, relaxed) - fl_load(&queue->head, seq_cst);
        if (fl_load(&queue->shut, seq_cst)) {
            result = FL_SHM_SHUT_DOWN;
        } else if (used + fl_shm_queue_takes(length) > capacity) {
            *eventcount = &queue->emptied;
            result = FL_SHM_NOT;
        }
        if (result != FL_SHM_DONE) {
            fl_shm_queue_give_up(&queue->putting, me);
        }
    }
    return result;
}

fl_shm_result fl_shm_queue_begin_get(fl_shm_queue *queue, uint64_t me, bool look,
                                     fl_shm_eventcount **eventcount, uint64_t *dead)
{
    fl_shm_result result = enter(&queue->getting, me, look, dead);
    if (result == FL_SHM_NOT) {
        *eventcount = &queue->getting.eventcount;
    } else if (result == FL_SHM_DONE) {
        uint32_t shut = fl_load(&queue->shut, seq_cst); /* before the tail: what was put before is there */
        if (shut == FL_SHM_SHUT_AT_ONCE) {
            result = FL_SHM_SHUT_DOWN;
        } else if (fl_load(&queue->tail, seq_cst) == fl_load(&queue->head, relaxed)) {
            *eventcount = &queue->filled;
            result = shut ? FL_SHM_SHUT_DOWN : FL_SHM_NOT;
        }
        if (result != FL_SHM_DONE) {
            fl_shm_queue_give_up(&queue->getting, me);
        }
    }
    return result;
}

void fl_shm_queue_end_put(fl_shm_queue *queue, uint64_t capacity, const void *message, uint64_t length,
                          uint64_t me)
{
    uint64_t tail = fl_load(&queue->tail, relaxed), begin = (tail + 8) % capacity;
    uint64_t straight = length < capacity - begin ? length : capacity - begin;
    memcpy(queue->data + tail % capacity, &length, 8);
    memcpy(queue->data + begin, message, straight);
    memcpy(queue->data, (const char *)message + straight, length - straight);
    fl_store(&queue->tail, tail + fl_shm_queue_takes(length), seq_cst);
    fl_shm_lock_release(&queue->putting, me);
    fl_shm_notify(&queue->filled, 1);
}

bool fl_shm_queue_length(fl_shm_queue *queue, uint64_t capacity, uint64_t *length)
{
    uint64_t head = fl_load(&queue->head, relaxed);
    memcpy(length, queue->data + head % capacity, 8);
    uint64_t there = fl_load(&queue->tail, acquire) - head; /* pairs with the store in _end_put */
    return *length < capacity && fl_shm_queue_takes(*length) <= there;
}

void fl_shm_queue_end_get(fl_shm_queue *queue, uint64_t capacity, void *message, uint64_t length,
                          uint64_t me)
{
    uint64_t head = fl_load(&queue->head, relaxed), begin = (head + 8) % capacity;
    uint64_t straight = length < capacity - begin ? length : capacity - begin;
    memcpy(message, queue->data + begin, straight);
    memcpy((char *)message + straight, queue->data, length - straight);
    fl_store(&queue->head, head + fl_shm_queue_takes(length), seq_cst);
    fl_shm_lock_release(&queue->getting, me);
    fl_shm_notify(&queue->emptied, UINT32_MAX); /* the first to wake may want more room than there is */
}

void fl_shm_queue_shut(fl_shm_queue *queue, uint32_t how)
{
    uint32_t before = fl_load(&queue->shut, seq_cst);
    while (before < how && !fl_cas(&queue->shut, &before, how, seq_cst, seq_cst)) {
    }
    fl_shm_notify(&queue->filled, UINT32_MAX);
    fl_shm_notify(&queue->emptied, UINT32_MAX);
}

uint64_t fl_shm_queue_used(fl_shm_queue *queue)
{
    uint64_t head = fl_load(&queue->head, acquire); /* first, so that it is not beyond the tail */
    return fl_load(&queue->tail, acquire) - head;
}

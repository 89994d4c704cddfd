/* A bounded queue of bytes in shared memory; see shm.h.
 *
 * A ring, with a lock at each end, so that puts and gets do not hinder each other. The holder of a
 * lock copies first, and then says so by one store: of `tail`, which makes the message be there, or of
 * `head`, which makes its room be free. So the ring is whole at every step (invariant 2), and the process
 * that takes a lock over from a dead process has nothing to mend: the message that it was about is there, or
 * is not. What may be lost with a process is the one message that it was putting or getting.
 */
#pragma once

#include "sync/processes/shm.h"

typedef struct {
    fl_shm_lock putting;
    fl_atomic(uint64_t) tail; /* bytes that were ever put; written under `putting` */
    char apart[32];
    fl_shm_lock getting;
    fl_atomic(uint64_t) head; /* that were ever taken away; written under `getting` */
    char far_apart[32];
    fl_shm_eventcount filled, emptied;
    fl_atomic(uint32_t) shut; /* 0; FL_SHM_SHUT: nothing is put any more; FL_SHM_SHUT_AT_ONCE: nor got */
    char rest[44];
    unsigned char data[]; /* messages: a length of 8 bytes, as many bytes, and up to the next multiple of 8 */
} fl_shm_queue;

#define FL_SHM_SHUT 1u
#define FL_SHM_SHUT_AT_ONCE 2u

/* The bytes of the ring that a message takes. */
static inline uint64_t fl_shm_queue_takes(uint64_t length)
{
    return 8 + (length + 7) / 8 * 8;
}

/* `capacity`, in bytes, is a multiple of 8, and the same in all calls. FL_SHM_DONE: the caller has that
   end's lock, and must go on to _end, or to _give_up. FL_SHM_NOT: `turn` says where to wait.
   FL_SHM_SHUT_DOWN. FL_SHM_INHERITED: as FL_SHM_DONE, but `dead` died at this end before. Never blocks. */
fl_shm_result fl_shm_queue_begin_put(fl_shm_queue *queue, uint64_t capacity, uint64_t length, uint64_t me,
                                     bool look, fl_shm_eventcount **eventcount, uint64_t *dead);
fl_shm_result fl_shm_queue_begin_get(fl_shm_queue *queue, uint64_t me, bool look,
                                     fl_shm_eventcount **eventcount, uint64_t *dead);

/* With the lock: copies, makes it count, and releases the lock. Whether there was anything: a message
   that was damaged from outside has a length that cannot be (_length). */
void fl_shm_queue_end_put(fl_shm_queue *queue, uint64_t capacity, const void *message, uint64_t length,
                          uint64_t me);
bool fl_shm_queue_length(fl_shm_queue *queue, uint64_t capacity, uint64_t *length);
void fl_shm_queue_end_get(fl_shm_queue *queue, uint64_t capacity, void *message, uint64_t length,
                          uint64_t me);
void fl_shm_queue_give_up(fl_shm_lock *end, uint64_t me);

/* For good, and wakes all. Never blocks. */
void fl_shm_queue_shut(fl_shm_queue *queue, uint32_t how);

/* Bytes of the ring that are taken: a figure to show. */
uint64_t fl_shm_queue_used(fl_shm_queue *queue);

/* rwlock: many read, or one writes, and one of the readers may be the next to write.
 *
 * Prior art: phase-fair locks (Brandenburg and Anderson, "Spin-Based Reader-Writer Synchronization for
 * Multiprocessor Real-Time Systems", 2010, https://doi.org/10.1007/s11241-010-9097-2). Phases of reading and
 * writing alternate as long as there are both: a reader waits for one phase of writing at most, and a
 * writer for one of reading and for the writers before it. Preferring readers starves
 * writers, preferring writers starves readers, and one queue in the order of coming gives up the parallelism
 * of all readers but those that stand side by side.
 *
 * The word counts readers in its low half, and has flags:
 *   WRITER      there is a writer, and no other holder.
 *   UPGRADABLE  a reader may go on to write; it is not counted as a reader, and is the only one of its kind.
 *   QUEUED      there are waiters: releasing goes through the queue lock.
 *   BARRED      a writer waits: no reader enters.
 * The last two change under the queue lock only. With BARRED the word only goes down but under that lock.
 *
 * Invariants, checked by the model (rw-* in native/tests/model/scenarios_rw.c):
 * 1. When the queue lock is free and a waiter is queued, there is a holder whose release will serve it.
 * 2. A write phase that ends lets in all readers that wait at that instant, before any other writer.
 * 3. An upgrade goes before all others: no other writes between its reading and its writing.
 */
#pragma once

#include "sync/wait/waitq.h"

#define FL_RW_MOST 0x3fffffffu /* readers */
#define FL_RW_WRITER (UINT64_C(1) << 32)
#define FL_RW_UPGRADABLE (UINT64_C(1) << 33)
#define FL_RW_QUEUED (UINT64_C(1) << 34)
#define FL_RW_BARRED (UINT64_C(1) << 35)

/* The modes of holders, and what a waiter wants. */
typedef enum {
    FL_RW_NONE,
    FL_RW_READ,
    FL_RW_UPGRADE, /* reads, and may write next */
    FL_RW_WRITE,
    FL_RW_RAISE, /* wanted only: to write, by the holder of FL_RW_UPGRADE */
} fl_rw_mode;

extern const fl_waitq_ops fl_rw_ops;

static inline fl_waitq *fl_rw_new(void)
{
    return fl_waitq_new(&fl_rw_ops, 0, FL_RW_MOST, 0);
}

static inline uint64_t fl_rw_word(fl_waitq *waitq)
{
    fl_waitq_refresh(waitq);
    return fl_load(&waitq->word, relaxed); /* a figure to show */
}

/* Whether a newcomer would find room, by this word. */
bool fl_rw_fits(uint64_t word, uint32_t wanted);

/* Goes inside without waiting; for FL_RW_RAISE, from reading to writing. Any thread, attached or not. */
bool fl_rw_try(fl_waitq *waitq, uint32_t wanted, uint64_t owner);

/* From one mode that the caller is inside in to a lower one, or out of it. Does not block, and may be called
   from anywhere. */
void fl_rw_lower(fl_waitq *waitq, fl_rw_mode from, fl_rw_mode to);

/* In a forked child, where there is no other holder yet: the surviving thread holds it as before. */
void fl_rw_survive(fl_waitq *waitq, fl_rw_mode mode);

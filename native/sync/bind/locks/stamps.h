/* The stamps of a StampedLock, and those of its holders.
 *
 * A stamp is a whole number of 63 bits: which lock, a number, and what it is for. That of an optimistic
 * reader has the version that it saw; that of a holder a number that was never given before, and is in
 * `holds` as long as it is inside, with its thread. So every other stamp is known to be none, and a thread
 * that would wait for itself is known, too.
 */
#ifndef FL_SYNC_BIND_LOCKS_STAMPS_H
#define FL_SYNC_BIND_LOCKS_STAMPS_H

#include "sync/bind/locks/stamped.h"

#include "sync/locks/stamped.h"

typedef struct {
    fl_wrapper wrapper;
    PyObject *holds; /* a dict: the stamp, and the holder as fl_owner_* say */
    fl_atomic(uint64_t) numbers; /* given to those inside */
    fl_atomic(uint32_t) generation; /* of the process that `holds` is of */
    uint64_t tag; /* of this lock, in its place; constant */
} fl_stamp_lock;

#define FL_STAMP_TAG_AT 50 /* the bits below: 2 say the kind, 48 are the number */
#define FL_STAMP_TAGS 8191 /* locks that certainly differ, one after another */

typedef unsigned long long fl_stamp;

static inline int fl_stamp_kind(fl_stamp given)
{
    return (int)(given & 3);
}

static inline uint32_t fl_stamp_mode(int kind)
{
    return kind == FL_STAMP_WRITES ? FL_RW_WRITE : FL_RW_READ;
}

fl_stamp fl_stamp_of(const fl_stamp_lock *self, uint64_t number, int kind);

/* Begins every operation. */
fl_stamp_lock *fl_stamps_begin(PyObject *lock);
/* The caller has the wait queue's lock: its stamp, or NULL with an exception, and it has left. */
PyObject *fl_stamps_add(fl_stamp_lock *self, int kind, uint64_t owner);
/* Takes the stamp out of those that are inside, which only one does; -1: an exception. */
int fl_stamps_remove(fl_stamp_lock *self, PyObject *number);
/* Out of the lock. The version after it. */
uint64_t fl_stamps_lower(fl_stamp_lock *self, int kind, fl_rw_mode to);
/* Whether this thread, or a task of it, is a holder: none of them can release while it waits. */
bool fl_stamps_of_this_thread(fl_stamp_lock *self, uint64_t me);
/* A stamp of this lock; -1: an exception. 0, which stands for none, has the kind 0. */
int fl_stamps_parse(const fl_stamp_lock *self, PyObject *number, fl_stamp *given);
/* 1: it is a holder's; -1: an exception. */
int fl_stamps_hold(fl_stamp_lock *self, PyObject *number, fl_stamp given);
/* -1, and the exception that a stamp is none any more. */
int fl_stamps_refuse(fl_stamp_lock *self);

#endif

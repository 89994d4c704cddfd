/* holders: the threads and tasks that share a lock, and how often each of them has taken it.
 *
 * A table by thread or task. An entry is written by its own holder alone; the table itself is the object's
 * that has it: every function is called attached, and within that object's critical section. None runs
 * Python.
 */
#pragma once

#include "sync/bind/base/task.h"

typedef struct {
    uint64_t thread; /* 0: this place is free */
    PyObject *task;  /* a reference; NULL: the thread itself */
    uint32_t reads, upgrades, writes;
} fl_rw_hold;

typedef struct {
    fl_rw_hold *at;
    uint32_t room, count; /* room: a power of two, or none yet */
} fl_holders;

/* NULL: this one is not inside. Good until the next call. */
fl_rw_hold *fl_holders_find(const fl_holders *holders, const fl_caller *who);
/* A new entry, of a holder that has none; the reference to the task is copied. NULL: no memory. */
fl_rw_hold *fl_holders_add(fl_holders *holders, const fl_caller *who);
/* The task's reference goes to the caller, which drops it outside of the critical section. */
PyObject *fl_holders_remove(fl_holders *holders, fl_rw_hold *hold);

/* What a primitive with holders has as its method _holders(), for sync.waits(): a list of (owner, task or
   None, whether no other can be inside), owner as fl_owner_*. Appends one, if there is an owner; NULL with
   an exception set, and no list. */
PyObject *fl_holders_append(PyObject *list, uint64_t owner, PyObject *task, bool alone);

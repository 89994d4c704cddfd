/* What every primitive's file in this directory is made of: a wrapper over a wait queue, and two endings of a
 * wait.
 *
 * A wrapper is a small object of one interpreter; its wait queue is counted, knows no Python, and may be
 * shared. A primitive tries its fast path, and then ends in fl_wait_thread (blocks, detached) or in an
 * operation (an awaitable).
 */
#ifndef FL_SYNC_BIND_BASE_WAIT_H
#define FL_SYNC_BIND_BASE_WAIT_H

#include "sync/bind/base/imports.h"
#include "sync/bind/base/state.h"

#include <stddef.h>
#include <structmember.h>

#include "machine/thread.h"
#include "sync/wait/waitq.h"
#include "sync/coordination/meeting.h"
#include "sync/wait/mailbox.h"
#include "sync/wait/thread_table.h"
#include "sync/locks/semaphore.h"
#include "interpreters/shared.h"

typedef struct {
    PyObject_HEAD
    fl_waitq *waitq;
    PyObject *weak;
    fl_atomic(fl_shared *) shared; /* NULL: no other interpreter has it */
    fl_atomic(struct fl_lost *) lost; /* of a lock: see locks/lost.h */
} fl_wrapper;

static inline fl_waitq *fl_wrapper_waitq(PyObject *wrapper)
{
    return ((fl_wrapper *)wrapper)->waitq;
}

static inline fl_state *fl_wrapper_state(PyObject *wrapper)
{
    return fl_type_state(Py_TYPE(wrapper));
}

/* What every type of wrappers has: weak references, and an end, at which tp_clear lets go of what it refers
   to. */
extern PyMemberDef fl_wrapper_members[];
void fl_wrapper_dealloc(PyObject *self);
#define FL_WRAPPER_SLOTS_AND(type, prefix, dealloc)                                                         \
    {Py_tp_dealloc, (void *)(dealloc)}, {Py_tp_members, fl_wrapper_members}, FL_SLOTS(type, prefix)
#define FL_WRAPPER_SLOTS(type, prefix) FL_WRAPPER_SLOTS_AND(type, prefix, fl_wrapper_dealloc)

/* Allocates a wrapper of this type and takes over the reference to the wait queue; NULL (of the wait queue)
   is a MemoryError. */
PyObject *fl_wrapper_new(PyTypeObject *type, fl_waitq *waitq);

/* "<Type ..., n waiting, at 0x...>", with what the format says. */
PyObject *fl_wrapper_repr(PyObject *self, const char *format, ...);

/* A wrapper that refers to another one as long as it is there: a condition to its lock, a view to what it is
   a view of. */
typedef struct {
    fl_wrapper wrapper;
    PyObject *of;
} fl_part;
/* Over the same wait queue; NULL with an exception. */
PyObject *fl_part_new(PyTypeObject *type, PyObject *of);
int fl_part_traverse(PyObject *self, visitproc visit, void *arg);
void fl_part_dealloc(PyObject *self);
#define FL_PART_SLOTS(type, prefix)                                                                         \
    {Py_tp_traverse, (void *)fl_part_traverse}, FL_WRAPPER_SLOTS_AND(type, prefix, fl_part_dealloc)

/* By the sharer of a primitive, attached and with the object's own lock: what is shared, and NULL with an
   exception if it cannot be, as a queue that has objects in it. */
fl_shared *fl_bounded_share(PyObject *op, uint32_t type);
fl_shared *fl_barrier_share(PyObject *op, uint32_t type);
fl_shared *fl_broadcast_share(PyObject *op, uint32_t type);
/* A Condition with this Lock, over the queue that another interpreter's has, whose reference it steals; NULL
   with an exception. */
PyObject *fl_condition_with(PyObject *lock, fl_waitq *waitq);
/* Of an object that was just made for what several interpreters have. */
void fl_bounded_attach(PyObject *op, fl_shared *shared);
void fl_broadcast_attach(PyObject *op, fl_shared *shared);

/* The deadline that `blocking` and `timeout` (either may be NULL) mean, as in threading: 0 for "do not wait",
   which a negative time-out is, too; None is for ever. -1 with an exception set: nan, too large, or a
   time-out for a call that does not block. */
int fl_deadline_parse(PyObject *blocking, PyObject *timeout, int64_t *deadline);
/* The same in nanoseconds from now on, or FL_FOREVER. */
int fl_wait_parse(PyObject *blocking, PyObject *timeout, int64_t *wait);

/* Around the sleep of a thread that waits by this waiter (of a choice, by any of its waiters): detaches, and
   says in the thread table what it sleeps for, so that sync.waits() can tell: the object in the waiter's
   `request`, which the caller refers to. There is no other way to sleep for what has a holder. */
#define FL_BEGIN_SLEEP(waiter, deadline)                                                                    \
    {                                                                                                      \
        PyThreadState *parked_ = PyThreadState_Get();                                                     \
        int64_t space_ = PyInterpreterState_GetID(PyThreadState_GetInterpreter(parked_));                 \
        Py_BEGIN_ALLOW_THREADS                                                                             \
        fl_thread_table_begin((waiter), (deadline), parked_, space_);
#define FL_END_SLEEP                                                                                        \
        fl_thread_table_end();                                                                              \
        Py_END_ALLOW_THREADS                                                                               \
    }

/* Waits in this thread, which is attached, detaches meanwhile, and runs signal handlers, in its place. 1:
   taken; 0: timed out; -1: an exception, as of a signal handler, or because a task runs in this thread, whose
   loop would stand still; FL_REFUSAL: the wait queue was closed. But for 1 nothing is taken. `what`: the
   object that it waits for, which is what sync.waits() shows. */
#define FL_REFUSAL 2
int fl_wait_thread(PyObject *what, fl_waitq *waitq, uint32_t wanted, fl_stake stake, int64_t deadline);
/* The same, for what may be closed meanwhile; `refuses` is called once it is queued, says whether it was, and
   refuses its waiters then. */
typedef bool (*fl_refuses)(PyObject *what);
int fl_wait_thread_unless(PyObject *what, fl_waitq *waitq, uint32_t wanted, fl_stake stake,
                          int64_t deadline, fl_refuses refuses);

/* Before a thread waits: -1 with a DeadlockError, if a task runs in it, unless blocking is allowed there. */
extern fl_atomic(bool) fl_blocking_allowed;
int fl_refuse_to_block(fl_state *state);

/* What a method returns: a truth value, or None; of -1 NULL, with the exception that is set. */
static inline PyObject *fl_truth(int value)
{
    return value < 0 ? NULL : PyBool_FromLong(value);
}
static inline PyObject *fl_none(int outcome)
{
    return outcome < 0 ? NULL : Py_NewRef(Py_None);
}

/* wait(timeout=None), by this name: until a count (sync/coordination/event.h) is 0. */
PyObject *fl_wait_for_zero(const char *function, PyObject *what, PyObject *const *args, Py_ssize_t count,
                           PyObject *kwnames);

/* When a thread that waits looks for signals next; *looks is 0 at first. */
int64_t fl_next_look(int *looks);

/* This thread's waiter (fl_thread_waiter) for this object; NULL with an exception. */
fl_waiter *fl_waiter_for(PyObject *what, fl_waitq *waitq, uint32_t wanted, fl_stake stake);
/* One sleep of it, once it has entered, and the signal handlers that are due. 1: it has been granted; 0: its
   time was over, and it has left; FL_REFUSAL; FL_AGAIN: none of these yet; -1: an exception, and it waits
   still. */
#define FL_AGAIN 4
int fl_sleep(fl_waiter *waiter, int64_t deadline, int *looks);
/* Sleeps until it is over, if the thread may block. As fl_wait_thread; with -1 the waiter is settled, and
   what it may have been granted is given back. Where that cannot be it is 1, and what a handler has raised is
   raised afterwards. */
int fl_wait_in_place(fl_state *state, fl_waiter *waiter, int64_t deadline);

/* Attached, by a waiter that has found that the wait queue's holder has ended: the lock breaks (FL_REFUSAL),
   or a warning says so (0; -1: which raised). */
int fl_holder_ended(PyObject *what, fl_waitq *waitq);

/* By a primitive that knows its holders, before it waits: warns if one of them is a task or a thread that has
   ended (-1: which raised). At most so many are looked at. */
#define FL_HOLDERS_CHECKED 16
typedef enum { FL_NONE_GONE, FL_TASK_GONE, FL_THREAD_GONE } fl_gone;
int fl_warn_if_gone(PyObject *what, fl_gone gone);

/* The exception that is set, with its traceback, which is set no more; and raises it again, whose reference
   it steals. */
PyObject *fl_caught(void);
void fl_raise_again(PyObject *error);

/* Takes a lock that must be had, for ever: an exception of a signal handler waits until it is taken (-1, with
   the last one set). */
int fl_wait_thread_always(PyObject *what, fl_waitq *waitq, fl_stake stake);

/* As fl_wait_thread, in a thread where gevent's hub runs: only the greenlet that calls waits. Where none
   does, FL_NO_GREENLET, and nothing has been done. */
#define FL_NO_GREENLET 3
int fl_wait_greenlet(PyObject *what, fl_waitq *waitq, uint32_t wanted, fl_stake stake, int64_t deadline);

/* Whether this thread's hub can run others while the caller waits; -1: an exception. */
int fl_in_greenlet(fl_state *state);
/* There: waits with this operation (stolen; NULL: an exception is set), and returns what it ends with; None:
   the time was over first. */
PyObject *fl_greenlet_wait(PyObject *operation, int64_t deadline);

/* What an awaitable returns once its wait is over; NULL with an exception set. Without one it is True. `item`
   is what the awaitable carries; `refused`: the wait queue was closed, and nothing is taken. */
typedef PyObject *(*fl_finish)(PyObject *wrapper, PyObject *item, bool refused);

/* An awaitable that takes `wanted` from the wrapper's wait queue when it is awaited. */
PyObject *fl_operation_new(fl_state *state, PyObject *wrapper, uint32_t wanted, fl_finish finish);
/* From another wait queue that lives as long as the wrapper; `item` may be NULL. */
PyObject *fl_operation_at(fl_state *state, PyObject *wrapper, fl_waitq *waitq, uint32_t wanted,
                          fl_finish finish, PyObject *item);

/* A handoff with an object, for a sender; NULL with an exception. */
fl_handoff *fl_handoff_new(PyObject *object);
/* With what is in it; may be NULL. */
void fl_handoff_drop(fl_handoff *handoff);

/* An awaitable of a meeting, by this side, which steals the handoff (NULL: a receiver brings none);
   `finish` is given what is in its place by then. Once it has met, a cancellation is too late for one that
   sends: it ends as if there was none, and the task is cancelled at its next wait. */
PyObject *fl_operation_meeting(fl_state *state, PyObject *wrapper, fl_meeting_side side, fl_handoff *handoff,
                            fl_finish finish);

/* An awaitable that ends as is settled by the waiter's `wanted`, which is given as it was left. `attempt`: a
   way of the wrapper's own to take without waiting: 1: taken, 0: not there, -1: an exception; NULL: the wait
   queue's. It is called when the awaitable is awaited, in the task that awaits, may change what is wanted,
   and warns of holders that have ended. */
typedef PyObject *(*fl_conclude)(PyObject *wrapper, uint32_t wanted, bool refused);
typedef int (*fl_attempt)(PyObject *wrapper, uint32_t *wanted);
PyObject *fl_operation_of(fl_state *state, PyObject *wrapper, uint32_t wanted, fl_attempt attempt,
                       fl_conclude conclude);

/* What __aenter__ returns, which `async with` awaits at once: done if it could be taken, else that operation.
   NULL with an exception set. */
PyObject *fl_operation_enter(fl_state *state, PyObject *wrapper, uint32_t wanted, fl_attempt attempt,
                             fl_conclude conclude);

/* The same awaitable (NULL: an exception is set), for what may be closed meanwhile: it takes nothing then. */
PyObject *fl_operation_unless(PyObject *operation, fl_refuses refuses);

/* With an exception set, which ends the wait of a task's waiter: whether that was granted what is final, so
   that it stands, and the exception has been put off. If not it is set still, and the waiter is to be given
   up. */
bool fl_wait_stands(fl_state *state, fl_waiter *waiter);

/* What every awaitable that waits begins with. One step of it is taken at a time. */
typedef struct {
    PyObject_HEAD
    const struct fl_awaitable_ops *ops;
    PyObject *inner; /* the iterator of the future that is awaited */
    bool busy;       /* a step of it runs: what that calls may not take another */
} fl_awaitable;

typedef struct fl_awaitable_ops {
    PySendResult (*step)(PyObject *op, PyObject *value, PyObject **result);
    /* With an exception set, which ends the wait; PYGEN_ERROR: it is set still. */
    PySendResult (*raised)(PyObject *op, PyObject **result);
    void (*give_up)(PyObject *op);
} fl_awaitable_ops;

/* A new one, zero but for this; NULL with an exception. */
PyObject *fl_awaitable_new(PyTypeObject *type, const fl_awaitable_ops *ops);
/* Its end, at which tp_clear lets go of what it refers to. */
void fl_awaitable_dealloc(PyObject *op);
/* Its methods send, throw and close, and its type's slots for awaiting. */
PyObject *fl_awaitable_send(PyObject *op, PyObject *value);
PyObject *fl_awaitable_throw(PyObject *op, PyObject *const *args, Py_ssize_t count);
PyObject *fl_awaitable_close(PyObject *op, PyObject *ignored);
PySendResult fl_awaitable_step(PyObject *op, PyObject *value, PyObject **result);
PyObject *fl_awaitable_next(PyObject *op);
/* Its give_up, while an exception may be on its way. */
void fl_awaitable_give_up(PyObject *op);
#define FL_AWAITABLE_SLOTS                                                                                  \
    {Py_am_await, (void *)PyObject_SelfIter}, {Py_am_send, (void *)fl_awaitable_step},                     \
        {Py_tp_iter, (void *)PyObject_SelfIter}, {Py_tp_iternext, (void *)fl_awaitable_next}

/* PyIter_Send, which PyPy does not have. */
PySendResult fl_iterator_send(PyObject *iterator, PyObject *value, PyObject **result);

/* With this stake instead of that of the task that awaits it. */
void fl_operation_for(PyObject *operation, fl_stake stake);

/* An awaitable that is done; for `async with`, which awaits at once, and for what never waits. */
PyObject *fl_operation_done(fl_state *state);

/* Around a call of the core that may wake tasks: those of this thread's own loop are woken here and now,
   without a system call, if a task of it runs at this moment. Otherwise the loop may be about to sleep, as
   under a signal handler, and the wakeup descriptor is rung. */
#define FL_WAKING(call)                                                                                     \
    do {                                                                                                   \
        fl_mailbox_batch();                                                                                 \
        call;                                                                                              \
        fl_mailbox *mailbox_ = fl_mailbox_flush();                                                          \
        if (mailbox_ != NULL) {                                                                             \
            fl_mailbox_deliver(mailbox_);                                                                   \
        }                                                                                                  \
    } while (0)
void fl_mailbox_deliver(fl_mailbox *mailbox);

fl_sem_result fl_permits_give_slow(fl_waitq *waitq, uint32_t count);

/* fl_sem_give, and each waiter that gets something is woken. */
static inline fl_sem_result fl_permits_give(fl_waitq *waitq, uint32_t count)
{
    fl_sem_result result;
    return fl_sem_give_at_once(waitq, count, &result) ? result : fl_permits_give_slow(waitq, count);
}

/* The task that runs in this thread, as its library knows it: a new reference. NULL: none does, or an
   exception is set. */
PyObject *fl_task_here(fl_state *state);

/* That, or the greenlet where gevent runs in this thread; the first greenlet of a thread is the thread. */
PyObject *fl_holder_here(fl_state *state);

/* Whether this task or greenlet has ended; where that is not known, no. -1: an exception. Any thread. */
int fl_task_ended(fl_state *state, PyObject *task);

/* fl_owner_task(), and while deadlocks are looked for which task it is. */
extern fl_atomic(uint32_t) fl_naming_tasks;
uint64_t fl_owner_named_slow(fl_state *state);
static inline uint64_t fl_owner_named(fl_state *state)
{
    /* only whether it is worth to ask */
    return __builtin_expect(fl_load(&fl_naming_tasks, relaxed) != 0, false) ? fl_owner_named_slow(state)
                                                                           : fl_owner_task();
}

/* The caller: a thread, or a task or greenlet that runs in it. `task` is a new reference or NULL. */
typedef struct {
    uint64_t thread;
    PyObject *task;
} fl_caller;

/* Since when it is the same caller. Each step of a task, and each switch of a greenlet, enters a context of
   its own, and a thread state counts these. Its number is unique in its interpreter; another interpreter may
   be where one was that is gone. In a forked child none of the parent's tasks runs. */
typedef struct {
#ifndef PYPY_VERSION /* whose thread states do not count: there it is asked each time */
    uint64_t contexts, thread_state;
    PyInterpreterState *interpreter;
#endif
    uint32_t interpreters, generation;
} fl_caller_when;

/* The last caller of this thread; its task is borrowed, and is there as long as it runs. */
typedef struct {
    fl_caller_when when;
    fl_caller who;
} fl_caller_memory;
extern _Thread_local fl_caller_memory fl_caller_last FL_THREAD_LOCAL_MODEL;

/* How many interpreters have had this module. */
extern fl_atomic(uint32_t) fl_caller_interpreters;

/* Asks, and remembers the answer. */
int fl_caller_ask(fl_state *state, fl_caller *me);

/* Of a primitive that tells its holders apart. -1: an exception. */
static inline int fl_caller_here(PyObject *wrapper, fl_caller *me)
{
#ifndef PYPY_VERSION
    const PyThreadState *here = PyThreadState_Get();
    const fl_caller_when *last = &fl_caller_last.when;
    if (__builtin_expect(last->contexts == here->context_ver && last->thread_state == here->id &&
                             last->interpreter == here->interp && last->generation == fl_fork_generation &&
                             last->interpreters == fl_load(&fl_caller_interpreters, relaxed), /* its own */
                         true)) {
        me->thread = fl_caller_last.who.thread;
        me->task = Py_XNewRef(fl_caller_last.who.task);
        return 0;
    }
#endif
    return fl_caller_ask(fl_wrapper_state(wrapper), me);
}

static inline uint64_t fl_caller_owner(const fl_caller *me)
{
    return me->task == NULL ? me->thread : me->thread | FL_OWNER_TASK;
}

/* *inner becomes the iterator of a future of the loop that runs in this thread, which is what a task awaits.
   Returns the loop's Mailbox, with its body (borrowed) in *body and the future (a new reference, as the
   Mailbox is) in *future; NULL with an exception set. `shielded`: no cancellation ends the future, where its
   library would go on to cancel. */
PyObject *fl_await_here(fl_state *state, bool shielded, PyObject **inner, fl_mailbox **body,
                        PyObject **future);

/* The loop that asyncio runs in this thread, a new reference; NULL: none, or an exception is set. */
PyObject *fl_running_loop(fl_state *state);
/* The task of this loop that runs in this thread, the same way. */
PyObject *fl_asyncio_task(fl_state *state, PyObject *loop);

/* Calls the function, in this Mailbox's loop, after so many nanoseconds: what has a cancel(); NULL with an
   exception set. */
PyObject *fl_mailbox_timer(PyObject *mailbox, int64_t sleep, PyObject *function);
/* Puts a future (stolen) in the place of the one that a waiter's task awaits, and returns that (a new
   reference). Either may be NULL. */
PyObject *fl_waiter_swap_future(fl_waiter *waiter, PyObject *future);

/* A task's waiter for this object, whose grant completes the future: as fl_waiter_for. */
fl_waiter *fl_task_waiter(PyObject *what, fl_mailbox *body, fl_waitq *waitq, uint32_t wanted, fl_stake stake,
                          PyObject *future);
/* Done with it; it is settled. */
void fl_task_waiter_done(fl_waiter *waiter);

/* In the loop's thread: completes the future of a waiter's task, if it has one. False: the task was
   cancelled, and has yet to learn of it. */
bool fl_mailbox_complete(fl_state *state, fl_waiter *waiter);

/* A frozen record of `count` whole numbers; bit i of `booleans` says that field i is a truth value. */
PyObject *fl_record(PyTypeObject *type, const long *values, int count, int booleans);

/* Puts this, whose reference it steals, at the end of the list, and returns the list; NULL with an exception
   where either is NULL or it cannot be, and the list is gone. */
PyObject *fl_appended(PyObject *list, PyObject *one);

/* What a primitive with holders has as its method _holders(), for sync.waits(): a list of (owner, task or
   None, whether no other can be inside), owner as fl_owner_*. Appends one, if there is an owner; NULL with
   an exception set, and no list. */
PyObject *fl_holders_append(PyObject *list, uint64_t owner, PyObject *task, bool alone);

/* With an exception set where none can be raised, as that of a signal handler in what the mailbox calls of
   the loop: it is raised at this thread's next instruction of Python. Where handlers do not run it is an
   error of the loop's side, and unraisable. */
void fl_raise_later(PyObject *where);

/* The value of a key, a new reference: without a GIL another thread may delete the key meanwhile. NULL: not
   there, or an exception is set. */
PyObject *fl_dict_get(PyObject *dict, PyObject *key);

/* The arguments of a vectorcall by position or name; -1 with an exception set. `names` ends with NULL; the
   first one must be given if it begins with ! */
int fl_arguments(const char *function, const char *const *names, PyObject *const *args, Py_ssize_t count,
                 PyObject *kwnames, PyObject **values);

/* shutdown(immediate=False): 0 or 1; -1 with an exception. */
static inline int fl_shutdown_arguments(PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    static const char *const names[] = {"immediate", NULL};
    PyObject *value;
    if (fl_arguments("shutdown", names, args, count, kwnames, &value) < 0) {
        return -1;
    }
    return value == NULL ? 0 : PyObject_IsTrue(value);
}

/* A whole number from `least`, which is not negative, to `most`; -1 with an exception set, whose message
   begins with the argument's name and goes on with `limit`. */
int64_t fl_whole(const char *name, PyObject *number, int64_t least, int64_t most, const char *limit);

/* How many permits: likewise, from 1 to the wait queue's limit; NULL for 1. */
int64_t fl_permits_parse(const fl_waitq *waitq, PyObject *number, const char *limit);
/* Likewise, of a method whose one argument is n=1. */
int64_t fl_permits_argument(const char *method, const fl_waitq *waitq, PyObject *const *args,
                            Py_ssize_t count, PyObject *kwnames, const char *limit);

/* The deadline that a lock's arguments (blocking=True, timeout=None) mean, where a time-out of -1 is for
   ever; -1 with an exception set. */
int fl_acquire_parse(const char *function, PyObject *const *args, Py_ssize_t count, PyObject *kwnames,
                     int64_t *deadline);
static inline int fl_acquire_arguments(const char *function, PyObject *const *args, Py_ssize_t count,
                                       PyObject *kwnames, int64_t *deadline)
{
    *deadline = FL_FOREVER;
    return count == 0 && kwnames == NULL ? 0 : fl_acquire_parse(function, args, count, kwnames, deadline);
}

/* The deadline that the argument (timeout=None) means; -1 with an exception set. */
int fl_timeout_argument(const char *function, PyObject *const *args, Py_ssize_t count, PyObject *kwnames,
                        int64_t *deadline);

#if PY_VERSION_HEX >= 0x030D0000
#define FL_BEGIN_CRITICAL(object) \
    (void)(object); /* all that is left of it where there is a GIL */ \
    Py_BEGIN_CRITICAL_SECTION(object)
#define FL_END_CRITICAL() Py_END_CRITICAL_SECTION()
#else
#define FL_BEGIN_CRITICAL(object) \
    (void)(object); \
    {
#define FL_END_CRITICAL() }
#endif

#endif

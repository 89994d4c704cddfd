/* What the files of this directory share: the module's state and one exec function per concern. */
#ifndef FL_SYNC_BIND_BASE_STATE_H
#define FL_SYNC_BIND_BASE_STATE_H

#define PY_SSIZE_T_CLEAN /* of formats, which Python 3.12 and older want to be told */
#include <Python.h>

#include "docs.h" /* made by the build */

#ifdef PYPY_VERSION /* which has one interpreter, and no calls for this in its C API */
#define PyInterpreterState_Get() (PyThreadState_Get()->interp)
#define PyInterpreterState_Main() PyInterpreterState_Get()
#define PyErr_CheckSignals() fl_run_handlers() /* PyPy's own does nothing */
int fl_run_handlers(void);
#endif

/* Every object of the state, once: (type, name). */
#define FL_STATE_OBJECTS(X)                                                                                 \
    X(PyTypeObject, cores_type)                                                                            \
    X(PyTypeObject, usage_type)                                                                            \
    X(PyTypeObject, mailbox_type)                                                                           \
    X(PyTypeObject, operation_type)                                                                         \
    X(PyTypeObject, done_type)                                                                             \
    X(PyTypeObject, lock_type)                                                                             \
    X(PyTypeObject, semaphore_type)                                                                        \
    X(PyTypeObject, bounded_type)                                                                          \
    X(PyTypeObject, event_type)                                                                            \
    X(PyTypeObject, gate_type)                                                                             \
    X(PyTypeObject, combining_type)                                                                        \
    X(PyTypeObject, section_type)                                                                          \
    X(PyTypeObject, combining_statistics)                                                                  \
    X(PyTypeObject, simple_queue_type)                                                                     \
    X(PyTypeObject, queue_type)                                                                            \
    X(PyTypeObject, lifo_type)                                                                             \
    X(PyTypeObject, priority_type)                                                                         \
    X(PyTypeObject, latch_type)                                                                            \
    X(PyTypeObject, countdown_type)                                                                        \
    X(PyTypeObject, count_statistics)                                                                      \
    X(PyTypeObject, barrier_type)                                                                          \
    X(PyTypeObject, barrier_statistics)                                                                    \
    X(PyTypeObject, rendezvous_type)                                                                       \
    X(PyTypeObject, exchanger_type)                                                                        \
    X(PyTypeObject, exchanger_statistics)                                                                  \
    X(PyTypeObject, phaser_type)                                                                           \
    X(PyTypeObject, phaser_statistics)                                                                     \
    X(PyTypeObject, condition_type)                                                                          \
    X(PyTypeObject, rlock_type)                                                                            \
    X(PyTypeObject, rlock_statistics)                                                                      \
    X(PyTypeObject, rwlock_type)                                                                           \
    X(PyTypeObject, striped_type)                                                                          \
    X(PyTypeObject, striped_statistics)                                                                    \
    X(PyTypeObject, stamped_type)                                                                          \
    X(PyTypeObject, stamped_statistics)                                                                    \
    X(PyTypeObject, visit_type)                                                                            \
    X(PyTypeObject, rate_type)                                                                             \
    X(PyTypeObject, rate_statistics)                                                                       \
    X(PyTypeObject, selection_type)                                                                        \
    X(PyTypeObject, selected_type)                                                                         \
    X(PyTypeObject, broadcast_type)                                                                         \
    X(PyTypeObject, reader_type)                                                                           \
    X(PyTypeObject, side_type)                                                                             \
    X(PyTypeObject, rwlock_statistics)                                                                     \
    X(PyTypeObject, lock_statistics)                                                                       \
    X(PyTypeObject, semaphore_statistics)                                                                  \
    X(PyTypeObject, event_statistics)                                                                      \
    X(PyTypeObject, simple_queue_statistics)                                                               \
    X(PyTypeObject, queue_statistics)                                                                      \
    X(PyTypeObject, job_queue_type)                                                                         \
    X(PyTypeObject, job_type)                                                                              \
    X(PyTypeObject, worker_slot_type)                                                                       \
    X(PyTypeObject, view_type)                                                                             \
    X(PyTypeObject, segment_type)                                                                          \
    X(PyObject, done)         /* the awaitable that is over */                                             \
    X(PyObject, current_mailbox) /* finds the Mailbox of the loop that runs here */                         \
    X(PyObject, task_number)  /* numbers the task that runs here */                                        \
    X(PyObject, running_loop) /* of asyncio, once it was found; see task.c */                              \
    X(PyObject, task_of)                                                                                   \
    X(PyObject, trio_context) /* and what the other adapters say of theirs */                              \
    X(PyObject, greenlet_of)                                                                               \
    X(PyObject, name_done)                                                                                 \
    X(PyObject, name_set_result)                                                                           \
    X(PyObject, name_asyncio)                                                                              \
    X(PyObject, name_asyncio_tasks)                                                                        \
    X(PyObject, name_trio)                                                                                 \
    X(PyObject, name_dict)                                                                                 \
    X(PyObject, name_task)                                                                                 \
    X(PyObject, name_gevent)

/* Per interpreter. Written by the exec functions, by fairlead.wait at its import, and once each by task.c, so
   that threads may read it without a lock. */
typedef struct {
#define FL_STATE_FIELD(type, name) type *name;
    FL_STATE_OBJECTS(FL_STATE_FIELD)
#undef FL_STATE_FIELD
    struct fl_lender *lender; /* of what this interpreter sends by reference */
    PyObject *recent_loop,
        *recent_mailbox; /* borrowed: the mailbox clears both before it goes; under the GIL */
} fl_state;

static inline fl_state *fl_state_of(PyObject *module)
{
    return (fl_state *)PyModule_GetState(module);
}

/* Of a type of ours, or one that Python derived from it; NULL with an exception. */
fl_state *fl_state_under(PyTypeObject *type);

/* What the stub says of a function of the module (FL_DOC(module, name)), of a method or of a type; see
   native/module/docs.py. */
#define FL_DOC(owner, name) FL_DOC_##owner##_##name
#define FL_TYPE_DOC(type) FL_TYPE_DOC_##type

/* The spec of an immutable type; `more` are further flags, or 0. */
#define FL_TYPE(type_name, size, more, type_slots)                                                         \
    {                                                                                                      \
        .name = (type_name),                                                                               \
        .basicsize = (size),                                                                               \
        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE | (more),                                   \
        .slots = (type_slots),                                                                             \
    }

/* What PyStructSequence_NewType takes, named `record`: a record of the stub's. */
#define FL_RECORD(record, where, type)                                                                     \
    static PyStructSequence_Field record##_fields[] = {FL_FIELDS_##type, {NULL, NULL}};                    \
    static PyStructSequence_Desc record = {                                                                \
        .name = where "." #type,                                                                           \
        .doc = FL_TYPE_DOC(type),                                                                          \
        .fields = record##_fields,                                                                         \
        .n_in_sequence = sizeof record##_fields / sizeof record##_fields[0] - 1,                           \
    }

/* Adds types, those that could not be made (NULL, with the exception set) refused; -1 on failure. */
int fl_add_types(PyObject *module, PyTypeObject *const *types, size_t count);

/* The concerns of the module, in the order in which it runs their exec functions. */
#define FL_CONCERNS(X)                                                                                      \
    X(clock)                                                                                                \
    X(copy)                                                                                                 \
    X(cores)                                                                                                \
    X(simulate)                                                                                             \
    X(mailbox)                                                                                              \
    X(operation)                                                                                            \
    X(done)                                                                                                 \
    X(select)                                                                                               \
    X(task)                                                                                                 \
    X(permits)                                                                                              \
    X(rate)                                                                                                 \
    X(rlock)                                                                                                \
    X(rwlock)                                                                                               \
    X(stamped)                                                                                              \
    X(counter)                                                                                              \
    X(condition)                                                                                            \
    X(barrier)                                                                                              \
    X(meeting)                                                                                              \
    X(phaser)                                                                                               \
    X(event)                                                                                                \
    X(combine)                                                                                              \
    X(simplequeue)                                                                                          \
    X(queue)                                                                                                \
    X(broadcast)                                                                                            \
    X(handle)                                                                                               \
    X(interrupt)                                                                                            \
    X(job_queue)                                                                                            \
    X(worker_slot)                                                                                          \
    X(view)                                                                                                 \
    X(waits)                                                                                                \
    X(usage)                                                                                                \
    X(shm)                                                                                                  \
    X(shm_lock)                                                                                             \
    X(shm_permits)                                                                                          \
    X(shm_event)                                                                                            \
    X(shm_queue)                                                                                            \
    X(shm_barrier)

/* fl_CONCERN_exec adds its functions and types to the module; -1 with an exception set on failure. */
#define FL_EXEC_DECLARATION(concern) int fl_##concern##_exec(PyObject *module);
FL_CONCERNS(FL_EXEC_DECLARATION)
#undef FL_EXEC_DECLARATION

#endif

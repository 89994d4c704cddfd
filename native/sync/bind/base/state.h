/* What the files of this directory share: the module's state, and what the module is made of. */
#pragma once

#include "docs.h" /* made by the build */
#include "sync/bind/base/c_api.h"

/* The types of the module: the field of the state, and the spec in its own file. INNER ones have no name in
   the module. */
#define FL_TYPES(PUBLIC, INNER)                                                                            \
    PUBLIC(mailbox_type, fl_mailbox_spec)                                                                  \
    PUBLIC(operation_type, fl_operation_spec)                                                              \
    INNER(done_type, fl_done_spec)                                                                         \
    PUBLIC(selection_type, fl_selection_spec)                                                              \
    PUBLIC(lock_type, fl_lock_spec)                                                                        \
    PUBLIC(semaphore_type, fl_semaphore_spec)                                                              \
    PUBLIC(bounded_type, fl_bounded_spec)                                                                  \
    PUBLIC(limiter_type, fl_limiter_spec)                                                                  \
    PUBLIC(rate_type, fl_rate_spec)                                                                        \
    PUBLIC(rlock_type, fl_rlock_spec)                                                                      \
    PUBLIC(rwlock_type, fl_rwlock_spec)                                                                    \
    PUBLIC(side_type, fl_side_spec)                                                                        \
    PUBLIC(combiner_type, fl_combiner_spec)                                                                \
    INNER(section_type, fl_section_spec)                                                                   \
    PUBLIC(condition_type, fl_condition_spec)                                                              \
    PUBLIC(notice_type, fl_notice_spec)                                                                    \
    PUBLIC(barrier_type, fl_barrier_spec)                                                                  \
    PUBLIC(event_type, fl_event_spec)                                                                      \
    PUBLIC(waiter_type, fl_waiter_spec)                                                                    \
    PUBLIC(countdown_type, fl_countdown_spec)                                                              \
    PUBLIC(rendezvous_type, fl_rendezvous_spec)                                                            \
    PUBLIC(end_type, fl_end_spec)                                                                          \
    PUBLIC(simple_queue_type, fl_simple_queue_spec)                                                        \
    PUBLIC(queue_type, fl_queue_spec)                                                                      \
    PUBLIC(lifo_type, fl_lifo_spec)                                                                        \
    PUBLIC(priority_type, fl_priority_spec)                                                                \
    PUBLIC(broadcast_type, fl_broadcast_spec)                                                              \
    PUBLIC(job_type, fl_job_spec)                                                                          \
    PUBLIC(job_queue_type, fl_job_queue_spec)                                                              \
    PUBLIC(worker_slot_type, fl_worker_slot_spec)                                                          \
    INNER(view_type, fl_view_spec)                                                                         \
    PUBLIC(segment_type, fl_segment_spec)                                                                  \
    PUBLIC(counted_type, fl_counted_spec)                                                                  \
    PUBLIC(taker_type, fl_taker_spec)

/* Those whose base is another one: the field of that, and the spec. */
#define FL_DERIVED_TYPES(X)                                                                                \
    X(end_type, fl_sending_spec)                                                                           \
    X(end_type, fl_receiving_spec)                                                                         \
    X(segment_type, fl_shm_lock_spec)                                                                      \
    X(segment_type, fl_shm_permits_spec)                                                                   \
    X(segment_type, fl_shm_event_spec)                                                                     \
    X(segment_type, fl_shm_queue_spec)                                                                     \
    X(segment_type, fl_shm_barrier_spec)

/* The records of the stub: the field of the state, the module that shows it, and its name. */
#define FL_RECORDS(X)                                                                                      \
    X(cores_type, "fairlead.machine", Cores)                                                               \
    X(usage_type, "fairlead.machine", Usage)                                                               \
    X(selected_type, "fairlead.sync", Selected)                                                            \
    X(lock_statistics, "fairlead.sync", LockStatistics)                                                    \
    X(semaphore_statistics, "fairlead.sync", SemaphoreStatistics)                                          \
    X(limiter_statistics, "fairlead.sync", CapacityLimiterStatistics)                                      \
    X(rate_statistics, "fairlead.sync", RateLimiterStatistics)                                             \
    X(rlock_statistics, "fairlead.sync", RLockStatistics)                                                  \
    X(rwlock_statistics, "fairlead.sync", RWLockStatistics)                                                \
    X(condition_statistics, "fairlead.sync", ConditionStatistics)                                          \
    X(combiner_statistics, "fairlead.sync.extra", CombinerStatistics)                                      \
    X(barrier_statistics, "fairlead.sync", BarrierStatistics)                                              \
    X(event_statistics, "fairlead.sync", EventStatistics)                                                  \
    X(count_statistics, "fairlead.sync", CountdownStatistics)                                              \
    X(simple_queue_statistics, "fairlead.sync", SimpleQueueStatistics)                                     \
    X(queue_statistics, "fairlead.sync", QueueStatistics)

/* The state's other objects; those that are names, with their text. */
#define FL_OBJECTS(X)                                                                                      \
    X(done, NULL)            /* the awaitable that is over */                                              \
    X(modules, NULL)         /* sys.modules; the interpreter lets go of it before its last objects */      \
    X(current_mailbox, NULL) /* finds the Mailbox of the loop that runs here */                            \
    X(task_number, NULL)     /* numbers the task that runs here */                                         \
    X(running_loop, NULL)    /* of asyncio, once it was found; see task.c */                               \
    X(task_of, NULL)                                                                                       \
    X(reschedule, NULL)                                                                                    \
    X(trio_context, NULL)    /* and what the other adapters say of theirs */                               \
    X(greenlet_of, NULL)                                                                                   \
    X(in_greenlet, NULL)                                                                                   \
    X(greenlet_wait, NULL)                                                                                 \
    X(postponed, NULL)                                                                                     \
    X(dumps, NULL)                                                                                         \
    X(loads, NULL)                                                                                         \
    X(find_errors, NULL)                                                                                   \
    X(errors, NULL)            /* see imports.h */                                                         \
    X(errors_of_asyncio, NULL) /* the same, once the program has imported asyncio */                       \
    X(name_done, "done")                                                                                   \
    X(name_set_result, "set_result")                                                                       \
    X(name_next, "next")                                                                                   \
    X(name_popleft, "popleft")                                                                             \
    X(name_raise, "_raise")                                                                                \
    X(name_callbacks, "_callbacks")                                                                        \
    X(name_asyncio, "asyncio")                                                                             \
    X(name_asyncio_tasks, "asyncio.tasks")                                                                 \
    X(name_asyncio_queues, "asyncio.queues")                                                               \
    X(name_trio, "trio")                                                                                   \
    X(name_dict, "__dict__")                                                                               \
    X(name_task, "task")                                                                                   \
    X(name_gevent, "gevent.hub")                                                                           \
    X(name_ipykernel, "ipykernel")

/* The functions of the module, by concern: fl_CONCERN_functions. */
#define FL_FUNCTIONS(X)                                                                                    \
    X(clock)                                                                                               \
    X(copy)                                                                                                \
    X(cores)                                                                                               \
    X(process)                                                                                             \
    X(usage)                                                                                               \
    X(simulate)                                                                                            \
    X(operation)                                                                                           \
    X(select)                                                                                              \
    X(task)                                                                                                \
    X(handle)                                                                                              \
    X(interrupt)                                                                                           \
    X(view)                                                                                                \
    X(waits)

/* Per interpreter. Written when the module is made, by fairlead.wait at its import, and once each by
   imports.c, so that threads may read it without a lock. */
typedef struct {
#define FL_TYPE_FIELD(field, ...) PyTypeObject *field;
#define FL_OBJECT_FIELD(field, text) PyObject *field;
    FL_TYPES(FL_TYPE_FIELD, FL_TYPE_FIELD)
    FL_RECORDS(FL_TYPE_FIELD)
    FL_OBJECTS(FL_OBJECT_FIELD)
#undef FL_OBJECT_FIELD
#undef FL_TYPE_FIELD
    struct fl_lender *lender; /* of what this interpreter sends by reference */
    PyObject *recent_loop,
        *recent_mailbox; /* borrowed: the mailbox clears both before it goes; under the GIL */
} fl_state;

#define FL_SPEC(field, spec) extern PyType_Spec spec;
#define FL_FUNCTION_TABLE(concern) extern PyMethodDef fl_##concern##_functions[];
FL_TYPES(FL_SPEC, FL_SPEC)
FL_DERIVED_TYPES(FL_SPEC)
FL_FUNCTIONS(FL_FUNCTION_TABLE)
#undef FL_FUNCTION_TABLE
#undef FL_SPEC

static inline fl_state *fl_state_of(PyObject *module)
{
    return (fl_state *)PyModule_GetState(module);
}

/* A type of ours, which cannot be changed, by itself or by one that Python derived from it. */
static inline PyTypeObject *fl_own_type(PyTypeObject *type)
{
    while (!(type->tp_flags & Py_TPFLAGS_IMMUTABLETYPE)) {
        type = type->tp_base;
    }
    return type;
}

static inline fl_state *fl_type_state(PyTypeObject *type)
{
    return (fl_state *)PyType_GetModuleState(fl_own_type(type));
}

/* What the stub says of a function of the module (FL_DOC(module, name)), of a method or of a type; see
   native/module/docs.py. */
#define FL_DOC(owner, name) FL_DOC_##owner##_##name
#define FL_TYPE_DOC(type) FL_TYPE_DOC_##type

/* The names of a constructor's parameters, as the stub has them, for PyArg_ParseTupleAndKeywords, which up to
   3.12 wants words that could be written to. */
#define FL_PARAMETERS(type) ((char **)(uintptr_t)(const char *const[]){FL_PARAMETERS_##type})

/* In a table of methods, a function that is METH_FASTCALL; NAMED: and takes keywords. */
typedef PyObject *(*fl_fast)(PyObject *, PyObject *const *args, Py_ssize_t count);
typedef PyObject *(*fl_fast_named)(PyObject *, PyObject *const *args, Py_ssize_t count, PyObject *kwnames);
#define FL_FAST(function) ((PyCFunction)(void (*)(void))(false ? (fl_fast)NULL : (function)))
#define FL_FAST_NAMED(function) ((PyCFunction)(void (*)(void))(false ? (fl_fast_named)NULL : (function)))

/* The last slots of a type: what the stub says of it, and of each method, of which prefix##NAME is the C
   function, without the underscores around its name. */
#define FL_SLOTS(type, prefix)                                                                              \
    {Py_tp_methods, (PyMethodDef[]){FL_METHODS_##type(prefix)}},                                           \
    {Py_tp_doc, (void *)(uintptr_t)FL_TYPE_DOC(type)},                                                     \
    {0, NULL}

/* The spec of an immutable type; `more` are further flags, or 0, and what follows are its slots. */
#define FL_TYPE(type_name, object, more, ...)                                                               \
    {                                                                                                      \
        .name = (type_name),                                                                               \
        .basicsize = sizeof(object),                                                                       \
        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE | (more),                                   \
        .slots = (PyType_Slot[]){__VA_ARGS__},                                                             \
    }

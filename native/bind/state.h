/* What the files of this directory share: the module's state and one exec function per concern. */
#ifndef FL_BIND_STATE_H
#define FL_BIND_STATE_H

#define PY_SSIZE_T_CLEAN /* of formats, which Python 3.12 and older want to be told */
#include <Python.h>

/* Every object of the state, once: (type, name). */
#define FL_STATE_OBJECTS(X)                                                                                 \
    X(PyTypeObject, cores_type)                                                                            \
    X(PyTypeObject, usage_type)                                                                            \
    X(PyTypeObject, port_type)                                                                             \
    X(PyTypeObject, ticket_type)                                                                           \
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
    X(PyTypeObject, notices_type)                                                                          \
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
    X(PyTypeObject, tape_type)                                                                             \
    X(PyTypeObject, reader_type)                                                                           \
    X(PyTypeObject, side_type)                                                                             \
    X(PyTypeObject, rwlock_statistics)                                                                     \
    X(PyTypeObject, lock_statistics)                                                                       \
    X(PyTypeObject, semaphore_statistics)                                                                  \
    X(PyTypeObject, event_statistics)                                                                      \
    X(PyTypeObject, simple_queue_statistics)                                                               \
    X(PyTypeObject, queue_statistics)                                                                      \
    X(PyTypeObject, board_type)                                                                            \
    X(PyTypeObject, job_type)                                                                              \
    X(PyTypeObject, seat_type)                                                                             \
    X(PyTypeObject, view_type)                                                                             \
    X(PyTypeObject, segment_type)                                                                          \
    X(PyTypeObject, shared_lock_type)                                                                      \
    X(PyTypeObject, shared_semaphore_type)                                                                 \
    X(PyTypeObject, shared_event_type)                                                                     \
    X(PyTypeObject, shared_queue_type)                                                                     \
    X(PyTypeObject, shared_barrier_type)                                                                   \
    X(PyObject, done)         /* the awaitable that is over */                                             \
    X(PyObject, current_port) /* finds the Port of the loop that runs here */                              \
    X(PyObject, current_task) /* finds the task that runs here */                                          \
    X(PyObject, task_number)  /* numbers the task that runs here */                                        \
    X(PyObject, running_loop) /* asyncio's functions, once they were asked for; under the GIL */           \
    X(PyObject, task_of)                                                                                   \
    X(PyObject, name_done)                                                                                 \
    X(PyObject, name_set_result)                                                                           \
    X(PyObject, name_asyncio)                                                                              \
    X(PyObject, name_trio)                                                                                 \
    X(PyObject, name_trio_adapter)                                                                         \
    X(PyObject, name_thread_local)                                                                         \
    X(PyObject, name_dict)                                                                                 \
    X(PyObject, name_task)                                                                                 \
    X(PyObject, name_current_task)                                                                         \
    X(PyObject, name_gevent)                                                                               \
    X(PyObject, name_running_loop)

/* Per interpreter. Written by the exec functions, and by fairlead.wait at its import, so that threads may
   read it without a lock. */
typedef struct {
#define FL_STATE_FIELD(type, name) type *name;
    FL_STATE_OBJECTS(FL_STATE_FIELD)
#undef FL_STATE_FIELD
    struct fl_lender *lender; /* of what this interpreter sends by reference */
    PyObject *recent_loop, *recent_port; /* borrowed: the port clears both before it goes; under the GIL */
} fl_state;

static inline fl_state *fl_state_of(PyObject *module)
{
    return (fl_state *)PyModule_GetState(module);
}

/* Of a type of ours, or one that Python derived from it; NULL with an exception. */
fl_state *fl_state_under(PyTypeObject *type);

/* Adds types, those that could not be made (NULL, with the exception set) refused; -1 on failure. */
int fl_add_types(PyObject *module, PyTypeObject *const *types, size_t count);

/* Each adds one concern's functions and types to the module; -1 with an exception set on failure. */
int fl_barrier_exec(PyObject *module);
int fl_board_exec(PyObject *module);
int fl_clock_exec(PyObject *module);
int fl_combine_exec(PyObject *module);
int fl_copy_exec(PyObject *module);
int fl_counter_exec(PyObject *module);
int fl_cores_exec(PyObject *module);
int fl_done_exec(PyObject *module);
int fl_event_exec(PyObject *module);
int fl_meeting_exec(PyObject *module);
int fl_notices_exec(PyObject *module);
int fl_handle_exec(PyObject *module);
int fl_phaser_exec(PyObject *module);
int fl_permits_exec(PyObject *module);
int fl_port_exec(PyObject *module);
int fl_queue_exec(PyObject *module);
int fl_rate_exec(PyObject *module);
int fl_rlock_exec(PyObject *module);
int fl_rwlock_exec(PyObject *module);
int fl_seat_exec(PyObject *module);
int fl_select_exec(PyObject *module);
int fl_shm_exec(PyObject *module);
int fl_shm_barrier_exec(PyObject *module);
int fl_shm_event_exec(PyObject *module);
int fl_shm_lock_exec(PyObject *module);
int fl_shm_permits_exec(PyObject *module);
int fl_shm_queue_exec(PyObject *module);
int fl_simplequeue_exec(PyObject *module);
int fl_simulate_exec(PyObject *module);
int fl_stamped_exec(PyObject *module);
int fl_tape_exec(PyObject *module);
int fl_task_exec(PyObject *module);
int fl_ticket_exec(PyObject *module);
int fl_usage_exec(PyObject *module);
int fl_view_exec(PyObject *module);
int fl_waits_exec(PyObject *module);

#endif

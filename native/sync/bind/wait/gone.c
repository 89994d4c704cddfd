/* A holder that has ended, and is waited for: the lock breaks, or a warning says so. */
#include "sync/bind/wait/gone.h"

#include "sync/bind/wait/mailbox.h"

#define A_THREAD "a thread that has ended, or by a task of it,"

/* -1: it raised. */
static int warn_of_death(PyObject *what, const char *holder)
{
    PyObject *errors = fl_errors(fl_wrapper_state(what));
    return errors == NULL ? -1
                          : PyErr_WarnFormat(PyTuple_GET_ITEM(errors, FL_ERROR_OwnerDeathWarning), 1,
                                             "%R is held by %s and is waited for; what that held comes back "
                                             "only if another thread or task releases it",
                                             what, holder);
}

int fl_holder_ended(PyObject *what, fl_waitq *waitq)
{
    if (waitq->flags & FL_WAITQ_BREAKS) {
        FL_WAKING(fl_sem_close(waitq));
        return FL_REFUSAL;
    }
    return warn_of_death(what, A_THREAD);
}

int fl_warn_if_gone(PyObject *what, fl_gone gone)
{
    if (gone == FL_NONE_GONE) {
        return 0;
    }
    return warn_of_death(what, gone == FL_TASK_GONE ? "a task that has ended" : A_THREAD);
}

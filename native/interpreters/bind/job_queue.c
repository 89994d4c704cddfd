/* JobQueue: what the interpreter pool's engine posts calls on; workers take them at their slots
 * (worker_slot.c). A job's owner is an object of the engine's interpreter and is touched there only.
 */
#include "interpreters/bind/job_queue.h"
#include "sync/bind/base/arguments.h"
#include "sync/bind/base/wrapper.h"

#include "machine/cores.h"

typedef struct {
    PyObject_HEAD
    fl_job_queue *job_queue;
} job_queue_object;

typedef struct {
    PyObject_HEAD
    fl_job *job;
} job_object;

static fl_job_queue *job_queue_of(PyObject *op)
{
    return ((job_queue_object *)op)->job_queue;
}

/* jobs */

static PyObject *new_job(fl_state *state, fl_job *job)
{
    job_object *self = PyObject_New(job_object, state->job_type);
    if (self == NULL) {
        fl_job_unref(job);
        return NULL;
    }
    self->job = job;
    return (PyObject *)self;
}

static void job_dealloc(PyObject *op)
{
    PyTypeObject *type = Py_TYPE(op);
    fl_job_unref(((job_object *)op)->job);
    PyObject_Free(op);
    Py_DECREF(type);
}

/* The owner of a job that the caller ends, which goes to the caller. */
static PyObject *owner_of(PyObject *op, fl_job *job)
{
    PyObject *owner;
    FL_BEGIN_CRITICAL(op);
    owner = job->owner;
    job->owner = NULL;
    FL_END_CRITICAL();
    return owner != NULL ? owner : Py_NewRef(Py_None);
}

/* The owner of a job that has begun; NULL: another thread has ended it since. */
static PyObject *owner_kept(PyObject *op, const fl_job *job)
{
    PyObject *owner;
    FL_BEGIN_CRITICAL(op);
    owner = Py_XNewRef((PyObject *)job->owner);
    FL_END_CRITICAL();
    return owner;
}

/* (owner, kind, value) of a job that the caller ends; a value that cannot be read is the exception. */
static PyObject *outcome_of(PyObject *op, fl_job *job)
{
    int kind = job->kind;
    PyObject *value = fl_unpack(fl_wrapper_state(op), job->reply);
    fl_item_unref(job->reply);
    job->reply = NULL;
    if (value == NULL) {
        value = fl_caught();
        kind = FL_COMPLETIONS_UNREADABLE;
    }
    return Py_BuildValue("(NiN)", owner_of(op, job), kind, value);
}

PyType_Spec fl_job_spec = FL_TYPE("fairlead._native.Job", job_object, Py_TPFLAGS_DISALLOW_INSTANTIATION,
    {Py_tp_dealloc, (void *)job_dealloc},
    {0, NULL});

static fl_job *job_in(PyObject *self, PyObject *op)
{
    if (Py_TYPE(op) != fl_wrapper_state(self)->job_type) {
        PyErr_SetString(PyExc_TypeError, "the argument is not a job of a JobQueue");
        return NULL;
    }
    return ((job_object *)op)->job;
}

/* job queue */

static PyObject *job_queue_job(PyObject *op, PyObject *const *args, Py_ssize_t count)
{
    if (count != 2) {
        PyErr_SetString(PyExc_TypeError, "job() takes 2 arguments");
        return NULL;
    }
    int announce = PyObject_IsTrue(args[1]);
    fl_state *state = fl_wrapper_state(op);
    fl_settle_loans(state->lender);
    fl_item *call = announce < 0 ? NULL : fl_pack(state, args[0], &(fl_sending){state->lender});
    if (call == NULL) {
        return NULL;
    }
    fl_job *job = fl_job_new(call, announce);
    if (job == NULL) {
        fl_item_unref(call);
        return PyErr_NoMemory();
    }
    return new_job(state, job);
}

static PyObject *job_queue_post(PyObject *op, PyObject *const *args, Py_ssize_t count)
{
    fl_job *job = count != 3 ? NULL : job_in(op, args[0]);
    int again = job == NULL ? -1 : PyObject_IsTrue(args[2]);
    if (again < 0) {
        if (!PyErr_Occurred()) {
            PyErr_SetString(PyExc_TypeError, "post() takes 3 arguments");
        }
        return NULL;
    }
    uint32_t outstanding;
    job->owner = Py_NewRef(args[1]); /* before a worker can have the job */
    if (!fl_job_queue_post(job_queue_of(op), job, again, &outstanding)) {
        Py_DECREF(owner_of(op, job));
        Py_RETURN_NONE;
    }
    return PyLong_FromUnsignedLong(outstanding);
}

static PyObject *job_queue_completions(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    fl_job_queue *job_queue = job_queue_of(op);
    int got = fl_wait_permit(op, job_queue->completions, NULL, FL_FOREVER);
    if (got < 0) {
        return NULL;
    }
    fl_settle_loans(fl_wrapper_state(op)->lender);
    PyObject *list = PyList_New(0);
    fl_job *job;
    bool ended;
    while (list != NULL && (job = fl_job_queue_next(job_queue, &ended)) != NULL) {
        PyObject *one;
        if (ended) {
            one = outcome_of(op, job);
        } else {
            PyObject *owner = owner_kept(op, job);
            if (owner == NULL) {
                fl_job_unref(job);
                continue;
            }
            one = Py_BuildValue("(NiO)", owner, FL_COMPLETIONS_BEGUN, Py_None);
        }
        fl_job_unref(job);
        list = fl_appended(list, one);
    }
    return list;
}

static PyObject *job_queue_help(PyObject *op, PyObject *const *args, Py_ssize_t count)
{
    int64_t deadline;
    fl_job *job = count < 1 || count > 2 ? NULL : job_in(op, args[0]);
    if (job == NULL || fl_deadline_parse(NULL, count > 1 ? args[1] : NULL, &deadline) < 0) {
        if (!PyErr_Occurred()) {
            PyErr_SetString(PyExc_TypeError, "help() takes 1 or 2 arguments");
        }
        return NULL;
    }
    fl_job_queue *job_queue = job_queue_of(op);
    fl_waitq *helper = fl_sem_new(0, FL_SEM_MOST, 0);
    if (helper == NULL) {
        return PyErr_NoMemory();
    }
    fl_job_state state = fl_job_queue_help(job_queue, job, helper);
    bool mine = state == FL_JOB_REPLIED;
    int got = 0;
    if (state == FL_JOB_QUEUED || state == FL_JOB_RUNNING) {
        got = fl_wait_permit(op, helper, &job_queue->for_reply, deadline);
        mine = fl_job_queue_helped(job_queue, job, got < 0); /* a signal handler raised */
    }
    fl_waitq_unref(helper);
    if (mine) {
        fl_settle_loans(fl_wrapper_state(op)->lender);
        return outcome_of(op, job);
    }
    return fl_none(got);
}

static PyObject *job_queue_take_back(PyObject *op, PyObject *arg)
{
    fl_job *job = job_in(op, arg);
    if (job == NULL) {
        return NULL;
    }
    uint32_t worker = 0;
    fl_job_state was = fl_job_queue_take_back(job_queue_of(op), job, &worker);
    if (was == FL_JOB_REPLIED || was == FL_JOB_ENDED) {
        return PyLong_FromLong(-1);
    }
    Py_DECREF(owner_of(op, job));
    return PyLong_FromUnsignedLong(worker);
}

static PyObject *job_queue_is_running(PyObject *op, PyObject *arg)
{
    fl_job *job = job_in(op, arg);
    return job == NULL ? NULL : PyBool_FromLong(fl_job_queue_state(job_queue_of(op), job) == FL_JOB_RUNNING);
}

static PyObject *job_queue_clear(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    PyObject *owners = PyList_New(0);
    fl_job *job;
    while (owners != NULL && (job = fl_job_queue_clear(job_queue_of(op))) != NULL) {
        owners = fl_appended(owners, owner_of(op, job));
        fl_job_unref(job);
    }
    return owners;
}

static PyObject *job_queue_seize(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    PyObject *owners = PyList_New(0);
    fl_job *job;
    uint32_t worker;
    while (owners != NULL && (job = fl_job_queue_seize(job_queue_of(op), &worker)) != NULL) {
        PyObject *one = Py_BuildValue("(NI)", owner_of(op, job), (unsigned)worker);
        fl_job_unref(job);
        owners = fl_appended(owners, one);
    }
    return owners;
}

static PyObject *job_queue_close(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    fl_job_queue_close(job_queue_of(op));
    Py_RETURN_NONE;
}

static PyObject *job_queue_wake_reader(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    fl_sem_give(job_queue_of(op)->completions, 1);
    Py_RETURN_NONE;
}

static PyObject *job_queue_is_idle(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    return PyBool_FromLong(fl_job_queue_idle(job_queue_of(op)));
}

static int64_t parse_worker(PyObject *number)
{
    return fl_whole("worker", number, 0, UINT32_MAX, "");
}

static PyObject *job_queue_leave(PyObject *op, PyObject *arg)
{
    int64_t worker = parse_worker(arg);
    if (worker < 0) {
        return NULL;
    }
    fl_job_queue *job_queue = job_queue_of(op);
    fl_job *job;
    bool mine;
    Py_BEGIN_ALLOW_THREADS
    job = fl_job_queue_leave(job_queue, (uint32_t)worker, &mine);
    Py_END_ALLOW_THREADS
    PyObject *owner = mine ? owner_of(op, job) : Py_NewRef(Py_None);
    if (job != NULL) {
        fl_job_unref(job);
    }
    return owner;
}

static PyObject *job_queue_interrupt(PyObject *op, PyObject *arg)
{
    int64_t worker = parse_worker(arg);
    if (worker < 0) {
        return NULL;
    }
    fl_job_queue *job_queue = job_queue_of(op);
    fl_worker_slot *slot = fl_job_queue_hold(job_queue, (uint32_t)worker);
    if (slot == NULL) {
        Py_RETURN_FALSE;
    }
    PyThreadState *there = PyThreadState_New(slot->interpreter);
    if (there == NULL) {
        fl_job_queue_release(job_queue, slot);
        return PyErr_NoMemory();
    }
    PyThreadState *here = PyThreadState_Swap(there);
    PyObject *module = PyImport_ImportModule("fairlead.pools.interpreter.worker");
    PyObject *stopped = module == NULL ? NULL : PyObject_GetAttrString(module, "Stopped");
    if (stopped != NULL) {
        PyThreadState_SetAsyncExc(slot->thread, stopped);
    }
    Py_XDECREF(stopped);
    Py_XDECREF(module);
    PyErr_Clear(); /* it is about to end, if it cannot find its own module */
    PyThreadState_Clear(there);
    PyThreadState_Swap(here);
    PyThreadState_Delete(there);
    fl_job_queue_release(job_queue, slot);
    Py_RETURN_TRUE;
}

static PyObject *job_queue_statistics(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    fl_job_queue_figures figures = fl_job_queue_statistics(job_queue_of(op));
    return Py_BuildValue("(IIKLLKK)", (unsigned)figures.queued, (unsigned)figures.running,
                         (unsigned long long)figures.done, (long long)figures.queue_ns,
                         (long long)figures.run_ns, (unsigned long long)figures.bytes_out,
                         (unsigned long long)figures.bytes_in);
}

static PyObject *get_number(PyObject *op, void *Py_UNUSED(closure))
{
    return PyLong_FromUnsignedLongLong(job_queue_of(op)->number);
}

static PyObject *job_queue_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, ":JobQueue", FL_PARAMETERS(JobQueue))) {
        return NULL;
    }
    fl_job_queue *job_queue = fl_job_queue_new();
    if (job_queue == NULL) {
        return PyErr_NoMemory();
    }
    job_queue_object *self = (job_queue_object *)type->tp_alloc(type, 0);
    if (self == NULL) {
        fl_job_queue_unref(job_queue);
        return NULL;
    }
    int cores = fl_cores_affinity();
    fl_spin_init(&job_queue->for_work, cores);
    fl_spin_init(&job_queue->for_reply, cores);
    self->job_queue = job_queue;
    return (PyObject *)self;
}

/* Owners are this interpreter's: those that are left go with it. */
static void job_queue_dealloc(PyObject *op)
{
    PyTypeObject *type = Py_TYPE(op);
    fl_job_queue *job_queue = job_queue_of(op);
    fl_job *job;
    bool ended;
    fl_job_queue_close(job_queue);
    while ((job = fl_job_queue_clear(job_queue)) != NULL ||
           (job = fl_job_queue_next(job_queue, &ended)) != NULL) {
        Py_DECREF(owner_of(op, job));
        fl_job_unref(job);
    }
    fl_job_queue_unref(job_queue);
    type->tp_free(op);
    Py_DECREF(type);
}

static PyGetSetDef job_queue_getset[] = {
    {"number", get_number, NULL, FL_DOC(JobQueue, number), NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyType_Spec fl_job_queue_spec = FL_TYPE("fairlead._native.JobQueue", job_queue_object, 0,
    {Py_tp_new, (void *)job_queue_new},
    {Py_tp_dealloc, (void *)job_queue_dealloc},
    {Py_tp_getset, job_queue_getset},
    FL_SLOTS(JobQueue, job_queue_));

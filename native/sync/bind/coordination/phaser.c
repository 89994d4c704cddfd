/* Phaser: the phaser in core, as java.util.concurrent's, for threads and tasks. */
#include "sync/bind/base/wait.h"

#include "sync/coordination/phaser.h"

typedef struct {
    fl_wrapper wrapper; /* its wait queue is the root's */
    fl_phaser node;
    PyObject *parent;     /* NULL: it is the root */
    PyObject *on_advance; /* of the root; NULL: none */
} phaser;

static fl_phaser *node_of(PyObject *op)
{
    return &((phaser *)op)->node;
}

static phaser *root_of(PyObject *op)
{
    phaser *self = (phaser *)op;
    while (self->parent != NULL) {
        self = (phaser *)self->parent;
    }
    return self;
}

static uint32_t phase_of(uint64_t word)
{
    return (uint32_t)word & FL_PHASER_PHASE;
}

/* The phase, or None: it is terminated. */
static PyObject *phase_or_none(uint64_t word)
{
    if (word & FL_PHASER_TERMINATED) {
        Py_RETURN_NONE;
    }
    return PyLong_FromUnsignedLong(phase_of(word));
}

static PyObject *current(PyObject *op)
{
    return phase_or_none(fl_phaser_word(fl_wrapper_waitq(op)));
}

/* -1 with an exception set: nothing has changed. */
static int checked(PyObject *op, fl_phaser_result result)
{
    if (result == FL_PHASER_UNREGISTERED) {
        fl_raise(fl_wrapper_state(op), UsageError,
                 "more have arrived than are registered: register() each party first");
        return -1;
    }
    if (result == FL_PHASER_TOO_MANY) {
        PyErr_Format(PyExc_OverflowError, "a phaser has at most %u parties", FL_PHASER_MOST);
        return -1;
    }
    return 0;
}

/* By the last that has arrived: what is to be done between two phases. -1: it raised, and that is the end. */
static int advance(phaser *root, uint32_t phase)
{
    bool again = true;
    for (; again; phase = (phase + 1) & FL_PHASER_PHASE) {
        int terminate = 0;
        if (root->on_advance != NULL) {
            uint32_t parties, unarrived;
            fl_phaser_counts(&root->node, &parties, &unarrived);
            PyObject *answer = PyObject_CallFunction(root->on_advance, "II", phase, parties);
            terminate = answer == NULL ? -1 : PyObject_IsTrue(answer);
            Py_XDECREF(answer);
        }
        PyObject *type, *value, *traceback; /* what it raised */
        PyErr_Fetch(&type, &value, &traceback);
        FL_WAKING(again = fl_phaser_advance(&root->node, terminate != 0));
        PyErr_Restore(type, value, traceback);
        if (terminate < 0) {
            return -1;
        }
    }
    return 0;
}

/* 1: there is nothing to wait for; 0: others are missing; -1: an exception. */
static int arrive_at(PyObject *op, bool deregister, uint32_t *phase, bool *over)
{
    fl_phaser_result result = fl_phaser_arrive(node_of(op), deregister, phase);
    *over = result == FL_PHASER_OVER;
    if (result == FL_PHASER_LAST) {
        return advance(root_of(op), *phase) < 0 ? -1 : 1;
    }
    return checked(op, result) < 0 ? -1 : *over;
}

static PyObject *arrive_with(PyObject *op, bool deregister)
{
    uint32_t phase;
    bool over;
    if (arrive_at(op, deregister, &phase, &over) < 0) {
        return NULL;
    }
    return phase_or_none(phase | (over ? FL_PHASER_TERMINATED : 0));
}

static PyObject *register_many(PyObject *op, uint32_t parties)
{
    uint32_t phase;
    fl_phaser_result result = fl_phaser_register(node_of(op), parties, &phase);
    if (checked(op, result) < 0) {
        return NULL;
    }
    return phase_or_none(phase | (result == FL_PHASER_OVER ? FL_PHASER_TERMINATED : 0));
}

static PyObject *phaser_register(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    return register_many(op, 1);
}

static int64_t parse_parties(PyObject *number)
{
    return fl_whole("parties", number, 0, FL_PHASER_MOST, "");
}

static PyObject *phaser_bulk_register(PyObject *op, PyObject *number)
{
    int64_t parties = parse_parties(number);
    return parties < 0 ? NULL : register_many(op, (uint32_t)parties);
}

static PyObject *phaser_arrive(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    return arrive_with(op, false);
}

static PyObject *phaser_arrive_and_deregister(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    return arrive_with(op, true);
}

/* Until that phase is over. */
static PyObject *wait_for(PyObject *op, uint32_t phase, int64_t deadline, const char *late)
{
    fl_waitq *waitq = fl_wrapper_waitq(op);
    int outcome = fl_phaser_ops.attempt(waitq, phase, (fl_stake){0});
    if (!outcome && deadline > 0) {
        outcome = fl_wait_thread(op, waitq, phase, (fl_stake){0}, deadline);
    }
    if (outcome == 0) {
        return fl_raise(fl_wrapper_state(op), WaitTimeoutError, late);
    }
    return outcome > 0 ? current(op) : NULL;
}

static PyObject *phaser_arrive_and_wait(PyObject *op, PyObject *const *args, Py_ssize_t count,
                                        PyObject *kwnames)
{
    int64_t deadline;
    uint32_t phase;
    bool over;
    if (fl_timeout_argument("arrive_and_wait", args, count, kwnames, &deadline) < 0) {
        return NULL;
    }
    int outcome = arrive_at(op, false, &phase, &over);
    if (outcome != 0) {
        return outcome < 0 ? NULL : current(op);
    }
    return wait_for(op, phase, deadline, "others have not arrived within the time; the caller has");
}

static int attempt_arrival(PyObject *op, uint32_t *wanted)
{
    bool over;
    return arrive_at(op, false, wanted, &over);
}

static PyObject *conclude(PyObject *op, uint32_t Py_UNUSED(wanted), bool Py_UNUSED(refused))
{
    return current(op);
}

static PyObject *phaser_arrive_and_wait_async(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    return fl_operation_of(fl_wrapper_state(op), op, 0, attempt_arrival, conclude);
}

static int64_t parse_phase(PyObject *number)
{
    return fl_whole("phase", number, 0, FL_PHASER_PHASE, ", as arrive() returns it");
}

static PyObject *phaser_wait_phase(PyObject *op, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    int64_t deadline, phase;
    if (count < 1) {
        PyErr_SetString(PyExc_TypeError, "wait_phase() missing required argument 'phase'");
        return NULL;
    }
    if (fl_timeout_argument("wait_phase", args + 1, count - 1, kwnames, &deadline) < 0 ||
        (phase = parse_phase(args[0])) < 0) {
        return NULL;
    }
    return wait_for(op, (uint32_t)phase, deadline, "the phase was not over within the time");
}

static PyObject *phaser_wait_phase_async(PyObject *op, PyObject *number)
{
    int64_t phase = parse_phase(number);
    return phase < 0 ? NULL : fl_operation_of(fl_wrapper_state(op), op, (uint32_t)phase, NULL, conclude);
}

static PyObject *phaser_terminate(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    FL_WAKING(fl_phaser_terminate(fl_wrapper_waitq(op)));
    Py_RETURN_NONE;
}

static PyObject *phaser_statistics(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    fl_waitq *waitq = fl_wrapper_waitq(op);
    uint32_t parties, unarrived;
    fl_phaser_counts(node_of(op), &parties, &unarrived);
    uint64_t word = fl_phaser_word(waitq);
    long values[] = {(long)phase_of(word), (long)parties, (long)parties - (long)unarrived,
                     (long)fl_waitq_waiting(waitq), (word & FL_PHASER_TERMINATED) != 0};
    return fl_record(fl_wrapper_state(op)->phaser_statistics, values, 5, 16);
}

static PyObject *repr(PyObject *op)
{
    uint64_t word = fl_phaser_word(fl_wrapper_waitq(op));
    uint32_t parties, unarrived;
    fl_phaser_counts(node_of(op), &parties, &unarrived);
    return PyUnicode_FromFormat("<%s in phase %u, %u of %u arrived%s, at %p>", Py_TYPE(op)->tp_name,
                                (unsigned)phase_of(word), (unsigned)(parties - unarrived),
                                (unsigned)parties, word & FL_PHASER_TERMINATED ? ", terminated" : "",
                                (void *)op);
}

static PyObject *get_phase(PyObject *op, void *Py_UNUSED(closure))
{
    return PyLong_FromUnsignedLong(phase_of(fl_phaser_word(fl_wrapper_waitq(op))));
}

static PyObject *get_terminated(PyObject *op, void *Py_UNUSED(closure))
{
    return PyBool_FromLong((fl_phaser_word(fl_wrapper_waitq(op)) & FL_PHASER_TERMINATED) != 0);
}

static PyObject *get_parties(PyObject *op, void *Py_UNUSED(closure))
{
    uint32_t parties, unarrived;
    fl_phaser_counts(node_of(op), &parties, &unarrived);
    return PyLong_FromUnsignedLong(parties);
}

static PyObject *get_arrived(PyObject *op, void *Py_UNUSED(closure))
{
    uint32_t parties, unarrived;
    fl_phaser_counts(node_of(op), &parties, &unarrived);
    return PyLong_FromUnsignedLong(parties - unarrived);
}

static PyObject *get_parent(PyObject *op, void *Py_UNUSED(closure))
{
    PyObject *parent = ((phaser *)op)->parent;
    return Py_NewRef(parent == NULL ? Py_None : parent);
}

static PyObject *get_root(PyObject *op, void *Py_UNUSED(closure))
{
    return Py_NewRef((PyObject *)root_of(op));
}

static PyObject *phaser_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *number = NULL, *parent = Py_None, *on_advance = Py_None;
    int64_t parties = 0;
    uint32_t phase;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O$OO:Phaser", FL_PARAMETERS(Phaser), &number, &parent,
                                     &on_advance) ||
        (number != NULL && (parties = parse_parties(number)) < 0)) {
        return NULL;
    }
    if (parent != Py_None && Py_TYPE(parent) != type) {
        PyErr_Format(PyExc_TypeError, "parent must be a Phaser or None, not a %s", Py_TYPE(parent)->tp_name);
        return NULL;
    }
    if (on_advance != Py_None && !PyCallable_Check(on_advance)) {
        PyErr_SetString(PyExc_TypeError, "on_advance must be callable, or None");
        return NULL;
    }
    if (parent != Py_None && on_advance != Py_None) {
        return fl_raise(fl_state_under(type), UsageError,
                        "phases are those of the root: give on_advance to it, not to a child");
    }
    fl_waitq *waitq = parent == Py_None ? fl_phaser_new_waitq() : fl_wrapper_waitq(parent);
    if (parent != Py_None) {
        fl_waitq_ref(waitq);
    }
    phaser *self = (phaser *)fl_wrapper_new(type, waitq);
    if (self == NULL) {
        return NULL;
    }
    self->node.waitq = waitq;
    if (parent != Py_None) {
        self->parent = Py_NewRef(parent);
        self->node.parent = node_of(parent);
    }
    self->on_advance = on_advance == Py_None ? NULL : Py_NewRef(on_advance);
    if (checked((PyObject *)self, fl_phaser_register(&self->node, (uint32_t)parties, &phase)) < 0) {
        Py_CLEAR(self);
    }
    return (PyObject *)self;
}

static int traverse(PyObject *op, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(op));
    Py_VISIT(((phaser *)op)->parent);
    Py_VISIT(((phaser *)op)->on_advance);
    return 0;
}

/* The parent is needed to the end. */
static int clear(PyObject *op)
{
    Py_CLEAR(((phaser *)op)->on_advance);
    return 0;
}

static void dealloc(PyObject *op)
{
    PyObject *parent = ((phaser *)op)->parent;
    PyObject_GC_UnTrack(op);
    clear(op);
    if (node_of(op)->waitq != NULL) {
        fl_phaser_forget(node_of(op));
    }
    fl_wrapper_dealloc(op);
    Py_XDECREF(parent);
}

static PyGetSetDef getters[] = {
    {"phase", get_phase, NULL, FL_DOC(Phaser, phase), NULL},
    {"parties", get_parties, NULL, FL_DOC(Phaser, parties), NULL},
    {"arrived", get_arrived, NULL, FL_DOC(Phaser, arrived), NULL},
    {"terminated", get_terminated, NULL, FL_DOC(Phaser, terminated), NULL},
    {"parent", get_parent, NULL, FL_DOC(Phaser, parent), NULL},
    {"root", get_root, NULL, FL_DOC(Phaser, root), NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyType_Spec fl_phaser_spec = FL_TYPE("fairlead.sync.Phaser", phaser, Py_TPFLAGS_HAVE_GC,
    {Py_tp_new, (void *)phaser_new},
    {Py_tp_dealloc, (void *)dealloc},
    {Py_tp_traverse, (void *)traverse},
    {Py_tp_clear, (void *)clear},
    {Py_tp_repr, (void *)repr},
    {Py_tp_getset, getters},
    FL_WRAPPER_SLOTS(Phaser, phaser_));

/* SharedEvent: the base of fairlead.sync.shared.Event. */
#include "core/shm_permits.h"

#include "bind/shm.h"

static size_t event_size(uint32_t Py_UNUSED(amount), uint32_t Py_UNUSED(flags))
{
    return sizeof(fl_shm_flag);
}

static fl_shm_turn *event_turn(void *part, int which)
{
    return which == 0 ? &((fl_shm_flag *)part)->turn : NULL;
}

static bool event_worth(void *body, fl_shm_turn *Py_UNUSED(turn))
{
    return fl_shm_flag_word(fl_shm_part_of(body)) & 1;
}

static const fl_shm_type event_kind = {FL_SHM_EVENT, event_size, NULL, event_turn, event_worth};

static int event_attempt(PyObject *self, void *since, bool Py_UNUSED(look), fl_shm_turn **turn)
{
    fl_shm_flag *flag = fl_shm_part(self);
    *turn = &flag->turn;
    return fl_shm_flag_passed(flag, *(uint32_t *)since) ? FL_SHM_DONE : FL_SHM_NOT;
}

PyDoc_STRVAR(is_set_doc,
"is_set($self, /)\n"
"--\n"
"\n"
"Whether the flag is set.");

static PyObject *is_set(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    return PyBool_FromLong(fl_shm_flag_word(fl_shm_part(self)) & 1);
}

PyDoc_STRVAR(set_doc,
"set($self, /)\n"
"--\n"
"\n"
"Sets the flag and wakes everyone who waits at this moment, even if it is cleared at once. Never waits,\n"
"and a signal handler or a destructor may call it.");

static PyObject *set(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    fl_shm_flag_set(fl_shm_part(self));
    Py_RETURN_NONE;
}

PyDoc_STRVAR(clear_doc,
"clear($self, /)\n"
"--\n"
"\n"
"Clears the flag.");

static PyObject *clear(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    fl_shm_flag_clear(fl_shm_part(self));
    Py_RETURN_NONE;
}

PyDoc_STRVAR(wait_doc,
"wait($self, /, timeout=None)\n"
"--\n"
"\n"
"Waits until it is set; False: the time was over first. For threads; tasks await wait_async().");

static PyObject *wait(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    int64_t deadline;
    if (fl_timeout_argument("wait", args, count, kwnames, &deadline) < 0) {
        return NULL;
    }
    uint32_t since = fl_shm_flag_word(fl_shm_part(self));
    int result = fl_shm_wait_thread(self, event_attempt, &since, deadline);
    return result < 0 ? NULL : PyBool_FromLong(result == FL_SHM_DONE);
}

PyDoc_STRVAR(word_doc,
"_word($self, /)\n"
"--\n"
"\n"
"Odd while it is set; what _passed is to be given, when a wait begins.");

static PyObject *word(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    return PyLong_FromUnsignedLong(fl_shm_flag_word(fl_shm_part(self)));
}

PyDoc_STRVAR(passed_doc,
"_passed($self, since, /)\n"
"--\n"
"\n"
"Whether it is set, or was since then.");

static PyObject *passed(PyObject *self, PyObject *since)
{
    unsigned long word = PyLong_AsUnsignedLong(since);
    if (word == (unsigned long)-1 && PyErr_Occurred()) {
        return NULL;
    }
    return PyBool_FromLong(fl_shm_flag_passed(fl_shm_part(self), (uint32_t)word));
}

static PyObject *new_event(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(kwargs))
{
    return fl_shm_new(type, &event_kind, args);
}

static PyMethodDef methods[] = {
    {"is_set", is_set, METH_NOARGS, is_set_doc},
    {"set", set, METH_NOARGS, set_doc},
    {"clear", clear, METH_NOARGS, clear_doc},
    {"wait", FL_METHOD(wait), METH_FASTCALL | METH_KEYWORDS, wait_doc},
    {"_word", word, METH_NOARGS, word_doc},
    {"_passed", passed, METH_O, passed_doc},
    {NULL, NULL, 0, NULL},
};

PyDoc_STRVAR(type_doc,
"SharedEvent(fd, token, make, amount, flags)\n"
"--\n"
"\n"
"The base of fairlead.sync.shared.Event.");

static PyType_Slot slots[] = {
    {Py_tp_new, (void *)new_event},
    {Py_tp_methods, methods},
    {Py_tp_doc, (void *)(uintptr_t)type_doc},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "fairlead._native.SharedEvent",
    .basicsize = sizeof(fl_shm_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};

int fl_shm_event_exec(PyObject *module)
{
    fl_state *state = fl_state_of(module);
    state->shared_event_type = fl_shm_type_new(module, &spec);
    return fl_add_types(module, (PyTypeObject *const[]){state->shared_event_type}, 1);
}

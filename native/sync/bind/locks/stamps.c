/* See stamps.h. */
#include "sync/bind/locks/stamps.h"

fl_stamp fl_stamp_of(const fl_stamp_lock *self, uint64_t number, int kind)
{
    return self->tag | (number << 2 & ((UINT64_C(1) << FL_STAMP_TAG_AT) - 1)) | (fl_stamp)kind;
}

/* In a forked child only the thread that forked is inside, with its tasks, which will not go on. */
static void recover(fl_stamp_lock *self)
{
    FL_BEGIN_CRITICAL(self);
    if (fl_load(&self->generation, relaxed) != fl_fork_generation) { /* written under this lock */
        PyObject *key, *holder, *gone = PyList_New(0);
        Py_ssize_t at = 0;
        fl_waitq *waitq = self->wrapper.waitq;
        bool written = false;
        while (gone != NULL && PyDict_Next(self->holds, &at, &key, &holder)) {
            uint64_t owner = PyLong_AsUnsignedLongLong(holder);
            bool writes = fl_stamp_kind(PyLong_AsUnsignedLongLong(key)) == FL_STAMP_WRITES;
            if ((owner & ~(uint64_t)FL_OWNER_TASK) != fl_fork_thread) {
                PyList_Append(gone, key);
                continue;
            }
            fl_rw_survive(waitq, writes ? FL_RW_WRITE : FL_RW_READ);
            if (writes) {
                written = true;
                fl_store(&waitq->owner, owner, relaxed); /* published with the generation */
            }
        }
        for (Py_ssize_t i = 0; gone != NULL && i < PyList_GET_SIZE(gone); i++) {
            PyDict_DelItem(self->holds, PyList_GET_ITEM(gone, i));
        }
        Py_XDECREF(gone);
        PyErr_Clear(); /* no memory: holders that are gone stay listed */
        if (!written && (fl_stamped_look(waitq) & 1)) {
            fl_stamped_end(waitq); /* the writer is not in this process: its write may be half done */
        }
        fl_store(&self->generation, fl_fork_generation, release); /* pairs with fl_stamps_begin */
    }
    FL_END_CRITICAL();
}

fl_stamp_lock *fl_stamps_begin(PyObject *op)
{
    fl_stamp_lock *self = (fl_stamp_lock *)op;
    if (fl_load(&self->generation, acquire) != fl_fork_generation) { /* pairs with recover */
        recover(self);
    }
    return self;
}

uint64_t fl_stamps_lower(fl_stamp_lock *self, int kind, fl_rw_mode to)
{
    fl_waitq *waitq = self->wrapper.waitq;
    uint64_t version = kind == FL_STAMP_WRITES ? fl_stamped_end(waitq) : fl_stamped_look(waitq);
    FL_WAKING(fl_rw_lower(waitq, (fl_rw_mode)fl_stamp_mode(kind), to));
    return version;
}

PyObject *fl_stamps_add(fl_stamp_lock *self, int kind, uint64_t owner)
{
    fl_waitq *waitq = self->wrapper.waitq;
    uint64_t number = fl_fetch_add(&self->numbers, 1, relaxed); /* only unique */
    if (kind == FL_STAMP_WRITES) {
        fl_stamped_begin(waitq);
    }
    PyObject *made = PyLong_FromUnsignedLongLong(fl_stamp_of(self, number, kind));
    PyObject *holder = made == NULL ? NULL : PyLong_FromUnsignedLongLong(owner);
    if (holder == NULL || PyDict_SetItem(self->holds, made, holder) < 0) {
        Py_CLEAR(made);
        fl_stamps_lower(self, kind, FL_RW_NONE);
    }
    Py_XDECREF(holder);
    return made;
}

bool fl_stamps_of_this_thread(fl_stamp_lock *self, uint64_t me)
{
    bool found = false;
    FL_BEGIN_CRITICAL(self->holds);
    PyObject *key, *holder;
    Py_ssize_t at = 0;
    while (!found && PyDict_Next(self->holds, &at, &key, &holder)) {
        found = (PyLong_AsUnsignedLongLong(holder) & ~(uint64_t)FL_OWNER_TASK) == me;
    }
    FL_END_CRITICAL();
    uint64_t writer =
        fl_load(&self->wrapper.waitq->owner, relaxed); /* ours by what this thread did, or got */
    return found || (writer & ~(uint64_t)FL_OWNER_TASK) == me;
}

/* As an exception: it is of another lock. */
static int refuse_foreign(void)
{
    PyErr_SetString(PyExc_ValueError, "this is not a stamp of this lock");
    return -1;
}

int fl_stamps_parse(const fl_stamp_lock *self, PyObject *number, fl_stamp *given)
{
    *given = PyLong_AsUnsignedLongLong(number);
    if (*given == (fl_stamp)-1 && PyErr_Occurred()) {
        if (!PyErr_ExceptionMatches(PyExc_OverflowError)) {
            return -1;
        }
        PyErr_Clear();
        return refuse_foreign();
    }
    bool ours = *given >> FL_STAMP_TAG_AT == self->tag >> FL_STAMP_TAG_AT;
    return *given == 0 || (ours && fl_stamp_kind(*given) != 0) ? 0 : refuse_foreign();
}

int fl_stamps_hold(fl_stamp_lock *self, PyObject *number, fl_stamp given)
{
    return fl_stamp_kind(given) < FL_STAMP_READS ? 0 : PyDict_Contains(self->holds, number);
}

int fl_stamps_refuse(fl_stamp_lock *self)
{
    fl_raise(fl_wrapper_state((PyObject *)self), NotHeldError,
             "this stamp holds nothing any more: it was released, or converted to another");
    return -1;
}

int fl_stamps_remove(fl_stamp_lock *self, PyObject *number)
{
    if (PyDict_DelItem(self->holds, number) == 0) {
        return 0;
    }
    if (PyErr_ExceptionMatches(PyExc_KeyError)) {
        PyErr_Clear();
        return fl_stamps_refuse(self);
    }
    return -1;
}

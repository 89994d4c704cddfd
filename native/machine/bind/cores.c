/* Core counts and the CPU quota. */
#include "sync/bind/base/state.h"

#include <math.h>

#include "machine/cores.h"
#include "machine/quota.h"

/* Reads the quota with the thread detached; -1 with an exception set when memory ran out.
   Without a quota `cores` becomes infinite. */
static int read_quota(const char *root, double *cores)
{
    fl_quota_result result;
    Py_BEGIN_ALLOW_THREADS
    result = fl_quota_read(root, cores);
    Py_END_ALLOW_THREADS
    if (result == FL_QUOTA_NO_MEMORY) {
        PyErr_NoMemory();
        return -1;
    }
    if (result == FL_QUOTA_NONE) {
        *cores = INFINITY;
    }
    return 0;
}

static PyObject *quota_object(double cores)
{
    if (isinf(cores)) {
        Py_RETURN_NONE;
    }
    return PyFloat_FromDouble(cores);
}

static PyObject *cores(PyObject *module, PyObject *Py_UNUSED(ignored))
{
    double quota;
    if (read_quota("", &quota) < 0) {
        return NULL;
    }
    PyObject *record = PyStructSequence_New(fl_state_of(module)->cores_type);
    if (record == NULL) {
        return NULL;
    }
    int affinity = fl_cores_affinity();
    PyObject *values[] = {
        PyLong_FromLong(fl_cores_online()),
        PyLong_FromLong(affinity),
        quota_object(quota),
        PyLong_FromLong(fl_cores_usable(affinity, quota)),
    };
    for (Py_ssize_t i = 0; i < (Py_ssize_t)Py_ARRAY_LENGTH(values); i++) {
        PyStructSequence_SetItem(record, i, values[i]);
    }
    if (PyErr_Occurred()) {
        Py_CLEAR(record);
    }
    return record;
}

static PyObject *cpu_quota(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *root = NULL;
    if (!PyArg_ParseTuple(args, "|O&:cpu_quota", PyUnicode_FSConverter, &root)) {
        return NULL;
    }
    double quota;
    int status = read_quota(root == NULL ? "" : PyBytes_AS_STRING(root), &quota);
    Py_XDECREF(root);
    return status < 0 ? NULL : quota_object(quota);
}

PyMethodDef fl_cores_functions[] = {
    {"cores", cores, METH_NOARGS, FL_DOC(module, cores)},
    {"cpu_quota", cpu_quota, METH_VARARGS, FL_DOC(module, cpu_quota)},
    {NULL, NULL, 0, NULL},
};

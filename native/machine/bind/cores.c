/* Core counts and the CPU quota. */
#include "sync/bind/base/state.h"

#include <math.h>

#include "machine/cores.h"
#include "machine/quota.h"

PyDoc_STRVAR(cores_type_doc,
"How many processor cores there are, and how many of them this process can keep busy.");

static PyStructSequence_Field cores_fields[] = {
    {"online", "cores that the operating system has online"},
    {"affinity", "cores that the calling thread may be scheduled on"},
    {"quota", "the tightest CPU quota of the control groups, in cores; None when there is none"},
    {"usable", "max(1, min(affinity, ceil(quota))): cores worth of work that can run at once"},
    {NULL, NULL},
};

static PyStructSequence_Desc cores_desc = {
    .name = "fairlead.machine.Cores",
    .doc = cores_type_doc,
    .fields = cores_fields,
    .n_in_sequence = 4,
};

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

FL_DOC(cores_doc, "cores($module, /)",
"Count the processor cores, with affinity and CPU quota taken into account.\n"
"\n"
"The affinity is the calling thread's own. Reads the control groups' files on\n"
"every call, because affinity and quota can change while a process runs.");

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

FL_DOC(cpu_quota_doc, "cpu_quota($module, root='/', /)",
"The tightest CPU quota, in cores, of this process's control groups, or None.\n"
"\n"
"Looks at version 1 and version 2 groups, from the process's own up to the\n"
"mount point. root is put before every path that is read, for looking at a\n"
"copy of another machine's files.");

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

static PyMethodDef cores_methods[] = {
    {"cores", cores, METH_NOARGS, cores_doc},
    {"cpu_quota", cpu_quota, METH_VARARGS, cpu_quota_doc},
    {NULL, NULL, 0, NULL},
};

int fl_cores_exec(PyObject *module)
{
    fl_state *state = fl_state_of(module);
    state->cores_type = PyStructSequence_NewType(&cores_desc);
    if (state->cores_type == NULL || PyModule_AddType(module, state->cores_type) < 0) {
        return -1;
    }
    return PyModule_AddFunctions(module, cores_methods);
}

/* Finds and keeps what the native code uses of Python's modules. */
#include "sync/bind/base/imports.h"

#include "machine/atomic.h"

/* What keep() has kept in this place of the state, borrowed; or NULL. */
static PyObject *kept(PyObject **place)
{
    fl_atomic(PyObject *) *kept_at = (void *)place;
    return fl_load(kept_at, acquire); /* pairs with keep() */
}

/* Keeps what was found, whose reference is stolen, until the module goes. NULL stays NULL. */
static PyObject *keep(PyObject **place, PyObject *found)
{
    fl_atomic(PyObject *) *kept_at = (void *)place;
    PyObject *first = NULL;
    if (found != NULL && !fl_cas(kept_at, &first, found, acq_rel, acquire)) {
        Py_DECREF(found); /* without a GIL another thread was quicker; pairs with itself, and kept() */
        return first;
    }
    return found;
}

PyObject *fl_imported(PyObject **place, const char *module, const char *name)
{
    PyObject *found = kept(place);
    if (found == NULL) {
        PyObject *from = PyImport_ImportModule(module); /* waits, if another thread imports it */
        found = from == NULL ? NULL : keep(place, PyObject_GetAttrString(from, name));
        Py_XDECREF(from);
    }
    return found;
}

int fl_of_adapter(fl_state *state, PyObject **place, PyObject *library, const char *adapter,
                  const char *name, PyObject **found)
{
    int imported = kept(place) != NULL ? 1 : PyDict_Contains(state->modules, library);
    *found = imported > 0 ? fl_imported(place, adapter, name) : NULL;
    return imported > 0 && *found == NULL ? -1 : imported;
}

PyObject *fl_of_asyncio(fl_state *state, PyObject **place, PyObject *module_name, const char *name)
{
    PyObject *found = kept(place);
    PyObject *module = found == NULL ? fl_dict_get(state->modules, module_name) : NULL;
    if (module != NULL) {
        found = keep(place, PyObject_GetAttrString(module, name));
        Py_DECREF(module);
        if (found == NULL) { /* another thread is about to import it */
            PyErr_Clear();
        }
    }
    return found;
}

/* The classes, a new reference; `queues` is asyncio's module, or None. */
static PyObject *find_errors(fl_state *state, PyObject *queues)
{
#define NAME(name) #name " "
    static const char names[] = FL_ERRORS(NAME);
#undef NAME
    PyObject *find = fl_imported(&state->find_errors, "fairlead.errors", "as_raised");
    return find == NULL ? NULL : PyObject_CallFunction(find, "sO", names, queues);
}

PyObject *fl_errors(fl_state *state)
{
    PyObject *found = kept(&state->errors_of_asyncio);
    if (found != NULL) {
        return found;
    }
    PyObject *queues = fl_dict_get(state->modules, state->name_asyncio_queues);
    bool whole = queues != NULL && PyObject_HasAttrString(queues, "Queue"); /* which comes after its errors */
    PyObject **place = whole ? &state->errors_of_asyncio : &state->errors;
    found = kept(place);
    if (found == NULL) {
        found = keep(place, find_errors(state, whole ? queues : Py_None));
    }
    Py_XDECREF(queues);
    return found;
}

void *fl_raise_with(fl_state *state, fl_error error, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    PyObject *errors = fl_errors(state);
    PyObject *arguments = errors == NULL ? NULL : Py_VaBuildValue(format, values);
    if (arguments != NULL) {
        PyErr_SetObject(PyTuple_GET_ITEM(errors, error), arguments);
    }
    Py_XDECREF(arguments);
    va_end(values);
    return NULL;
}

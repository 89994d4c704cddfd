/* The extension fairlead._native: its definition and the life of its state. */
#include "interpreters/bind/codec.h"

#include <stddef.h>

#include "sync/bind/base/task.h"

/* What PyStructSequence_NewType takes. */
#define RECORD(field, where, type)                                                                          \
    static PyStructSequence_Field field##_fields[] = {FL_FIELDS_##type, {NULL, NULL}};                     \
    static PyStructSequence_Desc field##_record = {                                                        \
        .name = where "." #type,                                                                           \
        .doc = FL_TYPE_DOC(type),                                                                          \
        .fields = field##_fields,                                                                          \
        .n_in_sequence = sizeof field##_fields / sizeof field##_fields[0] - 1,                             \
    };
FL_RECORDS(RECORD)

/* An object of the state that is a name; without a text it is none. */
static int name(PyObject **field, const char *text)
{
    *field = text == NULL ? NULL : PyUnicode_InternFromString(text);
    return text != NULL && *field == NULL ? -1 : 0;
}

/* Steals the type; NULL is an exception that is set. */
static int add(PyObject *module, PyTypeObject **field, void *type, bool is_public)
{
    *field = type;
    return type == NULL || (is_public && PyModule_AddType(module, *field) < 0) ? -1 : 0;
}

/* A type with a base lives in the module alone. */
static int add_derived(PyObject *module, PyTypeObject *base, PyType_Spec *spec)
{
    PyObject *bases = PyTuple_Pack(1, base);
    PyTypeObject *type = NULL;
    int added = bases == NULL ? -1 : add(module, &type, PyType_FromModuleAndSpec(module, spec, bases), true);
    Py_XDECREF(type);
    Py_XDECREF(bases);
    return added;
}

static int native_exec(PyObject *module)
{
    fl_state *state = fl_state_of(module);
    if (!fl_waitq_setup() || (state->lender = fl_lender_new()) == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    fl_fetch_add(&fl_caller_interpreters, 1, relaxed); /* before any lock of this interpreter is there */
#define OBJECT(field, text)                                                                                 \
    if (name(&state->field, text) < 0) { return -1; }
#define PUBLIC(field, spec)                                                                                 \
    if (add(module, &state->field, PyType_FromModuleAndSpec(module, &spec, NULL), true) < 0) { return -1; }
#define INNER(field, spec)                                                                                  \
    if (add(module, &state->field, PyType_FromModuleAndSpec(module, &spec, NULL), false) < 0) { return -1; }
#define DERIVED(base, spec)                                                                                 \
    if (add_derived(module, state->base, &spec) < 0) { return -1; }
#define NEW_RECORD(field, where, type)                                                                      \
    if (add(module, &state->field, PyStructSequence_NewType(&field##_record), true) < 0) { return -1; }
#define FUNCTIONS(concern)                                                                                  \
    if (PyModule_AddFunctions(module, fl_##concern##_functions) < 0) { return -1; }
    FL_OBJECTS(OBJECT)
    FL_TYPES(PUBLIC, INNER)
    FL_DERIVED_TYPES(DERIVED)
    FL_RECORDS(NEW_RECORD)
    FL_FUNCTIONS(FUNCTIONS)
    state->modules = Py_NewRef(PyImport_GetModuleDict());
    state->done = state->done_type->tp_alloc(state->done_type, 0);
    return state->done == NULL ? -1 : 0;
}

static int native_traverse(PyObject *module, visitproc visit, void *arg)
{
    fl_state *state = fl_state_of(module);
#define VISIT(field, ...) Py_VISIT(state->field);
    FL_TYPES(VISIT, VISIT)
    FL_RECORDS(VISIT)
    FL_OBJECTS(VISIT)
    return 0;
}

static int native_clear(PyObject *module)
{
    fl_state *state = fl_state_of(module);
#define CLEAR(field, ...) Py_CLEAR(state->field);
    FL_TYPES(CLEAR, CLEAR)
    FL_RECORDS(CLEAR)
    FL_OBJECTS(CLEAR)
    return 0;
}

static void native_free(void *module)
{
    fl_lender *lender = fl_state_of(module)->lender;
    if (lender != NULL) {
        fl_settle_loans(lender);
        fl_lender_unref(lender);
    }
    native_clear((PyObject *)module);
}

static PyModuleDef_Slot native_slots[] = {
    {Py_mod_exec, (void *)native_exec},
#if PY_VERSION_HEX >= 0x030C0000
    {Py_mod_multiple_interpreters, Py_MOD_PER_INTERPRETER_GIL_SUPPORTED},
#endif
#if PY_VERSION_HEX >= 0x030D0000
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, NULL},
};

static struct PyModuleDef native_module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "fairlead._native",
    .m_doc = "The C part of fairlead. Use it through the modules that document it, such as fairlead.machine.",
    .m_size = sizeof(fl_state),
    .m_slots = native_slots,
    .m_traverse = native_traverse,
    .m_clear = native_clear,
    .m_free = native_free,
};

PyMODINIT_FUNC PyInit__native(void);

PyMODINIT_FUNC PyInit__native(void)
{
    return PyModuleDef_Init(&native_module);
}

/* The extension fairlead._native: its definition and the life of its state. */
#include "interpreters/bind/codec.h"

int fl_add_types(PyObject *module, PyTypeObject *const *types, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (types[i] == NULL || PyModule_AddType(module, types[i]) < 0) {
            return -1;
        }
    }
    return 0;
}

static int native_traverse(PyObject *module, visitproc visit, void *arg)
{
    fl_state *state = fl_state_of(module);
#define VISIT(type, name) Py_VISIT(state->name);
    FL_STATE_OBJECTS(VISIT)
#undef VISIT
    return 0;
}

static int native_clear(PyObject *module)
{
    fl_state *state = fl_state_of(module);
#define CLEAR(type, name) Py_CLEAR(state->name);
    FL_STATE_OBJECTS(CLEAR)
#undef CLEAR
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
#define FL_EXEC_SLOT(concern) {Py_mod_exec, (void *)fl_##concern##_exec},
    FL_CONCERNS(FL_EXEC_SLOT)
#undef FL_EXEC_SLOT
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

fl_state *fl_state_under(PyTypeObject *type)
{
    PyObject *module = PyType_GetModuleByDef(type, &native_module);
    return module == NULL ? NULL : fl_state_of(module);
}

PyMODINIT_FUNC PyInit__native(void);

PyMODINIT_FUNC PyInit__native(void)
{
    return PyModuleDef_Init(&native_module);
}

/* barrier, as a handle of it needs it (module/handle.c). */
#pragma once

#include "sync/bind/base/wrapper.h"

/* What several interpreters have of it, attached and with the object's own lock; NULL with an exception. */
fl_shared *fl_barrier_share(PyObject *op, uint32_t type);

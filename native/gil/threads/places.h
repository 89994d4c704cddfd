/* places: which watched GIL lies at an address. Written under the registry's lock, read without it. */
#pragma once

#include "gil/threads/gil.h"

/* The watched GIL at this address, or NULL. Any thread, no lock: O(1). */
fl_gil *fl_places_find(const fl_py_gil *py);

/* False: there is no room near where it belongs. */
bool fl_places_put(const fl_py_gil *py, fl_gil *gil);

void fl_places_remove(const fl_py_gil *py);

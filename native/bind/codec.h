/* codec: an object as bytes that another interpreter makes an equal object of. */
#ifndef FL_BIND_CODEC_H
#define FL_BIND_CODEC_H

#include "bind/state.h"

#include "core/shared.h"

/* None, truth values, numbers, str, bytes, bytearray, memoryview (as bytes) and tuples of all these as they
   are; whatever else as its pickle. NULL with an exception set. To be freed by free(). */
fl_item *fl_encode(PyObject *object);
PyObject *fl_decode(const fl_item *item);

#endif

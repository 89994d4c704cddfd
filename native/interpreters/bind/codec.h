/* codec: an object as bytes that another interpreter makes an equal object of (encode.c, decode.c).
   A value is a letter and what belongs to it, in this machine's own byte order. */
#pragma once

#include "sync/bind/base/state.h"

#include "interpreters/pin.h"
#include "machine/thread.h"
#include "interpreters/shared.h"

/* What is sent by reference, if it is large: bytes, memoryviews and the buffers of pickles. */
typedef struct {
    fl_lender *lender; /* whose buffers are lent; NULL: they are copied into blocks (pin.h) */
} fl_sending;

/* What is smaller is copied. */
#define FL_LARGE 16384

/* None, truth values, numbers, str, bytes, bytearray and tuples of all these as they are; whatever else as
   its pickle. `sending` is NULL where nothing goes by reference: a memoryview goes as bytes. NULL with an
   exception set. With one reference. */
fl_item *fl_pack(fl_state *state, PyObject *object, const fl_sending *sending);
/* Raises SerializationError for what is no message, or a part of one. */
PyObject *fl_unpack(fl_state *state, const fl_item *item);
/* Of bytes that refer to nothing. */
PyObject *fl_decode(fl_state *state, const char *bytes, size_t size);

/* Lets go of what this interpreter had lent and has got back. Runs Python. */
void fl_settle_loans(fl_lender *lender);

/* Around what pickles in this thread for another interpreter: primitives on the way are shared with it. */
extern _Thread_local uint32_t fl_sharing FL_THREAD_LOCAL_MODEL;
#define FL_SHARING(call)                                                                                    \
    do {                                                                                                   \
        fl_sharing++;                                                                                       \
        call;                                                                                              \
        fl_sharing--;                                                                                       \
    } while (0)

/* An object over the pin's bytes, for memoryview(); takes over the reference. */
PyObject *fl_view_new(fl_state *state, fl_pin *pin);
/* What a memoryview is a view of, if that is such an object; or NULL. Borrowed. */
fl_pin *fl_view_pin(fl_state *state, PyObject *memoryview);

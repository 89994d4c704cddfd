/* pin: bytes that a message refers to instead of having a copy of them.
 *
 * What is referred to is a buffer of the sender's, which is kept as it is until the last message and the last
 * view of it are gone, in whatever interpreter they are (a *lent* pin); or memory of the pin's own, which
 * knows no interpreter (a *block*); or a part of another pin.
 *
 * A lent buffer can be released in its own interpreter only. When the last reference to a pin is dropped in
 * another interpreter, the pin goes into its lender's list, and the lender releases the buffers of that
 * list whenever it sends or receives. When the lender's interpreter ends first, the buffer stays in memory
 * for good: no reader loses it.
 */
#pragma once

#include "machine/atomic.h"

struct fl_pin;

typedef struct fl_lender {
    fl_atomic(uint32_t) refs; /* its interpreter's, and one of each pin */
    fl_atomic(struct fl_pin *) returned;
} fl_lender;

typedef struct fl_pin {
    fl_atomic(uint32_t) refs;
    bool readonly;
    struct fl_pin *next; /* in the lender's list */
    fl_lender *lender;   /* NULL: not lent */
    struct fl_pin *whole; /* what it is a part of, or NULL */
    void *buffer;        /* the lender's */
    char *bytes;
    size_t size;
} fl_pin;

fl_lender *fl_lender_new(void);
/* By the lender: what has come back, a list to be freed one by one by fl_pin_free. */
fl_pin *fl_lender_take(fl_lender *lender);
void fl_lender_unref(fl_lender *lender);

/* All with one reference. NULL: no memory. */
fl_pin *fl_pin_lend(fl_lender *lender, void *buffer, char *bytes, size_t size, bool readonly);
fl_pin *fl_pin_block(size_t size);
fl_pin *fl_pin_part(fl_pin *whole, char *bytes, size_t size, bool readonly);
void fl_pin_ref(fl_pin *pin);
/* From any thread, of any interpreter. */
void fl_pin_unref(fl_pin *pin);
/* Of one that came back. */
void fl_pin_free(fl_pin *pin);

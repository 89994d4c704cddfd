/* See pin.h. */
#include "interpreters/pin.h"

#include <stdlib.h>

fl_lender *fl_lender_new(void)
{
    fl_lender *lender = calloc(1, sizeof *lender);
    if (lender != NULL) {
        lender->refs = 1;
    }
    return lender;
}

fl_pin *fl_lender_take(fl_lender *lender)
{
    if (fl_load(&lender->returned, relaxed) == NULL) { /* or it is taken the next time */
        return NULL;
    }
    return fl_exchange(&lender->returned, NULL, acquire); /* pairs with give_back */
}

void fl_lender_unref(fl_lender *lender)
{
    if (fl_fetch_sub(&lender->refs, 1, acq_rel) == 1) { /* pairs with itself */
        fl_pin *pin = fl_load(&lender->returned, acquire); /* pairs with give_back */
        while (pin != NULL) { /* its interpreter is gone: no thread is left that could let go of the buffer */
            fl_pin *next = pin->next;
            free(pin);
            pin = next;
        }
        free(lender);
    }
}

static fl_pin *new_pin(char *bytes, size_t size, bool readonly)
{
    fl_pin *pin = calloc(1, sizeof *pin);
    if (pin != NULL) {
        pin->refs = 1;
        pin->bytes = bytes;
        pin->size = size;
        pin->readonly = readonly;
    }
    return pin;
}

fl_pin *fl_pin_lend(fl_lender *lender, void *buffer, char *bytes, size_t size, bool readonly)
{
    fl_pin *pin = new_pin(bytes, size, readonly);
    if (pin != NULL) {
        pin->lender = lender;
        pin->buffer = buffer;
        fl_fetch_add(&lender->refs, 1, relaxed); /* the caller has one */
    }
    return pin;
}

fl_pin *fl_pin_block(size_t size)
{
    char *bytes = malloc(size ? size : 1);
    fl_pin *pin = bytes == NULL ? NULL : new_pin(bytes, size, false);
    if (pin == NULL) {
        free(bytes);
    }
    return pin;
}

fl_pin *fl_pin_part(fl_pin *whole, char *bytes, size_t size, bool readonly)
{
    fl_pin *pin = new_pin(bytes, size, readonly);
    if (pin != NULL) {
        pin->whole = whole;
        fl_pin_ref(whole);
    }
    return pin;
}

void fl_pin_ref(fl_pin *pin)
{
    fl_fetch_add(&pin->refs, 1, relaxed); /* the caller has one */
}

static void give_back(fl_pin *pin)
{
    fl_lender *lender = pin->lender;
    fl_pin *first = fl_load(&lender->returned, relaxed); /* only a first guess */
    do {
        pin->next = first;
    } while (!fl_cas(&lender->returned, &first, pin, release, relaxed)); /* pairs with fl_lender_take */
    fl_lender_unref(lender);
}

void fl_pin_unref(fl_pin *pin)
{
    if (fl_fetch_sub(&pin->refs, 1, acq_rel) != 1) { /* pairs with itself: the last one sees what all did */
        return;
    }
    if (pin->lender != NULL) {
        give_back(pin);
    } else if (pin->whole != NULL) {
        fl_pin_unref(pin->whole);
        free(pin);
    } else {
        free(pin->bytes);
        free(pin);
    }
}

void fl_pin_free(fl_pin *pin)
{
    free(pin);
}

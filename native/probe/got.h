/* got: the table through which the object that holds the interpreter calls other libraries. */
#ifndef FL_PROBE_GOT_H
#define FL_PROBE_GOT_H

#include <stddef.h>

#define FL_GOT_SLOTS 4 /* of one function; more than one when some code takes its address */

typedef struct {
    const char *name;
    void **slots[FL_GOT_SLOTS];
    void *before[FL_GOT_SLOTS]; /* what stood there */
    size_t count;
} fl_got_function;

typedef struct {
    const char *path; /* of the object; "" is the executable */
    const char *start, *end;
} fl_got_object;

/* Finds the loaded object that contains `address`, and its slots for the named functions. False: there is
   none with a dynamic section. */
_Bool fl_got_find(const void *address, fl_got_object *object, fl_got_function *functions, size_t count);

/* Points all slots of `function` at `target`. 0 or errno; after an error none is changed. Calls through the
   table see the old or the new value. */
int fl_got_set(fl_got_function *function, void *target);

/* Puts back what stood in the slots, where they still point at `target`. 0 or errno. */
int fl_got_restore(fl_got_function *function, void *target);

/* Whether all slots of `function` still point at `target`: the dynamic linker, which fills a slot at its
   first use, may have been at it at the same time. */
_Bool fl_got_is(const fl_got_function *function, const void *target);

#endif

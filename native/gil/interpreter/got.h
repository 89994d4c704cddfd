/* got: the table through which the object that holds the interpreter calls other libraries. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define FL_GOT_SLOTS 4 /* of one function; more than one when some code takes its address */

typedef struct {
    const char *name;
    void **slots[FL_GOT_SLOTS];
    void *found[FL_GOT_SLOTS];  /* what stood there at first */
    void *before[FL_GOT_SLOTS]; /* and when it was last set */
    int protection[FL_GOT_SLOTS]; /* of its page, as it was found; 0: not looked up yet */
    void *real;                 /* the function as it is reached from there; NULL: not known */
    size_t count;
    bool more; /* it has more slots than there is room for: hooking some of them would miss calls */
} fl_got_function;

typedef struct {
    const char *path; /* of the object; "" is the executable */
    const char *start, *end;
} fl_got_object;

/* Finds the loaded object that contains `address`, its slots for the named functions, and the functions that
   these lead to. False: there is none with a dynamic section. */
bool fl_got_find(const void *address, fl_got_object *object, fl_got_function *functions, size_t count);

/* Adds a slot to those of `function`, unless it is there already or there is no room: then `more` is set. */
void fl_got_note(fl_got_function *function, void **slot);

#define FL_GOT_NO_MAPS (-1) /* /proc/self/maps cannot be read: what a page's protection is, is not known */

/* Points all slots of `function` at `target`. 0, errno or FL_GOT_NO_MAPS; after an error none is changed.
   Calls through the table see the old or the new value. Any thread, like fl_got_restore: a page is opened for
   one of them at a time, or one would close it before another has stored its own. */
int fl_got_set(fl_got_function *function, void *target);

/* In the child of a fork: a thread that is gone may have been changing slots. */
void fl_got_forked(void);

/* Why the slots could not be changed, in one line. In static memory. */
const char *fl_got_failure(int error);

/* Puts back what stood in the slots, where they still point at `target`. 0 or an error, as fl_got_set. */
int fl_got_restore(fl_got_function *function, void *target);

/* Whether all slots of `function` still point at `target`: the dynamic linker, which fills a slot at its
   first use, may have been at it at the same time. */
bool fl_got_is(const fl_got_function *function, const void *target);

/* Whether another library has pointed a slot elsewhere than to `target`, the function itself, or where it
   pointed at first: another library that hooks it, and which must not lose its hook. */
bool fl_got_taken(const fl_got_function *function, const void *target);

/* outside: the Python stack of a thread that goes on running, read by another thread that has no GIL.
 *
 * The thread may end and its memory be given back at any moment, so nothing of it is dereferenced. It is
 * read through /proc/self/mem, which answers with an error where there is no memory, as a debugger reads
 * another process; what comes is copied first and believed only as far as it is checked: an object by its
 * type, a length by a limit. So at worst a read at the wrong moment gives a wrong line.
 *
 * The caller judges whether the stack is right: it is if the thread was in one hold of the GIL before and
 * after. It is `exact` if the frames had not moved between two readings, as they do not while the thread is
 * in C code.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FL_OUTSIDE_DEPTH 64 /* innermost frames */

typedef struct {
    char function[128], file[256]; /* UTF-8, cut to fit */
    int line;                      /* 0: not known */
} fl_outside_frame;

/* The stack of a thread state, innermost frame first; returns the number of frames. 0: it cannot be read, or
   there is none. */
size_t fl_outside_look(const void *tstate, fl_outside_frame frames[FL_OUTSIDE_DEPTH], bool *exact);

/* Likewise, as the number of a stack (stacks.h), and without waiting, for a thread that is within one
   instruction for long: if it ran, a frame of its own says whether that destroys objects. 0: it cannot be
   read, has moved meanwhile, or another thread is at it. */
uint32_t fl_outside_stack(const void *tstate, bool ran);

/* In the child of a fork: no other thread is at it. */
void fl_outside_fork(void);

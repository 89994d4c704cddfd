/* looks: what threads do that neither hold a GIL nor wait for one.
 *
 * The recorder's thread looks at them ten times a second: the kernel says in which system call each sleeps,
 * and its Python stack is read from outside (outside.h), as it stands still meanwhile. A look stands for the
 * time since the one before.
 *
 * For the recorder's thread alone, and for the one that starts and stops it.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define FL_LOOKS 1024 /* threads, doings and stacks that are kept apart; what finds no place is left out */
#define FL_LOOKS_AT_ONCE 64   /* threads; where there are more, they take turns */
#define FL_LOOKS_SEATS 4096   /* of more, the rest is never looked at */

/* As in the file. */
typedef enum {
    FL_DOES_ELSE,  /* a call that is none of these, or not known */
    FL_DOES_RUN,   /* no call: on a core, or ready for one */
    FL_DOES_LOCK,  /* a futex: a lock, or another thread's word */
    FL_DOES_POLL,  /* waits for several descriptors */
    FL_DOES_READ,  /* or receives, or accepts */
    FL_DOES_WRITE, /* or sends, or connects, or waits for the disk */
    FL_DOES_SLEEP,
    FL_DOES_CHILD, /* waits for a process */
} fl_doing;

typedef struct {
    uint32_t thread, stack; /* stack 0: not known */
    fl_doing doing;
    uint64_t ns;
} fl_look;

typedef struct {
    fl_look of[FL_LOOKS];
    size_t count;
    uint32_t after;  /* serial: those above it come next */
    uint64_t before; /* when the last looks were; 0: there were none */
} fl_looks;

/* Looks at all of them, or at those whose turn it is. */
void fl_looks_take(fl_looks *looks);

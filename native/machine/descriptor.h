/* descriptor: an open file of fairlead's own, in a program that does not know of it.
 *
 * A program may close every number that it has not opened itself, as daemons do at their start, and open
 * files of its own, which get these numbers. So ours are higher than a program usually gets, and before each
 * use the file behind the number is compared with the one that was opened. What fairlead keeps open is kept
 * so; the number alone is used at once and never stored.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    int number; /* -1: none */
    uint64_t device, inode;
} fl_descriptor;

#define FL_NO_DESCRIPTOR ((fl_descriptor){.number = -1})

/* Takes over an open file, at another number where that can be had. A negative number gives none. */
fl_descriptor fl_descriptor_own(int number);

/* The number, to be used at once; -1 (EBADF): there is none, or the program has closed it. */
int fl_descriptor_number(const fl_descriptor *own);

/* Closes it if it is still ours. 0, or errno. */
int fl_descriptor_close(fl_descriptor *own);

/* Whether the process may write a file of this size (RLIMIT_FSIZE). A write beyond that would also raise
   SIGXFSZ, which ends a program. */
bool fl_file_may_have(uint64_t size);

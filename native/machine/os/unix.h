/* What the files of this directory share. */
#ifndef FL_MACHINE_OS_UNIX_H
#define FL_MACHINE_OS_UNIX_H

#include <sys/resource.h>

#include "machine/usage.h"

/* Reads getrusage(who) into `usage`; `who` is one that this system knows. */
void fl_unix_rusage(int who, fl_usage *usage);

#endif

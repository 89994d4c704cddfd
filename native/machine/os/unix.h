/* What the files of this directory share. */
#ifndef FL_MACHINE_OS_UNIX_H
#define FL_MACHINE_OS_UNIX_H

#include <sys/resource.h>

#include "machine/usage.h"

/* Reads getrusage(scope) into `usage`; this system must have that scope. */
void fl_unix_rusage(int scope, fl_usage *usage);

#endif

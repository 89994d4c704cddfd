/* What the files of this directory share. */
#pragma once

#include <sys/resource.h>

#include "machine/usage.h"

/* Reads getrusage(scope) into `usage`; this system must have that scope. */
void fl_unix_rusage(int scope, fl_usage *usage);

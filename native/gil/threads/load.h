/* load: CPU time, of this process and of the whole machine. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    uint64_t own_ns, machine_ns; /* the machine's includes our own, and time that a hypervisor took */
    uint64_t cores;              /* of the machine */
} fl_load;

/* Since some moment in the past: differences are meant. False: the system does not say. */
bool fl_load_read(fl_load *load);

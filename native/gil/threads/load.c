#include "gil/threads/load.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* The line "cpu  user nice system idle iowait irq softirq steal ...", in ticks of the system. */
static bool read_machine(uint64_t *ticks)
{
    char text[256];
    int file = open("/proc/stat", O_RDONLY | O_CLOEXEC);
    ssize_t size = file < 0 ? 0 : read(file, text, sizeof text - 1);
    if (file >= 0) {
        (void)close(file);
    }
    text[size > 0 ? size : 0] = 0;
    if (strncmp(text, "cpu ", 4) != 0) {
        return false;
    }
    char *at = text + 4;
    *ticks = 0;
    for (int field = 0; field < 8; field++) {
        char *end;
        uint64_t value = strtoull(at, &end, 10);
        if (end == at) {
            return false;
        }
        at = end;
        if (field != 3 && field != 4) { /* idle, and idle while a disk is waited for */
            *ticks += value;
        }
    }
    return true;
}

bool fl_load_read(fl_load *load)
{
    struct timespec own;
    uint64_t ticks;
    long per_second = sysconf(_SC_CLK_TCK), cores = sysconf(_SC_NPROCESSORS_ONLN);
    if (per_second <= 0 || cores <= 0 || clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &own) != 0
        || !read_machine(&ticks)) {
        return false;
    }
    load->own_ns = (uint64_t)own.tv_sec * 1000000000u + (uint64_t)own.tv_nsec;
    load->machine_ns = ticks * (1000000000u / (uint64_t)per_second);
    load->cores = (uint64_t)cores;
    return true;
}

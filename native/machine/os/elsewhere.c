/* Where a system is not Linux. Nothing says how late timers may be. Processes share no memory of fairlead's:
   no portable call tells a process from a later one of the same number, so none could be found dead. */
#include <errno.h>

#include "machine/atomic.h"
#include "machine/clock.h"
#include "machine/process.h"
#include "machine/segment.h"

int64_t fl_timer_slack(void)
{
    return 0;
}

bool fl_timer_slack_set(int64_t ns)
{
    (void)ns;
    return false;
}

uint64_t fl_process_self(void)
{
    return 0;
}

bool fl_process_alive(uint64_t process)
{
    (void)process;
    return true;
}

uint64_t fl_process_space(void)
{
    return 0;
}

void fl_process_kill_tree(int pid)
{
    (void)pid;
}

int fl_process_end_with(int descriptor)
{
    (void)descriptor;
    return ENOSYS;
}

fl_park_result fl_park_shared(fl_atomic(uint32_t) *word, uint32_t value, int64_t deadline)
{
    return fl_park(word, value, deadline);
}

uint32_t fl_unpark_shared(const fl_atomic(uint32_t) *word, uint32_t most)
{
    (void)most;
    fl_unpark(word);
    return 1;
}

int fl_segment_reserve(int fd, size_t size)
{
    (void)fd;
    (void)size;
    return ENOSYS;
}

int fl_segment_size(int fd, size_t *size)
{
    (void)fd;
    (void)size;
    return ENOSYS;
}

void *fl_segment_map(int fd, size_t size)
{
    (void)fd;
    (void)size;
    errno = ENOSYS;
    return NULL;
}

void fl_segment_unmap(void *map, size_t size)
{
    (void)map;
    (void)size;
}

/* Waking an event loop by a pipe, where there is no eventfd. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "machine/atomic.h"

int fl_wakeup_open(int *wakeup)
{
    int ends[2];
    if (pipe(ends) != 0) {
        return -1;
    }
    for (int i = 0; i < 2; i++) {
        fcntl(ends[i], F_SETFL, O_NONBLOCK);
        fcntl(ends[i], F_SETFD, FD_CLOEXEC);
    }
    *wakeup = ends[1];
    return ends[0];
}

void fl_wakeup_close(int poll, int wakeup)
{
    close(poll);
    close(wakeup);
}

void fl_wakeup_ring(int wakeup)
{
    int error = errno;
    while (write(wakeup, "", 1) < 0 && errno == EINTR) { /* a full pipe has been rung */
    }
    errno = error;
}

void fl_wakeup_clear(int poll)
{
    char some[64];
    while (read(poll, some, sizeof some) > 0) {
    }
}

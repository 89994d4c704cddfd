/* Waking an event loop by a pipe. */
#define _GNU_SOURCE /* pipe2 */

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "machine/atomic.h"

static bool open_pipe(int ends[2])
{
#ifdef __APPLE__ /* has no pipe2() */
    bool made = pipe(ends) == 0;
    for (int i = 0; made && i < 2; i++) {
        fcntl(ends[i], F_SETFL, O_NONBLOCK);
        fcntl(ends[i], F_SETFD, FD_CLOEXEC);
    }
    return made;
#else
    return pipe2(ends, O_NONBLOCK | O_CLOEXEC) == 0;
#endif
}

bool fl_wakeup_open(fl_wakeup *wakeup)
{
    int ends[2];
    if (!open_pipe(ends)) {
        return false;
    }
    *wakeup = (fl_wakeup){.poll = fl_descriptor_own(ends[0]), .ring = fl_descriptor_own(ends[1])};
    return true;
}

void fl_wakeup_close(fl_wakeup *wakeup)
{
    (void)fl_descriptor_close(&wakeup->poll);
    (void)fl_descriptor_close(&wakeup->ring);
}

void fl_wakeup_ring(const fl_wakeup *wakeup)
{
    int error = errno, number = fl_descriptor_number(&wakeup->ring);
    while (number >= 0 && write(number, "", 1) < 0 && errno == EINTR) { /* a full pipe has been rung */
    }
    errno = error;
}

void fl_wakeup_clear(const fl_wakeup *wakeup)
{
    char some[64];
    int number = fl_descriptor_number(&wakeup->poll);
    while (number >= 0 && read(number, some, sizeof some) == (ssize_t)sizeof some) {
    }
}

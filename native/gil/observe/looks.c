#include "gil/observe/looks.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "gil/observe/outside.h"
#include "gil/threads/registry.h"

#ifndef FL_PROBE_REFUSAL

static const struct {
    long number;
    fl_doing doing;
} calls[] = {
    {SYS_futex, FL_DOES_LOCK},
#ifdef SYS_poll
    {SYS_poll, FL_DOES_POLL},
    {SYS_select, FL_DOES_POLL},
    {SYS_epoll_wait, FL_DOES_POLL},
    {SYS_accept, FL_DOES_READ},
#endif
    {SYS_ppoll, FL_DOES_POLL},
    {SYS_pselect6, FL_DOES_POLL},
    {SYS_epoll_pwait, FL_DOES_POLL},
    {SYS_read, FL_DOES_READ},
    {SYS_readv, FL_DOES_READ},
    {SYS_pread64, FL_DOES_READ},
    {SYS_recvfrom, FL_DOES_READ},
    {SYS_recvmsg, FL_DOES_READ},
    {SYS_accept4, FL_DOES_READ},
    {SYS_write, FL_DOES_WRITE},
    {SYS_writev, FL_DOES_WRITE},
    {SYS_pwrite64, FL_DOES_WRITE},
    {SYS_sendto, FL_DOES_WRITE},
    {SYS_sendmsg, FL_DOES_WRITE},
    {SYS_connect, FL_DOES_WRITE},
    {SYS_fsync, FL_DOES_WRITE},
    {SYS_fdatasync, FL_DOES_WRITE},
    {SYS_nanosleep, FL_DOES_SLEEP},
    {SYS_clock_nanosleep, FL_DOES_SLEEP},
    {SYS_wait4, FL_DOES_CHILD},
    {SYS_waitid, FL_DOES_CHILD},
};

static fl_doing doing(pid_t thread)
{
    char path[48], text[16];
    snprintf(path, sizeof path, "/proc/self/task/%d/syscall", (int)thread);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t size = file < 0 ? -1 : read(file, text, sizeof text - 1);
    if (file >= 0) {
        close(file);
    }
    text[size < 0 ? 0 : size] = 0;
    if (text[0] == 'r') {
        return FL_DOES_RUN;
    }
    long number = size > 0 ? strtol(text, NULL, 10) : -1;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        if (calls[i].number == number) {
            return calls[i].doing;
        }
    }
    return FL_DOES_ELSE;
}

typedef struct {
    uint32_t serial;
    pid_t native_id;
    const void *tstate; /* an address, and no more */
    uint64_t t_dropped;
    bool busy; /* holds a GIL or waits for one */
} seen;

static seen crowd[FL_LOOKS_SEATS];
static size_t crowd_size;

static void note(fl_gil *gil, void *context)
{
    (void)context;
    for (const fl_seat *seat = gil->alive ? gil->seats : NULL; seat && crowd_size < FL_LOOKS_SEATS;
         seat = seat->of_gil) {
        if (!seat->ended && seat->tstate) {
            crowd[crowd_size++] = (seen){seat->serial, seat->thread->native_id, seat->tstate, seat->t_dropped,
                                         seat->holding || seat->waiting};
        }
    }
}

static int by_serial(const void *left, const void *right)
{
    const seen *a = left, *b = right;
    return (a->serial > b->serial) - (a->serial < b->serial);
}

/* Leaves one entry a thread, of the interpreter that it was in last, and only those that are not busy. */
static void leave_idle(void)
{
    size_t kept = 0;
    qsort(crowd, crowd_size, sizeof *crowd, by_serial);
    for (size_t i = 0; i < crowd_size;) {
        seen one = crowd[i];
        for (i++; i < crowd_size && crowd[i].serial == one.serial; i++) {
            bool busy = one.busy || crowd[i].busy;
            one = crowd[i].t_dropped > one.t_dropped ? crowd[i] : one;
            one.busy = busy;
        }
        if (!one.busy) {
            crowd[kept++] = one;
        }
    }
    crowd_size = kept;
}

static void add(fl_looks *looks, fl_look look)
{
    fl_look *at = looks->of, *end = at + looks->count;
    while (at < end && (at->thread != look.thread || at->doing != look.doing || at->stack != look.stack)) {
        at++;
    }
    if (at < end) {
        at->ns += look.ns;
    } else if (looks->count < FL_LOOKS) {
        looks->of[looks->count++] = look;
    }
}

void fl_looks_take(fl_looks *looks)
{
    uint64_t now = fl_ticks_system(), passed = looks->before ? now - looks->before : 0;
    looks->before = now;
    if (passed == 0) {
        return;
    }
    crowd_size = 0;
    fl_registry_each(note, NULL);
    leave_idle();
    size_t first = 0, count = crowd_size < FL_LOOKS_AT_ONCE ? crowd_size : FL_LOOKS_AT_ONCE;
    while (first < crowd_size && crowd[first].serial <= looks->after) {
        first++;
    }
    for (size_t i = 0; i < count; i++) {
        const seen *one = &crowd[(first + i) % crowd_size];
        add(looks, (fl_look){.thread = one->serial,
                             .doing = doing(one->native_id),
                             .stack = fl_outside_stack(one->tstate, false),
                             .ns = passed * crowd_size / count});
        looks->after = one->serial;
    }
}

#endif

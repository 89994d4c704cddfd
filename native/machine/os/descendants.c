/* Ending a process together with its descendants, and with its parent. Linux.
 *
 * A process that is stopped starts no other and waits for none: its list of children stays as it is, and
 * their numbers stay theirs. So the tree is stopped from its root on, and killed from its leaves on.
 * Everything here may run in a signal handler, whose thread may hold any lock.
 */
#define _GNU_SOURCE /* O_ASYNC, F_SETOWN */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "machine/process.h"

#define MOST_GENERATIONS 64
#define AT_ONCE 1024

/* What getdents64 fills in. */
typedef struct {
    uint64_t inode;
    int64_t offset;
    unsigned short length;
    unsigned char type;
    char name[];
} entry;

/* "/proc/PID/task" and what follows; snprintf is not for signal handlers. */
static char *put_text(char *at, const char *text)
{
    size_t length = strlen(text);
    memcpy(at, text, length + 1);
    return at + length;
}

static char *put_number(char *at, int number)
{
    char digits[12] = {0};
    size_t from = sizeof digits - 1;
    do {
        digits[--from] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    return put_text(at, digits + from);
}

static void kill_tree(int pid, int generation);

/* The children that one thread has started. */
static void kill_children_in(const char *path, int generation)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return;
    }
    char text[AT_ONCE];
    int pid = 0;
    ssize_t got;
    while ((got = read(file, text, sizeof text)) > 0) {
        for (ssize_t i = 0; i < got; i++) {
            if (text[i] >= '0' && text[i] <= '9') {
                pid = pid * 10 + (text[i] - '0');
            } else if (pid > 0) {
                kill_tree(pid, generation + 1);
                pid = 0;
            }
        }
    }
    close(file);
}

static void kill_children(int pid, int generation)
{
    char path[64];
    char *tasks = put_text(put_number(put_text(path, "/proc/"), pid), "/task");
    int directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0) {
        return;
    }
    _Alignas(entry) char found[AT_ONCE];
    long got;
    while ((got = syscall(SYS_getdents64, directory, found, sizeof found)) > 0) {
        for (long at = 0; at < got; at += ((entry *)(void *)(found + at))->length) {
            const char *name = ((entry *)(void *)(found + at))->name;
            if (name[0] != '.') {
                put_text(put_text(put_text(tasks, "/"), name), "/children");
                kill_children_in(path, generation);
            }
        }
    }
    close(directory);
}

static void kill_tree(int pid, int generation)
{
    kill(pid, SIGSTOP);
    if (generation < MOST_GENERATIONS) {
        kill_children(pid, generation);
    }
    kill(pid, SIGKILL);
}

void fl_process_kill_tree(int pid)
{
    kill_tree(pid, 0);
}

/* The process's other threads go on meanwhile: the second call finds what they have started. */
static void on_end_of_parent(int number)
{
    (void)number;
    kill_children(getpid(), 0);
    kill_children(getpid(), 0);
    kill(getpid(), SIGKILL);
}

int fl_process_end_with(int descriptor)
{
    struct sigaction action = {.sa_handler = on_end_of_parent, .sa_flags = SA_RESTART};
    sigfillset(&action.sa_mask);
    int flags = fcntl(descriptor, F_GETFL);
    if (flags < 0 || sigaction(SIGIO, &action, NULL) < 0 || fcntl(descriptor, F_SETOWN, getpid()) < 0
        || fcntl(descriptor, F_SETFL, flags | O_ASYNC) < 0) {
        return errno;
    }
    return 0;
}

#define _GNU_SOURCE

#include "gil/hooks/control.h"

#include "gil/hooks/hooks.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef FL_PROBE_REFUSAL

#define DIRECTORY "/dev/shm"
#define FIRST (1u << 8 | FL_ORDER_STATUS)

static fl_control_page unseen;
static uint32_t first = FIRST; /* the request that a new page begins with */
static _Atomic uint32_t inherited; /* that of a child's */
fl_control_page *_Atomic fl_control_here = &unseen;
static char path[96];
static pid_t owner; /* of the file of that path */

/* Containers that share /dev/shm may use the same process number; each has a number space of its own. */
static unsigned long long space(void)
{
    struct stat found;
    return stat("/proc/self/ns/pid", &found) == 0 ? (unsigned long long)found.st_ino : 0;
}

static void remove_own(void)
{
    if (owner == getpid()) {
        (void)unlink(path);
    }
}

/* A process that was killed leaves its file. */
static void sweep(const char *prefix)
{
    DIR *directory = opendir(DIRECTORY);
    if (directory == NULL) {
        return;
    }
    for (const struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        if (strncmp(entry->d_name, prefix, strlen(prefix)) != 0) {
            continue;
        }
        long pid = strtol(entry->d_name + strlen(prefix), NULL, 10);
        if (pid > 0 && kill((pid_t)pid, 0) != 0 && errno == ESRCH) {
            (void)unlinkat(dirfd(directory), entry->d_name, 0); /* another user's stays */
        }
    }
    (void)closedir(directory);
}

bool fl_control_open(void)
{
    char prefix[48];
    snprintf(prefix, sizeof prefix, "fairlead-control.%llu.", space());
    sweep(prefix);
    if (owner == 0) {
        (void)atexit(remove_own);
    }
    snprintf(path, sizeof path, DIRECTORY "/%s%d", prefix, (int)getpid());
    owner = getpid();
    char unfinished[sizeof path + 4]; /* others must not read an unfinished page */
    snprintf(unfinished, sizeof unfinished, "%s.new", path);
    (void)unlink(unfinished);
    int file = open(unfinished, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    fl_control_page *page = MAP_FAILED;
    if (file >= 0 && posix_fallocate(file, 0, sizeof *page) == 0) { /* or a full disk is SIGBUS */
        page = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    }
    if (file >= 0) {
        (void)close(file);
    }
    if (page != MAP_FAILED) {
        page->version = FL_CONTROL_VERSION;
        page->pid = (uint32_t)getpid();
        page->magic = FL_CONTROL_MAGIC;
        atomic_store(&page->request, first); /* to be answered before any order comes */
    }
    /* In place of the page of an earlier program of this process, before an exec. */
    if (page == MAP_FAILED || rename(unfinished, path) != 0) {
        (void)unlink(unfinished);
        (void)unlink(path);
        owner = -1;
        return false;
    }
    fl_hooks_show(page);
    return true;
}

void fl_control_forking(void)
{
    fl_control_page *page = fl_control();
    uint32_t request = atomic_load(&page->request);
    bool obeyed = request == atomic_load(&page->answered);
    atomic_store(&inherited, page == &unseen ? first : obeyed ? FIRST : request);
}

void fl_control_forked(void)
{
    first = atomic_load(&inherited);
    atomic_store(&unseen.request, owner ? first : 0);
    atomic_store(&fl_control_here, &unseen); /* the parent's stays mapped */
}

void fl_control_renew(void)
{
    if (fl_control() == &unseen && atomic_exchange(&unseen.request, 0) != 0) {
        (void)fl_control_open();
    }
}

#endif

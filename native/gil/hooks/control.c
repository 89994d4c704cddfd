#define _GNU_SOURCE

#include "gil/hooks/control.h"

#include "gil/hooks/hooks.h"
#include "machine/descriptor.h"

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
#define UNFINISHED (1u << 31) /* in a page's pid: it is being filled in */

typedef struct {
    _Atomic uint32_t gone; /* it is being removed */
    _Alignas(fl_control_page) fl_control_page pages[FL_CONTROL_PAGES];
} control_file;

static fl_control_page unseen;
static uint32_t first = FIRST;     /* the request that a new page begins with */
static _Atomic uint32_t inherited; /* that of a child's */
fl_control_page *_Atomic fl_control_here = &unseen;
static control_file *file; /* mapped; the same in all processes of the family */
static char path[80];

/* Containers that share /dev/shm may use the same process number; each has a number space of its own. */
static unsigned long long space(void)
{
    struct stat found;
    return stat("/proc/self/ns/pid", &found) == 0 ? (unsigned long long)found.st_ino : 0;
}

static bool is_there(uint32_t pid)
{
    return pid != 0 && (kill((pid_t)(pid & ~UNFINISHED), 0) == 0 || errno != ESRCH);
}

/* ---- Files of programs that were killed */

static bool used_by_others(int opened)
{
    control_file found;
    bool used = false;
    if (read(opened, &found, sizeof found) != (ssize_t)sizeof found) {
        return false;
    }
    for (size_t i = 0; i < FL_CONTROL_PAGES && !used; i++) {
        uint32_t pid = atomic_load(&found.pages[i].pid);
        used = pid != (uint32_t)getpid() && is_there(pid); /* this process had it before an exec */
    }
    return used;
}

/* Another user's cannot be opened, and stays. */
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
        uint32_t maker = (uint32_t)strtoul(entry->d_name + strlen(prefix), NULL, 10);
        if (maker != (uint32_t)getpid() && is_there(maker)) {
            continue; /* which may be about to fill it in */
        }
        int opened = openat(dirfd(directory), entry->d_name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        if (opened >= 0 && !used_by_others(opened)) {
            (void)unlinkat(dirfd(directory), entry->d_name, 0);
        }
        if (opened >= 0) {
            (void)close(opened);
        }
    }
    (void)closedir(directory);
}

/* ---- A page for each process */

/* One that is free, or of a process that is no more; NULL: all are in use. */
static fl_control_page *claim(void)
{
    uint32_t own = (uint32_t)getpid();
    for (uint32_t i = 0; i < FL_CONTROL_PAGES; i++) {
        fl_control_page *page = &file->pages[(own + i) % FL_CONTROL_PAGES];
        uint32_t before = atomic_load(&page->pid);
        if (!is_there(before) && atomic_compare_exchange_strong(&page->pid, &before, own | UNFINISHED)) {
            *page = (fl_control_page){
                .magic = FL_CONTROL_MAGIC,
                .version = FL_CONTROL_VERSION,
                .pid = own | UNFINISHED,
                .request = first, /* to be answered before any order comes */
            };
            atomic_store(&page->pid, own);
            return page;
        }
    }
    return NULL;
}

/* At the end of a process. The file goes with the last of a family. */
static void leave(void)
{
    fl_control_page *page = fl_control();
    uint32_t left = 0;
    if (page == &unseen || atomic_exchange(&page->pid, 0) != (uint32_t)getpid()
        || !atomic_compare_exchange_strong(&file->gone, &left, 1)) {
        return;
    }
    for (uint32_t i = 0; i < FL_CONTROL_PAGES; i++) {
        if (is_there(atomic_load(&file->pages[i].pid))) {
            atomic_store(&file->gone, 0);
            return;
        }
    }
    (void)unlink(path);
}

static control_file *make_file(void)
{
    int opened = fl_file_may_have(sizeof *file) ? mkostemp(path, O_CLOEXEC) : -1;
    void *map = MAP_FAILED;
    if (opened >= 0 && posix_fallocate(opened, 0, sizeof *file) == 0) { /* or a full disk is SIGBUS */
        map = mmap(NULL, sizeof *file, PROT_READ | PROT_WRITE, MAP_SHARED, opened, 0);
    }
    if (opened >= 0) {
        (void)close(opened);
    }
    if (opened >= 0 && map == MAP_FAILED) {
        (void)unlink(path);
    }
    return map == MAP_FAILED ? NULL : map;
}

bool fl_control_open(void)
{
    static bool leaves;
    char prefix[48];
    snprintf(prefix, sizeof prefix, "fairlead-orders.%llu.", space());
    sweep(prefix);
    snprintf(path, sizeof path, DIRECTORY "/%s%d.XXXXXX", prefix, (int)getpid());
    file = make_file();
    if (file == NULL) {
        return false;
    }
    leaves = leaves || atexit(leave) == 0;
    fl_hooks_show(claim());
    return true;
}

/* ---- Forks */

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
    if (file != NULL && getpid() == 1) { /* in a number space of its own, where the others' mean nothing */
        (void)munmap(file, sizeof *file);
        file = NULL;
    }
    atomic_store(&unseen.request, file ? first : 0);
    atomic_store(&fl_control_here, &unseen);
}

void fl_control_renew(void)
{
    if (fl_control() != &unseen || atomic_exchange(&unseen.request, 0) == 0) {
        return;
    }
    fl_control_page *page = claim();
    if (page != NULL && atomic_load(&file->gone)) { /* the last but this one has just ended */
        atomic_store(&page->pid, 0);
        (void)munmap(file, sizeof *file);
        (void)fl_control_open();
    } else if (page != NULL) {
        fl_hooks_show(page);
    }
}

#endif

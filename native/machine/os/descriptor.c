/* Open files of our own, where files have numbers. */
#define _GNU_SOURCE /* F_DUPFD_CLOEXEC */

#include "machine/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define HIGH 512 /* above what programs close by habit (256), below what select() takes (1024) */

static bool is_there(int number, const fl_descriptor *own)
{
    struct stat found;
    return fstat(number, &found) == 0 && (uint64_t)found.st_dev == own->device
           && (uint64_t)found.st_ino == own->inode;
}

fl_descriptor fl_descriptor_own(int number)
{
    struct stat opened;
    if (number < 0 || fstat(number, &opened) != 0) {
        return FL_NO_DESCRIPTOR;
    }
    fl_descriptor own = {number, (uint64_t)opened.st_dev, (uint64_t)opened.st_ino};
    int high = fcntl(number, F_DUPFD_CLOEXEC, HIGH);
    if (high >= 0) {
        (void)fl_descriptor_close(&own);
        own.number = high;
    }
    return own;
}

int fl_descriptor_number(const fl_descriptor *own)
{
    if (own->number >= 0 && is_there(own->number, own)) {
        return own->number;
    }
    errno = EBADF;
    return -1;
}

int fl_descriptor_close(fl_descriptor *own)
{
    int number = fl_descriptor_number(own);
    own->number = -1;
    return number >= 0 && close(number) == 0 ? 0 : errno;
}

bool fl_file_may_have(uint64_t size)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || size <= limit.rlim_cur;
}

#define _GNU_SOURCE /* O_CLOEXEC, writev */

#include "gil/trace/recording.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include "gil/trace/crc32.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "recordings are written as numbers stand in memory");

static void fail(fl_recording *recording, int error)
{
    recording->error = error;
    /* Take back what was written of an unfinished block; when that fails too, the reader finds the cut. */
    int file = fl_descriptor_number(&recording->file);
    if (file >= 0 && ftruncate(file, (off_t)recording->size) == 0) {
        (void)lseek(file, (off_t)recording->size, SEEK_SET);
    }
}

static void write_all(fl_recording *recording, struct iovec *parts, int count)
{
    uint64_t total = 0;
    for (int i = 0; i < count; i++) {
        total += parts[i].iov_len;
    }
    if (!fl_file_may_have(recording->size + total)) {
        recording->error = EFBIG;
        return;
    }
    for (uint64_t left = total; left > 0;) {
        int file = fl_descriptor_number(&recording->file);
        ssize_t written = file >= 0 ? writev(file, parts, count) : -1;
        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written <= 0) {
            fail(recording, written < 0 ? errno : ENOSPC);
            return;
        }
        left -= (uint64_t)written;
        while (count > 0 && (size_t)written >= parts->iov_len) {
            written -= (ssize_t)parts->iov_len;
            parts++;
            count--;
        }
        if (count > 0) {
            parts->iov_base = (char *)parts->iov_base + written;
            parts->iov_len -= (size_t)written;
        }
    }
    recording->size += total;
}

int fl_recording_open(fl_recording *recording, const char *path)
{
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    *recording = (fl_recording){.file = fl_descriptor_own(file)};
    if (recording->file.number < 0) {
        return errno;
    }
    struct {
        char magic[8];
        uint32_t version, flags;
    } header = {{'F', 'L', 'R', 'E', 'C', 'O', 'R', 'D'}, FL_RECORDING_VERSION, 0};
    struct iovec part = {&header, sizeof header};
    write_all(recording, &part, 1);
    int error = recording->error;
    if (error) {
        (void)fl_descriptor_close(&recording->file);
    }
    return error;
}

void fl_recording_block(fl_recording *recording, fl_block_type type, const void *payload, size_t size)
{
    if (recording->file.number < 0 || recording->error) {
        return;
    }
    if (size > FL_RECORDING_MAX_PAYLOAD) {
        recording->error = EFBIG;
        return;
    }
    uint32_t header[4] = {(uint32_t)type, (uint32_t)size, fl_crc32(0, payload, size), 0};
    char padding[8] = {0};
    union {
        const void *constant;
        void *plain;
    } data = {payload}; /* writev() only reads it, but its type does not say so */
    struct iovec parts[] = {{header, sizeof header}, {data.plain, size}, {padding, -size & 7}};
    write_all(recording, parts, 3);
}

void fl_recording_close(fl_recording *recording)
{
    int error = recording->file.number >= 0 ? fl_descriptor_close(&recording->file) : 0;
    recording->error = recording->error ? recording->error : error;
}

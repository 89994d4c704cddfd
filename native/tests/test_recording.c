/* The recording's file, as the reader in Python will find it. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "gil/trace/crc32.h"
#include "gil/trace/recording.h"
#include "gil/trace/ring.h"

static char directory[] = "/tmp/fairlead-test-XXXXXX";
static char path[64];

static size_t contents(unsigned char *into, size_t room)
{
    int fd = open(path, O_RDONLY);
    CHECK(fd >= 0);
    ssize_t size = read(fd, into, room);
    CHECK(size >= 0);
    close(fd);
    return (size_t)size;
}

static uint32_t word(const unsigned char *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static void test_an_event_has_the_size_and_order_that_the_reader_expects(void)
{
    CHECK_EQUAL(sizeof(fl_event), 32);
    CHECK_EQUAL(offsetof(fl_event, t), 0);
    CHECK_EQUAL(offsetof(fl_event, thread), 8);
    CHECK_EQUAL(offsetof(fl_event, other), 12);
    CHECK_EQUAL(offsetof(fl_event, value), 16);
    CHECK_EQUAL(offsetof(fl_event, gil), 24);
    CHECK_EQUAL(offsetof(fl_event, kind), 26);
    CHECK_EQUAL(offsetof(fl_event, flags), 27);
    CHECK_EQUAL(offsetof(fl_event, stack), 28);
}

static void test_blocks_are_padded_and_carry_their_checksum(void)
{
    fl_recording recording;
    CHECK_EQUAL(fl_recording_open(&recording, path), 0);
    fl_recording_block(&recording, FL_BLOCK_META, "{}", 2);
    fl_recording_block(&recording, FL_BLOCK_THREADS, "12345678", 8);
    fl_recording_block(&recording, FL_BLOCK_END, "", 0);
    CHECK_EQUAL(recording.error, 0);
    fl_recording_close(&recording);
    CHECK_EQUAL(recording.error, 0);

    unsigned char data[256];
    CHECK_EQUAL(contents(data, sizeof data), 16 + (16 + 8) + (16 + 8) + 16);
    CHECK(memcmp(data, "FLRECORD\3\0\0\0\0\0\0\0", 16) == 0);
    CHECK_EQUAL(word(data + 16), FL_BLOCK_META);
    CHECK_EQUAL(word(data + 20), 2);
    CHECK_EQUAL(word(data + 24), fl_crc32(0, "{}", 2));
    CHECK_EQUAL(word(data + 28), 0);
    CHECK(memcmp(data + 32, "{}\0\0\0\0\0\0", 8) == 0);
    CHECK_EQUAL(word(data + 40), FL_BLOCK_THREADS);
    CHECK_EQUAL(word(data + 64), FL_BLOCK_END);
    CHECK_EQUAL(word(data + 68), 0);
}

static void test_an_existing_file_is_replaced(void)
{
    fl_recording recording;
    CHECK_EQUAL(fl_recording_open(&recording, path), 0);
    fl_recording_close(&recording);
    unsigned char data[256];
    CHECK_EQUAL(contents(data, sizeof data), 16);
}

static void test_a_place_that_cannot_be_written_is_an_error(void)
{
    fl_recording recording;
    CHECK_EQUAL(fl_recording_open(&recording, directory), EISDIR);
    CHECK_EQUAL(recording.file.number, -1);
    CHECK_EQUAL(fl_recording_open(&recording, "/nonexistent/file"), ENOENT);
    fl_recording_block(&recording, FL_BLOCK_END, "", 0);
    fl_recording_close(&recording);
}

static void test_a_full_disk_is_an_error(void)
{
    fl_recording recording;
    CHECK_EQUAL(fl_recording_open(&recording, "/dev/full"), ENOSPC);
}

/* The kernel would also send SIGXFSZ, which ends this program. */
static void test_a_limit_of_the_size_is_an_error_and_no_signal(void)
{
    fl_recording recording;
    struct rlimit before, small;
    CHECK(getrlimit(RLIMIT_FSIZE, &before) == 0);
    small = before;
    small.rlim_cur = 100;
    CHECK_EQUAL(fl_recording_open(&recording, path), 0);
    CHECK(setrlimit(RLIMIT_FSIZE, &small) == 0);
    char payload[64] = "";
    fl_recording_block(&recording, FL_BLOCK_META, payload, sizeof payload); /* 96 bytes */
    CHECK_EQUAL(recording.error, 0);
    fl_recording_block(&recording, FL_BLOCK_THREADS, payload, sizeof payload); /* some of it would fit */
    CHECK_EQUAL(recording.error, EFBIG);
    CHECK(setrlimit(RLIMIT_FSIZE, &before) == 0);
    fl_recording_block(&recording, FL_BLOCK_END, "", 0); /* after an error nothing more is written */
    fl_recording_close(&recording);
    CHECK_EQUAL(recording.error, EFBIG);
    unsigned char data[256];
    CHECK_EQUAL(contents(data, sizeof data), 96);
}

static void test_a_file_that_the_program_has_in_its_place_is_left_alone(void)
{
    fl_recording recording;
    CHECK_EQUAL(fl_recording_open(&recording, path), 0);
    int number = recording.file.number, ends[2];
    CHECK(pipe(ends) == 0 && dup2(ends[1], number) == number && close(ends[1]) == 0);
    fl_recording_block(&recording, FL_BLOCK_META, "{}", 2);
    CHECK_EQUAL(recording.error, EBADF);
    fl_recording_close(&recording);
    CHECK(write(number, "x", 1) == 1 && close(number) == 0);
    char all[8];
    CHECK_EQUAL(read(ends[0], all, sizeof all), 1); /* what the program has written */
    CHECK(close(ends[0]) == 0);
    unsigned char data[256];
    CHECK_EQUAL(contents(data, sizeof data), 16);
}

static void test_a_file_that_the_program_has_closed_is_reported_at_the_end(void)
{
    fl_recording recording;
    CHECK_EQUAL(fl_recording_open(&recording, path), 0);
    CHECK(close(recording.file.number) == 0);
    fl_recording_close(&recording);
    CHECK_EQUAL(recording.error, EBADF);
}

static void test_a_block_that_is_too_long_is_refused(void)
{
    fl_recording recording;
    CHECK_EQUAL(fl_recording_open(&recording, path), 0);
    fl_recording_block(&recording, FL_BLOCK_META, "", FL_RECORDING_MAX_PAYLOAD + 1);
    CHECK_EQUAL(recording.error, EFBIG);
    fl_recording_close(&recording);
}

int main(void)
{
    CHECK(mkdtemp(directory) != NULL);
    snprintf(path, sizeof path, "%s/recording", directory);
    test_an_event_has_the_size_and_order_that_the_reader_expects();
    test_blocks_are_padded_and_carry_their_checksum();
    test_an_existing_file_is_replaced();
    test_a_place_that_cannot_be_written_is_an_error();
    test_a_full_disk_is_an_error();
    test_a_limit_of_the_size_is_an_error_and_no_signal();
    test_a_file_that_the_program_has_in_its_place_is_left_alone();
    test_a_file_that_the_program_has_closed_is_reported_at_the_end();
    test_a_block_that_is_too_long_is_refused();
    CHECK(unlink(path) == 0 && rmdir(directory) == 0);
    return 0;
}

/* The server with real sockets: clients that are slow, silent, rude, and very many. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "gil/serve/serve.h"

#define HOST "Host: localhost\r\n"
#define TOKEN "a-long-token-of-ours"
#define BEARS "Authorization: Bearer " TOKEN "\r\n"
#define LARGE ((size_t)8 << 20) /* more than sockets take without a reader */

#define NUMBERS 1024 /* of descriptors, looked at */

static atomic_int begun, ended, ticks, losses;

static void begin(void)
{
    begun++;
}

static void end(void)
{
    ended++;
}

static void tick(void)
{
    ticks++;
}

static void lost(void)
{
    losses++;
}

static bool is(const char *path, size_t size, const char *wanted)
{
    return size == strlen(wanted) && memcmp(path, wanted, size) == 0;
}

static int answer(const char *path, size_t size, bool trusted, fl_text *body, const char **type)
{
    *type = "application/json";
    if (is(path, size, "/large")) {
        for (size_t i = 0; i < LARGE / 16; i++) {
            fl_text_add(body, "0123456789abcdef");
        }
        return 200;
    }
    fl_text_add(body, "{}\n");
    if (is(path, size, "/secret")) {
        return trusted ? 200 : 401;
    }
    return is(path, size, "/ok") || is(path, size, "/counted") ? 200 : 503;
}

static bool unlimited(const char *path, size_t size)
{
    return !is(path, size, "/counted");
}

static const fl_serve_pages pages = {
    .begin = begin,
    .end = end,
    .answer = answer,
    .tick = tick,
    .lost = lost,
    .tick_ms = 10,
    .unlimited = unlimited,
};

static uint16_t start(bool token_for_all)
{
    uint16_t port = 0;
    int error = 0;
    CHECK_EQUAL(fl_serve_start("127.0.0.1", &port, TOKEN, token_for_all, &pages, &error), FL_SERVE_OK);
    CHECK(port != 0);
    return port;
}

static int client(uint16_t port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0);
    struct timeval limit = {30, 0};
    CHECK(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) == 0);
    CHECK(connect(fd, (struct sockaddr *)&address, sizeof address) == 0);
    return fd;
}

static void say(int fd, const char *text)
{
    CHECK(send(fd, text, strlen(text), MSG_NOSIGNAL) == (ssize_t)strlen(text));
}

/* Everything up to the end of the connection; the number of bytes, -1 when it was reset. */
static ssize_t listen_to_the_end(int fd, char *into, size_t room)
{
    size_t size = 0;
    for (;;) {
        char nothing[65536];
        ssize_t count = recv(fd, nothing, sizeof nothing, 0);
        if (count < 0) {
            CHECK(errno == ECONNRESET); /* and not that nothing came within the time */
            return -1;
        }
        if (count == 0) {
            into[size < room ? size : room - 1] = 0;
            return (ssize_t)size;
        }
        for (ssize_t i = 0; i < count; i++, size++) {
            if (size < room - 1) {
                into[size] = nothing[i];
            }
        }
    }
}

static int status_of(int fd)
{
    char text[1024];
    CHECK(listen_to_the_end(fd, text, sizeof text) > 0);
    close(fd);
    CHECK(strncmp(text, "HTTP/1.1 ", 9) == 0);
    return atoi(text + 9);
}

static int ask(uint16_t port, const char *request)
{
    int fd = client(port);
    say(fd, request);
    return status_of(fd);
}

static void test_answers(void)
{
    char text[1024];
    uint16_t port = start(false);
    CHECK_EQUAL(ask(port, "GET /ok HTTP/1.1\r\n" HOST "\r\n"), 200);
    CHECK_EQUAL(ask(port, "GET /else HTTP/1.0\r\n\r\n"), 503);
    CHECK_EQUAL(ask(port, "PUT /ok HTTP/1.1\r\n" HOST "\r\n"), 405);
    CHECK_EQUAL(ask(port, "nonsense\r\n\r\n"), 400);
    CHECK_EQUAL(ask(port, "GET /ok HTTP/1.1\r\nHost: evil.example\r\n\r\n"), 421);
    int fd = client(port);
    say(fd, "HEAD /ok HTTP/1.1\r\n" HOST "\r\n");
    CHECK(listen_to_the_end(fd, text, sizeof text) > 0);
    CHECK(strstr(text, "Content-Length: 3\r\n") && strstr(text, "Content-Type: application/json\r\n"));
    CHECK(strcmp(strstr(text, "\r\n\r\n"), "\r\n\r\n") == 0);
    close(fd);
    CHECK(fl_serve_stop());
    CHECK(!fl_serve_stop());
}

static void test_a_request_may_come_in_pieces_and_with_a_body_that_is_refused(void)
{
    uint16_t port = start(false);
    static const char request[] = "GET /ok HTTP/1.1\r\n" HOST "\r\n";
    int fd = client(port);
    for (size_t i = 0; i < sizeof request - 1; i++) {
        CHECK(send(fd, request + i, 1, MSG_NOSIGNAL) == 1);
    }
    CHECK_EQUAL(status_of(fd), 200);
    fd = client(port); /* what lies unread at the end must not take the answer along */
    say(fd, "POST /ok HTTP/1.1\r\n" HOST "Content-Length: 300\r\n\r\n");
    char more[300];
    memset(more, 'x', sizeof more);
    (void)!send(fd, more, sizeof more, MSG_NOSIGNAL);
    CHECK_EQUAL(status_of(fd), 405);
    fl_serve_stop();
}

static void test_requests_are_bounded(void)
{
    uint16_t port = start(false);
    int fd = client(port);
    char more[1000];
    memset(more, 'x', sizeof more);
    say(fd, "GET /ok HTTP/1.1\r\nX: ");
    for (int i = 0; i < 5; i++) {
        (void)!send(fd, more, sizeof more, MSG_NOSIGNAL);
    }
    CHECK_EQUAL(status_of(fd), 431);
    fl_serve_stop();
}

static void test_a_token_is_asked_for(void)
{
    uint16_t port = start(true);
    CHECK_EQUAL(ask(port, "GET /ok HTTP/1.1\r\n" HOST "\r\n"), 401);
    CHECK_EQUAL(ask(port, "GET /ok HTTP/1.1\r\n" HOST "Authorization: Bearer a-long-token\r\n\r\n"), 401);
    CHECK_EQUAL(ask(port, "GET /ok HTTP/1.1\r\nHost: any.example\r\n" BEARS "\r\n"), 200);
    fl_serve_stop();
    port = start(false);
    CHECK_EQUAL(ask(port, "GET /ok HTTP/1.1\r\n" HOST "\r\n"), 200);
    CHECK_EQUAL(ask(port, "GET /secret HTTP/1.1\r\n" HOST "\r\n"), 401);
    CHECK_EQUAL(ask(port, "GET /secret HTTP/1.1\r\n" HOST BEARS "\r\n"), 200);
    fl_serve_stop();
}

static void test_other_addresses_take_a_token(void)
{
    uint16_t port = 0;
    int error = 0;
    CHECK_EQUAL(fl_serve_start("0.0.0.0", &port, TOKEN, false, &pages, &error), FL_SERVE_TOKEN);
    CHECK_EQUAL(fl_serve_start("::", &port, TOKEN, false, &pages, &error), FL_SERVE_TOKEN);
    CHECK_EQUAL(fl_serve_start("::ffff:127.0.0.1", &port, TOKEN, false, &pages, &error), FL_SERVE_TOKEN);
    CHECK_EQUAL(fl_serve_start("example.org", &port, TOKEN, false, &pages, &error), FL_SERVE_ADDRESS);
    uint16_t taken = start(false), again = taken;
    CHECK_EQUAL(fl_serve_start("127.0.0.1", &again, TOKEN, false, &pages, &error), FL_SERVE_BUSY);
    fl_serve_stop();
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t size = sizeof address;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK(bind(fd, (struct sockaddr *)&address, size) == 0 && listen(fd, 1) == 0);
    CHECK(getsockname(fd, (struct sockaddr *)&address, &size) == 0);
    port = ntohs(address.sin_port);
    CHECK_EQUAL(fl_serve_start("127.0.0.1", &port, TOKEN, false, &pages, &error), FL_SERVE_SYSTEM);
    CHECK_EQUAL(error, EADDRINUSE);
    close(fd);
    CHECK_EQUAL(begun, ended);
}

static void test_what_costs_something_is_answered_so_often_and_no_more(void)
{
    uint16_t port = start(false);
    int refused = 0;
    for (int i = 0; i < 2000 && refused < 3; i++) {
        int status = ask(port, "GET /counted HTTP/1.1\r\n" HOST "\r\n");
        CHECK(status == 200 || status == 429);
        refused += status == 429;
    }
    CHECK_EQUAL(refused, 3);
    CHECK_EQUAL(ask(port, "GET /ok HTTP/1.1\r\n" HOST "\r\n"), 200);
    fl_serve_stop();
}

/* A thousand that are silent do not keep one waiting that speaks; and are cut. */
static void test_silent_clients_are_cut(void)
{
    enum { SILENT = 1000 };
    static int silent[SILENT];
    uint16_t port = start(false);
    for (int i = 0; i < SILENT; i++) {
        silent[i] = client(port);
        if (i % 100 == 99) {
            CHECK_EQUAL(ask(port, "GET /ok HTTP/1.1\r\n" HOST "\r\n"), 200);
        }
    }
    char nothing[8];
    for (int i = 0; i < SILENT; i++) { /* the last ones once their time is over */
        CHECK(listen_to_the_end(silent[i], nothing, sizeof nothing) <= 0);
        close(silent[i]);
    }
    fl_serve_stop();
}

static void test_a_client_that_takes_nothing_is_cut_and_one_that_does_gets_all(void)
{
    char start_of[64];
    uint16_t port = start(false);
    int slow = client(port), quick = client(port);
    say(slow, "GET /large HTTP/1.1\r\n" HOST "\r\n");
    say(quick, "GET /large HTTP/1.1\r\n" HOST "\r\n");
    CHECK(listen_to_the_end(quick, start_of, sizeof start_of) > (ssize_t)LARGE);
    struct pollfd hung_up = {.fd = slow, .events = 0};
    CHECK_EQUAL(poll(&hung_up, 1, 30000), 1); /* reset: nothing of ours was read */
    CHECK(listen_to_the_end(slow, start_of, sizeof start_of) < (ssize_t)LARGE);
    close(slow);
    close(quick);
    fl_serve_stop();
}

static void test_a_child_serves_nothing_and_keeps_nothing_open(void)
{
    uint16_t port = start(false);
    int fd = client(port); /* is connected on the parent's side once this is answered */
    CHECK_EQUAL(ask(port, "GET /ok HTTP/1.1\r\n" HOST "\r\n"), 200);
    int until[2], closed[2];
    CHECK(pipe(until) == 0 && pipe(closed) == 0);
    pid_t child = fork();
    char byte;
    if (child == 0) {
        fl_serve_forked();
        close(closed[1]);
        close(until[1]);
        (void)!read(until[0], &byte, 1); /* lives until the parent has seen its own sockets closed */
        bool well = !fl_serve_stop();
#ifndef __SANITIZE_THREAD__ /* which allows no threads in the child of a process that has some */
        well = ask(start(false), "GET /ok HTTP/1.1\r\n" HOST "\r\n") == 200 && fl_serve_stop() && well;
#endif
        _exit(well ? 0 : 1);
    }
    CHECK(child > 0);
    close(until[0]);
    close(closed[1]);
    CHECK(read(closed[0], &byte, 1) == 0); /* the child has closed its copy of the listening socket, too */
    close(closed[0]);
    fl_serve_stop();
    char nothing[8];
    CHECK(listen_to_the_end(fd, nothing, sizeof nothing) <= 0);
    close(fd);
    uint16_t again = port;
    int error = 0, status = 0;
    CHECK_EQUAL(fl_serve_start("127.0.0.1", &again, TOKEN, false, &pages, &error), FL_SERVE_OK);
    close(until[1]);
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    fl_serve_stop();
}

/* Puts a file of the program's at each number that has been opened since. */
static void replace_those_opened_since(const bool *before, int file, bool *replaced)
{
    for (int number = 0; number < NUMBERS; number++) {
        replaced[number] = !before[number] && number != file && fcntl(number, F_GETFD) >= 0;
        CHECK(!replaced[number] || dup2(file, number) == number);
    }
}

static bool all_are_still(const bool *replaced, int file)
{
    struct stat expected, found;
    bool all = fstat(file, &expected) == 0;
    for (int number = 0; number < NUMBERS; number++) {
        all = all && (!replaced[number] || (fstat(number, &found) == 0 && found.st_ino == expected.st_ino));
    }
    return all;
}

/* As a program that closes what it has not opened, and then opens files. */
static void test_what_the_program_has_at_its_numbers_is_left_alone(void)
{
    bool before[NUMBERS], replaced[NUMBERS];
    char path[] = "/tmp/fairlead-test-XXXXXX", text[16];
    int file = mkstemp(path), status = 0;
    CHECK(file >= 0 && unlink(path) == 0 && write(file, "the program's", 13) == 13);
    CHECK_EQUAL(lseek(file, 4, SEEK_SET), 4);
    for (int number = 0; number < NUMBERS; number++) {
        before[number] = fcntl(number, F_GETFD) >= 0;
    }
    uint16_t port = start(false);
    int fd = client(port);
    before[fd] = true;
    CHECK_EQUAL(ask(port, "GET /ok HTTP/1.1\r\n" HOST "\r\n"), 200); /* the other is accepted by then */
    replace_those_opened_since(before, file, replaced);
    fl_serve_pause();
    CHECK_EQUAL(fl_serve_resume(), 0);
    while (losses == 0) {
        struct timespec moment = {0, 1000000};
        nanosleep(&moment, NULL);
    }
    fl_serve_pause();
    pid_t child = fork();
    if (child == 0) {
        fl_serve_forked();
        _exit(all_are_still(replaced, file) ? 0 : 1);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK_EQUAL(fl_serve_resume(), 0);
    CHECK(fl_serve_stop());
    CHECK_EQUAL(losses, 1);
    CHECK(all_are_still(replaced, file));
    CHECK_EQUAL(lseek(file, 0, SEEK_CUR), 4);
    CHECK(pread(file, text, sizeof text, 0) == 13 && memcmp(text, "the program's", 13) == 0);
    for (int number = 0; number < NUMBERS; number++) {
        CHECK(!replaced[number] || close(number) == 0);
    }
    close(file);
    close(fd);
}

static void test_clients_wait_while_it_pauses(void)
{
    uint16_t port = start(false);
    fl_serve_pause();
    fl_serve_pause();
    int fd = client(port);
    say(fd, "GET /ok HTTP/1.1\r\n" HOST "\r\n");
    CHECK_EQUAL(fl_serve_resume(), 0);
    struct pollfd answered = {.fd = fd, .events = POLLIN};
    CHECK_EQUAL(poll(&answered, 1, 50), 0); /* one that pauses is left */
    CHECK_EQUAL(fl_serve_resume(), 0);
    CHECK_EQUAL(status_of(fd), 200);
    CHECK_EQUAL(fl_serve_resume(), 0);
    fl_serve_stop();
    CHECK_EQUAL(fl_serve_resume(), 0);
    fl_serve_pause();
}

/* A program may fork again before the thread, which was started for that moment, has had a core. */
static void test_a_pause_that_comes_at_once_lets_a_request_be_answered_that_is_there(void)
{
    uint16_t port = start(false);
    for (int i = 0; i < 20; i++) {
        fl_serve_pause();
        int fd = client(port);
        say(fd, "GET /ok HTTP/1.1\r\n" HOST "\r\n");
        int left = 1;
        while (left > 0) { /* until it is in the other socket */
            CHECK_EQUAL(ioctl(fd, SIOCOUTQ, &left), 0);
        }
        CHECK_EQUAL(fl_serve_resume(), 0);
        fl_serve_pause();
        CHECK_EQUAL(status_of(fd), 200);
        CHECK_EQUAL(fl_serve_resume(), 0);
    }
    fl_serve_stop();
}

static void *pause_and_resume(void *unused)
{
    for (int i = 0; i < 200; i++) {
        fl_serve_pause();
        CHECK_EQUAL(fl_serve_resume(), 0);
    }
    return unused;
}

static void test_threads_may_pause_it_at_once(void)
{
    uint16_t port = start(false);
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) {
        CHECK(pthread_create(&threads[i], NULL, pause_and_resume, NULL) == 0);
    }
    for (int i = 0; i < 20; i++) {
        CHECK_EQUAL(ask(port, "GET /ok HTTP/1.1\r\n" HOST "\r\n"), 200);
    }
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
    }
    fl_serve_stop();
}

static void test_ticks_go_on_without_clients(void)
{
    start(false);
    int before = ticks;
    while (ticks < before + 3) {
        struct timespec moment = {0, 1000000};
        nanosleep(&moment, NULL);
    }
    fl_serve_stop();
}

int main(void)
{
    test_answers();
    test_a_request_may_come_in_pieces_and_with_a_body_that_is_refused();
    test_requests_are_bounded();
    test_a_token_is_asked_for();
    test_other_addresses_take_a_token();
    test_what_costs_something_is_answered_so_often_and_no_more();
    test_silent_clients_are_cut();
    test_a_client_that_takes_nothing_is_cut_and_one_that_does_gets_all();
    test_a_child_serves_nothing_and_keeps_nothing_open();
    test_what_the_program_has_at_its_numbers_is_left_alone();
    test_clients_wait_while_it_pauses();
    test_a_pause_that_comes_at_once_lets_a_request_be_answered_that_is_there();
    test_threads_may_pause_it_at_once();
    test_ticks_go_on_without_clients();
    return 0;
}

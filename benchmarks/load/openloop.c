/* An open-loop load generator for a server on this machine.
 *
 *     openloop --port PORT --seconds S [--warm-up S] [--drain S] [--seed N] [--connections N] [--open N]
 *              [--most N] [--protocol line|http|websocket] --class NAME RATE SERVICE_MS TEXT ...
 *
 * Each class of requests arrives as a Poisson process of RATE per second, whatever the server does. A
 * request's latency counts from the instant at which it was due, so neither a slow server nor a late
 * generator hides what a client would have waited (no coordinated omission). A request takes an idle
 * connection, or a new one up to --connections, or waits for one first come, first served; `queued` counts
 * those that waited.
 *
 *   line       sends TEXT and a newline, the answer is one line; connections take turns
 *   http       GET of the path TEXT, keep-alive; the connection used last is taken first
 *   websocket  the path is "/", each request a text message; the answer is one message of the same length
 *
 * Prints {"begin": ...} when the warm-up is over, {"end": ...} after the last arrival, then what was seen.
 * Requests that are unanswered after --drain seconds count with the time for which they have waited. */
#define _GNU_SOURCE
#include "answer.h"
#include "options.h"
#include "report.h"

#include <errno.h>
#include <math.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum { EVENTS = 128, TIMER = -1 };

typedef enum { CLOSED, CONNECTING, UPGRADING, IDLE, BUSY } stage;

typedef struct {
    int fd;
    stage stage;
    int32_t carries; /* a request, or -1 */
    bool used;       /* it has carried a request before: the server may close it at any time */
    answer answer;
} connection;

static request *requests;
static int32_t arrived;    /* requests[0..arrived) are due */
static int32_t dispatched; /* requests[0..dispatched) are on a connection, or done */
static int32_t finished;

static connection **connections;
static int connection_count;
static int *idle; /* a ring of connections, the one used longest ago first */
static int idle_count, idle_first;
static int opened, reopened, most_open, now_open;
static int epoll;
static uint64_t random_state;

static int64_t now_ns(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return at.tv_sec * INT64_C(1000000000) + at.tv_nsec;
}

/* Uniform in (0, 1]: Weyl's sequence, mixed. */
static double uniform(void)
{
    uint64_t x = random_state += UINT64_C(0x9E3779B97F4A7C15);
    x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
    x ^= x >> 31;
    return ((double)(x >> 11) + 1) / 9007199254740992.0;
}

static void idle_put(int number)
{
    idle[(idle_first + idle_count++) % settings.most_connections] = number;
}

static int idle_take(void)
{
    idle_count--;
    if (settings.protocol == HTTP) {
        return idle[(idle_first + idle_count) % settings.most_connections];
    }
    int number = idle[idle_first];
    idle_first = (idle_first + 1) % settings.most_connections;
    return number;
}

static void idle_remove(int number)
{
    int kept = 0;
    for (int i = 0; i < idle_count; i++) {
        int one = idle[(idle_first + i) % settings.most_connections];
        if (one != number) {
            idle[(idle_first + kept++) % settings.most_connections] = one;
        }
    }
    idle_count = kept;
}

static void finish(int32_t which, outcome how)
{
    request *one = &requests[which];
    one->latency = now_ns() - one->due;
    one->outcome = (uint8_t)how;
    finished++;
}

static void watch(int number, uint32_t events, int how)
{
    struct epoll_event event = {.events = events, .data.fd = number};
    if (epoll_ctl(epoll, how, connections[number]->fd, &event) != 0) {
        stop("epoll_ctl");
    }
}

static void open_connection(int number)
{
    connection *one = connections[number];
    one->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (one->fd < 0) {
        stop("socket");
    }
    int yes = 1;
    setsockopt(one->fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)settings.port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(one->fd, (struct sockaddr *)&address, sizeof address) != 0 && errno != EINPROGRESS) {
        stop("connect");
    }
    one->stage = CONNECTING;
    one->used = one->answer.in_body = one->answer.closes = false;
    one->answer.got = 0;
    opened++;
    if (++now_open > most_open) {
        most_open = now_open;
    }
    watch(number, EPOLLOUT, EPOLL_CTL_ADD);
}

/* The place of a connection that is closed, or -1 when all are in use. */
static int free_place(void)
{
    for (int i = 0; i < connection_count; i++) {
        if (connections[i]->stage == CLOSED) {
            return i;
        }
    }
    if (connection_count == settings.most_connections) {
        return -1;
    }
    connection *one = calloc(1, sizeof *one);
    if (one == NULL) {
        stop("no memory for a connection");
    }
    one->carries = -1;
    connections[connection_count] = one;
    return connection_count++;
}

static void close_connection(int number)
{
    connection *one = connections[number];
    if (one->stage == IDLE) {
        idle_remove(number);
    }
    close(one->fd);
    one->stage = CLOSED;
    now_open--;
}

/* The connection failed. A request whose answer had not begun is sent once more if the server had a reason to
 * close: a connection that was used before. */
static void broken(int number)
{
    connection *one = connections[number];
    int32_t carried = one->carries;
    bool begun = one->answer.got > 0 || one->answer.in_body;
    bool again = carried >= 0 && one->stage == BUSY && one->used && !begun;
    close_connection(number);
    if (again) {
        reopened++;
        open_connection(number);
    }
    else if (carried >= 0) {
        one->carries = -1;
        finish(carried, FAILED);
    }
}

static void send_text(int number, const char *text, size_t length)
{
    connection *one = connections[number];
    one->answer.got = 0;
    one->answer.in_body = one->answer.closes = one->answer.good = false;
    if (send(one->fd, text, length, MSG_NOSIGNAL) != (ssize_t)length) {
        broken(number);
    }
}

static void send_request(int number)
{
    connection *one = connections[number];
    const request_class *cls = &classes[requests[one->carries].cls];
    one->stage = BUSY;
    send_text(number, cls->text, cls->length);
}

static void ready(int number)
{
    connection *one = connections[number];
    if (one->carries >= 0) {
        send_request(number);
    }
    else {
        one->stage = IDLE;
        idle_put(number);
    }
}

static void connected(int number)
{
    static const char upgrade[] = "GET / HTTP/1.1\r\nHost: localhost\r\n"
                                  "Upgrade: websocket\r\nConnection: Upgrade\r\n"
                                  "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
                                  "Sec-WebSocket-Version: 13\r\n\r\n";
    int error = 0;
    socklen_t size = sizeof error;
    getsockopt(connections[number]->fd, SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) {
        broken(number);
        return;
    }
    watch(number, EPOLLIN, EPOLL_CTL_MOD);
    if (settings.protocol == WEBSOCKET) {
        connections[number]->stage = UPGRADING;
        send_text(number, upgrade, sizeof upgrade - 1);
    }
    else {
        ready(number);
    }
}

static void dispatch(void)
{
    while (dispatched < arrived) {
        int number;
        if (idle_count > 0) {
            number = idle_take();
            connections[number]->carries = dispatched++;
            send_request(number);
        }
        else if ((number = free_place()) >= 0) {
            connections[number]->carries = dispatched++;
            open_connection(number);
        }
        else {
            break;
        }
    }
    for (int32_t i = arrived - 1; i >= dispatched && !requests[i].queued; i--) {
        requests[i].queued = true;
    }
}

static bool complete(connection *one)
{
    if (one->stage == UPGRADING) {
        one->answer.head[one->answer.got] = 0;
        return strstr(one->answer.head, "\r\n\r\n") != NULL;
    }
    if (settings.protocol == HTTP) {
        return answer_http(&one->answer);
    }
    one->answer.good = true;
    if (settings.protocol == WEBSOCKET) {
        return one->answer.got >= classes[requests[one->carries].cls].answer;
    }
    return one->answer.got > 0 && one->answer.head[one->answer.got - 1] == '\n';
}

static void answered(int number)
{
    connection *one = connections[number];
    if (one->stage == UPGRADING) {
        if (strncmp(one->answer.head, "HTTP/1.1 101", 12) != 0) {
            errno = 0;
            stop("the server does not speak websocket");
        }
        ready(number);
        return;
    }
    finish(one->carries, one->answer.good ? ANSWERED : FAILED);
    one->carries = -1;
    one->used = true;
    if (one->answer.closes) {
        close_connection(number);
    }
    else {
        ready(number);
    }
}

static void readable(int number)
{
    connection *one = connections[number];
    if (one->answer.got == HEAD_BYTES) {
        errno = 0;
        stop("an answer's head is longer than 16 KiB");
    }
    ssize_t got = recv(one->fd, one->answer.head + one->answer.got, HEAD_BYTES - one->answer.got, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    if (got <= 0) {
        if (got == 0 && one->stage == BUSY && one->answer.in_body && one->answer.ends == END_OF_FILE) {
            one->answer.closes = true;
            answered(number);
            return;
        }
        broken(number);
        return;
    }
    one->answer.got += (size_t)got;
    if (one->carries < 0 && one->stage == IDLE) {
        close_connection(number); /* nothing was asked */
    }
    else if (complete(one)) {
        answered(number);
    }
}

static void handle(const struct epoll_event *event)
{
    int number = event->data.fd;
    connection *one = connections[number];
    if (one->stage == CLOSED) {
        return; /* by an earlier event of the same batch */
    }
    if (one->stage == CONNECTING) {
        connected(number);
    }
    else {
        readable(number);
    }
}

static void arrive(int64_t due, int64_t now)
{
    double at = uniform() * total_rate;
    int cls = 0;
    while (cls < class_count - 1 && at > classes[cls].rate) {
        at -= classes[cls++].rate;
    }
    requests[arrived++] = (request){.due = due, .late = (int32_t)((now - due) / 1000), .cls = (uint8_t)cls};
}

static void arm(int timer, int64_t at)
{
    struct itimerspec when = {.it_value = {at / 1000000000, at % 1000000000}};
    if (timerfd_settime(timer, TFD_TIMER_ABSTIME, &when, NULL) != 0) {
        stop("timerfd_settime");
    }
}

static void say(const char *what, int64_t at)
{
    printf("{\"%s\": %.6f}\n", what, (double)at / 1e9);
    fflush(stdout);
}

/* Runs all; answers when the measured part began and when arrivals ended. */
static void generate(int64_t *began, int64_t *ended)
{
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = TIMER};
    if (timer < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, timer, &event) != 0) {
        stop("timerfd");
    }
    int64_t begin = now_ns() + 1000000, measured = begin + (int64_t)(settings.warm_up * 1e9);
    int64_t end = measured + (int64_t)(settings.seconds * 1e9);
    int64_t give_up = end + (int64_t)(settings.drain * 1e9);
    int64_t due = begin, armed = 0;
    bool said = false, over = false;
    struct epoll_event events[EVENTS];
    for (;;) {
        int64_t now = now_ns();
        if (!said && now >= measured) {
            said = true;
            say("begin", *began = measured);
        }
        while (!over && due <= now) {
            if (due >= end || arrived == settings.most) {
                over = true;
                say("end", *ended = due < end ? due : end);
                give_up = *ended + (int64_t)(settings.drain * 1e9);
                break;
            }
            arrive(due, now);
            due += (int64_t)(-log(uniform()) / total_rate * 1e9);
        }
        dispatch();
        if (over && (finished == arrived || now >= give_up)) {
            break;
        }
        int64_t next = over ? give_up : due < end ? due : end;
        if (!over && due > end) {
            due = end;
        }
        if (!said && next > measured) {
            next = measured;
        }
        if (next != armed) {
            arm(timer, armed = next);
        }
        int count = epoll_wait(epoll, events, EVENTS, -1);
        for (int i = 0; i < count; i++) {
            if (events[i].data.fd == TIMER) {
                uint64_t times;
                if (read(timer, &times, sizeof times) < 0 && errno != EAGAIN) {
                    stop("timerfd");
                }
            }
            else {
                handle(&events[i]);
            }
        }
    }
    for (int32_t i = 0; i < arrived; i++) {
        if (requests[i].outcome == WAITING) {
            requests[i].latency = now_ns() - requests[i].due;
        }
    }
}

int main(int count, char **told)
{
    read_options(count, told);
    random_state = settings.seed;
    requests = calloc((size_t)settings.most, sizeof *requests);
    connections = calloc((size_t)settings.most_connections, sizeof *connections);
    idle = calloc((size_t)settings.most_connections, sizeof *idle);
    epoll = epoll_create1(EPOLL_CLOEXEC);
    if (requests == NULL || connections == NULL || idle == NULL || epoll < 0) {
        stop("cannot begin");
    }
    /* As far as it is allowed, the generator is as prompt as if it ran on a machine of its own. */
    prctl(PR_SET_TIMERSLACK, 1);
    bool realtime = sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){.sched_priority = 1}) == 0;
    for (int i = 0; i < settings.first_connections; i++) {
        open_connection(free_place());
    }
    int64_t began = 0, ended = 0;
    generate(&began, &ended);
    report(&(run){
        .requests = requests,
        .arrived = arrived,
        .began = began,
        .ended = ended,
        .most_open = most_open,
        .opened = opened,
        .reopened = reopened,
        .realtime = realtime,
    });
    return 0;
}

#define _GNU_SOURCE /* accept4, pipe2, pthread_setname_np */

#include "gil/serve/serve.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "gil/serve/connection.h"
#include "gil/threads/kernel.h"
#include "machine/descriptor.h"

#define CONNECTIONS 32
#define BACKLOG 128
#define ACCEPTS 16 /* in one turn of the loop: open connections are served in between */
#define PERIOD_MS 100
#define PAUSE_MS 100 /* when there is no descriptor to be had */

/* Held by start, stop, pause and resume; never by the thread, which they wait for. */
static pthread_mutex_t control = PTHREAD_MUTEX_INITIALIZER;

/* The first line under the lock; the rest is the thread's own while there is one. */
static struct {
    bool on, running;
    unsigned pauses;
    pthread_t thread;
    atomic_bool ending; /* the thread is to end; a byte in the pipe wakes it for that */
    atomic_bool lost;   /* the program has closed a socket or a pipe that nothing goes on without */
    fl_descriptor listener, wake[2];
    fl_service service;
    fl_connection *connections;
    uint64_t arrivals;
    int64_t no_accept_until, period, next_tick;
} server;

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* ---- Connections */

/* A place that is free, or that of the connection that has lasted longest. */
static fl_connection *make_place(void)
{
    fl_connection *oldest = server.connections;
    for (int i = 0; i < CONNECTIONS; i++) {
        fl_connection *one = &server.connections[i];
        if (one->phase == FL_FREE) {
            return one;
        }
        oldest = one->number < oldest->number ? one : oldest;
    }
    fl_connection_cut(oldest);
    return oldest;
}

static void accept_some(int64_t now)
{
    for (int i = 0; i < ACCEPTS; i++) {
        int listener = fl_descriptor_number(&server.listener);
        int fd = listener >= 0 ? accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK) : -1;
        if (fd < 0) {
            if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
                server.no_accept_until = now + PAUSE_MS;
            }
            return;
        }
        fl_connection_open(make_place(), fd, ++server.arrivals, &server.service, now);
    }
}

static int wait_ms(int64_t now)
{
    int64_t until = server.next_tick;
    if (server.no_accept_until > now && server.no_accept_until < until) {
        until = server.no_accept_until;
    }
    for (int i = 0; i < CONNECTIONS; i++) {
        const fl_connection *one = &server.connections[i];
        until = one->phase != FL_FREE && one->deadline < until ? one->deadline : until;
    }
    return until > now ? (int)(until - now) : 0;
}

/* One turn; false: it is over. Clients that are there by then are served first: a program that forks all the
   time ends the thread as soon as it has begun. */
static bool turn(void)
{
    struct pollfd polled[CONNECTIONS + 2];
    int64_t now = now_ms();
    int listener = fl_descriptor_number(&server.listener);
    polled[0] = (struct pollfd){.fd = fl_descriptor_number(&server.wake[0]), .events = POLLIN};
    polled[1] = (struct pollfd){.fd = now < server.no_accept_until ? -1 : listener, .events = POLLIN};
    if (listener < 0 || polled[0].fd < 0) {
        atomic_store(&server.lost, true);
        server.service.pages.lost();
        return false;
    }
    for (int i = 0; i < CONNECTIONS; i++) {
        const fl_connection *one = &server.connections[i];
        polled[i + 2] = (struct pollfd){.fd = one->phase == FL_FREE ? -1 : fl_descriptor_number(&one->socket),
                                        .events = one->phase == FL_WRITING ? POLLOUT : POLLIN};
    }
    int count = poll(polled, CONNECTIONS + 2, wait_ms(now));
    if (count < 0 && errno != EINTR) {
        return false;
    }
    now = now_ms();
    if (now - server.period >= PERIOD_MS) {
        server.period = now;
        server.service.answers = 0;
    }
    if (now >= server.next_tick) {
        server.next_tick = now + server.service.pages.tick_ms;
        server.service.pages.tick();
    }
    for (int i = 0; i < CONNECTIONS; i++) {
        fl_connection_go_on(&server.connections[i], count > 0 ? polled[i + 2].revents : 0,
                            &server.service, now);
    }
    if (count > 0 && polled[1].revents) {
        accept_some(now);
    }
    return !atomic_load(&server.ending);
}

static void *run(void *unused)
{
    (void)unused;
    pthread_setname_np(pthread_self(), "fairlead-serve");
    fl_kernel_short_slices();
    server.next_tick = now_ms();
    while (turn()) {
    }
    return NULL;
}

/* ---- Start and end */

static int start_thread(void)
{
    sigset_t all, before;
    char rung[8];
    int wake = fl_descriptor_number(&server.wake[0]);
    if (wake >= 0) {
        (void)!read(wake, rung, sizeof rung);
    }
    atomic_store(&server.ending, false);
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before); /* signals are for the program's threads */
    int error = pthread_create(&server.thread, NULL, run, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    server.running = error == 0;
    return error;
}

/* Once the program has closed the pipe, the thread finds out at its next tick. */
static void end_thread(void)
{
    if (server.running) {
        atomic_store(&server.ending, true);
        int wake = fl_descriptor_number(&server.wake[1]);
        if (wake >= 0) {
            (void)!write(wake, "", 1);
        }
        pthread_join(server.thread, NULL);
        server.running = false;
    }
}

static void close_all(void)
{
    for (int i = 0; server.connections && i < CONNECTIONS; i++) {
        if (server.connections[i].phase != FL_FREE) {
            (void)fl_descriptor_close(&server.connections[i].socket);
        }
    }
    (void)fl_descriptor_close(&server.listener);
    (void)fl_descriptor_close(&server.wake[0]);
    (void)fl_descriptor_close(&server.wake[1]);
}

/* There is no thread. */
static void free_all(void)
{
    close_all();
    server.service.pages.end();
    for (int i = 0; server.connections && i < CONNECTIONS; i++) {
        fl_text_free(&server.connections[i].body);
    }
    free(server.connections);
    free(server.service.token);
    memset(&server, 0, sizeof server);
}

typedef union {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
} socket_address;

/* The size of the address; 0: it is none. */
static socklen_t parse_address(const char *host, uint16_t port, socket_address *address, bool *loopback)
{
    memset(address, 0, sizeof *address);
    if (inet_pton(AF_INET, host, &address->v4.sin_addr) == 1) {
        address->v4.sin_family = AF_INET;
        address->v4.sin_port = htons(port);
        *loopback = ntohl(address->v4.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
        return sizeof address->v4;
    }
    if (inet_pton(AF_INET6, host, &address->v6.sin6_addr) == 1) {
        address->v6.sin6_family = AF_INET6;
        address->v6.sin6_port = htons(port);
        *loopback = IN6_IS_ADDR_LOOPBACK(&address->v6.sin6_addr);
        return sizeof address->v6;
    }
    return 0;
}

static bool listen_at(const socket_address *address, socklen_t size, uint16_t *port)
{
    int yes = 1;
    socket_address taken;
    socklen_t taken_size = sizeof taken;
    server.listener =
        fl_descriptor_own(socket(address->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    int made = server.listener.number;
    if (made < 0 || setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0
        || bind(made, &address->any, size) != 0 || listen(made, BACKLOG) != 0
        || getsockname(made, &taken.any, &taken_size) != 0) {
        return false;
    }
    *port = ntohs(taken.any.sa_family == AF_INET ? taken.v4.sin_port : taken.v6.sin6_port);
    return true;
}

static bool make_wake(void)
{
    int ends[2];
    bool made = pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0;
    for (int i = 0; i < 2; i++) {
        server.wake[i] = made ? fl_descriptor_own(ends[i]) : FL_NO_DESCRIPTOR;
    }
    return made;
}

/* Under the lock. */
static fl_serve_result start(const char *host, uint16_t *port, const char *token, bool token_for_all,
                             const fl_serve_pages *pages, int *error)
{
    socket_address address;
    bool loopback = false;
    if (server.on) {
        return FL_SERVE_BUSY;
    }
    socklen_t size = parse_address(host, *port, &address, &loopback);
    if (size == 0) {
        return FL_SERVE_ADDRESS;
    }
    if (!loopback && !token_for_all) {
        return FL_SERVE_TOKEN;
    }
    server.on = true;
    server.service.pages = *pages;
    server.listener = FL_NO_DESCRIPTOR;
    server.connections = calloc(CONNECTIONS, sizeof *server.connections);
    server.service.token = strdup(token);
    server.service.token_for_all = token_for_all;
    server.service.pages.begin();
    bool ready =
        make_wake() && server.connections && server.service.token && listen_at(&address, size, port);
    *error = ready ? start_thread() : errno;
    if (*error) {
        free_all();
        return FL_SERVE_SYSTEM;
    }
    return FL_SERVE_OK;
}

fl_serve_result fl_serve_start(const char *host, uint16_t *port, const char *token, bool token_for_all,
                               const fl_serve_pages *pages, int *error)
{
    pthread_mutex_lock(&control);
    fl_serve_result result = start(host, port, token, token_for_all, pages, error);
    pthread_mutex_unlock(&control);
    return result;
}

bool fl_serve_stop(void)
{
    pthread_mutex_lock(&control);
    bool was_on = server.on;
    if (was_on) {
        end_thread();
        free_all();
    }
    pthread_mutex_unlock(&control);
    return was_on;
}

void fl_serve_pause(void)
{
    pthread_mutex_lock(&control);
    if (server.on) {
        server.pauses++;
        end_thread();
    }
    pthread_mutex_unlock(&control);
}

int fl_serve_resume(void)
{
    int error = 0;
    pthread_mutex_lock(&control);
    if (server.on && server.pauses > 0 && --server.pauses == 0 && !atomic_load(&server.lost)) {
        error = start_thread();
        if (error) {
            free_all();
        }
    }
    pthread_mutex_unlock(&control);
    return error;
}

void fl_serve_forked(void)
{
    /* The thread may have been anywhere: its memory stays where it is, shared with the parent's. */
    pthread_mutex_init(&control, NULL);
    if (server.on) {
        close_all();
        memset(&server, 0, sizeof server);
    }
}

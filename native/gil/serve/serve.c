#define _GNU_SOURCE /* accept4, pthread_setname_np */

#include "gil/serve/serve.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "gil/serve/connection.h"
#include "gil/threads/kernel.h"

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
    int listener, wake;
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

/* False: the listening socket is closed. */
static bool accept_some(int64_t now)
{
    for (int i = 0; i < ACCEPTS; i++) {
        int fd = accept4(server.listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0) {
            if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
                server.no_accept_until = now + PAUSE_MS;
            }
            return errno != EBADF && errno != ENOTSOCK && errno != EINVAL;
        }
        fl_connection_open(make_place(), fd, ++server.arrivals, &server.service, now);
    }
    return true;
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
    polled[0] = (struct pollfd){.fd = server.wake, .events = POLLIN};
    polled[1] = (struct pollfd){.fd = now < server.no_accept_until ? -1 : server.listener, .events = POLLIN};
    for (int i = 0; i < CONNECTIONS; i++) {
        const fl_connection *one = &server.connections[i];
        polled[i + 2] = (struct pollfd){.fd = one->phase == FL_FREE ? -1 : one->fd,
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
    bool listens = !(count > 0 && polled[1].revents) || accept_some(now);
    return listens && !(count > 0 && polled[0].revents);
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
    uint64_t count;
    (void)!read(server.wake, &count, sizeof count);
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before); /* signals are for the program's threads */
    int error = pthread_create(&server.thread, NULL, run, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    server.running = error == 0;
    return error;
}

static void end_thread(void)
{
    uint64_t one = 1;
    if (server.running) {
        (void)!write(server.wake, &one, sizeof one);
        pthread_join(server.thread, NULL);
        server.running = false;
    }
}

static void close_all(void)
{
    for (int i = 0; server.connections && i < CONNECTIONS; i++) {
        if (server.connections[i].phase != FL_FREE) {
            close(server.connections[i].fd);
        }
    }
    if (server.listener >= 0) {
        close(server.listener);
    }
    if (server.wake >= 0) {
        close(server.wake);
    }
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
    server.listener = socket(address->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (server.listener < 0 || setsockopt(server.listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0
        || bind(server.listener, &address->any, size) != 0 || listen(server.listener, BACKLOG) != 0
        || getsockname(server.listener, &taken.any, &taken_size) != 0) {
        return false;
    }
    *port = ntohs(taken.any.sa_family == AF_INET ? taken.v4.sin_port : taken.v6.sin6_port);
    return true;
}

/* Under the lock. */
static fl_serve_result start(const char *host, uint16_t *port, const char *token, const fl_serve_pages *pages,
                             int *error)
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
    if (!loopback && token == NULL) {
        return FL_SERVE_TOKEN;
    }
    server.on = true;
    server.service.pages = *pages;
    server.listener = -1;
    server.wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    server.connections = calloc(CONNECTIONS, sizeof *server.connections);
    server.service.token = token ? strdup(token) : NULL;
    server.service.pages.begin();
    bool ready = server.wake >= 0 && server.connections && (server.service.token || !token)
                 && listen_at(&address, size, port);
    *error = ready ? start_thread() : errno;
    if (*error) {
        free_all();
        return FL_SERVE_SYSTEM;
    }
    return FL_SERVE_OK;
}

fl_serve_result fl_serve_start(const char *host, uint16_t *port, const char *token,
                               const fl_serve_pages *pages, int *error)
{
    pthread_mutex_lock(&control);
    fl_serve_result result = start(host, port, token, pages, error);
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
    if (server.on && server.pauses > 0 && --server.pauses == 0) {
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

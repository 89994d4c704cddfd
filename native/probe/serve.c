#define _GNU_SOURCE /* accept4, pthread_setname_np */

#include "probe/serve.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "probe/http.h"
#include "probe/kernel.h"

#define CONNECTIONS 32
#define BACKLOG 128
#define ACCEPTS 16         /* in one turn of the loop: those who were let in before get theirs in between */
#define REQUEST_BYTES 4096 /* the head of a request, at most */
#define REQUEST_MS 2000    /* for all of it to come */
#define ANSWER_MS 5000     /* for all of the answer to be taken */
#define GOODBYE_MS 1000    /* for the client to close */
#define PERIOD_MS 100
#define ANSWERS 10         /* in a period */
#define PAUSE_MS 100       /* when there is no descriptor to be had */

typedef enum { FREE, READING, WRITING, CLOSING } phase;

typedef struct {
    phase phase;
    int fd;
    uint64_t number;   /* in order of arrival */
    int64_t deadline;  /* ms */
    size_t used, sent; /* bytes of the request, and of the answer */
    char request[REQUEST_BYTES];
    char head[256];
    size_t head_size;
    fl_text body;
    size_t body_size; /* of it, to be sent */
} connection;

/* Held by start, stop, pause and resume; never by the thread, which they wait for. */
static pthread_mutex_t control = PTHREAD_MUTEX_INITIALIZER;

/* The first line under the lock; the rest is the thread's own while there is one. */
static struct {
    bool on, running;
    unsigned pauses;
    pthread_t thread;
    int listener, wake;
    char *token;
    fl_serve_pages pages;
    connection *connections;
    uint64_t arrivals;
    int64_t no_accept_until, period, next_tick;
    int answers;
} server;

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void cut(connection *one)
{
    if (one->phase == WRITING) { /* what the kernel has still to send goes, too */
        struct linger at_once = {.l_onoff = 1};
        (void)setsockopt(one->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    }
    one->phase = FREE; /* first: a child that is forked in between must not close this number */
    close(one->fd);
    fl_text_clear(&one->body);
}

/* ---- One connection */

static const char *reason(int status)
{
    switch (status) {
    case 200:
        return "OK";
    case 400:
        return "Bad Request";
    case 401:
        return "Unauthorized";
    case 404:
        return "Not Found";
    case 405:
        return "Method Not Allowed";
    case 413:
        return "Content Too Large";
    case 421:
        return "Misdirected Request";
    case 429:
        return "Too Many Requests";
    case 431:
        return "Request Header Fields Too Large";
    case 503:
        return "Service Unavailable";
    default:
        return "Internal Server Error";
    }
}

static const char *more_headers(int status)
{
    return status == 401   ? "WWW-Authenticate: Bearer\r\n"
           : status == 405 ? "Allow: GET, HEAD\r\n"
           : status == 429 ? "Retry-After: 1\r\n"
                           : "";
}

static bool send_some(connection *one, const char *data, size_t size, size_t *sent)
{
    while (*sent < size) {
        ssize_t count = send(one->fd, data + *sent, size - *sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (count < 0) {
            if (errno == EINTR) {
                continue;
            }
            if (errno != EAGAIN && errno != EWOULDBLOCK) {
                cut(one);
            }
            return false;
        }
        *sent += (size_t)count;
    }
    return true;
}

static void write_on(connection *one, int64_t now)
{
    size_t in_head = one->sent < one->head_size ? one->sent : one->head_size, in_body = one->sent - in_head;
    bool done = send_some(one, one->head, one->head_size, &in_head)
                && send_some(one, one->body.data, one->body_size, &in_body);
    one->sent = in_head + in_body;
    if (done) {
        /* A close with something unread would take what was sent along: the client closes first. */
        (void)shutdown(one->fd, SHUT_WR);
        one->phase = CLOSING;
        one->deadline = now + GOODBYE_MS;
    }
}

static void begin_answer(connection *one, int status, const char *type, bool head_only, int64_t now)
{
    if (one->body.failed) {
        fl_text_clear(&one->body);
        one->body.failed = false;
        status = 500;
    }
    size_t size = one->body.size;
    int written = snprintf(one->head, sizeof one->head,
                           "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
                           "Cache-Control: no-store\r\n%sConnection: close\r\n\r\n",
                           status, reason(status), type, size, more_headers(status));
    one->head_size = (size_t)written < sizeof one->head ? (size_t)written : sizeof one->head - 1;
    one->body_size = head_only ? 0 : size;
    one->sent = 0;
    one->phase = WRITING;
    one->deadline = now + ANSWER_MS;
    write_on(one, now);
}

static void refuse(connection *one, int status, const char *why, int64_t now)
{
    fl_text_add(&one->body, why);
    fl_text_add(&one->body, "\n");
    begin_answer(one, status, "text/plain; charset=utf-8", false, now);
}

static void answer(connection *one, const fl_http_request *request, int64_t now)
{
    const char *type = "text/plain; charset=utf-8";
    if (server.token ? !fl_http_bears(request->authorization, server.token)
                     : request->host.data && !fl_http_names_this_machine(request->host)) {
        if (server.token) {
            refuse(one, 401, "this takes the token: Authorization: Bearer TOKEN", now);
        } else {
            refuse(one, 421, "without a token only requests for localhost or an address are answered", now);
        }
        return;
    }
    if (!server.pages.unlimited(request->path.data, request->path.size) && server.answers++ >= ANSWERS) {
        refuse(one, 429, "too many requests", now);
        return;
    }
    int status = server.pages.answer(request->path.data, request->path.size, &one->body, &type);
    begin_answer(one, status, type, request->head, now);
}

static void read_on(connection *one, int64_t now)
{
    ssize_t count = recv(one->fd, one->request + one->used, sizeof one->request - one->used, MSG_DONTWAIT);
    if (count <= 0) {
        if (count == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) {
            cut(one);
        }
        return;
    }
    one->used += (size_t)count;
    fl_http_request request;
    switch (fl_http_parse(one->request, one->used, &request)) {
    case FL_HTTP_WHOLE:
        answer(one, &request, now);
        break;
    case FL_HTTP_PARTIAL:
        if (one->used == sizeof one->request) {
            refuse(one, 431, "the request is too long", now);
        }
        break;
    case FL_HTTP_MALFORMED:
        refuse(one, 400, "this is no request of HTTP/1.1", now);
        break;
    case FL_HTTP_METHOD:
        refuse(one, 405, "only GET and HEAD", now);
        break;
    case FL_HTTP_BODY:
        refuse(one, 413, "no body is taken", now);
        break;
    }
}

/* Reads what the client still sends, for nothing, until it closes. */
static void discard(connection *one)
{
    char nothing[4096];
    ssize_t count = recv(one->fd, nothing, sizeof nothing, MSG_DONTWAIT);
    if (count == 0 || (count < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) {
        cut(one);
    }
}

/* ---- All of them */

/* A place that is free, or that of the connection that has lasted longest. */
static connection *make_place(void)
{
    connection *oldest = server.connections;
    for (int i = 0; i < CONNECTIONS; i++) {
        connection *one = &server.connections[i];
        if (one->phase == FREE) {
            return one;
        }
        oldest = one->number < oldest->number ? one : oldest;
    }
    cut(oldest);
    return oldest;
}

/* False: the listening socket is none any more. */
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
        connection *one = make_place();
        one->fd = fd;
        one->phase = READING;
        one->number = ++server.arrivals;
        one->used = 0;
        one->deadline = now + REQUEST_MS;
        read_on(one, now);
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
        const connection *one = &server.connections[i];
        until = one->phase != FREE && one->deadline < until ? one->deadline : until;
    }
    return until > now ? (int)(until - now) : 0;
}

static void serve_one(connection *one, short events, int64_t now)
{
    if (one->phase == READING && events) {
        read_on(one, now);
    } else if (one->phase == WRITING && events) {
        write_on(one, now);
    } else if (one->phase == CLOSING && events) {
        discard(one);
    }
    if (one->phase != FREE && now >= one->deadline) {
        cut(one);
    }
}

/* One turn; false: it is over. */
static bool turn(void)
{
    struct pollfd polled[CONNECTIONS + 2];
    int64_t now = now_ms();
    polled[0] = (struct pollfd){.fd = server.wake, .events = POLLIN};
    polled[1] = (struct pollfd){.fd = now < server.no_accept_until ? -1 : server.listener, .events = POLLIN};
    for (int i = 0; i < CONNECTIONS; i++) {
        const connection *one = &server.connections[i];
        polled[i + 2] = (struct pollfd){.fd = one->phase == FREE ? -1 : one->fd,
                                        .events = one->phase == WRITING ? POLLOUT : POLLIN};
    }
    int count = poll(polled, CONNECTIONS + 2, wait_ms(now));
    if (count < 0 && errno != EINTR) {
        return false;
    }
    if (polled[0].revents) {
        return false;
    }
    now = now_ms();
    if (now - server.period >= PERIOD_MS) {
        server.period = now;
        server.answers = 0;
    }
    if (now >= server.next_tick) {
        server.next_tick = now + server.pages.tick_ms;
        server.pages.tick();
    }
    for (int i = 0; i < CONNECTIONS; i++) {
        serve_one(&server.connections[i], count > 0 ? polled[i + 2].revents : 0, now);
    }
    return !(count > 0 && polled[1].revents) || accept_some(now);
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
        if (server.connections[i].phase != FREE) {
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
static void give_back(void)
{
    close_all();
    server.pages.end();
    for (int i = 0; server.connections && i < CONNECTIONS; i++) {
        fl_text_free(&server.connections[i].body);
    }
    free(server.connections);
    free(server.token);
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
    server.pages = *pages;
    server.listener = -1;
    server.wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    server.connections = calloc(CONNECTIONS, sizeof *server.connections);
    server.token = token ? strdup(token) : NULL;
    server.pages.begin();
    bool ready = server.wake >= 0 && server.connections && (server.token || !token)
                 && listen_at(&address, size, port);
    *error = ready ? start_thread() : errno;
    if (*error) {
        give_back();
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
        give_back();
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
            give_back();
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

#include "gil/serve/connection.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>

#include "gil/serve/http.h"

#define REQUEST_MS 2000 /* for all of a request to come */
#define ANSWER_MS 5000  /* for all of the answer to be taken */
#define GOODBYE_MS 1000 /* for the client to close */
#define ANSWERS 10      /* in a period */

void fl_connection_cut(fl_connection *one)
{
    int socket = fl_descriptor_number(&one->socket);
    if (socket >= 0 && one->phase == FL_WRITING) { /* what the kernel has still to send goes, too */
        struct linger at_once = {.l_onoff = 1};
        (void)setsockopt(socket, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    }
    one->phase = FL_FREE;
    (void)fl_descriptor_close(&one->socket);
    fl_text_clear(&one->body);
}

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

static bool send_some(fl_connection *one, const char *data, size_t size, size_t *sent)
{
    while (*sent < size) {
        int socket = fl_descriptor_number(&one->socket);
        ssize_t count =
            socket >= 0 ? send(socket, data + *sent, size - *sent, MSG_NOSIGNAL | MSG_DONTWAIT) : -1;
        if (count < 0) {
            if (errno == EINTR) {
                continue;
            }
            if (errno != EAGAIN && errno != EWOULDBLOCK) {
                fl_connection_cut(one);
            }
            return false;
        }
        *sent += (size_t)count;
    }
    return true;
}

static void write_on(fl_connection *one, int64_t now)
{
    size_t in_head = one->sent < one->head_size ? one->sent : one->head_size, in_body = one->sent - in_head;
    bool done = send_some(one, one->head, one->head_size, &in_head)
                && send_some(one, one->body.data, one->body_size, &in_body);
    one->sent = in_head + in_body;
    int socket = fl_descriptor_number(&one->socket);
    if (done && socket >= 0) {
        /* A close with something unread would take what was sent along: the client closes first. */
        (void)shutdown(socket, SHUT_WR);
        one->phase = FL_CLOSING;
        one->deadline = now + GOODBYE_MS;
    }
}

static void begin_answer(fl_connection *one, int status, const char *type, bool head_only, int64_t now)
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
    one->phase = FL_WRITING;
    one->deadline = now + ANSWER_MS;
    write_on(one, now);
}

static void refuse(fl_connection *one, int status, const char *why, int64_t now)
{
    fl_text_add(&one->body, why);
    fl_text_add(&one->body, "\n");
    begin_answer(one, status, "text/plain; charset=utf-8", false, now);
}

static void answer(fl_connection *one, const fl_http_request *request, fl_service *service, int64_t now)
{
    const char *type = "text/plain; charset=utf-8";
    bool trusted = fl_http_bears(request->authorization, service->token);
    if (!trusted && service->token_for_all) {
        refuse(one, 401, "this takes the token: Authorization: Bearer TOKEN", now);
        return;
    }
    if (!trusted && request->host.data && !fl_http_names_this_machine(request->host)) {
        refuse(one, 421, "without a token only requests for localhost or an address are answered", now);
        return;
    }
    if (!service->pages.unlimited(request->path.data, request->path.size) && service->answers++ >= ANSWERS) {
        refuse(one, 429, "too many requests", now);
        return;
    }
    int status = service->pages.answer(request->path.data, request->path.size, trusted, &one->body, &type);
    begin_answer(one, status, type, request->head, now);
}

/* What the client has sent; 0: nothing now, or the connection was cut. */
static size_t receive(fl_connection *one, char *into, size_t room)
{
    int socket = fl_descriptor_number(&one->socket);
    ssize_t count = socket >= 0 ? recv(socket, into, room, MSG_DONTWAIT) : -1;
    if (count == 0 || (count < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) {
        fl_connection_cut(one);
    }
    return count > 0 ? (size_t)count : 0;
}

static void read_on(fl_connection *one, fl_service *service, int64_t now)
{
    size_t count = receive(one, one->request + one->used, sizeof one->request - one->used);
    if (count == 0) {
        return;
    }
    one->used += count;
    fl_http_request request;
    switch (fl_http_parse(one->request, one->used, &request)) {
    case FL_HTTP_WHOLE:
        answer(one, &request, service, now);
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
static void discard(fl_connection *one)
{
    char nothing[4096];
    (void)receive(one, nothing, sizeof nothing);
}

void fl_connection_open(fl_connection *one, int fd, uint64_t number, fl_service *service, int64_t now)
{
    one->socket = fl_descriptor_own(fd);
    one->phase = FL_READING;
    one->number = number;
    one->used = 0;
    one->deadline = now + REQUEST_MS;
    read_on(one, service, now);
}

void fl_connection_go_on(fl_connection *one, short events, fl_service *service, int64_t now)
{
    if (one->phase == FL_READING && events) {
        read_on(one, service, now);
    } else if (one->phase == FL_WRITING && events) {
        write_on(one, now);
    } else if (one->phase == FL_CLOSING && events) {
        discard(one);
    }
    if (one->phase != FL_FREE && now >= one->deadline) {
        fl_connection_cut(one);
    }
}

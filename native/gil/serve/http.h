/* http: reads the head of one HTTP request. Knows neither sockets nor Python, and touches no byte beyond
 * those given.
 *
 * Strict on purpose: what a server is lenient about is what attacks are made of. A line ends in CR LF, a
 * header is not folded, Host and Authorization come at most once, and there is no body. The one promise that
 * tests and fuzzing hold it to: what is said of a prefix stays true of everything that begins with it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Part of the request's bytes; data NULL: it is not there. */
typedef struct {
    const char *data;
    size_t size;
} fl_http_part;

typedef struct {
    bool head;         /* HEAD: the answer is to come without its body */
    fl_http_part path; /* without the query */
    fl_http_part host, authorization;
} fl_http_request;

typedef enum {
    FL_HTTP_WHOLE,     /* the head is complete, and `request` says what it is */
    FL_HTTP_PARTIAL,   /* so far nothing is wrong */
    FL_HTTP_MALFORMED, /* it is no request of HTTP/1.0 or 1.1 */
    FL_HTTP_METHOD,    /* neither GET nor HEAD */
    FL_HTTP_BODY,      /* it announces a body */
} fl_http_result;

fl_http_result fl_http_parse(const char *data, size_t size, fl_http_request *request);

bool fl_http_is(fl_http_part part, const char *text);

/* "localhost" or the digits of an address, with or without a port: what a browser that another site's
   name has led here does not send. */
bool fl_http_names_this_machine(fl_http_part host);

/* Whether the header carries this bearer token. The time that it takes tells nothing about the token. */
bool fl_http_bears(fl_http_part authorization, const char *token);

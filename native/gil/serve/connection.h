/* connection: one client of the server (serve.h): its request is read, its answer is written, and it is cut
 * when its time is over.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gil/serve/serve.h"
#include "machine/descriptor.h"

#define FL_REQUEST_BYTES 4096 /* the head of a request, at most */

/* What is served. */
typedef struct {
    char *token;
    bool token_for_all; /* else any process on this machine may ask for what the pages tell it */
    fl_serve_pages pages;
    int answers; /* in this period */
} fl_service;

typedef enum { FL_FREE, FL_READING, FL_WRITING, FL_CLOSING } fl_connection_phase;

typedef struct {
    fl_connection_phase phase;
    fl_descriptor socket;
    uint64_t number;   /* in order of arrival */
    int64_t deadline;  /* ms */
    size_t used, sent; /* bytes of the request, and of the answer */
    char request[FL_REQUEST_BYTES];
    char head[256];
    size_t head_size;
    fl_text body;
    size_t body_size; /* of it, to be sent */
} fl_connection;

/* Begins with a socket that was accepted, in a place that is free. `now` in ms, as in all of these. */
void fl_connection_open(fl_connection *one, int fd, uint64_t number, fl_service *service, int64_t now);

/* Goes on after poll() said so (`events`, 0: it did not), and ends a connection whose time is over. */
void fl_connection_go_on(fl_connection *one, short events, fl_service *service, int64_t now);

void fl_connection_cut(fl_connection *one);

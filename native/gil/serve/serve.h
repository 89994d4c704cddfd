/* serve: a thread that answers HTTP requests without ever taking a GIL.
 *
 * One thread, poll(), and a fixed number of places for connections. Everything that a client can do is
 * bounded: the head of a request in bytes, a request and its answer in time, connections in number, answers
 * in number per time. Where all places are taken the connection that has lasted longest is cut, so that a
 * thousand silent clients cannot keep one that speaks waiting. The thread takes no signals.
 *
 * Knows neither Python nor the probe: the pages (fl_serve_pages) make the answers.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gil/trace/text.h"

typedef struct {
    /* Before the thread starts, and after it has ended. */
    void (*begin)(void);
    void (*end)(void);
    /* Writes the body of the answer for a path (not ended by 0), and sets its media type; returns the status
       of HTTP. `trusted`: the client has the token. On the server's thread. */
    int (*answer)(const char *path, size_t size, bool trusted, fl_text *body, const char **type);
    void (*tick)(void); /* about every tick_ms, on the server's thread */
    void (*lost)(void); /* that thread ends: the program has closed the listening socket */
    int tick_ms;
    bool (*unlimited)(const char *path, size_t size); /* paths to which the limit of answers does not apply */
} fl_serve_pages;

typedef enum {
    FL_SERVE_OK,
    FL_SERVE_BUSY,    /* this process serves already */
    FL_SERVE_ADDRESS, /* `host` is no numeric address */
    FL_SERVE_TOKEN,   /* the address is not loopback: only with a token that all requests need */
    FL_SERVE_SYSTEM,  /* *error says why */
} fl_serve_result;

/* Listens, and starts the thread. `port` 0: any; it is set to the one taken. Without `token_for_all` the
   pages decide what a client without the token gets. May block; no lock may be held. */
fl_serve_result fl_serve_start(const char *host, uint16_t *port, const char *token, bool token_for_all,
                               const fl_serve_pages *pages, int *error);

/* The thread has ended, and every socket is closed. Not with a GIL held. False: it was not serving. */
bool fl_serve_stop(void);

/* Between the two there is no thread, for a fork in the meantime; clients wait. They nest, as several threads
   may fork at once. Harmless when not serving. Not with a GIL held (pause). Resume: 0, or errno; the sockets
   are closed then. */
void fl_serve_pause(void);
int fl_serve_resume(void);

/* In the child of a fork: it serves nothing, and its copies of the sockets are closed. */
void fl_serve_forked(void);

/* An answer of a server, as it comes in. */
#ifndef ANSWER_H
#define ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HEAD_BYTES = 16384 };

/* What an answer's body ends with. */
typedef enum { LENGTH, CHUNKS, END_OF_FILE } body_end;

typedef struct {
    bool in_body;
    bool closes; /* the server closes the connection after it */
    bool good;   /* status 200, where there is one */
    body_end ends;
    int64_t left; /* bytes of the body, or of the chunk with its line end */
    size_t got;   /* bytes in head */
    char head[HEAD_BYTES + 1];
} answer;

/* Is an HTTP answer complete with what has come by now? */
bool answer_http(answer *one);

#endif

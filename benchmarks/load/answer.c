#define _GNU_SOURCE
#include "answer.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char *header(const char *head, const char *name)
{
    const char *found = strcasestr(head, name);
    return found == NULL ? NULL : found + strlen(name);
}

/* The head is complete: what will the body end with? */
static void read_head(answer *one)
{
    one->good = strncmp(one->head, "HTTP/1.1 200", 12) == 0 || strncmp(one->head, "HTTP/1.0 200", 12) == 0;
    const char *length = header(one->head, "\r\ncontent-length:");
    const char *coding = header(one->head, "\r\ntransfer-encoding:");
    const char *lasts = header(one->head, "\r\nconnection:");
    one->closes = strncmp(one->head, "HTTP/1.0", 8) == 0;
    if (lasts != NULL) {
        lasts += strspn(lasts, " ");
        one->closes = strncasecmp(lasts, "close", 5) == 0;
    }
    one->ends = coding != NULL ? CHUNKS : length != NULL ? LENGTH : END_OF_FILE;
    one->left = one->ends == LENGTH ? strtoll(length, NULL, 10) : 0;
    one->in_body = true;
}

/* Takes what has come of a chunked body; is the last chunk complete? What is not yet understood stays in
 * head. */
static bool read_chunks(answer *one)
{
    size_t at = 0;
    bool complete = false;
    while (at < one->got && !complete) {
        if (one->left > 0) {
            size_t part = one->got - at;
            part = (int64_t)part < one->left ? part : (size_t)one->left;
            at += part;
            one->left -= (int64_t)part;
            continue;
        }
        char *end = memmem(one->head + at, one->got - at, "\r\n", 2);
        if (end == NULL) {
            break;
        }
        int64_t size = strtoll(one->head + at, NULL, 16);
        if (size == 0) { /* then an empty line; trailers are not expected */
            complete = one->got - (size_t)(end - one->head) >= 4;
            break;
        }
        one->left = size + 2;
        at = (size_t)(end - one->head) + 2;
    }
    memmove(one->head, one->head + at, one->got - at);
    one->got -= at;
    return complete;
}

bool answer_http(answer *one)
{
    if (!one->in_body) {
        one->head[one->got] = 0;
        char *end = strstr(one->head, "\r\n\r\n");
        if (end == NULL) {
            return false;
        }
        end[2] = 0;
        read_head(one);
        size_t head = (size_t)(end + 4 - one->head);
        one->got -= head;
        memmove(one->head, end + 4, one->got);
    }
    if (one->ends == CHUNKS) {
        return read_chunks(one);
    }
    one->left -= (int64_t)one->got;
    one->got = 0;
    return one->ends == LENGTH && one->left <= 0;
}

#include "gil/serve/http.h"

#include <string.h>

typedef struct {
    const char *at, *end;
} reader;

#define METHOD_AT_MOST 16

/* A character of a token: of a method's or a header's name (RFC 9110, 5.6.2). */
static bool is_token(char c)
{
    bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'), digit = c >= '0' && c <= '9';
    return letter || digit || (c != 0 && strchr("!#$%&'*+-.^_`|~", c) != NULL);
}

/* Of a header's value; the bytes from 0x80 on are allowed, and mean nothing here. */
static bool is_value(char c)
{
    return c == '\t' || (unsigned char)c >= 0x20;
}

static bool same_letters(fl_http_part part, const char *lower)
{
    size_t size = strlen(lower);
    if (part.size != size) {
        return false;
    }
    for (size_t i = 0; i < size; i++) {
        char c = part.data[i];
        if ((c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c) != lower[i]) {
            return false;
        }
    }
    return true;
}

bool fl_http_is(fl_http_part part, const char *text)
{
    return part.data != NULL && part.size == strlen(text) && memcmp(part.data, text, part.size) == 0;
}

/* The next characters must be these. */
static fl_http_result expect(reader *in, const char *text)
{
    for (; *text; text++, in->at++) {
        if (in->at == in->end) {
            return FL_HTTP_PARTIAL;
        }
        if (*in->at != *text) {
            return FL_HTTP_MALFORMED;
        }
    }
    return FL_HTTP_WHOLE;
}

static fl_http_result method(reader *in, fl_http_request *request)
{
    const char *start = in->at;
    while (in->at < in->end && is_token(*in->at)) {
        in->at++;
    }
    fl_http_part word = {start, (size_t)(in->at - start)};
    if (word.size > METHOD_AT_MOST) {
        return FL_HTTP_MALFORMED;
    }
    if (in->at == in->end) {
        return FL_HTTP_PARTIAL;
    }
    if (*in->at++ != ' ' || word.size == 0) {
        return FL_HTTP_MALFORMED;
    }
    request->head = fl_http_is(word, "HEAD");
    return request->head || fl_http_is(word, "GET") ? FL_HTTP_WHOLE : FL_HTTP_METHOD;
}

static fl_http_result target(reader *in, fl_http_request *request)
{
    fl_http_result result = expect(in, "/");
    const char *start = in->at - 1, *path_end = NULL;
    if (result != FL_HTTP_WHOLE) {
        return result;
    }
    while (in->at < in->end && *in->at > ' ' && *in->at <= '~') {
        path_end = path_end == NULL && *in->at == '?' ? in->at : path_end;
        in->at++;
    }
    if (in->at == in->end) {
        return FL_HTTP_PARTIAL;
    }
    path_end = path_end ? path_end : in->at;
    request->path = (fl_http_part){start, (size_t)(path_end - start)};
    return *in->at++ == ' ' ? FL_HTTP_WHOLE : FL_HTTP_MALFORMED;
}

/* Its part of a header that may come once. */
static fl_http_result once(fl_http_part *place, fl_http_part value)
{
    if (place->data) {
        return FL_HTTP_MALFORMED;
    }
    *place = value;
    return FL_HTTP_WHOLE;
}

static fl_http_result header(reader *in, fl_http_request *request)
{
    fl_http_part name = {in->at, 0};
    while (in->at < in->end && is_token(*in->at)) {
        in->at++;
    }
    name.size = (size_t)(in->at - name.data);
    if (in->at == in->end) {
        return FL_HTTP_PARTIAL;
    }
    if (*in->at++ != ':' || name.size == 0) {
        return FL_HTTP_MALFORMED;
    }
    while (in->at < in->end && (*in->at == ' ' || *in->at == '\t')) {
        in->at++;
    }
    fl_http_part value = {in->at, 0};
    while (in->at < in->end && is_value(*in->at)) {
        in->at++;
    }
    value.size = (size_t)(in->at - value.data);
    while (value.size > 0 && (value.data[value.size - 1] == ' ' || value.data[value.size - 1] == '\t')) {
        value.size--;
    }
    fl_http_result result = expect(in, "\r\n");
    if (result != FL_HTTP_WHOLE) {
        return result;
    }
    if (same_letters(name, "host")) {
        return once(&request->host, value);
    }
    if (same_letters(name, "authorization")) {
        return once(&request->authorization, value);
    }
    bool body = same_letters(name, "transfer-encoding")
                || (same_letters(name, "content-length") && !fl_http_is(value, "0"));
    return body ? FL_HTTP_BODY : FL_HTTP_WHOLE;
}

fl_http_result fl_http_parse(const char *data, size_t size, fl_http_request *request)
{
    reader in = {data, data + size};
    *request = (fl_http_request){0};
    fl_http_result result = method(&in, request);
    if (result == FL_HTTP_WHOLE) {
        result = target(&in, request);
    }
    if (result == FL_HTTP_WHOLE) {
        result = expect(&in, "HTTP/1.");
    }
    if (result != FL_HTTP_WHOLE) {
        return result;
    }
    if (in.at == in.end) {
        return FL_HTTP_PARTIAL;
    }
    char version = *in.at++;
    if (version != '0' && version != '1') {
        return FL_HTTP_MALFORMED;
    }
    result = expect(&in, "\r\n");
    while (result == FL_HTTP_WHOLE && in.at < in.end && *in.at != '\r') {
        result = header(&in, request);
    }
    if (result == FL_HTTP_WHOLE) {
        result = expect(&in, "\r\n");
    }
    bool lacks_host = version == '1' && request->host.data == NULL;
    return result == FL_HTTP_WHOLE && lacks_host ? FL_HTTP_MALFORMED : result;
}

bool fl_http_names_this_machine(fl_http_part host)
{
    size_t size = host.size;
    bool bracketed = size > 0 && host.data[0] == '[';
    for (size_t i = size; i-- > 0 && host.data[i] != ']';) { /* without the port */
        if (host.data[i] == ':') {
            size = i;
            break;
        }
    }
    if (same_letters((fl_http_part){host.data, size}, "localhost")) {
        return true;
    }
    for (size_t i = 0; i < size; i++) {
        if (strchr(bracketed ? "0123456789abcdefABCDEF:.[]" : "0123456789.", host.data[i]) == NULL
            || host.data[i] == 0) {
            return false;
        }
    }
    return size > 0;
}

bool fl_http_bears(fl_http_part authorization, const char *token)
{
    static const char scheme[] = "bearer ";
    size_t prefix = sizeof scheme - 1, size = strlen(token);
    if (authorization.size < prefix || !same_letters((fl_http_part){authorization.data, prefix}, scheme)) {
        return false;
    }
    const char *given = authorization.data + prefix;
    size_t given_size = authorization.size - prefix;
    unsigned difference = given_size != size;
    for (size_t i = 0; i < given_size && size > 0; i++) {
        difference |= (unsigned)(given[i] ^ token[i % size]);
    }
    return difference == 0 && size > 0;
}

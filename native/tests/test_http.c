/* The parser of requests: by example, byte by byte, and with what chance makes of examples. Compiled with
 * -DFL_FUZZ and clang's -fsanitize=fuzzer it is a target of libFuzzer in place of a program. */
#include <stdint.h>
#include <string.h>

#include "check.h"
#include "gil/serve/http.h"

/* What the parser says of bytes that end where their memory ends, so that a sanitizer sees one read too
   many. */
static fl_http_result parse(const char *data, size_t size, fl_http_request *request, char **copied)
{
    char *copy = malloc(size ? size : 1);
    CHECK(copy != NULL);
    if (size) {
        memcpy(copy, data, size);
    }
    *copied = copy;
    return fl_http_parse(copy, size, request);
}

static bool within(fl_http_part part, const char *data, size_t size)
{
    return part.data == NULL || (part.data >= data && part.data + part.size <= data + size);
}

/* Every prefix: PARTIAL until something is known, and that stays true whatever follows. */
static void check_prefixes(const char *data, size_t size)
{
    fl_http_result known = FL_HTTP_PARTIAL;
    for (size_t length = 0; length <= size; length++) {
        fl_http_request request;
        char *copy;
        fl_http_result result = parse(data, length, &request, &copy);
        CHECK(known == FL_HTTP_PARTIAL || result == known);
        if (result == FL_HTTP_WHOLE) {
            CHECK(request.path.size > 0 && request.path.data[0] == '/');
            CHECK(within(request.path, copy, length) && within(request.host, copy, length)
                  && within(request.authorization, copy, length));
            (void)fl_http_names_this_machine(request.host);
            (void)fl_http_bears(request.authorization, "0123456789abcdef");
        }
        known = result;
        free(copy);
    }
}

#ifdef FL_FUZZ

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check_prefixes((const char *)data, size);
    return 0;
}

#else

static fl_http_result result_of(const char *text)
{
    fl_http_request request;
    return fl_http_parse(text, strlen(text), &request);
}

#define GET "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:9911\r\n"

static void test_requests_are_taken_apart(void)
{
    static const char text[] = "GET /metrics?a=b&c HTTP/1.1\r\nhOSt:  example.org:80 \t\r\nAccept: */*\r\n"
                               "Authorization: Bearer abc\r\nContent-Length: 0\r\n\r\nand more";
    fl_http_request request;
    CHECK_EQUAL(fl_http_parse(text, strlen(text), &request), FL_HTTP_WHOLE);
    CHECK(!request.head);
    CHECK(fl_http_is(request.path, "/metrics"));
    CHECK(fl_http_is(request.host, "example.org:80"));
    CHECK(fl_http_is(request.authorization, "Bearer abc"));
    static const char head[] = "HEAD / HTTP/1.0\r\n\r\n";
    CHECK_EQUAL(fl_http_parse(head, strlen(head), &request), FL_HTTP_WHOLE);
    CHECK(request.head && fl_http_is(request.path, "/") && request.host.data == NULL);
}

static void test_what_is_no_request_is_refused(void)
{
    static const char *const malformed[] = {
        " ", "\r\n", "GET\r\n", "GET  / HTTP/1.1\r\n", "GET healthz HTTP/1.1\r\n",
        "GET http://h/ HTTP/1.1\r\n", "GET / HTTP/2.0\r\n", "GET / HTTP/1.2\r\n", "GET / http/1.1\r\n",
        "GET /\r\n", "GET /\x7f HTTP/1.1\r\n", "GET /a b HTTP/1.1\r\n", "GET / HTTP/1.1\n",
        GET " folded: x\r\n", GET "no colon\r\n", GET ": x\r\n", GET "a: \x01\r\n", GET "a: b\nc: d\r\n",
        GET "a : b\r\n", GET "Host: other\r\n", GET "\rX", "AVERYLONGMETHODINDEED / HTTP/1.1\r\n",
        "GET / HTTP/1.1\r\nA: b\r\n\r\n", "\x16\x03\x01\x02",
    };
    for (size_t i = 0; i < sizeof malformed / sizeof *malformed; i++) {
        if (result_of(malformed[i]) != FL_HTTP_MALFORMED) {
            fprintf(stderr, "taken: %zu\n", i);
            exit(1);
        }
    }
    CHECK_EQUAL(result_of("POST /metrics HTTP/1.1\r\n"), FL_HTTP_METHOD);
    CHECK_EQUAL(result_of("get / HTTP/1.1\r\n"), FL_HTTP_METHOD);
    CHECK_EQUAL(result_of(GET "Content-Length: 5\r\n"), FL_HTTP_BODY);
    CHECK_EQUAL(result_of(GET "Transfer-Encoding: chunked\r\n"), FL_HTTP_BODY);
    CHECK_EQUAL(result_of(GET), FL_HTTP_PARTIAL);
    CHECK_EQUAL(result_of(""), FL_HTTP_PARTIAL);
    fl_http_request request;
    CHECK_EQUAL(fl_http_parse("GE\0 / HTTP/1.1\r\n\r\n", 19, &request), FL_HTTP_MALFORMED);
}

static bool local(const char *host)
{
    return fl_http_names_this_machine((fl_http_part){host, strlen(host)});
}

static void test_names_of_this_machine_are_recognised_and_no_others(void)
{
    CHECK(local("localhost") && local("LocalHost:9911") && local("127.0.0.1") && local("10.1.2.3:80"));
    CHECK(local("[::1]") && local("[::1]:9911"));
    CHECK(!local("") && !local("evil.example") && !local("127.0.0.1.evil.example:9911"));
    CHECK(!local("localhost.evil.example") && !local("[::1].evil:80") && !local("a:127.0.0.1"));
    CHECK(!local("[evil]") && !local("::1x"));
}

static bool bears(const char *header, const char *token)
{
    return fl_http_bears((fl_http_part){header, strlen(header)}, token);
}

static void test_the_token_must_be_the_whole_token(void)
{
    CHECK(bears("Bearer secret", "secret") && bears("bEARER secret", "secret"));
    CHECK(!bears("Bearer secre", "secret") && !bears("Bearer secrets", "secret"));
    CHECK(!bears("Bearer secretsecret", "secret") && !bears("Bearer ", "secret") && !bears("Bearer ", ""));
    CHECK(!bears("Basic secret", "secret") && !bears("secret", "secret") && !bears("", "secret"));
    CHECK(!fl_http_bears((fl_http_part){0}, "secret"));
}

static uint64_t seed = 0x9E3779B97F4A7C15u;

static size_t chance(size_t below)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (size_t)(seed % below);
}

/* Examples with bytes changed, left out, doubled and put in. */
static void test_nothing_breaks_it(void)
{
    static const char *const examples[] = {
        GET "\r\n", "HEAD /metrics?x HTTP/1.0\r\nAuthorization: Bearer 0123456789abcdef\r\n\r\n",
        GET "Content-Length: 0\r\nX-Y_z: a b\tc \r\n\r\n", "GET / HTTP/1.1\r\nHost: [::1]:9911\r\n\r\n",
    };
    static const char liked[] = "\r\n :/?HTP1.0\t%[]\xff\x7f\"";
    for (int round = 0; round < 20000; round++) {
        char text[256];
        const char *example = examples[chance(sizeof examples / sizeof *examples)];
        size_t size = strlen(example);
        memcpy(text, example, size);
        for (size_t changes = chance(4) + 1; changes > 0; changes--) {
            size_t at = chance(size), rest = size - at;
            switch (chance(4)) {
            case 0:
                text[at] = (char)chance(256);
                break;
            case 1:
                memmove(text + at, text + at + 1, rest - 1);
                size--;
                break;
            default:
                if (size < sizeof text) {
                    memmove(text + at + 1, text + at, rest);
                    text[at] = liked[chance(sizeof liked)];
                    size++;
                }
            }
        }
        check_prefixes(text, size);
    }
}

int main(void)
{
    test_requests_are_taken_apart();
    test_what_is_no_request_is_refused();
    test_names_of_this_machine_are_recognised_and_no_others();
    test_the_token_must_be_the_whole_token();
    test_nothing_breaks_it();
    return 0;
}

#endif

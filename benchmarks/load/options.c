#include "options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

options settings = {
    .most_connections = 256, .seconds = 5, .warm_up = 1, .drain = 5, .seed = 1, .most = 1000000};
request_class classes[MOST_CLASSES];
int class_count;
double total_rate;

_Noreturn void stop(const char *what)
{
    fprintf(stderr, "openloop: %s%s%s\n", what, errno ? ": " : "", errno ? strerror(errno) : "");
    exit(1);
}

static void add_class(char **told)
{
    if (class_count == MOST_CLASSES) {
        stop("more than 16 classes");
    }
    request_class *one = &classes[class_count++];
    *one = (request_class){.name = told[0], .rate = atof(told[1]), .service_ms = atof(told[2])};
    if (!(one->rate > 0) || !(one->service_ms > 0)) {
        stop("a class is NAME RATE SERVICE_MS TEXT, with a rate and a service time above 0");
    }
    total_rate += one->rate;
    one->text = told[3];
}

/* After all options are known: what is sent for a request of the class. */
static void compose(request_class *cls)
{
    char text[1024];
    size_t size = strlen(cls->text);
    if (size > 100) {
        stop("a request's text is longer than 100 bytes");
    }
    int length = 0;
    if (settings.protocol == HTTP) {
        length = snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nHost: localhost:%d\r\n\r\n", cls->text,
                          settings.port);
    }
    else if (settings.protocol == LINE) {
        length = snprintf(text, sizeof text, "%s\n", cls->text);
    }
    else { /* one text message, whole, with a mask of zeros */
        length = 6 + (int)size;
        memcpy(text, (char[]){(char)0x81, (char)(0x80 | size), 0, 0, 0, 0}, 6);
        memcpy(text + 6, cls->text, size);
        cls->answer = 2 + size;
    }
    cls->length = (size_t)length;
    cls->text = malloc(cls->length);
    if (cls->text == NULL) {
        stop("no memory for the requests");
    }
    memcpy(cls->text, text, cls->length);
}

static protocol read_protocol(const char *name)
{
    static const char *const names[] = {[LINE] = "line", [HTTP] = "http", [WEBSOCKET] = "websocket"};
    for (int i = LINE; i <= WEBSOCKET; i++) {
        if (strcmp(name, names[i]) == 0) {
            return (protocol)i;
        }
    }
    stop("the protocol is line, http or websocket");
    return LINE;
}

void read_options(int count, char **told)
{
    for (int i = 1; i < count; i += 2) {
        const char *name = told[i], *value = i + 1 < count ? told[i + 1] : "";
        if (strcmp(name, "--class") == 0 && i + 4 < count) {
            add_class(told + i + 1);
            i += 3;
        }
        else if (strcmp(name, "--port") == 0) { settings.port = atoi(value); }
        else if (strcmp(name, "--seconds") == 0) { settings.seconds = atof(value); }
        else if (strcmp(name, "--warm-up") == 0) { settings.warm_up = atof(value); }
        else if (strcmp(name, "--drain") == 0) { settings.drain = atof(value); }
        else if (strcmp(name, "--seed") == 0) { settings.seed = strtoull(value, NULL, 10); }
        else if (strcmp(name, "--connections") == 0) { settings.most_connections = atoi(value); }
        else if (strcmp(name, "--open") == 0) { settings.first_connections = atoi(value); }
        else if (strcmp(name, "--most") == 0) { settings.most = atoi(value); }
        else if (strcmp(name, "--protocol") == 0) { settings.protocol = read_protocol(value); }
        else {
            fprintf(stderr, "openloop: %s is not an option, or lacks its value\n", name);
            exit(2);
        }
    }
    if (settings.port <= 0 || class_count == 0 || settings.most_connections <= 0 || settings.most <= 0
        || settings.first_connections > settings.most_connections) {
        stop("--port, one --class or more, and --connections and --most above 0 are needed");
    }
    for (int i = 0; i < class_count; i++) {
        compose(&classes[i]);
    }
}

/* What the generator is told on its command line. */
#ifndef OPTIONS_H
#define OPTIONS_H

#include <stddef.h>
#include <stdint.h>

enum { MOST_CLASSES = 16 };

typedef enum { LINE, HTTP, WEBSOCKET } protocol;

typedef struct {
    const char *name;
    double rate;
    double service_ms;
    char *text; /* as it is sent */
    size_t length;
    size_t answer; /* bytes; websocket only */
} request_class;

typedef struct {
    int port, most_connections, first_connections;
    double seconds, warm_up, drain;
    uint64_t seed;
    int32_t most;
    protocol protocol;
} options;

extern options settings;
extern request_class classes[MOST_CLASSES];
extern int class_count;
extern double total_rate;

/* Ends the program, with a message, if they make no sense. */
void read_options(int count, char **told);

/* Ends the program with a message, and with that of errno unless it is 0. */
_Noreturn void stop(const char *what);

#endif

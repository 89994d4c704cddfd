/* What a run has seen, as one line of JSON. */
#ifndef REPORT_H
#define REPORT_H

#include <stdbool.h>
#include <stdint.h>

typedef enum { WAITING, ANSWERED, FAILED } outcome;

typedef struct {
    int64_t due;
    int64_t latency;
    int32_t late; /* of the generator, microseconds */
    uint8_t cls;
    uint8_t outcome;
    bool queued;
} request;

typedef struct {
    const request *requests; /* all that arrived */
    int32_t arrived;
    int64_t began, ended; /* the measured part: those that were due in it count */
    int most_open, opened, reopened; /* connections */
    bool realtime;
} run;

void report(const run *seen);

#endif

#include "report.h"

#include "options.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double at_part(const double *sorted, int count, double part)
{
    int at = (int)(count * part);
    return count == 0 ? 0 : sorted[at < count ? at : count - 1];
}

static double mean(const double *values, int count)
{
    double sum = 0;
    for (int i = 0; i < count; i++) {
        sum += values[i];
    }
    return count == 0 ? 0 : sum / count;
}

/* The latencies of a class, in ms, or the slowdowns of all (cls < 0), sorted; answers their number. */
static int collect(const run *seen, int cls, double *values)
{
    int count = 0;
    for (int32_t i = 0; i < seen->arrived; i++) {
        const request *one = &seen->requests[i];
        if (one->due >= seen->began && one->outcome != FAILED && (cls < 0 || one->cls == cls)) {
            double latency = (double)one->latency / 1e6;
            values[count++] = cls < 0 ? latency / classes[one->cls].service_ms : latency;
        }
    }
    qsort(values, (size_t)count, sizeof *values, compare);
    return count;
}

void report(const run *seen)
{
    double *values = malloc(sizeof *values * (size_t)(seen->arrived + 1));
    if (values == NULL) {
        stop("no memory for the results");
    }
    printf("{\"classes\": {");
    for (int cls = 0; cls < class_count; cls++) {
        int count = collect(seen, cls, values);
        double average = mean(values, count);
        printf("%s\"%s\": {\"requests\": %d, \"p50\": %.4f, \"p90\": %.4f, \"p99\": %.4f, \"max\": %.4f, "
               "\"mean\": %.4f, \"slowdown\": %.4f}",
               cls ? ", " : "", classes[cls].name, count, at_part(values, count, .5),
               at_part(values, count, .9), at_part(values, count, .99), at_part(values, count, 1), average,
               average / classes[cls].service_ms);
    }
    int count = collect(seen, -1, values);
    printf("}, \"slowdown mean\": %.4f, \"slowdown p99\": %.4f", mean(values, count),
           at_part(values, count, .99));
    int errors = 0, unanswered = 0, queued = 0, measured = 0, in_time = 0;
    for (int32_t i = 0; i < seen->arrived; i++) {
        const request *one = &seen->requests[i];
        bool done = one->outcome == ANSWERED;
        in_time += done && one->due + one->latency >= seen->began && one->due + one->latency <= seen->ended;
        if (one->due >= seen->began) {
            errors += one->outcome == FAILED;
            unanswered += one->outcome == WAITING;
            queued += one->queued;
            values[measured++] = one->late;
        }
    }
    qsort(values, (size_t)measured, sizeof *values, compare);
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    double seconds = (double)(seen->ended - seen->began) / 1e9;
    printf(", \"requests\": %d, \"seconds\": %.3f, \"throughput\": %.2f, \"errors\": %d, \"unanswered\": %d, "
           "\"queued\": %d, \"connections\": %d, \"opened\": %d, \"reopened\": %d, \"lateness us\": "
           "{\"p50\": %.0f, \"p99\": %.0f, \"max\": %.0f}, \"cpu s\": %.3f, \"seen->realtime\": %s}\n",
           measured, seconds, seconds > 0 ? in_time / seconds : 0, errors, unanswered, queued,
           seen->most_open, seen->opened, seen->reopened, at_part(values, measured, .5),
           at_part(values, measured, .99), at_part(values, measured, 1),
           (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec)
               + (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6,
           seen->realtime ? "true" : "false");
    free(values);
}

/* vital_metrics: counters in the text format of Prometheus.
 *
 * The number of series is bounded. A series that has begun goes on while the endpoint serves, and never
 * falls, even when threads end. So threads are counted by name, for the first FL_METRIC_THREADS names that
 * appear, and by class, for the first FL_METRIC_CLASSES. A class is a name with every number in it replaced
 * by "#" ("worker-#"). What finds no place is added up under "(others)".
 *
 * The invariant: of each thread's growth from one call to the next all goes to one name and one class, so
 * that over all names, "(others)" among them, the sums are those of the process. What a thread did after the
 * last call before it was forgotten is known from the process's sums only, and goes to "(others)".
 */
#pragma once

#include "gil/trace/text.h"
#include "gil/schedule/schedule.h"
#include "gil/threads/threads.h"
#include "gil/serve/vitals.h"

#define FL_METRIC_THREADS 64
#define FL_METRIC_CLASSES 32

/* Adds all metrics; without `named` those alone that have no names of threads and functions. The threads are
   in order of serial. */
void fl_vital_metrics(const fl_vitals *vitals, const fl_diagnosis *diagnosis,
                      const fl_schedule_state *schedule, const fl_thread_record *threads,
                      size_t thread_count, bool named, fl_text *text);

/* Forgets everything. */
void fl_vital_metrics_reset(void);

/* In the child of a fork: likewise, but memory that another thread may have been using is left where it
   is. */
void fl_vital_metrics_fork(void);

/* The name in a sorted row of threads; "" when it is not there. */
const char *fl_vital_name(const fl_thread_record *threads, size_t count, uint32_t serial);

/* A time as seconds. */
void fl_vital_seconds(fl_text *text, uint64_t ns);

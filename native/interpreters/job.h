/* job: a call on its way through a job queue, and the lists that such are in. */
#pragma once

#include "sync/locks/semaphore.h"
#include "interpreters/shared.h"

typedef enum { FL_JOB_NEW, FL_JOB_QUEUED, FL_JOB_RUNNING, FL_JOB_REPLIED, FL_JOB_ENDED } fl_job_state;

typedef struct fl_job {
    struct fl_job *prev, *next; /* job queue lock: of the list it is in */
    fl_atomic(uint32_t) refs;
    uint32_t state;  /* job queue lock, as all that follows */
    uint32_t worker; /* the worker that has, or had, it */
    bool listed;     /* it is in the completions */
    bool announce;   /* the reader wants to know when it begins */
    bool refused;    /* the reply says that the call could not be read: it is the reader's */
    uint8_t kind;    /* of the reply */
    fl_waitq *helper; /* the waiter for this job; it gets a permit */
    void *owner;     /* of the thread that posted it; goes to the one that ends the job */
    fl_item *call, *reply;
    int64_t posted, began;
} fl_job;

typedef struct {
    fl_job *first, *last;
} fl_jobs;

/* With one reference, for the caller, and without an owner; takes over the call. NULL: no memory. */
fl_job *fl_job_new(fl_item *call, bool announce);
void fl_job_unref(fl_job *job);

/* At the end. The list takes over a reference, and the thread that takes the job out gets it. */
void fl_jobs_push(fl_jobs *jobs, fl_job *job);
void fl_jobs_unlink(fl_jobs *jobs, fl_job *job);
void fl_jobs_drop(fl_jobs *jobs);

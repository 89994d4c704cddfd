/* See job.h. */
#include "interpreters/job.h"

#include <stdlib.h>

fl_job *fl_job_new(fl_item *call, bool announce)
{
    fl_job *job = calloc(1, sizeof *job);
    if (job != NULL) {
        job->refs = 1;
        job->call = call;
        job->announce = announce;
    }
    return job;
}

void fl_job_unref(fl_job *job)
{
    if (fl_fetch_sub(&job->refs, 1, acq_rel) == 1) { /* pairs with itself */
        fl_item_unref(job->call);
        fl_item_unref(job->reply);
        free(job);
    }
}

void fl_jobs_push(fl_jobs *jobs, fl_job *job)
{
    job->next = NULL;
    job->prev = jobs->last;
    *(jobs->last != NULL ? &jobs->last->next : &jobs->first) = job;
    jobs->last = job;
}

void fl_jobs_unlink(fl_jobs *jobs, fl_job *job)
{
    *(job->prev != NULL ? &job->prev->next : &jobs->first) = job->next;
    *(job->next != NULL ? &job->next->prev : &jobs->last) = job->prev;
}

void fl_jobs_drop(fl_jobs *jobs)
{
    while (jobs->first != NULL) {
        fl_job *job = jobs->first;
        fl_jobs_unlink(jobs, job);
        fl_job_unref(job);
    }
}

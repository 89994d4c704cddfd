/* See job_queue.h. */
#include "interpreters/job_queue.h"

#include <stdlib.h>

#include "machine/clock.h"

static struct {
    fl_mutex lock;
    fl_atomic(uint32_t) forks;
    fl_job_queue *first;
    uint64_t numbered;
} job_queues = {.forks = 1};

static void lock_job_queues(void)
{
    fl_fork_unlock(&job_queues.forks, &job_queues.lock);
    fl_mutex_lock(&job_queues.lock);
}

/* In a forked child another thread of the parent may have left it locked; no worker exists there, and all
   that is done with the job queue is to let go of it. */
static void lock_job_queue(fl_job_queue *job_queue)
{
    fl_fork_unlock(&job_queue->forks, &job_queue->lock);
    fl_mutex_lock(&job_queue->lock);
}

fl_job_queue *fl_job_queue_new(void)
{
    fl_job_queue *job_queue = calloc(1, sizeof *job_queue);
    fl_waitq *work = fl_sem_new(0, FL_SEM_MOST, 0), *completions = fl_sem_new(0, FL_SEM_MOST, 0);
    if (job_queue == NULL || work == NULL || completions == NULL) {
        free(job_queue);
        free(work);
        free(completions);
        return NULL;
    }
    job_queue->refs = 1;
    job_queue->forks = fl_fork_generation;
    job_queue->work = work;
    job_queue->completions = completions;
    lock_job_queues();
    job_queue->number = ++job_queues.numbered;
    job_queue->next = job_queues.first;
    job_queues.first = job_queue;
    fl_mutex_unlock(&job_queues.lock);
    return job_queue;
}

fl_job_queue *fl_job_queue_find(uint64_t number)
{
    lock_job_queues();
    fl_job_queue *job_queue = job_queues.first;
    while (job_queue != NULL && job_queue->number != number) {
        job_queue = job_queue->next;
    }
    if (job_queue != NULL) {
        fl_fetch_add(&job_queue->refs, 1, relaxed); /* under the registry's lock it has one */
    }
    fl_mutex_unlock(&job_queues.lock);
    return job_queue;
}

void fl_job_queue_unref(fl_job_queue *job_queue)
{
    lock_job_queues();
    bool last = fl_fetch_sub(&job_queue->refs, 1, acq_rel) == 1; /* pairs with itself */
    if (last) {
        fl_job_queue **at = &job_queues.first;
        while (*at != job_queue) {
            at = &(*at)->next;
        }
        *at = job_queue->next;
    }
    fl_mutex_unlock(&job_queues.lock);
    if (last) {
        fl_jobs_drop(&job_queue->queue);
        fl_jobs_drop(&job_queue->listed);
        fl_waitq_unref(job_queue->work);
        fl_waitq_unref(job_queue->completions);
        free(job_queue);
    }
}

bool fl_job_queue_post(fl_job_queue *job_queue, fl_job *job, bool again, uint32_t *outstanding)
{
    size_t size = fl_item_size(job->call); /* a worker may have it as soon as it is in the queue */
    job->posted = fl_clock_now();
    lock_job_queue(job_queue);
    bool open = job->state == FL_JOB_NEW && (again || !job_queue->closed);
    if (open) {
        fl_fetch_add(&job->refs, 1, relaxed); /* the caller has one */
        fl_jobs_push(&job_queue->queue, job);
        job->state = FL_JOB_QUEUED;
        job_queue->figures.queued++;
        job_queue->figures.bytes_out += size;
        *outstanding = job_queue->figures.queued + job_queue->figures.running;
    }
    fl_mutex_unlock(&job_queue->lock);
    if (open) {
        fl_sem_give(job_queue->work, 1);
    }
    return open;
}

/* JobQueue lock: whether the reader is to be woken. */
static bool list(fl_job_queue *job_queue, fl_job *job)
{
    if (job->listed) {
        return false;
    }
    bool first = job_queue->listed.first == NULL;
    fl_fetch_add(&job->refs, 1, relaxed); /* the caller has one */
    job->listed = true;
    fl_jobs_push(&job_queue->listed, job);
    return first;
}

/* JobQueue lock. The reference goes to the caller. */
static void unlist(fl_job_queue *job_queue, fl_job *job)
{
    fl_jobs_unlink(&job_queue->listed, job);
    job->listed = false;
}

/* JobQueue lock: the waiter for the job is to learn that it has ended; for wake_helper. */
static fl_waitq *helper_of(fl_job *job)
{
    if (job->helper != NULL) {
        fl_waitq_ref(job->helper);
    }
    return job->helper;
}

static void wake_helper(fl_waitq *helper)
{
    if (helper != NULL) {
        fl_sem_give(helper, 1);
        fl_waitq_unref(helper);
    }
}

/* JobQueue lock: ends the job, for wake_helper. *listed: it was in a list, whose reference goes to the
   caller. */
static fl_waitq *end(fl_job_queue *job_queue, fl_job *job, bool *listed)
{
    *listed = job->listed || job->state == FL_JOB_QUEUED;
    if (job->listed) {
        unlist(job_queue, job);
    }
    if (job->state == FL_JOB_QUEUED) {
        fl_jobs_unlink(&job_queue->queue, job);
        job_queue->figures.queued--;
    }
    job_queue->figures.running -= job->state == FL_JOB_RUNNING;
    job->state = FL_JOB_ENDED;
    return helper_of(job);
}

fl_worker_slot *fl_job_queue_join(fl_job_queue *job_queue, uint32_t worker, void *interpreter,
                                 unsigned long thread)
{
    fl_worker_slot *slot = calloc(1, sizeof *slot);
    if (slot != NULL) {
        slot->worker = worker;
        slot->interpreter = interpreter;
        slot->thread = thread;
        lock_job_queue(job_queue);
        slot->next = job_queue->slots;
        job_queue->slots = slot;
        fl_mutex_unlock(&job_queue->lock);
    }
    return slot;
}

/* JobQueue lock: where the slot is linked; NULL: it is not. */
static fl_worker_slot **find_slot(fl_job_queue *job_queue, uint32_t worker)
{
    fl_worker_slot **at = &job_queue->slots;
    while (*at != NULL && (*at)->worker != worker) {
        at = &(*at)->next;
    }
    return *at == NULL ? NULL : at;
}

fl_worker_slot *fl_job_queue_hold(fl_job_queue *job_queue, uint32_t worker)
{
    lock_job_queue(job_queue);
    fl_worker_slot **at = find_slot(job_queue, worker);
    fl_worker_slot *slot = at == NULL ? NULL : *at;
    if (slot != NULL) {
        fl_fetch_add(&slot->held, 1, relaxed); /* under the lock */
    }
    fl_mutex_unlock(&job_queue->lock);
    return slot;
}

void fl_job_queue_release(fl_job_queue *job_queue, fl_worker_slot *slot)
{
    lock_job_queue(job_queue);
    fl_fetch_sub(&slot->held, 1, relaxed); /* under the lock; the slot may be gone after it */
    fl_mutex_unlock(&job_queue->lock);
    fl_unpark(&slot->held);
}

fl_job *fl_job_queue_leave(fl_job_queue *job_queue, uint32_t worker, bool *mine)
{
    fl_worker_slot *slot = NULL;
    fl_job *job = NULL;
    fl_waitq *helper = NULL;
    uint32_t held = 0;
    bool listed = false;
    *mine = false;
    do {
        if (held > 0) {
            fl_park(&slot->held, held, FL_FOREVER);
        }
        lock_job_queue(job_queue);
        fl_worker_slot **at = find_slot(job_queue, worker);
        if (at != NULL) {
            slot = *at;
            held = fl_load(&slot->held, relaxed); /* under the lock */
            if (held == 0) {
                *at = slot->next;
                job = slot->job;
                *mine = job != NULL && job->state == FL_JOB_RUNNING;
                if (*mine) {
                    helper = end(job_queue, job, &listed);
                }
            }
        }
        fl_mutex_unlock(&job_queue->lock);
    } while (held > 0);
    wake_helper(helper);
    if (listed) {
        fl_job_unref(job); /* the list's; the slot's goes to the caller */
    }
    free(slot);
    return job;
}

fl_job *fl_job_queue_take(fl_job_queue *job_queue, fl_worker_slot *slot)
{
    int64_t now = fl_clock_now();
    bool wake = false;
    lock_job_queue(job_queue);
    fl_job *job = job_queue->queue.first;
    if (job != NULL) {
        fl_jobs_unlink(&job_queue->queue, job);
        job_queue->figures.queued--;
        job_queue->figures.running++;
        job->state = FL_JOB_RUNNING;
        job->worker = slot->worker;
        job->began = now;
        slot->job = job;
        job_queue->figures.queue_ns += now - job->posted;
        wake = job->announce && list(job_queue, job);
    }
    fl_mutex_unlock(&job_queue->lock);
    if (wake) {
        fl_sem_give(job_queue->completions, 1);
    }
    return job;
}

bool fl_job_queue_reply(fl_job_queue *job_queue, fl_worker_slot *slot, uint8_t kind, bool refused,
                        fl_item *reply)
{
    fl_job *job = slot->job;
    size_t size = fl_item_size(reply);
    int64_t now = fl_clock_now();
    fl_waitq *helper = NULL;
    bool wake = false;
    lock_job_queue(job_queue);
    slot->job = NULL;
    bool wanted = job->state == FL_JOB_RUNNING;
    if (wanted) {
        job_queue->figures.running--;
        job_queue->figures.done++;
        job_queue->figures.run_ns += now - job->began;
        job_queue->figures.bytes_in += size;
        job->state = FL_JOB_REPLIED;
        job->kind = kind;
        job->reply = reply;
        job->refused = refused;
        helper = helper_of(job);
        wake = (helper == NULL || refused) && list(job_queue, job);
    }
    fl_mutex_unlock(&job_queue->lock);
    if (!wanted) {
        fl_item_unref(reply);
    }
    wake_helper(helper);
    if (wake) {
        fl_sem_give(job_queue->completions, 1);
    }
    fl_job_unref(job);
    return wanted;
}

bool fl_job_queue_notify(fl_job_queue *job_queue, uint32_t worker, uint8_t kind, fl_item *what)
{
    fl_job *job = fl_job_new(NULL, false);
    if (job == NULL) {
        fl_item_unref(what);
        return false;
    }
    job->state = FL_JOB_REPLIED;
    job->worker = worker;
    job->kind = kind;
    job->reply = what;
    lock_job_queue(job_queue);
    bool wake = list(job_queue, job);
    fl_mutex_unlock(&job_queue->lock);
    if (wake) {
        fl_sem_give(job_queue->completions, 1);
    }
    fl_job_unref(job);
    return true;
}

fl_job_state fl_job_queue_take_back(fl_job_queue *job_queue, fl_job *job, uint32_t *worker)
{
    int64_t now = fl_clock_now();
    lock_job_queue(job_queue);
    fl_job_state was = job->state;
    fl_waitq *helper = NULL;
    bool listed = false;
    if (was == FL_JOB_RUNNING) {
        job_queue->figures.run_ns += now - job->began;
        *worker = job->worker;
    }
    if (was != FL_JOB_REPLIED && was != FL_JOB_ENDED) { /* one that is new is never posted */
        helper = end(job_queue, job, &listed);
    }
    fl_mutex_unlock(&job_queue->lock);
    wake_helper(helper);
    if (listed) {
        fl_job_unref(job); /* the list's; the worker that runs it has the other */
    }
    return was;
}

fl_job *fl_job_queue_seize(fl_job_queue *job_queue, uint32_t *worker)
{
    lock_job_queue(job_queue);
    fl_worker_slot *slot = job_queue->slots;
    while (slot != NULL && (slot->job == NULL || slot->job->state != FL_JOB_RUNNING)) {
        slot = slot->next;
    }
    fl_job *job = slot == NULL ? NULL : slot->job;
    fl_waitq *helper = NULL;
    bool listed;
    if (job != NULL) {
        helper = end(job_queue, job, &listed);
        *worker = slot->worker;
        if (!listed) {
            fl_fetch_add(&job->refs, 1, relaxed); /* under the lock the slot has one */
        }
    }
    fl_mutex_unlock(&job_queue->lock);
    wake_helper(helper);
    return job;
}

fl_job *fl_job_queue_clear(fl_job_queue *job_queue)
{
    lock_job_queue(job_queue);
    fl_job *job = job_queue->queue.first;
    bool listed; /* always */
    fl_waitq *helper = job == NULL ? NULL : end(job_queue, job, &listed);
    fl_mutex_unlock(&job_queue->lock);
    wake_helper(helper);
    return job;
}

fl_job_state fl_job_queue_help(fl_job_queue *job_queue, fl_job *job, fl_waitq *helper)
{
    lock_job_queue(job_queue);
    fl_job_state state = job->state;
    bool listed = false;
    if (state == FL_JOB_REPLIED && job->helper == NULL && !job->refused) {
        end(job_queue, job, &listed);
    } else if (state == FL_JOB_QUEUED || state == FL_JOB_RUNNING) {
        if (job->helper != NULL) {
            state = FL_JOB_STATES;
        } else {
            job->helper = helper;
        }
    } else {
        state = FL_JOB_STATES;
    }
    fl_mutex_unlock(&job_queue->lock);
    if (listed) {
        fl_job_unref(job); /* the list's */
    }
    return state;
}

bool fl_job_queue_helped(fl_job_queue *job_queue, fl_job *job, bool leaves)
{
    lock_job_queue(job_queue);
    job->helper = NULL;
    bool replied = job->state == FL_JOB_REPLIED, mine = replied && !leaves && !job->refused;
    bool wake = replied && leaves && list(job_queue, job);
    bool listed = false;
    if (mine) {
        end(job_queue, job, &listed);
    }
    fl_mutex_unlock(&job_queue->lock);
    if (wake) {
        fl_sem_give(job_queue->completions, 1);
    }
    if (listed) {
        fl_job_unref(job); /* the list's */
    }
    return mine;
}

fl_job *fl_job_queue_next(fl_job_queue *job_queue, bool *ended)
{
    lock_job_queue(job_queue);
    fl_job *job = job_queue->listed.first;
    if (job != NULL) {
        unlist(job_queue, job);
        *ended = job->state == FL_JOB_REPLIED && (job->helper == NULL || job->refused);
        if (*ended) {
            job->state = FL_JOB_ENDED;
        }
    }
    fl_mutex_unlock(&job_queue->lock);
    return job;
}

void fl_job_queue_close(fl_job_queue *job_queue)
{
    lock_job_queue(job_queue);
    job_queue->closed = true;
    fl_mutex_unlock(&job_queue->lock);
    fl_sem_close(job_queue->work);
}

fl_job_state fl_job_queue_state(fl_job_queue *job_queue, fl_job *job)
{
    lock_job_queue(job_queue);
    fl_job_state state = job->state;
    fl_mutex_unlock(&job_queue->lock);
    return state;
}

fl_job_queue_figures fl_job_queue_statistics(fl_job_queue *job_queue)
{
    lock_job_queue(job_queue);
    fl_job_queue_figures figures = job_queue->figures;
    fl_mutex_unlock(&job_queue->lock);
    return figures;
}

bool fl_job_queue_idle(fl_job_queue *job_queue)
{
    lock_job_queue(job_queue);
    bool idle = job_queue->queue.first == NULL && job_queue->listed.first == NULL;
    fl_mutex_unlock(&job_queue->lock);
    return idle;
}

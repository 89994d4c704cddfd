/* job queue: calls that wait for workers in other interpreters, and the replies on their way back.
 *
 * One job queue for each pool, shared by all its workers, so that a call goes to the worker that is free
 * first. A thread that posts a job puts a call on the job queue and a permit into `work`; a worker that has a
 * permit takes the first job. Its reply goes to a thread that waits for this very job, or else to the
 * completions, which one thread reads. So does each reply that may lead to another post: the reader, which
 * knows that there are no completions, can say that there will be no post.
 *
 * A job moves
 *
 *     QUEUED -> RUNNING -> REPLIED -> ENDED     ENDED by the waiter or the reader that takes the reply
 *     NEW, QUEUED or RUNNING -> ENDED           taken back: what a worker replies to it goes nowhere
 *
 * under the job queue's lock, so that each job ends exactly once, whichever threads try to end it. The
 * worker of a job that was taken back notices when it replies, and retires, because another thread is about
 * to interrupt it.
 *
 * Invariants, checked by the model (native/tests/model/test_model_job_queue.c):
 * 1. There are at least as many permits in `work`, free and granted, as jobs in the queue. A job that is
 *    taken back leaves its permit, and the worker that gets that finds nothing: a permit that was taken away
 *    might be another job's.
 * 2. Whenever there are completions, there is a permit in `completions`, or the reader is on its way.
 * 3. A waiter for a job is woken by whatever ends it.
 *
 * The lock is held for a few instructions, and nothing is allocated, freed or woken under it. Any thread may
 * call anything here, attached or not; nothing blocks but fl_job_queue_leave.
 */
#pragma once

#include "machine/spin.h"
#include "interpreters/job.h"

typedef struct fl_worker_slot fl_worker_slot;

/* A worker's. `interpreter` and `thread` are the binding's, by which it finds the worker. */
struct fl_worker_slot {
    fl_worker_slot *next; /* job queue lock, as all that follows */
    uint32_t worker;
    void *interpreter;
    unsigned long thread;
    fl_job *job;
    fl_atomic(uint32_t) held; /* how many use `interpreter`; changes under the lock, fl_job_queue_leave parks
                                 on it */
};

typedef struct {
    uint32_t queued, running;
    uint64_t done, bytes_out, bytes_in;
    int64_t queue_ns, run_ns;
} fl_job_queue_figures;

typedef struct fl_job_queue {
    struct fl_job_queue *next; /* the registry's lock */
    uint64_t number;
    fl_atomic(uint32_t) refs, forks;
    fl_mutex lock;
    fl_waitq *work, *completions;
    fl_spin for_work, for_reply;
    bool closed; /* job queue lock, as all that follows */
    fl_jobs queue, listed;
    fl_worker_slot *slots;
    fl_job_queue_figures figures;
} fl_job_queue;

/* NULL: no memory. With one reference. */
fl_job_queue *fl_job_queue_new(void);
/* By its number, with another reference. NULL: it is gone. */
fl_job_queue *fl_job_queue_find(uint64_t number);
/* The last one may have no jobs on the job queue that have an owner. */
void fl_job_queue_unref(fl_job_queue *job_queue);

/* Takes a reference of its own. False: the job was taken back, or the job queue is closed and the call has
   not been posted before, as `again` says. `outstanding`: what is queued or runs now. */
bool fl_job_queue_post(fl_job_queue *job_queue, fl_job *job, bool again, uint32_t *outstanding);
/* A worker's first step. It has a reference to the job queue. NULL: no memory. */
fl_worker_slot *fl_job_queue_join(fl_job_queue *job_queue, uint32_t worker, void *interpreter,
                                 unsigned long thread);
/* With a permit of `work`. The worker has the job until fl_job_queue_reply. NULL: it was taken back
 * meanwhile. */
fl_job *fl_job_queue_take(fl_job_queue *job_queue, fl_worker_slot *slot);
/* Gives back the job of the slot, and takes over the reply. False: the job had been taken back. `refused`:
   the call could not be read, and may be posted once more; only the reader gets this reply. */
bool fl_job_queue_reply(fl_job_queue *job_queue, fl_worker_slot *slot, uint8_t kind, bool refused,
                        fl_item *reply);
/* As a reply to nothing. False: no memory. Takes over `what`. */
bool fl_job_queue_notify(fl_job_queue *job_queue, uint32_t worker, uint8_t kind, fl_item *what);

/* Ends the job without a reply: the state that it was in; ENDED or REPLIED: nothing was done. When it was
   RUNNING, *worker gets its worker. */
fl_job_state fl_job_queue_take_back(fl_job_queue *job_queue, fl_job *job, uint32_t *worker);
/* Ends the first job that is queued; NULL: none is. A reference for the caller. */
fl_job *fl_job_queue_clear(fl_job_queue *job_queue);

/* Ends a job that runs; NULL: none does. A reference for the caller. */
fl_job *fl_job_queue_seize(fl_job_queue *job_queue, uint32_t *worker);

/* The caller is going to wait for the job by a permit of `helper`. The state it is in: REPLIED: it is the
   caller's to end now, and no permit comes; FL_JOB_STATES: do not wait for it, another thread sees to it. */
#define FL_JOB_STATES 5
fl_job_state fl_job_queue_help(fl_job_queue *job_queue, fl_job *job, fl_waitq *helper);
/* After the wait, whatever it came to. True: the job has a reply, and is the caller's to end. With `leaves`
   it never is: the reader of the completions ends it, as if there had been no helper. */
bool fl_job_queue_helped(fl_job_queue *job_queue, fl_job *job, bool leaves);

/* With a permit of `completions`: the first of them; NULL: no more. A reference for the caller; if *ended,
   the job has a reply and is the caller's to end, and otherwise it has begun. */
fl_job *fl_job_queue_next(fl_job_queue *job_queue, bool *ended);

/* Keeps the worker's interpreter from being ended until fl_job_queue_release. NULL: it has left, or never
 * joined. */
fl_worker_slot *fl_job_queue_hold(fl_job_queue *job_queue, uint32_t worker);
void fl_job_queue_release(fl_job_queue *job_queue, fl_worker_slot *slot);
/* The worker's last step, by the thread that ends its interpreter: blocks until none holds it. The slot is
   gone then. What it had not replied to, with a reference; *mine: it is the caller's to end. Or NULL. */
fl_job *fl_job_queue_leave(fl_job_queue *job_queue, uint32_t worker, bool *mine);

fl_job_state fl_job_queue_state(fl_job_queue *job_queue, fl_job *job);

fl_job_queue_figures fl_job_queue_statistics(fl_job_queue *job_queue);
/* Nothing is queued, and there are no completions. */
bool fl_job_queue_idle(fl_job_queue *job_queue);

/* No more calls but those that are posted again: workers are refused whenever the queue is empty. */
void fl_job_queue_close(fl_job_queue *job_queue);

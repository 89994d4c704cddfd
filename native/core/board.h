/* board: calls that wait for workers in other interpreters, and the replies on their way back.
 *
 * One board for each pool, shared by all its workers, so that a call goes to whoever is free first. Whoever
 * posts a job puts a call on the board and a permit into `work`; a worker that has a permit takes the first
 * job. Its reply goes to a thread that waits for this very job, or else to the news, which one thread reads.
 *
 * A job moves
 *
 *     QUEUED -> RUNNING -> REPLIED -> ENDED     ENDED by whoever takes the reply: its helper or the reader
 *     QUEUED or RUNNING -> ENDED                taken back: what a worker replies to it goes nowhere
 *
 * under the board's lock, so that each job ends exactly once, by one of those who want to end it. The worker
 * of a job that was taken back learns it when it replies, and retires: somebody is about to interrupt it.
 *
 * Invariants, checked by the model (native/tests/test_model_board.c):
 * 1. There are at least as many permits in `work`, free and granted, as jobs in the queue. A job that is
 *    taken back leaves its permit, and whoever has that finds nothing: a permit that was taken away might be
 *    another job's.
 * 2. Whenever there are news, there is a permit in `news`, or the reader is on its way.
 * 3. Who waits for a job is woken by whatever ends it.
 *
 * The lock is held for a few instructions, and nothing is allocated, freed or woken under it. Any thread may
 * call anything here, attached or not; nothing blocks but fl_board_leave.
 */
#ifndef FL_CORE_BOARD_H
#define FL_CORE_BOARD_H

#include "core/look.h"
#include "core/semaphore.h"
#include "core/shared.h"

typedef enum { FL_JOB_NEW, FL_JOB_QUEUED, FL_JOB_RUNNING, FL_JOB_REPLIED, FL_JOB_ENDED } fl_job_state;

typedef struct fl_seat fl_seat;

typedef struct fl_job {
    struct fl_job *prev, *next; /* board lock: of the list it is in */
    fl_atomic(uint32_t) refs;
    uint32_t state;  /* board lock, as all that follows */
    uint32_t worker; /* who has, or had, it */
    bool listed;     /* it is in the news */
    bool announce;   /* the reader wants to know when it begins */
    bool told;       /* it is no call, but something that a worker says */
    uint8_t kind;    /* of the reply */
    fl_cell *helper; /* who waits for this job; it gets a permit */
    void *owner;     /* of whoever posted it; goes to whoever ends the job */
    fl_item *call, *reply;
    int64_t posted, began;
} fl_job;

typedef struct {
    fl_job *first, *last;
} fl_jobs;

/* A worker's. `interpreter` and `thread` are the binding's, by which it finds the worker. */
struct fl_seat {
    fl_seat *next; /* board lock, as all that follows */
    uint32_t worker;
    void *interpreter;
    unsigned long thread;
    fl_job *job;
    fl_atomic(uint32_t) held; /* how many use `interpreter`; changes under the lock, fl_board_leave parks on
                                 it */
};

typedef struct {
    uint32_t queued, running;
    uint64_t done, bytes_out, bytes_in;
    int64_t queue_ns, run_ns;
} fl_board_figures;

typedef struct fl_board {
    struct fl_board *next; /* the registry's lock */
    uint64_t number;
    fl_atomic(uint32_t) refs, forks;
    fl_mutex lock;
    fl_cell *work, *news;
    fl_look for_work, for_reply;
    bool closed; /* board lock, as all that follows */
    fl_jobs queue, listed;
    fl_seat *seats;
    fl_board_figures figures;
} fl_board;

/* NULL: no memory. With one reference. */
fl_board *fl_board_new(void);
/* By its number, with another reference. NULL: nobody has it any more. */
fl_board *fl_board_find(uint64_t number);
/* The last one may have no jobs on the board that have an owner. */
void fl_board_unref(fl_board *board);

/* With one reference, for the caller; takes over the call. NULL: no memory. */
fl_job *fl_job_new(fl_item *call, void *owner, bool announce);
void fl_job_unref(fl_job *job);

/* Takes a reference of its own. False: the board is closed. `outstanding`: what is queued or runs now. */
bool fl_board_post(fl_board *board, fl_job *job, uint32_t *outstanding);
/* A worker's first step. It has a reference to the board. NULL: no memory. */
fl_seat *fl_board_sit(fl_board *board, uint32_t worker, void *interpreter, unsigned long thread);
/* With a permit of `work`. The worker has the job until fl_board_reply. NULL: it was taken back meanwhile. */
fl_job *fl_board_take(fl_board *board, fl_seat *seat);
/* Gives back the job of the seat, and takes over the reply. False: the job had been taken back. */
bool fl_board_reply(fl_board *board, fl_seat *seat, uint8_t kind, fl_item *reply);
/* As a reply to nothing. False: no memory. Takes over `what`. */
bool fl_board_tell(fl_board *board, uint32_t worker, uint8_t kind, fl_item *what);

/* Ends the job without a reply: the state that it was in; ENDED or REPLIED: nothing was done. When it was
   RUNNING, *worker says by whom. */
fl_job_state fl_board_take_back(fl_board *board, fl_job *job, uint32_t *worker);
/* Ends the first job that is queued; NULL: none is. A reference for the caller. */
fl_job *fl_board_clear(fl_board *board);

/* Ends a job that runs; NULL: none does. A reference for the caller. */
fl_job *fl_board_seize(fl_board *board, uint32_t *worker);

/* The caller is going to wait for the job by a permit of `helper`. The state it is in: REPLIED: it is the
   caller's to end now, and no permit comes; FL_JOB_STATES: do not wait for it, somebody else sees to it. */
#define FL_JOB_STATES 5
fl_job_state fl_board_help(fl_board *board, fl_job *job, fl_cell *helper);
/* After the wait, whatever it came to. True: the job has a reply, and is the caller's to end. With `leaves`
   it never is: the reader of the news ends it, as if there had been no helper. */
bool fl_board_helped(fl_board *board, fl_job *job, bool leaves);

/* With a permit of `news`: the first of them; NULL: no more. A reference for the caller; if *ended, the job
   has a reply and is the caller's to end, and otherwise it has begun. */
fl_job *fl_board_next(fl_board *board, bool *ended);

/* Keeps the worker's interpreter from being ended until fl_board_release. NULL: it has left, or never sat. */
fl_seat *fl_board_hold(fl_board *board, uint32_t worker);
void fl_board_release(fl_board *board, fl_seat *seat);
/* The worker's last step, by whoever ends its interpreter: blocks until nobody holds it. The seat is gone
   then. What it had not replied to, with a reference; *mine: it is the caller's to end. Or NULL. */
fl_job *fl_board_leave(fl_board *board, uint32_t worker, bool *mine);

fl_job_state fl_board_state(fl_board *board, fl_job *job);

fl_board_figures fl_board_statistics(fl_board *board);

/* No more jobs: workers are refused once the queue is empty. */
void fl_board_close(fl_board *board);

#endif

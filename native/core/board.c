/* See board.h. */
#include "core/board.h"

#include <stdlib.h>

#include "core/clock.h"

static struct {
    fl_mutex lock;
    fl_atomic(uint32_t) forks;
    fl_board *first;
    uint64_t numbered;
} boards = {.forks = 1};

static void lock_boards(void)
{
    fl_fork_unlock(&boards.forks, &boards.lock);
    fl_mutex_lock(&boards.lock);
}

/* In a forked child another thread of the parent may have left it locked; no worker exists there, and all
   that is done with the board is to let go of it. */
static void lock_board(fl_board *board)
{
    fl_fork_unlock(&board->forks, &board->lock);
    fl_mutex_lock(&board->lock);
}

static void push(fl_jobs *jobs, fl_job *job)
{
    job->next = NULL;
    job->prev = jobs->last;
    *(jobs->last != NULL ? &jobs->last->next : &jobs->first) = job;
    jobs->last = job;
}

static void unlink(fl_jobs *jobs, fl_job *job)
{
    *(job->prev != NULL ? &job->prev->next : &jobs->first) = job->next;
    *(job->next != NULL ? &job->next->prev : &jobs->last) = job->prev;
}

fl_board *fl_board_new(void)
{
    fl_board *board = calloc(1, sizeof *board);
    fl_cell *work = fl_sem_new(0, FL_SEM_MOST, 0), *news = fl_sem_new(0, FL_SEM_MOST, 0);
    if (board == NULL || work == NULL || news == NULL) {
        free(board);
        free(work);
        free(news);
        return NULL;
    }
    board->refs = 1;
    board->forks = fl_fork_generation;
    board->work = work;
    board->news = news;
    lock_boards();
    board->number = ++boards.numbered;
    board->next = boards.first;
    boards.first = board;
    fl_mutex_unlock(&boards.lock);
    return board;
}

fl_board *fl_board_find(uint64_t number)
{
    lock_boards();
    fl_board *board = boards.first;
    while (board != NULL && board->number != number) {
        board = board->next;
    }
    if (board != NULL) {
        fl_fetch_add(&board->refs, 1, relaxed); /* under the registry's lock it has one */
    }
    fl_mutex_unlock(&boards.lock);
    return board;
}

static void drop_all(fl_jobs *jobs)
{
    while (jobs->first != NULL) {
        fl_job *job = jobs->first;
        unlink(jobs, job);
        fl_job_unref(job);
    }
}

void fl_board_unref(fl_board *board)
{
    lock_boards();
    bool last = fl_fetch_sub(&board->refs, 1, acq_rel) == 1; /* pairs with itself */
    if (last) {
        fl_board **at = &boards.first;
        while (*at != board) {
            at = &(*at)->next;
        }
        *at = board->next;
    }
    fl_mutex_unlock(&boards.lock);
    if (last) {
        drop_all(&board->queue);
        drop_all(&board->listed);
        fl_cell_unref(board->work);
        fl_cell_unref(board->news);
        free(board);
    }
}

fl_job *fl_job_new(fl_item *call, void *owner, bool announce)
{
    fl_job *job = calloc(1, sizeof *job);
    if (job != NULL) {
        job->refs = 1;
        job->call = call;
        job->owner = owner;
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

bool fl_board_post(fl_board *board, fl_job *job, uint32_t *outstanding)
{
    size_t size = fl_item_size(job->call); /* a worker may have it as soon as it is in the queue */
    job->posted = fl_clock_now();
    lock_board(board);
    bool open = !board->closed;
    if (open) {
        fl_fetch_add(&job->refs, 1, relaxed); /* the caller has one */
        push(&board->queue, job);
        job->state = FL_JOB_QUEUED;
        board->figures.queued++;
        board->figures.bytes_out += size;
        *outstanding = board->figures.queued + board->figures.running;
    }
    fl_mutex_unlock(&board->lock);
    if (open) {
        fl_sem_give(board->work, 1);
    }
    return open;
}

/* Board lock: whether the reader is to be woken. */
static bool list(fl_board *board, fl_job *job)
{
    if (job->listed) {
        return false;
    }
    bool first = board->listed.first == NULL;
    fl_fetch_add(&job->refs, 1, relaxed); /* the caller has one */
    job->listed = true;
    push(&board->listed, job);
    return first && FL_MODEL_BREAK != 12;
}

/* Board lock. The reference goes to the caller. */
static void unlist(fl_board *board, fl_job *job)
{
    unlink(&board->listed, job);
    job->listed = false;
}

/* Board lock: who waits for the job is to learn that it has come to its end; for wake_helper. */
static fl_cell *helper_of(fl_job *job)
{
    if (job->helper != NULL) {
        fl_cell_ref(job->helper);
    }
    return job->helper;
}

static void wake_helper(fl_cell *helper)
{
    if (helper != NULL) {
        fl_sem_give(helper, 1);
        fl_cell_unref(helper);
    }
}

fl_seat *fl_board_sit(fl_board *board, uint32_t worker, void *interpreter, unsigned long thread)
{
    fl_seat *seat = calloc(1, sizeof *seat);
    if (seat != NULL) {
        seat->worker = worker;
        seat->interpreter = interpreter;
        seat->thread = thread;
        lock_board(board);
        seat->next = board->seats;
        board->seats = seat;
        fl_mutex_unlock(&board->lock);
    }
    return seat;
}

/* Board lock: where the seat is linked; NULL: it is not. */
static fl_seat **find_seat(fl_board *board, uint32_t worker)
{
    fl_seat **at = &board->seats;
    while (*at != NULL && (*at)->worker != worker) {
        at = &(*at)->next;
    }
    return *at == NULL ? NULL : at;
}

fl_seat *fl_board_hold(fl_board *board, uint32_t worker)
{
    lock_board(board);
    fl_seat **at = find_seat(board, worker);
    fl_seat *seat = at == NULL ? NULL : *at;
    if (seat != NULL) {
        fl_fetch_add(&seat->held, 1, relaxed); /* under the lock */
    }
    fl_mutex_unlock(&board->lock);
    return seat;
}

void fl_board_release(fl_board *board, fl_seat *seat)
{
    lock_board(board);
    fl_fetch_sub(&seat->held, 1, relaxed); /* under the lock; the seat may be gone after it */
    fl_mutex_unlock(&board->lock);
    fl_unpark(&seat->held);
}

fl_job *fl_board_leave(fl_board *board, uint32_t worker, bool *mine)
{
    fl_seat *seat = NULL;
    fl_job *job = NULL;
    fl_cell *helper = NULL;
    uint32_t held = 0;
    *mine = false;
    do {
        if (held > 0) {
            fl_park(&seat->held, held, FL_FOREVER);
        }
        lock_board(board);
        fl_seat **at = find_seat(board, worker);
        if (at != NULL) {
            seat = *at;
            held = fl_load(&seat->held, relaxed); /* under the lock */
            if (held == 0) {
                *at = seat->next;
                job = seat->job;
                *mine = job != NULL && job->state == FL_JOB_RUNNING;
                if (*mine) {
                    job->state = FL_JOB_ENDED;
                    board->figures.running--;
                    helper = helper_of(job);
                }
            }
        }
        fl_mutex_unlock(&board->lock);
    } while (held > 0);
    wake_helper(helper);
    free(seat);
    return job;
}

fl_job *fl_board_take(fl_board *board, fl_seat *seat)
{
    int64_t now = fl_clock_now();
    bool tell = false;
    lock_board(board);
    fl_job *job = board->queue.first;
    if (job != NULL) {
        unlink(&board->queue, job);
        board->figures.queued--;
        board->figures.running++;
        job->state = FL_JOB_RUNNING;
        job->worker = seat->worker;
        job->began = now;
        seat->job = job;
        board->figures.queue_ns += now - job->posted;
        tell = job->announce && list(board, job);
    }
    fl_mutex_unlock(&board->lock);
    if (tell) {
        fl_sem_give(board->news, 1);
    }
    return job;
}

bool fl_board_reply(fl_board *board, fl_seat *seat, uint8_t kind, fl_item *reply)
{
    fl_job *job = seat->job;
    size_t size = fl_item_size(reply);
    int64_t now = fl_clock_now();
    fl_cell *helper = NULL;
    bool tell = false;
    lock_board(board);
    seat->job = NULL;
    bool wanted = job->state == FL_JOB_RUNNING;
    if (wanted) {
        board->figures.running--;
        board->figures.done++;
        board->figures.run_ns += now - job->began;
        board->figures.bytes_in += size;
        job->state = FL_JOB_REPLIED;
        job->kind = kind;
        job->reply = reply;
        helper = helper_of(job);
        tell = helper == NULL && list(board, job);
    }
    fl_mutex_unlock(&board->lock);
    if (!wanted) {
        fl_item_unref(reply);
    }
    wake_helper(helper);
    if (tell) {
        fl_sem_give(board->news, 1);
    }
    fl_job_unref(job);
    return wanted;
}

bool fl_board_tell(fl_board *board, uint32_t worker, uint8_t kind, fl_item *what)
{
    fl_job *job = fl_job_new(NULL, NULL, false);
    if (job == NULL) {
        fl_item_unref(what);
        return false;
    }
    job->state = FL_JOB_REPLIED;
    job->told = true;
    job->worker = worker;
    job->kind = kind;
    job->reply = what;
    lock_board(board);
    bool tell = list(board, job);
    fl_mutex_unlock(&board->lock);
    if (tell) {
        fl_sem_give(board->news, 1);
    }
    fl_job_unref(job);
    return true;
}

fl_job_state fl_board_take_back(fl_board *board, fl_job *job, uint32_t *worker)
{
    int64_t now = fl_clock_now();
    lock_board(board);
    fl_job_state was = job->state;
    fl_cell *helper = helper_of(job);
    bool listed = false;
    if (was == FL_JOB_QUEUED) {
        unlink(&board->queue, job);
        board->figures.queued--;
        job->state = FL_JOB_ENDED;
    } else if (was == FL_JOB_RUNNING) {
        board->figures.running--;
        board->figures.run_ns += now - job->began;
        job->state = FL_JOB_ENDED;
        *worker = job->worker;
        listed = job->listed;
        if (listed) {
            unlist(board, job);
        }
    }
    fl_mutex_unlock(&board->lock);
    wake_helper(FL_MODEL_BREAK == 11 ? NULL : helper);
    if (was == FL_JOB_QUEUED || listed) {
        fl_job_unref(job); /* the list's; who runs it has the other */
    }
    return was;
}

fl_job *fl_board_seize(fl_board *board, uint32_t *worker)
{
    lock_board(board);
    fl_seat *seat = board->seats;
    while (seat != NULL && (seat->job == NULL || seat->job->state != FL_JOB_RUNNING)) {
        seat = seat->next;
    }
    fl_job *job = seat == NULL ? NULL : seat->job;
    fl_cell *helper = NULL;
    bool listed = false;
    if (job != NULL) {
        helper = helper_of(job);
        board->figures.running--;
        job->state = FL_JOB_ENDED;
        *worker = seat->worker;
        listed = job->listed;
        if (listed) {
            unlist(board, job); /* its reference goes to the caller */
        } else {
            fl_fetch_add(&job->refs, 1, relaxed); /* under the lock the seat has one */
        }
    }
    fl_mutex_unlock(&board->lock);
    wake_helper(helper);
    return job;
}

fl_job *fl_board_clear(fl_board *board)
{
    lock_board(board);
    fl_job *job = board->queue.first;
    fl_cell *helper = NULL;
    if (job != NULL) {
        helper = helper_of(job);
        unlink(&board->queue, job);
        board->figures.queued--;
        job->state = FL_JOB_ENDED;
    }
    fl_mutex_unlock(&board->lock);
    wake_helper(helper);
    return job;
}

fl_job_state fl_board_help(fl_board *board, fl_job *job, fl_cell *helper)
{
    lock_board(board);
    fl_job_state state = job->state;
    bool listed = false;
    if (state == FL_JOB_REPLIED && job->helper == NULL) {
        listed = job->listed;
        if (listed) {
            unlist(board, job);
        }
        job->state = FL_JOB_ENDED;
    } else if (state == FL_JOB_QUEUED || state == FL_JOB_RUNNING) {
        if (job->helper != NULL) {
            state = FL_JOB_STATES;
        } else {
            job->helper = helper;
        }
    } else {
        state = FL_JOB_STATES;
    }
    fl_mutex_unlock(&board->lock);
    if (listed) {
        fl_job_unref(job); /* the list's */
    }
    return state;
}

bool fl_board_helped(fl_board *board, fl_job *job, bool leaves)
{
    lock_board(board);
    job->helper = NULL;
    bool replied = job->state == FL_JOB_REPLIED, mine = replied && !leaves;
    bool tell = replied && leaves && FL_MODEL_BREAK != 44 && list(board, job);
    bool listed = mine && job->listed;
    if (mine) {
        if (listed) {
            unlist(board, job);
        }
        job->state = FL_JOB_ENDED;
    }
    fl_mutex_unlock(&board->lock);
    if (tell) {
        fl_sem_give(board->news, 1);
    }
    if (listed) {
        fl_job_unref(job); /* the list's */
    }
    return mine;
}

fl_job *fl_board_next(fl_board *board, bool *ended)
{
    lock_board(board);
    fl_job *job = board->listed.first;
    if (job != NULL) {
        unlist(board, job);
        *ended = job->state == FL_JOB_REPLIED && job->helper == NULL;
        if (*ended) {
            job->state = FL_JOB_ENDED;
        }
    }
    fl_mutex_unlock(&board->lock);
    return job;
}

void fl_board_close(fl_board *board)
{
    lock_board(board);
    board->closed = true;
    fl_mutex_unlock(&board->lock);
    fl_sem_close(board->work);
}

fl_job_state fl_board_state(fl_board *board, fl_job *job)
{
    lock_board(board);
    fl_job_state state = job->state;
    fl_mutex_unlock(&board->lock);
    return state;
}

fl_board_figures fl_board_statistics(fl_board *board)
{
    lock_board(board);
    fl_board_figures figures = board->figures;
    fl_mutex_unlock(&board->lock);
    return figures;
}

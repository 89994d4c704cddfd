/* Every order of what workers, a poster, a reader and others do to a job queue, up to a bound.
 *
 *     test_model_job_queue                       all scenarios
 *     test_model_job_queue SCENARIO SCHEDULE     one execution again, as a failure printed it
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "interpreters/job_queue.h"
#include "model.h"

static fl_job_queue *job_queue;
static fl_job *jobs[2];
static int ended[2], owners[2];

/* False: it is closed. */
static bool wait_at(fl_waitq *waitq)
{
    if (fl_sem_try(waitq, 1, 0)) {
        return true;
    }
    fl_waiter waiter;
    fl_waiter_init(&waiter, waitq, 1, FL_HOLDER(fl_owner_thread()));
    return fl_waitq_enter(&waiter) || fl_waitq_wait(&waiter, FL_FOREVER, FL_FOREVER) == FL_WAIT_GRANTED;
}

/* The mailbox of no loop: no task waits here. */
bool fl_wakeup_open(fl_wakeup *wakeup)
{
    (void)wakeup;
    return false;
}

void fl_wakeup_close(fl_wakeup *wakeup)
{
    (void)wakeup;
}

void fl_wakeup_ring(const fl_wakeup *wakeup)
{
    (void)wakeup;
}

void fl_wakeup_clear(const fl_wakeup *wakeup)
{
    (void)wakeup;
}

static fl_item *item(void)
{
    fl_item *made = calloc(1, sizeof *made + 1);
    *made = (fl_item){.refs = 1, .size = 1};
    return made;
}

static void begin(void)
{
    job_queue = fl_job_queue_new();
    memset(ended, 0, sizeof ended);
    for (int i = 0; i < 2; i++) {
        jobs[i] = fl_job_new(item(), i == 1);
        jobs[i]->owner = &owners[i];
    }
}

static void end_job(fl_job *job)
{
    int which = job == jobs[1];
    ended[which]++;
    MODEL_CHECK(ended[which] == 1);
    MODEL_CHECK(job->owner == &owners[which]);
}

/* What is in the completions, alone. */
static void read_rest(void)
{
    bool over;
    fl_job *job;
    while ((job = fl_job_queue_next(job_queue, &over)) != NULL) {
        if (over) {
            end_job(job);
        }
        fl_job_unref(job);
    }
}

static void end(void)
{
    bool completions = job_queue->listed.first != NULL;
    MODEL_CHECK(!completions || fl_sem_value(job_queue->completions) > 0);
    read_rest();
    MODEL_CHECK(job_queue->queue.first == NULL && job_queue->figures.queued == 0 &&
                job_queue->figures.running == 0);
    MODEL_CHECK(job_queue->slots == NULL);
    for (int i = 0; i < 2; i++) {
        MODEL_CHECK(jobs[i]->state <= FL_JOB_QUEUED ? ended[i] == 0 : ended[i] == 1);
        MODEL_CHECK(jobs[i]->refs == 1);
        fl_job_unref(jobs[i]);
    }
    fl_job_queue_unref(job_queue);
}

static void post(int which)
{
    uint32_t outstanding;
    MODEL_CHECK(fl_job_queue_post(job_queue, jobs[which], false, &outstanding));
}

static void post_two_and_close(void)
{
    post(0);
    post(1);
    fl_job_queue_close(job_queue);
}

static void post_two_read_and_close(void)
{
    post(0);
    post(1);
    while (ended[0] + ended[1] < 2) {
        MODEL_CHECK(wait_at(job_queue->completions));
        read_rest();
    }
    fl_job_queue_close(job_queue);
}

/* `raises`: a signal handler does, at any moment. */
static void wait_for_job(int which, bool raises)
{
    fl_waitq *helper = fl_sem_new(0, FL_SEM_MOST, 0);
    fl_job_state state = fl_job_queue_help(job_queue, jobs[which], helper);
    bool mine = state == FL_JOB_REPLIED;
    if (state == FL_JOB_QUEUED || state == FL_JOB_RUNNING) {
        if (!raises) {
            wait_at(helper);
        }
        mine = fl_job_queue_helped(job_queue, jobs[which], raises);
    }
    if (mine) {
        end_job(jobs[which]);
    }
    fl_waitq_unref(helper);
}

/* And the reader, once one has to. */
static void post_stop_waiting_and_read(void)
{
    post(0);
    wait_for_job(0, true);
    while (ended[0] == 0) {
        MODEL_CHECK(wait_at(job_queue->completions));
        read_rest();
    }
    fl_job_queue_close(job_queue);
}

static void post_wait_and_close(void)
{
    post(0);
    wait_for_job(0, false);
    fl_job_queue_close(job_queue);
}

static void post_wait_for_the_second_and_close(void)
{
    post(0);
    post(1);
    wait_for_job(1, false);
    fl_job_queue_close(job_queue);
}

static void work(void)
{
    fl_worker_slot *mine = fl_job_queue_join(job_queue, (uint32_t)model_self() + 1, NULL, 0);
    bool lost;
    while (wait_at(job_queue->work)) {
        if (fl_job_queue_take(job_queue, mine) != NULL) {
            /* in any case it goes on, as another would */
            fl_job_queue_reply(job_queue, mine, 1, false, item());
        }
    }
    fl_job *left = fl_job_queue_leave(job_queue, (uint32_t)model_self() + 1, &lost);
    MODEL_CHECK(left == NULL);
}

/* It cannot read the first call, which is posted once more, as the second. */
static void refuse_and_work(void)
{
    fl_worker_slot *mine = fl_job_queue_join(job_queue, (uint32_t)model_self() + 1, NULL, 0);
    bool lost;
    while (wait_at(job_queue->work)) {
        fl_job *job = fl_job_queue_take(job_queue, mine);
        fl_job_queue_reply(job_queue, mine, 1, job == jobs[0], item());
    }
    MODEL_CHECK(fl_job_queue_leave(job_queue, (uint32_t)model_self() + 1, &lost) == NULL);
}

static void read_and_post_again(void)
{
    while (ended[0] == 0) {
        MODEL_CHECK(wait_at(job_queue->completions));
        read_rest();
    }
    uint32_t outstanding;
    MODEL_CHECK(fl_job_queue_idle(job_queue));
    MODEL_CHECK(fl_job_queue_post(job_queue, jobs[1], true, &outstanding));
    fl_job_queue_close(job_queue);
}

static void wait_for_the_refused(void)
{
    fl_waitq *helper = fl_sem_new(0, FL_SEM_MOST, 0);
    if (fl_job_queue_help(job_queue, jobs[0], helper) != FL_JOB_STATES) {
        wait_at(helper);
        MODEL_CHECK(!fl_job_queue_helped(job_queue, jobs[0], false));
    }
    fl_waitq_unref(helper);
}

/* Its interpreter ends in the middle of a call. */
static void work_and_die(void)
{
    fl_worker_slot *mine = fl_job_queue_join(job_queue, (uint32_t)model_self() + 1, NULL, 0);
    bool lost = false;
    if (wait_at(job_queue->work)) {
        fl_job_queue_take(job_queue, mine);
    }
    fl_job *left = fl_job_queue_leave(job_queue, (uint32_t)model_self() + 1, &lost);
    if (lost) {
        end_job(left);
    }
    if (left != NULL) {
        fl_job_unref(left);
    }
}

static void take_back_the_first(void)
{
    uint32_t worker = 0;
    fl_job_state was = fl_job_queue_take_back(job_queue, jobs[0], &worker);
    if (was == FL_JOB_RUNNING) {
        MODEL_CHECK(worker > 0);
        fl_worker_slot *held = fl_job_queue_hold(job_queue, worker);
        if (held != NULL) {
            MODEL_CHECK(held->worker == worker);
            fl_job_queue_release(job_queue, held);
        }
    }
    if (was == FL_JOB_QUEUED || was == FL_JOB_RUNNING) {
        end_job(jobs[0]);
    }
}

static void take_back_the_first_and_close(void)
{
    take_back_the_first();
    fl_job_queue_close(job_queue);
}

static void seize_what_runs(void)
{
    uint32_t worker;
    fl_job *job = fl_job_queue_seize(job_queue, &worker);
    if (job != NULL) {
        end_job(job);
        fl_job_unref(job);
    }
}

static void begin_posted(void)
{
    begin();
    post(0);
}

static void post_second_and_close(void)
{
    post(1);
    fl_job_queue_close(job_queue);
}

static void wait_for_the_first_and_close(void)
{
    wait_for_job(0, false);
    fl_job_queue_close(job_queue);
}

static const model_scenario scenarios[] = {
    {"job_queue-2", 3, 0, 1, begin, end, {post_two_and_close, work}},
    {"job_queue-3", 2, 0, 1, begin, end, {post_two_and_close, work, work}},
    {"job_queue-2-reader", 3, 0, 1, begin, end, {post_two_read_and_close, work}},
    {"job_queue-3-reader", 2, 0, 1, begin, end, {post_two_read_and_close, work, work}},
    {"job_queue-2-helper", 3, 0, 1, begin, end, {post_wait_and_close, work}},
    {"job_queue-2-helper-raises", 3, 0, 1, begin, end, {post_stop_waiting_and_read, work}},
    {"job_queue-2-helper-announced", 3, 0, 1, begin, end, {post_wait_for_the_second_and_close, work}},
    {"job_queue-2-taken-back", 3, 0, 1, begin_posted, end, {take_back_the_first_and_close, work_and_die}},
    {"job_queue-3-taken-back",
     2,
     0,
     1,
     begin_posted,
     end,
     {take_back_the_first, work, post_second_and_close}},
    {"job_queue-3-helper-taken-back",
     2,
     0,
     1,
     begin_posted,
     end,
     {wait_for_the_first_and_close, take_back_the_first, work}},
    {"job_queue-3-helper-seized",
     2,
     0,
     1,
     begin_posted,
     end,
     {wait_for_the_first_and_close, seize_what_runs, work}},
    {"job_queue-3-helper-refused",
     2,
     0,
     1,
     begin_posted,
     end,
     {wait_for_the_refused, refuse_and_work, read_and_post_again}},
    {"job_queue-2-helper-lost", 3, 0, 1, begin_posted, end, {wait_for_the_first_and_close, work_and_die}},
};

int main(int argc, char **argv)
{
    bool found = false;
    for (size_t i = 0; i < sizeof scenarios / sizeof scenarios[0] && !found; i++) {
        const model_scenario *one = &scenarios[i];
        if (argc > 1 && strcmp(argv[1], one->name) != 0) {
            continue;
        }
        model_result result = argc > 2 ? model_replay(one, argv[2]) : model_explore(one);
        printf("%-26s %d pre-emptions: %9llu executions of up to %u steps\n", one->name, one->preemptions,
               (unsigned long long)result.executions, result.longest);
        if (result.failure != NULL) {
            found = true;
            printf("NOT TRUE: %s\nagain: test_model_job_queue %s ", result.failure, one->name);
            printf("%s\n", result.schedule);
        }
    }
    return found;
}

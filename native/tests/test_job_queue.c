/* A job queue with threads, for the sanitizers: jobs that are posted, waited for, taken back and replied to.
 */
#include "interpreters/job_queue.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "waiting.h"
#include "interpreters/pin.h"

#define JOBS 3000
#define WORKERS 3

static fl_job_queue *job_queue;
static fl_job *jobs[JOBS];
static fl_atomic(int) ended[JOBS];
static int owners[JOBS];

static bool take(fl_waitq *waitq)
{
    return fl_sem_try(waitq, 1, 0) || wait_at(waitq, 1, (fl_stake){0}, FL_FOREVER) == FL_WAIT_GRANTED;
}

static fl_item *item(fl_pin *pin)
{
    fl_item *made = calloc(1, sizeof *made + 1);
    *made = (fl_item){.refs = 1, .size = 1};
    if (pin != NULL) {
        made->pins = malloc(sizeof *made->pins);
        made->pins[made->pinned++] = pin;
    }
    return made;
}

static void end_job(fl_job *job)
{
    ptrdiff_t which = (int *)job->owner - owners;
    fl_fetch_add(&ended[which], 1, relaxed); /* read when all threads have ended */
}

static void *work(void *argument)
{
    uint32_t number = *(uint32_t *)argument;
    fl_worker_slot *slot = fl_job_queue_join(job_queue, number, NULL, 0);
    bool mine = true;
    while (take(job_queue->work)) {
        fl_job *job = fl_job_queue_take(job_queue, slot);
        if (job != NULL) {
            fl_item_unref(job->call);
            job->call = NULL;
            fl_job_queue_reply(job_queue, slot, 1, false, item(fl_pin_block(100)));
        }
    }
    CHECK(fl_job_queue_leave(job_queue, number, &mine) == NULL);
    return NULL;
}

static void *read_completions(void *argument)
{
    (void)argument;
    while (take(job_queue->completions)) {
        bool over;
        fl_job *job;
        while ((job = fl_job_queue_next(job_queue, &over)) != NULL) {
            if (over && job->owner != NULL) {
                end_job(job);
            }
            fl_job_unref(job);
        }
    }
    return NULL;
}

static void *take_some_back(void *argument)
{
    (void)argument;
    for (int i = 0; i < JOBS; i += 3) {
        uint32_t worker = 0;
        fl_job_state was = fl_job_queue_take_back(job_queue, jobs[i], &worker);
        if (was != FL_JOB_REPLIED && was != FL_JOB_ENDED) {
            end_job(jobs[i]);
        }
        if (was == FL_JOB_RUNNING) {
            fl_worker_slot *held = fl_job_queue_hold(job_queue, worker);
            if (held != NULL) {
                fl_job_queue_release(job_queue, held);
            }
        }
    }
    return NULL;
}

static void test_every_job_ends_once_whichever_side_ends_it(void)
{
    pthread_t workers[WORKERS], reader, other;
    uint32_t numbers[WORKERS];
    fl_lender *lender = fl_lender_new();
    char lent[100];
    job_queue = fl_job_queue_new();
    CHECK(fl_job_queue_find(job_queue->number) == job_queue);
    fl_job_queue_unref(job_queue);
    for (int i = 0; i < JOBS; i++) {
        fl_pin *pin = i % 5 ? NULL : fl_pin_lend(lender, NULL, lent, sizeof lent, true);
        jobs[i] = fl_job_new(item(pin), i % 7 == 0);
        jobs[i]->owner = &owners[i];
    }
    for (uint32_t i = 0; i < WORKERS; i++) {
        numbers[i] = i + 1;
        CHECK_EQUAL(pthread_create(&workers[i], NULL, work, &numbers[i]), 0);
    }
    CHECK_EQUAL(pthread_create(&reader, NULL, read_completions, NULL), 0);
    int back = 0;
    for (int i = 0; i < JOBS; i++) {
        uint32_t outstanding;
        CHECK(fl_job_queue_post(job_queue, jobs[i], false, &outstanding) ||
              fl_job_queue_state(job_queue, jobs[i]) == FL_JOB_ENDED);
        if (i == JOBS / 2) {
            CHECK_EQUAL(pthread_create(&other, NULL, take_some_back, NULL), 0);
        }
        for (fl_pin *pin = fl_lender_take(lender), *next; pin != NULL; pin = next) {
            next = pin->next;
            fl_pin_free(pin);
            back++;
        }
    }
    for (int i = 1; i < JOBS; i += 2) {
        fl_waitq *helper = fl_sem_new(0, FL_SEM_MOST, 0);
        fl_job_state state = fl_job_queue_help(job_queue, jobs[i], helper);
        bool mine = state == FL_JOB_REPLIED;
        if (state == FL_JOB_QUEUED || state == FL_JOB_RUNNING) {
            take(helper);
            mine = fl_job_queue_helped(job_queue, jobs[i], false);
        }
        if (mine) {
            end_job(jobs[i]);
        }
        fl_waitq_unref(helper);
    }
    CHECK_EQUAL(pthread_join(other, NULL), 0);
    fl_job_queue_close(job_queue);
    for (int i = 0; i < WORKERS; i++) {
        CHECK_EQUAL(pthread_join(workers[i], NULL), 0);
    }
    fl_sem_close(job_queue->completions);
    CHECK_EQUAL(pthread_join(reader, NULL), 0);
    fl_job_queue_figures figures = fl_job_queue_statistics(job_queue);
    CHECK_EQUAL(figures.queued, 0);
    CHECK_EQUAL(figures.running, 0);
    for (int i = 0; i < JOBS; i++) {
        CHECK_EQUAL(ended[i], jobs[i]->state == FL_JOB_QUEUED ? 0 : 1);
        CHECK_EQUAL(jobs[i]->refs, 1);
        fl_job_unref(jobs[i]);
    }
    for (fl_pin *pin = fl_lender_take(lender), *next; pin != NULL; pin = next) {
        next = pin->next;
        fl_pin_free(pin);
        back++;
    }
    CHECK_EQUAL(back, JOBS / 5);
    fl_lender_unref(lender);
    fl_job_queue_unref(job_queue);
}

static void test_beginning_of_a_job_that_ended_with_its_worker_is_no_completion(void)
{
    bool mine, over;
    uint32_t outstanding;
    job_queue = fl_job_queue_new();
    fl_worker_slot *slot = fl_job_queue_join(job_queue, 1, NULL, 0);
    fl_job *job = fl_job_new(item(NULL), true);
    CHECK(fl_job_queue_post(job_queue, job, false, &outstanding));
    CHECK(take(job_queue->work));
    CHECK(fl_job_queue_take(job_queue, slot) == job);
    CHECK(fl_job_queue_leave(job_queue, 1, &mine) == job);
    CHECK(mine);
    fl_job_unref(job);
    CHECK(fl_job_queue_next(job_queue, &over) == NULL);
    CHECK_EQUAL(job->refs, 1);
    fl_job_unref(job);
    fl_job_queue_unref(job_queue);
}

static void test_parts_keep_the_whole_and_a_lender_that_is_gone_is_not_needed(void)
{
    fl_pin *block = fl_pin_block(10);
    memset(block->bytes, 7, 10);
    fl_pin *part = fl_pin_part(block, block->bytes + 5, 5, true);
    fl_pin_unref(block);
    CHECK_EQUAL(part->bytes[4], 7);
    fl_pin_unref(part);
    fl_lender *lender = fl_lender_new();
    char lent[1];
    fl_pin *late = fl_pin_lend(lender, NULL, lent, 1, true);
    fl_lender_unref(lender); /* its interpreter ends */
    fl_pin_unref(late);      /* freed, as a sanitizer sees */
}

int main(void)
{
    CHECK(fl_waitq_setup());
    test_every_job_ends_once_whichever_side_ends_it();
    test_beginning_of_a_job_that_ended_with_its_worker_is_no_completion();
    test_parts_keep_the_whole_and_a_lender_that_is_gone_is_not_needed();
    return 0;
}

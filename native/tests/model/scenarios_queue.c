/* Queues: every order of putting, getting, shutting down and shrinking. */
#include "scenarios.h"

/* A queue as sync/bind/queues/queue.c has it: a wait queue of slots, a wait queue of objects, and between
   them a elements that one thread at a time touches, which also gives the right to what it puts there. */
static fl_waitq *slots;
static fl_mutex storage;
static uint32_t most, elements, put, got, thrown_away;
static bool shut, some_refused, some_left;

static void begin_queue(uint32_t value, uint32_t flags)
{
    model_begin(0, flags);
    fl_waitq_unref(waitq);
    waitq = fl_sem_new(0, FL_SEM_MOST, flags);
    slots = fl_sem_new(value, FL_SEM_MOST, flags);
    storage = 0;
    most = value;
    elements = put = got = thrown_away = 0;
    shut = some_refused = some_left = false;
}

static void begin_queue_of_one(void)
{
    begin_queue(1, 0);
}

static void begin_fair_queue_of_one(void)
{
    begin_queue(1, FL_WAITQ_FAIR);
}

static void begin_queue_of_two(void)
{
    begin_queue(2, 0);
}

/* With the right to a slot. */
static void put_down(void)
{
    fl_mutex_lock(&storage);
    bool late = shut;
    if (!late) {
        elements++;
        put++;
        MODEL_CHECK(fl_sem_give(waitq, 1) == FL_SEM_OK);
    }
    fl_mutex_unlock(&storage);
    if (late) {
        MODEL_CHECK(fl_sem_give(slots, 1) == FL_SEM_OK);
    }
}

/* With the right to an object. */
static void take_up(void)
{
    fl_mutex_lock(&storage);
    bool empty = elements == 0;
    if (!empty) {
        elements--;
        got++;
    }
    fl_mutex_unlock(&storage);
    MODEL_CHECK(!empty || thrown_away > 0);
    if (!empty) {
        MODEL_CHECK(fl_sem_give(slots, 1) == FL_SEM_OK);
    }
}

static bool right_to(fl_waitq *here, int64_t deadline)
{
    fl_wait_result result =
        fl_sem_try(here, 1, fl_owner_thread()) ? FL_WAIT_GRANTED : model_wait_at(here, 1, deadline);
    MODEL_CHECK(result != FL_WAIT_REFUSED || shut);
    some_refused |= here == waitq && result == FL_WAIT_REFUSED;
    some_left |= result == FL_WAIT_TIMED_OUT;
    return result == FL_WAIT_GRANTED;
}

static void put_one(void)
{
    if (right_to(slots, FL_FOREVER)) {
        put_down();
    }
}

static void put_two(void)
{
    put_one();
    put_one();
}

static void put_one_within_a_time(void)
{
    if (right_to(slots, 1)) {
        put_down();
    }
}

static void get_one(void)
{
    if (right_to(waitq, FL_FOREVER)) {
        take_up();
    }
}

static void get_two(void)
{
    get_one();
    get_one();
}

static void get_one_within_a_time(void)
{
    if (right_to(waitq, 1)) {
        take_up();
    }
}

static void get_in_a_loop(void)
{
    bool refused = false;
    if (model_run_loop(waitq, false, &refused)) {
        take_up();
    } else {
        some_left |= !refused;
    }
    MODEL_CHECK(!refused || shut);
    some_refused |= refused;
}

static void shut_down(bool immediate)
{
    fl_mutex_lock(&storage);
    shut = true;
    if (immediate) {
        thrown_away = elements;
        elements = 0;
        fl_sem_withdraw(waitq, FL_SEM_MOST);
    }
    fl_sem_close(waitq);
    fl_sem_close(slots);
    fl_mutex_unlock(&storage);
    if (immediate && thrown_away > 0) {
        MODEL_CHECK(fl_sem_give(slots, thrown_away) == FL_SEM_OK);
    }
}

static void only_shut_down(void)
{
    shut_down(false);
}

static void put_and_shut_down(void)
{
    put_one();
    shut_down(false);
}

static void put_and_shut_down_at_once(void)
{
    put_one();
    shut_down(true);
}

static void shrink_by_one(void)
{
    most--;
    fl_sem_withdraw(slots, 1);
}

static void end_queue(void)
{
    model_end_poison();
    MODEL_CHECK(elements == put - got - thrown_away);
    /* a refused getter left nothing behind, unless another one had it then and returned it */
    MODEL_CHECK(elements == 0 || !some_refused || some_left);
    MODEL_CHECK((uint32_t)waitq->word == (thrown_away ? 0 : elements));
    MODEL_CHECK((uint32_t)slots->word + elements == most + fl_sem_of(slots)->debt);
    MODEL_CHECK((slots->word & FL_SEM_QUEUED) == (fl_sem_of(slots)->debt ? FL_SEM_QUEUED : 0));
    for (int i = 0; i < 2; i++) {
        fl_waitq *one = i == 0 ? waitq : slots;
        MODEL_CHECK(one->head == NULL && one->tail == NULL && one->waiting == 0 && one->lock == 0);
        MODEL_CHECK(!(one->word & FL_SEM_RESERVED) && one->refs == 1);
        fl_waitq_unref(one);
    }
    MODEL_CHECK(mailbox->refs == 1 && model_mailbox_is_empty());
    fl_mailbox_unref(mailbox);
}

static const model_scenario scenarios[] = {
    {"queue-2", 3, 0, PATIENT, begin_queue_of_one, end_queue, {put_two, get_two}},
    {"queue-2-overdue", 3, 0, IMPATIENT, begin_queue_of_one, end_queue, {put_two, get_two}},
    {"queue-2-fair", 3, 0, PATIENT, begin_fair_queue_of_one, end_queue, {put_two, get_two}},
    {"queue-3-timed", 3, 0, PATIENT, begin_queue_of_one, end_queue,
     {put_one_within_a_time, get_one_within_a_time, put_one_within_a_time}},
    {"queue-2-task", 3, 1, PATIENT, begin_queue_of_one, end_queue, {put_one, get_in_a_loop}},
    {"queue-2-shut", 3, 0, PATIENT, begin_queue_of_one, end_queue, {put_and_shut_down, get_two}},
    {"queue-2-shut-at-once", 3, 0, PATIENT, begin_queue_of_one, end_queue,
     {put_and_shut_down_at_once, get_one}},
    {"queue-2-shut-task", 3, 1, PATIENT, begin_queue_of_one, end_queue,
     {put_and_shut_down, get_in_a_loop}},
    {"queue-3-shut", 3, 0, PATIENT, begin_queue_of_one, end_queue, {put_and_shut_down, get_one, get_one}},
    {"queue-3-shut-overdue", 3, 0, IMPATIENT, begin_queue_of_one, end_queue,
     {put_and_shut_down, get_one, get_one}},
    {"queue-3-shut-timed", 3, 0, PATIENT, begin_queue_of_one, end_queue,
     {put_and_shut_down_at_once, get_one_within_a_time, get_one}},
    {"queue-3-shut-putters", 3, 0, PATIENT, begin_queue_of_one, end_queue,
     {only_shut_down, put_one, put_one}},
    {"queue-3-shrinks", 3, 0, PATIENT, begin_queue_of_two, end_queue, {put_two, get_two, shrink_by_one}},
};

const model_table queue_scenarios = MODEL_TABLE(scenarios);

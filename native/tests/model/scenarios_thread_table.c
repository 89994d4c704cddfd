/* One thread reads the table while parked threads come and go: a record that it holds stays as it was. */
#include "sync/wait/thread_table.h"
#include "scenarios.h"

static fl_parked *kept[MODEL_THREADS];
static uint32_t kept_count;

static void begin_thread_table(void)
{
    model_begin(1, FL_WAITQ_OWNED);
    fl_thread_table_setup();
    kept_count = 0;
}

/* No thread sleeps, and none is held. */
static void none_parked(void *context, fl_parked *parked)
{
    (void)context, (void)parked;
    MODEL_CHECK(false);
}

static void end_thread_table(void)
{
    fl_thread_table_parked(none_parked, NULL);
    fl_owner_ended = NULL;
    model_end();
}

/* As model_wait_at, with word of the sleep. */
static void sleep_for_the_lock(int64_t deadline)
{
    fl_waiter *waiter = &frames[model_self()][0].waiter;
    frames[model_self()][0].used = true;
    fl_waiter_init(waiter, waitq, 1, FL_HOLDER(fl_owner_thread()));
    bool taken = fl_sem_try(waitq, 1, fl_owner_thread()) || fl_waitq_enter(waiter);
    if (!taken) {
        fl_thread_table_begin(waiter, deadline, NULL, 0);
        taken = fl_waitq_wait(waiter, deadline, FL_FOREVER) == FL_WAIT_GRANTED;
        fl_thread_table_end();
    }
    model_poison(waiter);
    if (taken) {
        model_took(1);
        model_give(1);
    }
}

static void sleep_long(void)
{
    sleep_for_the_lock(FL_FOREVER);
}

static void sleep_within_a_time(void)
{
    sleep_for_the_lock(1);
}

static void keep(void *context, fl_parked *parked)
{
    (void)context;
    MODEL_CHECK(parked->waiter->waitq == waitq && parked->waiter->stake.holder == parked->number);
    fl_thread_table_hold(parked);
    kept[kept_count++] = parked;
}

static void look(void)
{
    fl_thread_table_parked(keep, NULL);
    for (uint32_t i = 0; i < kept_count; i++) {
        uint64_t word = fl_load(&waitq->word, relaxed); /* a moment later */
        MODEL_CHECK((uint32_t)word <= 1 && kept[i]->waiter != NULL && kept[i]->waiter->waitq == waitq);
        fl_thread_table_release(kept[i]);
    }
}

/* One thread takes the lock and ends; a waiter or a newcomer learns that, and then gives up. */
static bool dead;

static void begin_death(void)
{
    begin_thread_table();
    dead = false;
}

static void take_it_along(void)
{
    dead = fl_sem_try(waitq, 1, fl_owner_thread());
    fl_thread_table_unregister(fl_thread_table_own());
}

/* Another lets go of it and ends then, which concerns none of them. */
static void give_it_back_and_end(void)
{
    if (fl_sem_try(waitq, 1, fl_owner_thread())) {
        model_took(1);
        model_give(1);
    }
    fl_thread_table_unregister(fl_thread_table_own());
}

static void wait_for_the_dead(void)
{
    fl_waiter *waiter = &frames[model_self()][0].waiter;
    frames[model_self()][0].used = true;
    fl_waiter_init(waiter, waitq, 1, FL_HOLDER(fl_owner_thread()));
    bool taken = fl_sem_try(waitq, 1, fl_owner_thread()) || fl_waitq_enter(waiter);
    while (!taken && !waiter->told) {
        fl_thread_table_begin(waiter, FL_FOREVER, NULL, 0);
        taken = fl_waitq_wait(waiter, FL_FOREVER, FL_FOREVER) == FL_WAIT_GRANTED;
        fl_thread_table_end();
    }
    if (!taken) {
        taken = !fl_waitq_leave(waiter, FL_CANCELLED);
    }
    MODEL_CHECK(taken || dead);
    model_poison(waiter);
    if (taken) {
        model_took(1);
        model_give(1);
    }
}

static void end_death(void)
{
    MODEL_CHECK(waitq->head == NULL && (uint32_t)waitq->word == !dead);
    waitq->word = 1; /* as model_end wants it */
    waitq->owner = 0;
    end_thread_table();
}

static const model_scenario scenarios[] = {
    {"thread_table-3", 3, 0, PATIENT, begin_thread_table, end_thread_table, {sleep_long, sleep_long, look}},
    {"thread_table-3-timed",
     3,
     0,
     PATIENT,
     begin_thread_table,
     end_thread_table,
     {sleep_long, sleep_within_a_time, look}},
    {"thread_table-2-death", 3, 0, PATIENT, begin_death, end_death, {take_it_along, wait_for_the_dead}},
    {"thread_table-2-end", 3, 0, PATIENT, begin_death, end_death, {give_it_back_and_end, wait_for_the_dead}},
};

const model_table thread_table_scenarios = MODEL_TABLE(scenarios);

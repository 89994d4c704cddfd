/* Signal handlers that raise, or fork, wherever Python is called: when a wait was interrupted, and when a
 * loop tells a task that it has something.
 */
#include "scenarios.h"

static void begin_raises(void)
{
    model_begin(1, FL_WAITQ_OWNED);
    model_allow_handlers(true, false);
}

static void begin_forks(void)
{
    model_begin(1, FL_WAITQ_OWNED);
    model_allow_handlers(false, true);
}

static void begin_either(void)
{
    model_begin(1, FL_WAITQ_OWNED);
    model_allow_handlers(true, true);
}

/* As fl_wait_in_place() in sync/bind/wait/blocking.c: queued while the handler runs. */
static void lock_with_handlers(void)
{
    fl_waiter *waiter = &frames[model_self()][0].waiter;
    bool raised = false, taken = fl_sem_try(waitq, 1, fl_owner_thread());
    if (!taken) {
        frames[model_self()][0].used = true;
        fl_waiter_init(waiter, waitq, 1, FL_HOLDER(fl_owner_thread()));
        taken = fl_waitq_enter(waiter);
        while (!taken && !raised) {
            taken = fl_waitq_wait(waiter, FL_FOREVER, FL_FOREVER) == FL_WAIT_GRANTED;
            raised = !taken && model_call_python();
            if (forked && !taken && !raised && waiter->generation != fl_fork_generation) {
                taken = fl_load(&waiter->state, acquire) == FL_WAITING && fl_waitq_enter(waiter);
            }
        }
        if (raised) {
            fl_waiter_abandon(waiter, FL_CANCELLED);
        }
        model_poison(waiter);
    }
    if (taken) {
        model_took(1);
        model_give(1);
    }
}

static void lock_and_unlock(void)
{
    if (fl_sem_try(waitq, 1, fl_owner_thread()) || model_wait_for(1, FL_FOREVER)) {
        model_took(1);
        model_give(1);
    }
}

static void loop_with_a_task(void)
{
    if (model_run_loop(waitq, false, NULL)) {
        model_took(1);
        model_give(1);
    }
}

/* A loop that goes on in the child, where its task has what it was granted before, takes what it was
   notified of, or is cancelled. */
static void loop_that_forks(void)
{
    fl_waiter *waiter = fl_mailbox_waiter(mailbox, waitq, 1, FL_HOLDER(fl_owner_task()));
    bool taken = fl_waitq_enter(waiter), given_up = false;
    while (!taken && !given_up) {
        model_call_python();
        given_up = forked || fl_park(&wakeup, 0, FL_FOREVER) == FL_PARK_INTERRUPTED;
        fl_mailbox_hear(mailbox);
        fl_waiter *next;
        for (fl_waiter *posted = fl_mailbox_drain(mailbox); posted != NULL; posted = next) {
            next = posted->ready;
            fl_mailbox_seen(posted);
            if (fl_load(&posted->state, acquire) == FL_WOKEN) {
                fl_waitq_retry(posted);
            }
            fl_waiter_unref(posted);
        }
        uint32_t state = FL_GRANTED;
        taken = fl_cas(&waiter->state, &state, FL_TAKEN, acq_rel, acquire);
    }
    if (!taken) {
        fl_waiter_abandon(waiter, FL_CANCELLED);
    }
    fl_mailbox_forget(waiter);
    fl_mailbox_close(mailbox);
    if (taken) {
        model_took(1);
        model_give(1);
    }
}

/* What the threads that are gone had in hand is not looked at. */
static void end_forked(void)
{
    if (!forked) {
        model_end();
        return;
    }
    fl_waitq_refresh(waitq);
    MODEL_CHECK(held == 0);
    MODEL_CHECK(waitq->word == permits && waitq->owner == 0);
    MODEL_CHECK(waitq->head == NULL && waitq->tail == NULL && waitq->waiting == 0 && waitq->lock == 0);
    MODEL_CHECK(model_mailbox_is_empty());
}

static const model_scenario scenarios[] = {
    {"lock-3-handler", 2, 2, PATIENT, begin_either, end_forked,
     {lock_with_handlers, lock_and_unlock, lock_and_unlock}},
    {"lock-3-handler-overdue", 2, 2, IMPATIENT, begin_either, end_forked,
     {lock_with_handlers, lock_and_unlock, lock_and_unlock}},
    {"task-2-raises", 3, 1, PATIENT, begin_raises, model_end, {loop_with_a_task, lock_and_unlock}},
    {"task-2-raises-overdue", 3, 1, IMPATIENT, begin_raises, model_end, {loop_with_a_task, lock_and_unlock}},
    {"task-3-forks", 2, 1, PATIENT, begin_forks, end_forked,
     {loop_that_forks, lock_and_unlock, lock_and_unlock}},
    {"task-3-forks-overdue", 2, 1, IMPATIENT, begin_forks, end_forked,
     {loop_that_forks, lock_and_unlock, lock_and_unlock}},
};

const model_table handler_scenarios = MODEL_TABLE(scenarios);

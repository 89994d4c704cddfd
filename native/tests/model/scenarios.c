/* See scenarios.h. */
#include "scenarios.h"

#include <string.h>

#define POISON 0xdd

fl_waitq *waitq;
uint32_t permits, held;

bool forked;
static bool may_raise, may_fork;

void model_allow_handlers(bool raises, bool forks)
{
    may_raise = raises;
    may_fork = forks;
    forked = false;
}

bool model_call_python(void)
{
    unsigned taken = model_choose(1u + may_raise + may_fork);
    if (taken == 0) {
        return false;
    }
    if (may_raise && taken == 1) {
        may_raise = false;
        return true;
    }
    may_fork = false;
    forked = true;
    held = 0; /* by threads that the child does not have */
    model_fork();
    return false;
}

/* A thread's waiter is gone when the wait is over; a write to it afterwards spoils the poison. */
struct model_frame frames[MODEL_THREADS][4];

void model_poison(fl_waiter *waiter)
{
    memset(waiter, POISON, sizeof *waiter);
}

void model_took(uint32_t wanted)
{
    held += wanted;
    MODEL_CHECK(held <= permits);
}

void model_give(uint32_t count)
{
    held -= count;
    MODEL_CHECK(fl_sem_give(waitq, count) == FL_SEM_OK);
}

void (*model_handler)(void);

fl_wait_result model_wait_entered(fl_waiter *waiter, int64_t deadline)
{
    fl_wait_result result;
    while ((result = fl_waitq_wait(waiter, deadline, FL_FOREVER)) == FL_WAIT_INTERRUPTED) {
        if (model_handler != NULL && model_self() == 0) {
            model_handler();
        }
    }
    return result;
}

fl_wait_result model_wait_at(fl_waitq *here, uint32_t wanted, int64_t deadline)
{
    int frame = 0;
    while (frames[model_self()][frame].used) {
        frame++;
    }
    frames[model_self()][frame].used = true;
    fl_waiter *waiter = &frames[model_self()][frame].waiter;
    fl_waiter_init(waiter, here, wanted, FL_HOLDER(fl_owner_thread()));
    fl_wait_result result = fl_waitq_enter(waiter) ? FL_WAIT_GRANTED : model_wait_entered(waiter, deadline);
    model_poison(waiter);
    return result;
}

bool model_wait_for(uint32_t wanted, int64_t deadline)
{
    return model_wait_at(waitq, wanted, deadline) == FL_WAIT_GRANTED;
}

/* An event loop with one task that waits, is cancelled by a signal, and closes its mailbox when it is done.
 */
fl_mailbox *mailbox;
uint32_t wakeup;

bool fl_wakeup_open(fl_wakeup *which)
{
    (void)which;
    return true;
}

void fl_wakeup_close(fl_wakeup *which)
{
    (void)which;
}

void fl_wakeup_ring(const fl_wakeup *which)
{
    (void)which;
    fl_store(&wakeup, 1, release); /* pairs with fl_wakeup_clear */
    fl_unpark(&wakeup);
}

void fl_wakeup_clear(const fl_wakeup *which)
{
    (void)which;
    fl_store(&wakeup, 0, acquire); /* pairs with fl_wakeup_ring */
}

/* Whether the task took one permit; `refused`, if not NULL, whether the wait queue was closed. */
bool model_run_loop(fl_waitq *here, bool close_when_interrupted, bool *refused)
{
    return model_run_loop_as(here, 1, FL_HOLDER(fl_owner_task()), close_when_interrupted, refused);
}

/* In the loop's thread. Whether one of the posted waiters has been granted something, or refused. */
static bool see_to_posted(void)
{
    bool decided = false;
    fl_waiter *next;
    fl_mailbox_hear(mailbox);
    for (fl_waiter *posted = fl_mailbox_drain(mailbox); posted != NULL; posted = next) {
        next = posted->ready;
        fl_mailbox_seen(posted);
        if (fl_load(&posted->state, acquire) == FL_WOKEN) {
            fl_waitq_retry(posted);
        }
        uint32_t state = fl_load(&posted->state, acquire);
        if (state == FL_GRANTED || state == FL_REFUSED) {
            bool raised = model_call_python(); /* the future's set_result() */
            (void)raised; /* it is called again */
            decided = true;
        }
        fl_waiter_unref(posted);
    }
    return decided;
}

bool model_run_loop_of(fl_choice *choice)
{
    bool decided = fl_choice_decided(choice), given_up = false;
    while (!decided && !given_up) {
        given_up = fl_park(&wakeup, 0, FL_FOREVER) == FL_PARK_INTERRUPTED;
        decided = see_to_posted();
    }
    return given_up;
}

bool model_run_loop_as(fl_waitq *here, uint32_t wanted, fl_stake stake, bool close_when_interrupted,
                       bool *refused)
{
    fl_waiter *waiter = fl_mailbox_waiter(mailbox, here, wanted, stake);
    MODEL_CHECK(waiter != NULL);
    bool taken = fl_waitq_enter(waiter), closed = false;
    while (!taken) {
        if (fl_load(&waiter->state, acquire) == FL_REFUSED) {
            MODEL_CHECK(refused != NULL);
            *refused = true;
            break;
        }
        if (fl_park(&wakeup, 0, FL_FOREVER) == FL_PARK_INTERRUPTED) {
            if (close_when_interrupted) {
                fl_mailbox_close(mailbox);
                closed = true;
                MODEL_CHECK(!fl_waiter_abandon(waiter, FL_CANCELLED));
            } else if (!fl_waiter_abandon(waiter, FL_CANCELLED)) {
                uint32_t granted = FL_GRANTED;
                taken = waiter->final && fl_cas(&waiter->state, &granted, FL_TAKEN, acq_rel, acquire);
                if (taken) {
                    break;
                }
                MODEL_CHECK(refused != NULL && waiter->state == FL_REFUSED);
                *refused = true;
            }
            break;
        }
        if (!see_to_posted()) {
            continue;
        }
        uint32_t state = FL_GRANTED;
        taken = fl_cas(&waiter->state, &state, FL_TAKEN, acq_rel, acquire);
    }
    fl_mailbox_forget(waiter);
    if (!closed) {
        fl_mailbox_close(mailbox);
    }
    return taken;
}

void model_begin(uint32_t value, uint32_t flags)
{
    memset(frames, 0, sizeof frames);
    model_allow_handlers(false, false);
    held = 0;
    wakeup = 0;
    permits = value;
    waitq = fl_sem_new(value, value, flags);
    mailbox = fl_mailbox_new();
}

bool model_mailbox_is_empty(void)
{
    return mailbox->for_locks == NULL && mailbox->others == NULL;
}

void model_end_poison(void)
{
    for (int thread = 0; thread < MODEL_THREADS; thread++) {
        for (int frame = 0; frames[thread][frame].used; frame++) {
            for (size_t i = 0; i < sizeof(fl_waiter); i++) {
                MODEL_CHECK(((unsigned char *)&frames[thread][frame].waiter)[i] == POISON);
            }
        }
    }
}

void model_end(void)
{
    model_end_poison();
    MODEL_CHECK(held == 0);
    MODEL_CHECK(waitq->word == permits);
    MODEL_CHECK(waitq->head == NULL && waitq->tail == NULL && waitq->waiting == 0 && waitq->lock == 0);
    MODEL_CHECK(waitq->owner == 0);
    MODEL_CHECK(waitq->refs == 1 && mailbox->refs == 1 && model_mailbox_is_empty()); /* no waiter is left */
    fl_waitq_unref(waitq);
    fl_mailbox_unref(mailbox);
}

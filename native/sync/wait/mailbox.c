/* The stack of a mailbox, and its end. See mailbox.h. */
#include "sync/wait/mailbox.h"

#include <stdlib.h>

#include "machine/thread.h"

static fl_waiter closed_mark;
#define FL_MAILBOX_CLOSED (&closed_mark)

fl_mailbox *fl_mailbox_new(void)
{
    fl_mailbox *mailbox = calloc(1, sizeof *mailbox);
    if (mailbox == NULL) {
        return NULL;
    }
    mailbox->refs = 1;
    mailbox->generation = fl_fork_generation;
    if (!fl_wakeup_open(&mailbox->wakeup)) {
        free(mailbox);
        return NULL;
    }
    return mailbox;
}

void fl_mailbox_unref(fl_mailbox *mailbox)
{
    if (fl_fetch_sub(&mailbox->refs, 1, acq_rel) == 1) { /* pairs with itself: the last sees what all did */
        fl_wakeup_close(&mailbox->wakeup);
        free(mailbox);
    }
}

/* In a forked child another thread of the parent may have left it locked; the list is whole at any moment. */
void fl_mailbox_lock(fl_mailbox *mailbox)
{
    fl_fork_unlock(&mailbox->generation, &mailbox->lock);
    fl_mutex_lock(&mailbox->lock);
}

/* The list that it is in. */
static fl_waiter **list_of(fl_mailbox *mailbox, const fl_waiter *waiter)
{
    return waiter->for_lock ? &mailbox->for_locks : &mailbox->others;
}

fl_waiter *fl_mailbox_waiter(fl_mailbox *mailbox, fl_waitq *waitq, uint32_t wanted, fl_stake stake)
{
    fl_waiter *waiter = malloc(sizeof *waiter);
    if (waiter == NULL) {
        return NULL;
    }
    fl_waiter_init(waiter, waitq, wanted, stake);
    waiter->mailbox = mailbox;
    waiter->refs = 1;
    fl_mailbox_lock(mailbox);
    bool closed = mailbox->closed;
    if (!closed) {
        fl_waiter **list = list_of(mailbox, waiter);
        waiter->after = *list;
        if (*list != NULL) {
            (*list)->before = waiter;
        }
        *list = waiter;
    }
    fl_mutex_unlock(&mailbox->lock);
    if (closed) {
        free(waiter);
        return NULL;
    }
    fl_waitq_ref(waitq);
    fl_fetch_add(&mailbox->refs, 1, relaxed); /* the caller has one */
    return waiter;
}

/* The mailbox's lock. */
static void unlist(fl_mailbox *mailbox, fl_waiter *waiter)
{
    if (waiter->before != NULL) {
        waiter->before->after = waiter->after;
    } else if (*list_of(mailbox, waiter) == waiter) {
        *list_of(mailbox, waiter) = waiter->after;
    } else {
        return; /* taken out by fl_mailbox_break */
    }
    if (waiter->after != NULL) {
        waiter->after->before = waiter->before;
    }
    waiter->before = waiter->after = NULL;
}

void fl_mailbox_forget(fl_waiter *waiter)
{
    fl_mailbox *mailbox = waiter->mailbox;
    fl_mailbox_lock(mailbox);
    unlist(mailbox, waiter);
    fl_mutex_unlock(&mailbox->lock);
    fl_waiter_unref(waiter);
}

void fl_waiter_ref(fl_waiter *waiter)
{
    fl_fetch_add(&waiter->refs, 1, relaxed); /* the caller has one, or holds the queue lock */
}

void fl_waiter_unref(fl_waiter *waiter)
{
    if (fl_fetch_sub(&waiter->refs, 1, acq_rel) == 1) { /* pairs with itself: the last sees what all did */
        fl_waitq *waitq = waiter->waitq, *from = waiter->moved_from;
        fl_mailbox *mailbox = waiter->mailbox;
        free(waiter);
        fl_waitq_unref(waitq);
        if (from != NULL) {
            fl_waitq_unref(from);
        }
        fl_mailbox_unref(mailbox);
    }
}

#ifdef FL_MODEL /* the model's threads have no storage of their own, and always ring */
static bool deferred(fl_mailbox *mailbox)
{
    (void)mailbox;
    return false;
}
#else
static _Thread_local struct {
    bool hushed;
    fl_mailbox *mailbox;
} here FL_THREAD_LOCAL_MODEL;

void fl_mailbox_batch(void)
{
    here.hushed = true;
}

fl_mailbox *fl_mailbox_flush(void)
{
    fl_mailbox *mailbox = here.mailbox;
    here.hushed = false;
    here.mailbox = NULL;
    return mailbox;
}

/* Whether this thread will see to the mailbox itself. */
static bool deferred(fl_mailbox *mailbox)
{
    if (!here.hushed || here.mailbox != NULL ||
        fl_load(&mailbox->home, relaxed) != fl_owner_thread()) { /* ours */
        return false;
    }
    fl_fetch_add(&mailbox->refs, 1, relaxed); /* the caller has one */
    here.mailbox = mailbox;
    return true;
}
#endif

void fl_mailbox_post(fl_mailbox *mailbox, fl_waiter *waiter)
{
    if (fl_exchange(&waiter->posted, 1, acq_rel)) { /* pairs with fl_mailbox_seen */
        fl_waiter_unref(waiter);
        return;
    }
    fl_fetch_add(&mailbox->refs, 1, relaxed); /* the waiter, which counts the mailbox, may be gone first */
    fl_waiter *top = fl_load(&mailbox->stack, relaxed); /* only a first guess */
    do {
        waiter->ready = top;
    } while (top != FL_MAILBOX_CLOSED &&
             !fl_cas(&mailbox->stack, &top, waiter, release, relaxed)); /* pairs with fl_mailbox_drain */
    if (top == FL_MAILBOX_CLOSED) {
        fl_waiter_unref(waiter); /* fl_mailbox_break settles it */
    } else if (top == NULL && !deferred(mailbox)) {
        fl_wakeup_ring(&mailbox->wakeup);
    }
    fl_mailbox_unref(mailbox);
}

void fl_mailbox_hear(fl_mailbox *mailbox)
{
    fl_wakeup_clear(&mailbox->wakeup);
}

fl_waiter *fl_mailbox_drain(fl_mailbox *mailbox)
{
    fl_waiter *top = fl_load(&mailbox->stack, relaxed); /* only a first guess */
    do {
        if (top == FL_MAILBOX_CLOSED) {
            return NULL;
        }
    } while (!fl_cas(&mailbox->stack, &top, NULL, acquire, relaxed)); /* pairs with fl_mailbox_post */
    fl_waiter *oldest = NULL;
    while (top != NULL) {
        fl_waiter *next = top->ready;
        top->ready = oldest;
        oldest = top;
        top = next;
    }
    return oldest;
}

void fl_mailbox_seen(fl_waiter *waiter)
{
    fl_exchange(&waiter->posted, 0, acq_rel); /* pairs with fl_mailbox_post: a post from now on is another */
}

fl_waiter *fl_mailbox_break(fl_mailbox *mailbox)
{
    fl_waiter *top =
        fl_exchange(&mailbox->stack, FL_MAILBOX_CLOSED, acq_rel); /* pairs with fl_mailbox_post */
    while (top != NULL && top != FL_MAILBOX_CLOSED) {
        fl_waiter *next = top->ready;
        fl_waiter_unref(top);
        top = next;
    }
    fl_mailbox_lock(mailbox);
    mailbox->closed = true;
    fl_waiter *waiter = mailbox->for_locks != NULL ? mailbox->for_locks : mailbox->others;
    if (waiter != NULL) {
        fl_waiter_ref(waiter); /* its owner waits for the lock to take it out of the list */
        unlist(mailbox, waiter);
        fl_waiter_abandon(waiter, FL_BROKEN); /* which its owner then waits for, too */
    }
    fl_mutex_unlock(&mailbox->lock);
    return waiter;
}

void fl_mailbox_close(fl_mailbox *mailbox)
{
    fl_waiter *waiter;
    while ((waiter = fl_mailbox_break(mailbox)) != NULL) {
        fl_waiter_unref(waiter);
    }
}

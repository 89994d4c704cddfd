/* The queue of a wait queue, the states of a waiter, and what a fork leaves. See waitq.h. */
#include "sync/wait/waitq.h"

#include <stdlib.h>
#ifndef FL_MODEL
#include <pthread.h>
#endif

#include "sync/wait/choice.h"
#include "machine/clock.h"
#include "machine/thread.h"
#include "sync/wait/mailbox.h"
#ifndef FL_MODEL
#include "sync/wait/thread_table.h"
#endif

_Static_assert(sizeof(void *) > 8 || sizeof(fl_waitq) <= 64, "a wait queue fits one cache line");

uint64_t fl_fork_thread;
bool (*fl_owner_ended)(uint64_t owner);

void fl_waitq_forked(void)
{
    fl_fork_happened();
    fl_fork_thread = fl_owner_thread();
    fl_choice_forked();
}

#ifndef FL_MODEL
static bool fork_handled;

static void handle_fork(void)
{
    /* the thread table first, whose locks the forking thread holds until then */
    fork_handled = fl_thread_table_setup() && fl_fork_call(NULL, NULL, fl_waitq_forked);
}

bool fl_waitq_setup(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, handle_fork);
    return fork_handled;
}
#endif

fl_waitq *fl_waitq_new(const fl_waitq_ops *ops, uint64_t word, uint32_t limit, uint32_t flags)
{
    return fl_waitq_new_within(sizeof(fl_waitq), ops, word, limit, flags);
}

fl_waitq *fl_waitq_new_within(size_t size, const fl_waitq_ops *ops, uint64_t word, uint32_t limit,
                              uint32_t flags)
{
    fl_waitq *waitq = calloc(1, size);
    if (waitq != NULL) {
        waitq->word = word;
        waitq->ops = ops;
        waitq->generation = fl_fork_generation;
        waitq->refs = 1;
        waitq->limit = limit;
        waitq->flags = flags;
    }
    return waitq;
}

void fl_waitq_ref(fl_waitq *waitq)
{
    fl_fetch_add(&waitq->refs, 1, relaxed); /* the caller has one */
}

void fl_waitq_unref(fl_waitq *waitq)
{
    if (fl_fetch_sub(&waitq->refs, 1, acq_rel) == 1) { /* pairs with itself: the last one sees what all did */
        free(waitq);
    }
}

void fl_waitq_refresh_slow(fl_waitq *waitq)
{
    fl_mutex_lock(&fl_fork_repairs);
    if (fl_load(&waitq->generation, relaxed) != fl_fork_generation) { /* written under `fl_fork_repairs` */
        /* The other threads of the parent do not exist here, and may have been anywhere. */
        waitq->head = waitq->tail = NULL;
        fl_store(&waitq->waiting, 0, relaxed); /* published with the generation, as all of this */
        fl_store(&waitq->lock, 0, relaxed);
        if (waitq->ops->forked != NULL) {
            waitq->ops->forked(waitq);
        }
        fl_store(&waitq->generation, fl_fork_generation, release); /* pairs with fl_waitq_refresh */
    }
    fl_mutex_unlock(&fl_fork_repairs);
}

void fl_waitq_lock(fl_waitq *waitq)
{
    fl_waitq_refresh(waitq);
    fl_mutex_lock(&waitq->lock);
}

/* A waiter that is woken may be gone as soon as its state says so, but for a task's, which is counted. */
static void deliver(const fl_wake *at, uint32_t count)
{
    for (const fl_wake *wake = at; wake < at + count; wake++) {
        if (wake->mailbox != NULL) {
            fl_mailbox_post(wake->mailbox, wake->waiter);
        } else {
            fl_unpark(wake->word);
        }
    }
}

static void remember(fl_wakes *wakes, fl_wake wake)
{
    if (wakes->count == FL_WAKES) {
        deliver(wakes->at, wakes->count);
        wakes->count = 0;
    }
    wakes->at[wakes->count++] = wake;
}

void fl_waitq_lock_for_all(fl_waitq *waitq, fl_wakes *wakes)
{
    uint32_t waiting = fl_waitq_waiting(waitq);
    if (waiting > FL_WAKES) {
        wakes->list = malloc(sizeof *wakes->list + waiting * sizeof wakes->list->at[0]);
        if (wakes->list != NULL) {
            *wakes->list = (fl_wake_list){.refs = 1, .room = waiting};
        }
    }
    fl_waitq_lock(waitq);
}

static void drop_list(fl_wake_list *list)
{
    if (fl_fetch_sub(&list->refs, 1, acq_rel) == 1) { /* pairs with itself: the last one sees what all did */
        free(list);
    }
}

/* Queue lock. */
static void wake_some(fl_wake_list *list, uint32_t most, fl_wakes *wakes)
{
    for (uint32_t i = 0; i < most && list->woken < list->threads; i++) {
        remember(wakes, list->at[list->woken++]);
    }
}

void fl_waitq_unlock(fl_waitq *waitq, fl_wakes *wakes)
{
    fl_wake_list *list = wakes->list;
    if (list != NULL) {
        wake_some(list, FL_WAKES_BEGUN, wakes);
    }
    fl_mutex_unlock(&waitq->lock);
    deliver(wakes->at, wakes->count);
    wakes->count = 0;
    if (list != NULL) {
        wakes->list = NULL;
        for (uint32_t i = 1; i <= list->tasks; i++) {
            deliver(&list->at[list->room - i], 1);
        }
        drop_list(list);
    }
}

/* All of the list are woken: the thread that let them go has woken two, and each that is awake wakes two
   more while there are any left. */
void fl_waiter_wake_others(fl_waiter *waiter)
{
    if (waiter->mailbox == NULL && waiter->together != NULL) {
        fl_wakes wakes = {0};
        fl_waitq *waitq = fl_waiter_lock(waiter); /* by now the list is whole */
        wake_some(waiter->together, 2, &wakes);
        fl_waitq_unlock(waitq, &wakes);
        drop_list(waiter->together);
        waiter->together = NULL;
    }
}

/* Queue lock. Between its neighbours, either of which may be NULL. */
static void insert(fl_waitq *waitq, fl_waiter *before, fl_waiter *waiter, fl_waiter *after)
{
    if (waiter->since == 0) {
        waiter->since = fl_clock_now();
    }
    waiter->prev = before;
    waiter->next = after;
    *(before != NULL ? &before->next : &waitq->head) = waiter;
    *(after != NULL ? &after->prev : &waitq->tail) = waiter;
    waiter->generation = fl_fork_generation;
    waiter->queued = true;
    fl_fetch_add(&waitq->waiting, 1, relaxed); /* a figure to show */
}

void fl_waitq_push(fl_waitq *waitq, fl_waiter *waiter)
{
    insert(waitq, waitq->tail, waiter, NULL);
}

void fl_waitq_push_first(fl_waitq *waitq, fl_waiter *waiter)
{
    insert(waitq, NULL, waiter, waitq->head);
}

void fl_waitq_unlink(fl_waitq *waitq, fl_waiter *waiter)
{
    *(waiter->prev != NULL ? &waiter->prev->next : &waitq->head) = waiter->next;
    *(waiter->next != NULL ? &waiter->next->prev : &waitq->tail) = waiter->prev;
    waiter->queued = false;
    fl_fetch_sub(&waitq->waiting, 1, relaxed); /* a figure to show */
}

/* Queue lock. Changes the state of what is queued, and so waits, and puts its thread or loop on the wake
   list. Its own side may forget a task's waiter after the change: the wake list has a reference. False:
   another of its choice was first. */
static bool settle(fl_waiter *waiter, fl_waiter_state to, fl_wakes *wakes)
{
    fl_mailbox *mailbox = waiter->mailbox;
    fl_choice *choice = waiter->choice;
    if (choice != NULL && to != FL_WOKEN && !fl_choice_win(choice, waiter->place_in_choice)) {
        return false; /* it is about to leave */
    }
    fl_wake_list *list = wakes->list;
    if (to == FL_WOKEN || (list != NULL && list->threads + list->tasks == list->room)) {
        list = NULL; /* one that is woken to look again goes on from there alone */
    }
    if (mailbox != NULL) {
        fl_waiter_ref(waiter);
    } else {
        waiter->together = list;
        if (list != NULL) {
            fl_fetch_add(&list->refs, 1, relaxed); /* the caller has one */
        }
    }
    fl_wake wake = {waiter, mailbox, choice != NULL ? &choice->word : &waiter->state};
    /* pairs with every reader of the state: what was done before the grant is seen after it */
    fl_exchange(&waiter->state, to, acq_rel);
    if (choice != NULL && to == FL_WOKEN) { /* it leaves under the queue lock, and so is here still */
        fl_choice_wake(choice);
    }
    if (list == NULL) {
        remember(wakes, wake);
    } else if (mailbox == NULL) {
        list->at[list->threads++] = wake;
    } else {
        list->at[list->room - ++list->tasks] = wake;
    }
    return true;
}

bool fl_waitq_grant(fl_waitq *waitq, fl_waiter *waiter, fl_wakes *wakes)
{
    fl_waitq_unlink(waitq, waiter);
    return settle(waiter, FL_GRANTED, wakes);
}

void fl_waitq_refuse(fl_waitq *waitq, fl_waiter *waiter, fl_wakes *wakes)
{
    fl_waitq_unlink(waitq, waiter);
    settle(waiter, FL_REFUSED, wakes); /* or another of its choice was first */
}

void fl_waitq_refuse_all(fl_waitq *waitq, const void *request, fl_wakes *wakes)
{
    for (fl_waiter *waiter = waitq->head, *next; waiter != NULL; waiter = next) {
        next = waiter->next;
        if (request == NULL || fl_load(&waiter->request, relaxed) == request) { /* written before it came */
            fl_waitq_refuse(waitq, waiter, wakes);
        }
    }
}

void fl_waitq_refuse_of(fl_waitq *waitq, const void *request)
{
    fl_wakes wakes = {0};
    fl_waitq_lock_for_all(waitq, &wakes);
    fl_waitq_refuse_all(waitq, request, &wakes);
    fl_waitq_serve(waitq, &wakes);
    fl_waitq_unlock(waitq, &wakes);
}

void fl_waitq_wake(fl_waiter *waiter, fl_wakes *wakes)
{
    if (fl_load(&waiter->state, relaxed) != FL_WOKEN) { /* under the queue lock */
        settle(waiter, FL_WOKEN, wakes);
    }
}

void fl_waitq_wake_head(fl_waitq *waitq)
{
    fl_wakes wakes = {0};
    fl_waitq_lock(waitq);
    if (waitq->head != NULL) {
        fl_waitq_wake(waitq->head, &wakes);
    }
    fl_waitq_unlock(waitq, &wakes);
}

void fl_waiter_init(fl_waiter *waiter, fl_waitq *waitq, uint32_t wanted, fl_stake stake)
{
    *waiter = (fl_waiter){
        .state = FL_WAITING,
        .waitq = waitq,
        .wanted = wanted,
        .stake = stake,
        .look = FL_FOREVER,
        .for_lock = waitq->flags & (FL_WAITQ_OWNED | FL_WAITQ_TO_LOCK),
    };
}

fl_waitq *fl_waiter_lock(fl_waiter *waiter)
{
    for (;;) {
        fl_waitq *waitq = fl_load(&waiter->waitq, acquire); /* pairs with fl_condition_give */
        fl_waitq_lock(waitq);
        if (fl_load(&waiter->waitq, relaxed) == waitq) { /* it does not move while its queue is locked */
            return waitq;
        }
        fl_mutex_unlock(&waitq->lock);
    }
}

static bool is_waiting(uint32_t state)
{
    return state == FL_WAITING || state == FL_WOKEN;
}

bool fl_waiter_waits(fl_waiter *waiter)
{
    fl_waitq *waitq = fl_waiter_lock(waiter);
    uint32_t state = fl_load(&waiter->state, acquire); /* pairs with settle */
    fl_mutex_unlock(&waitq->lock);
    return is_waiting(state) || state == FL_CLAIMED;
}

/* Queue lock. False of a waiter that a forked child has from its parent: the queue that it was in, and its
   neighbours there, are the parent's. */
static bool is_queued_here(const fl_waiter *waiter)
{
    return waiter->generation == fl_fork_generation;
}

bool fl_waitq_enter(fl_waiter *waiter)
{
    fl_waitq *waitq = fl_load(&waiter->waitq, relaxed); /* its own side's; it is in no queue */
    fl_waitq_lock(waitq);
    fl_store(&waiter->state, FL_WAITING, relaxed); /* published by the queue lock */
    fl_wakes wakes; /* but for its array, which is as long as all the rest of this */
    wakes.count = 0;
    wakes.list = NULL;
    wakes.left = NULL;
    bool taken = waitq->ops->enter(waitq, waiter, &wakes);
    if (!taken && waitq->head == waiter) {
        fl_waitq_serve(waitq, &wakes);
    }
    fl_waitq_unlock(waitq, &wakes);
    return taken;
}

bool fl_waitq_retry(fl_waiter *waiter)
{
    fl_wakes wakes = {0};
    fl_waitq *waitq = fl_waiter_lock(waiter);
    uint32_t state = fl_load(&waiter->state, acquire); /* pairs with settle */
    bool taken = state == FL_GRANTED, gives_back = false;
    if (is_waiting(state)) {
        fl_store(&waiter->state, FL_WAITING, relaxed); /* published by the queue lock */
        if (is_queued_here(waiter) && !waiter->queued) {
            /* its turn came when its choice was decided elsewhere: it was taken out, and is about to leave */
        } else if (is_queued_here(waiter) ? waitq->ops->retry(waitq, waiter, &wakes)
                                          : waitq->ops->enter(waitq, waiter, &wakes)) {
            taken = waiter->choice == NULL || fl_choice_win(waiter->choice, waiter->place_in_choice);
            gives_back = !taken;
            if (taken) {
                fl_store(&waiter->state, FL_GRANTED, release); /* pairs with its own side's look */
            }
        }
    }
    fl_waitq_unlock(waitq, &wakes);
    if (gives_back) {
        fl_waitq_give_back(waiter);
    }
    return taken;
}

bool fl_waitq_leave(fl_waiter *waiter, fl_waiter_state why)
{
    fl_wakes wakes = {0};
    fl_waitq *waitq = fl_waiter_lock(waiter);
    bool waits = is_waiting(fl_load(&waiter->state, acquire)); /* pairs with settle */
    if (waits && !(why == FL_TIMED_OUT && fl_load(&waiter->moved_from, relaxed) != NULL)) { /* queue lock */
        fl_store(&waiter->state, why, relaxed); /* published by the queue lock */
        if (waiter->queued && is_queued_here(waiter)) {
            fl_waitq_unlink(waitq, waiter);
            wakes.left = waiter;
        }
        fl_waitq_serve(waitq, &wakes); /* it may have been woken, or in the next one's way */
    } else {
        waits = false;
    }
    fl_waitq_unlock(waitq, &wakes);
    return waits;
}

static bool leave_or_give_back(fl_waiter *waiter, fl_waiter_state why)
{
    if (fl_waitq_leave(waiter, why)) {
        return true;
    }
    fl_waiter_wake_others(waiter);
    if (waiter->final && why == FL_CANCELLED) {
        return false;
    }
    uint32_t state = FL_GRANTED;
    while (!fl_cas(&waiter->state, &state, why, acq_rel, acquire)) { /* pairs with settle, fl_combine_done */
        if (state != FL_CLAIMED && state != FL_DONE) {
            return false;
        }
    }
    if (state == FL_GRANTED) {
        fl_waitq_give_back(waiter);
    }
    return true;
}

bool fl_waiter_abandon(fl_waiter *waiter, fl_waiter_state why)
{
    bool gone = leave_or_give_back(waiter, why);
    fl_waitq *from = fl_load(&waiter->moved_from, relaxed); /* it waits no more, and so does not move */
    if (gone && from != NULL) {
        from->ops->pass_on(from);
    }
    return gone;
}

fl_wait_result fl_waitq_wait(fl_waiter *waiter, int64_t deadline, int64_t signals)
{
    /* a waiter for what comes with time never moves */
    int64_t (*look)(const fl_waiter *) = fl_load(&waiter->waitq, relaxed)->ops->look;
    bool looks = false;
    for (;;) {
        uint32_t state = fl_load(&waiter->state, acquire); /* pairs with settle, and fl_combine_done */
        if (state == FL_GRANTED || state == FL_DONE ||
            ((looks || state == FL_WOKEN) && is_waiting(state) && fl_waitq_retry(waiter))) {
            fl_waiter_wake_others(waiter);
            return FL_WAIT_GRANTED;
        }
        if (state == FL_REFUSED) {
            fl_waiter_wake_others(waiter);
            return FL_WAIT_REFUSED;
        }
        if (!waiter->told && fl_waitq_orphaned(fl_load(&waiter->waitq, relaxed))) { /* either will do */
            waiter->told = true;
            return FL_WAIT_INTERRUPTED;
        }
        int64_t date = look == NULL ? FL_FOREVER : look(waiter), until = date < signals ? date : signals;
        bool moved = fl_load(&waiter->moved_from, relaxed) != NULL; /* fl_waitq_leave looks again */
        if (!moved && deadline < until) {
            until = deadline;
        }
        fl_park_result result = fl_park(&waiter->state, state == FL_CLAIMED ? state : FL_WAITING, until);
        looks = result == FL_PARK_TIMED_OUT && until == date;
        if (result == FL_PARK_INTERRUPTED || (result == FL_PARK_TIMED_OUT && until == signals)) {
            return FL_WAIT_INTERRUPTED;
        }
        if (result == FL_PARK_TIMED_OUT && !looks && fl_waitq_leave(waiter, FL_TIMED_OUT)) {
            return FL_WAIT_TIMED_OUT;
        }
    }
}

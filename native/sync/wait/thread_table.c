/* See thread_table.h. */
#include "sync/wait/thread_table.h"

#include <stdlib.h>
#ifndef FL_MODEL
#include <pthread.h>

#include "machine/thread.h"
#endif

#ifdef FL_MODEL
#define SHARDS 1u
#else
#define SHARDS 32u
#endif

static struct {
    fl_mutex lock;
    fl_parked *first, *for_locks;
    char own_line[40];
} shards[SHARDS] __attribute__((aligned(64)));

static struct {
    fl_mutex lock;
    fl_mailbox *first;
    uint32_t count;
} mailboxes;

static uint32_t shard_of(uint64_t number)
{
    return (uint32_t)(number >> 1) % SHARDS;
}

static void link_in(fl_parked *parked)
{
    fl_parked **first = &shards[shard_of(parked->number)].first;
    parked->next = *first;
    parked->link = first;
    if (*first != NULL) {
        (*first)->link = &parked->next;
    }
    *first = parked;
}

/* Shard's lock: into the list of those that sleep for what has a holder, and out of it. */
static void link_for_lock(fl_parked *parked)
{
    fl_parked **first = &shards[shard_of(parked->number)].for_locks;
    parked->next_for_lock = *first;
    parked->link_for_lock = first;
    if (*first != NULL) {
        (*first)->link_for_lock = &parked->next_for_lock;
    }
    *first = parked;
}

static void unlink_for_lock(fl_parked *parked)
{
    if (parked->link_for_lock != NULL) {
        *parked->link_for_lock = parked->next_for_lock;
        if (parked->next_for_lock != NULL) {
            parked->next_for_lock->link_for_lock = parked->link_for_lock;
        }
        parked->link_for_lock = NULL;
    }
}

#ifdef FL_MODEL /* its threads have no storage of their own, and are all there from the beginning */
static fl_parked model_records[4];
static bool ended(uint64_t owner);

fl_parked *fl_thread_table_own(void)
{
    return &model_records[fl_owner_thread() >> 1];
}

bool fl_thread_table_setup(void)
{
    shards[0].first = shards[0].for_locks = NULL;
    for (uint32_t i = 0; i < sizeof model_records / sizeof model_records[0]; i++) {
        model_records[i] = (fl_parked){.number = (uint64_t)i << 1, .ident = i};
        link_in(&model_records[i]);
    }
    fl_owner_ended = ended;
    return true;
}
#else
static bool ended(uint64_t owner);
static fl_atomic(uint64_t) threads;
static pthread_key_t ending;
static bool ready;

static _Thread_local uint64_t mine FL_THREAD_LOCAL_MODEL;
static _Thread_local fl_parked *record FL_THREAD_LOCAL_MODEL;

/* Never given twice, unlike the thread identifiers of the system. Without memory for its record, or before
   fl_thread_table_setup, a thread is unknown. */
static void enlist(void)
{
    mine = (fl_fetch_add(&threads, 1, relaxed) + 1) << 1; /* only unique; the low bit says "task" */
    fl_parked *made = ready ? calloc(1, sizeof *made) : NULL;
    if (made == NULL || pthread_setspecific(ending, made) != 0) {
        fl_owner_ended = NULL; /* from now on a thread that is not there may live */
        free(made);
        return;
    }
    made->number = mine;
    made->ident = fl_thread_ident();
    fl_mutex *lock = &shards[shard_of(mine)].lock;
    fl_mutex_lock(lock);
    link_in(made);
    fl_mutex_unlock(lock);
    record = made;
}

uint64_t fl_owner_thread(void)
{
    if (__builtin_expect(mine == 0, false)) {
        enlist();
    }
    return mine;
}

/* What it may do after that, it does as another. */
static void end(void *op)
{
    fl_parked *parked = op;
    fl_thread_table_unregister(parked);
    free(parked->spare);
    free(parked);
    record = NULL;
    mine = 0;
}

fl_parked *fl_thread_table_own(void)
{
    fl_owner_thread();
    return record;
}

static void before_fork(void)
{
    for (uint32_t i = 0; i < SHARDS; i++) {
        fl_mutex_lock(&shards[i].lock);
    }
    fl_mutex_lock(&mailboxes.lock);
}

static void after_fork(void)
{
    fl_mutex_unlock(&mailboxes.lock);
    for (uint32_t i = 0; i < SHARDS; i++) {
        fl_mutex_unlock(&shards[i].lock);
    }
}

/* Only the thread that forked is in the child. */
static void after_fork_in_child(void)
{
    for (uint32_t i = 0; i < SHARDS; i++) {
        fl_parked *next;
        for (fl_parked *parked = shards[i].first; parked != NULL; parked = next) {
            next = parked->next;
            if (parked != record) {
                free(parked->spare);
                free(parked);
            }
        }
        shards[i].first = shards[i].for_locks = NULL;
    }
    if (record != NULL) {
        link_in(record);
        record->link_for_lock = NULL;
    }
    after_fork();
}

static void set_up(void)
{
    ready = pthread_key_create(&ending, end) == 0 &&
            fl_fork_call(before_fork, after_fork, after_fork_in_child);
    fl_owner_ended = ready ? ended : NULL;
}

bool fl_thread_table_setup(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, set_up);
    return ready;
}
#endif

fl_waiter *fl_thread_waiter(fl_waitq *waitq, uint32_t wanted, fl_stake stake)
{
    fl_parked *me = fl_thread_table_own();
    fl_waiter *waiter = me != NULL ? me->spare : NULL; /* NULL too within a handler that interrupts a wait */
    if (waiter != NULL) {
        me->spare = NULL;
    } else {
        waiter = malloc(sizeof *waiter);
    }
    if (waiter != NULL) {
        fl_waiter_init(waiter, waitq, wanted, stake);
    }
    return waiter;
}

void fl_thread_waiter_done(fl_waiter *waiter)
{
    fl_parked *me = fl_thread_table_own();
    if (me != NULL && me->spare == NULL) {
        me->spare = waiter;
    } else {
        free(waiter);
    }
}

/* Whether it may come to wait for a holder. One that waits for several things may get another. */
static bool is_for_lock(const fl_waiter *waiter)
{
    return waiter->choice == NULL && waiter->for_lock;
}

void fl_thread_table_begin(fl_waiter *waiter, int64_t deadline, void *state, int64_t space)
{
    fl_parked *me = fl_thread_table_own();
    if (me == NULL) {
        return;
    }
    fl_mutex *lock = &shards[shard_of(me->number)].lock;
    fl_mutex_lock(lock);
    me->waiter = waiter;
    if (is_for_lock(waiter)) {
        link_for_lock(me);
    }
    me->deadline = deadline;
    me->state = state;
    me->space = space;
    fl_mutex_unlock(lock);
}

void fl_thread_table_end(void)
{
    fl_parked *me = fl_thread_table_own();
    if (me == NULL) {
        return;
    }
    fl_mutex *lock = &shards[shard_of(me->number)].lock;
    fl_mutex_lock(lock);
    uint32_t held;
    while ((held = fl_load(&me->held, relaxed)) != 0) { /* under the lock */
        fl_mutex_unlock(lock);
        fl_park(&me->held, held, FL_FOREVER);
        fl_mutex_lock(lock);
    }
    unlink_for_lock(me);
    me->waiter = NULL;
    fl_mutex_unlock(lock);
}

void fl_thread_table_parked(void (*see)(void *context, fl_parked *parked), void *context)
{
    for (uint32_t i = 0; i < SHARDS; i++) {
        fl_mutex_lock(&shards[i].lock);
        for (fl_parked *parked = shards[i].first; parked != NULL; parked = parked->next) {
            if (parked->waiter != NULL) {
                see(context, parked);
            }
        }
        fl_mutex_unlock(&shards[i].lock);
    }
}

void fl_thread_table_hold(fl_parked *parked)
{
    fl_fetch_add(&parked->held, 1, relaxed); /* under the lock */
}

void fl_thread_table_release(fl_parked *parked)
{
    fl_mutex *lock = &shards[shard_of(parked->number)].lock;
    fl_mutex_lock(lock);
    bool last = fl_fetch_sub(&parked->held, 1, relaxed) == 1; /* under the lock */
    fl_mutex_unlock(lock);
    if (last) {
        fl_unpark(&parked->held); /* its address only: it may have gone on */
    }
}

uint64_t fl_thread_table_ident(uint64_t owner)
{
    uint64_t number = fl_owner_place(owner) & ~(uint64_t)FL_OWNER_TASK, ident = 0;
    fl_mutex *lock = &shards[shard_of(number)].lock;
    fl_mutex_lock(lock);
    for (fl_parked *parked = shards[shard_of(number)].first; parked != NULL; parked = parked->next) {
        if (parked->number == number) {
            ident = parked->ident;
        }
    }
    fl_mutex_unlock(lock);
    return ident;
}

void fl_thread_table_add(fl_mailbox *mailbox, int64_t space)
{
    mailbox->space = space;
    fl_mutex_lock(&mailboxes.lock);
    mailbox->listed = mailboxes.first;
    mailbox->link = &mailboxes.first;
    if (mailboxes.first != NULL) {
        mailboxes.first->link = &mailbox->listed;
    }
    mailboxes.first = mailbox;
    mailboxes.count++;
    fl_mutex_unlock(&mailboxes.lock);
}

void fl_thread_table_remove(fl_mailbox *mailbox)
{
    fl_mutex_lock(&mailboxes.lock);
    *mailbox->link = mailbox->listed;
    if (mailbox->listed != NULL) {
        mailbox->listed->link = mailbox->link;
    }
    mailboxes.count--;
    fl_mutex_unlock(&mailboxes.lock);
}

/* All mailboxes, each with a reference; NULL: no memory. */
static fl_mailbox **all_mailboxes(uint32_t *count)
{
    uint32_t room = 0;
    fl_mailbox **found = NULL;
    for (;;) {
        fl_mutex_lock(&mailboxes.lock);
        *count = mailboxes.count;
        bool fits = mailboxes.count <= room;
        uint32_t at = 0;
        for (fl_mailbox *mailbox = mailboxes.first; fits && mailbox != NULL; mailbox = mailbox->listed) {
            fl_fetch_add(&mailbox->refs, 1, relaxed); /* the list has one */
            found[at++] = mailbox;
        }
        fl_mutex_unlock(&mailboxes.lock);
        if (fits && found != NULL) {
            return found;
        }
        free(found);
        room = *count + 8;
        found = calloc(room, sizeof *found);
        if (found == NULL) {
            return NULL;
        }
    }
}

typedef void (*see_task_fn)(void *context, const fl_mailbox *mailbox, fl_waiter *waiter);

/* `states`: a bit for each of the states that are looked for. */
static void see_list(fl_mailbox *mailbox, fl_waiter *waiter, uint32_t states, see_task_fn see, void *context)
{
    for (; waiter != NULL; waiter = waiter->after) {
        if (states >> fl_load(&waiter->state, acquire) & 1) { /* pairs with settle */
            see(context, mailbox, waiter);
        }
    }
}

static bool see_tasks(uint32_t states, bool for_locks_alone, see_task_fn see, void *context)
{
    uint32_t count;
    fl_mailbox **found = all_mailboxes(&count);
    if (found == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        fl_mailbox_lock(found[i]);
        see_list(found[i], found[i]->for_locks, states, see, context);
        if (!for_locks_alone) {
            see_list(found[i], found[i]->others, states, see, context);
        }
        fl_mutex_unlock(&found[i]->lock);
    }
    for (uint32_t i = 0; i < count; i++) {
        fl_mailbox_unref(found[i]);
    }
    free(found);
    return true;
}

#define WAITS (1u << FL_WAITING | 1u << FL_WOKEN)

bool fl_thread_table_tasks(void (*see)(void *context, const fl_mailbox *mailbox, fl_waiter *waiter),
                           void *context)
{
    return see_tasks(WAITS, false, see, context);
}

typedef struct {
    const fl_waitq *waitq;
    uint32_t granted;
} permit_count;

static void count_granted(void *context, const fl_mailbox *mailbox, fl_waiter *waiter)
{
    permit_count *counted = context;
    bool ours = waiter->generation == fl_fork_generation ||
                fl_load(&mailbox->home, relaxed) == fl_fork_thread; /* written before the fork */
    if (waiter->waitq == counted->waitq && ours) {
        counted->granted += waiter->wanted;
    }
}

uint32_t fl_thread_table_granted(const fl_waitq *waitq)
{
    permit_count counted = {.waitq = waitq};
    see_tasks(1u << FL_GRANTED, false, count_granted, &counted); /* without memory as if there were none */
    return counted.granted;
}

static bool ended(uint64_t owner)
{
    return fl_thread_table_ident(owner) == 0;
}

/* What an ending thread leaves behind: wait queues with waiters, each once and with a reference. */
typedef struct {
    uint64_t number;
    fl_waitq **at;
    size_t count, room;
} orphans;

static void leave_behind(orphans *left, fl_waitq *waitq)
{
    if (waitq->ops->orphaned == NULL || !(waitq->flags & FL_WAITQ_OWNED) ||
        /* its own, and no other's by now */
        (fl_owner_place(fl_load(&waitq->owner, relaxed)) & ~(uint64_t)FL_OWNER_TASK) != left->number) {
        return;
    }
    for (size_t i = 0; i < left->count; i++) {
        if (left->at[i] == waitq) {
            return;
        }
    }
    if (left->count == left->room) {
        size_t room = left->room ? 2 * left->room : 8;
        fl_waitq **larger = realloc(left->at, room * sizeof *larger);
        if (larger == NULL) {
            return; /* the next waiter learns of it */
        }
        left->at = larger;
        left->room = room;
    }
    fl_waitq_ref(waitq);
    left->at[left->count++] = waitq;
}

static void see_task(void *context, const fl_mailbox *mailbox, fl_waiter *waiter)
{
    (void)mailbox;
    leave_behind(context, fl_load(&waiter->waitq, acquire)); /* pairs with fl_condition_give */
}

static void see_threads_for_locks(orphans *left)
{
    for (uint32_t i = 0; i < SHARDS; i++) {
        fl_mutex_lock(&shards[i].lock);
        for (fl_parked *parked = shards[i].for_locks; parked != NULL; parked = parked->next_for_lock) {
            leave_behind(left, fl_load(&parked->waiter->waitq, acquire)); /* as above */
        }
        fl_mutex_unlock(&shards[i].lock);
    }
}

void fl_thread_table_unregister(fl_parked *parked)
{
    orphans left = {.number = parked->number};
    fl_mutex *lock = &shards[shard_of(parked->number)].lock;
    fl_mutex_lock(lock);
    *parked->link = parked->next;
    if (parked->next != NULL) {
        parked->next->link = parked->link;
    }
    fl_mutex_unlock(lock);
    see_threads_for_locks(&left);
    see_tasks(WAITS, true, see_task, &left);
    for (size_t i = 0; i < left.count; i++) {
        left.at[i]->ops->orphaned(left.at[i]);
        fl_waitq_unref(left.at[i]);
    }
    free(left.at);
}

/* The thread table with real threads: a sleeper is seen, stays while it is held, and is gone with its
 * thread. */
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "sync/wait/thread_table.h"
#include "sync/locks/semaphore.h"
#include "waiting.h"

static fl_waitq *waitq;
static fl_atomic(uint64_t) number, ident;

static void *sleep_for_it(void *unused)
{
    fl_waiter waiter;
    fl_store(&number, fl_owner_thread(), relaxed);
    fl_store(&ident, (uint64_t)pthread_self(), relaxed);
    if (!fl_sem_try(waitq, 1, fl_owner_thread())) {
        fl_waiter_init(&waiter, waitq, 1, FL_HOLDER(fl_owner_thread()));
        if (!fl_waitq_enter(&waiter)) {
            fl_thread_table_begin(&waiter, FL_FOREVER, NULL, 7);
            CHECK_EQUAL(wait_entered(&waiter, FL_FOREVER), FL_WAIT_GRANTED);
            fl_thread_table_end();
        }
    }
    CHECK(fl_sem_give(waitq, 1) == FL_SEM_OK);
    return unused;
}

static void count(void *context, fl_parked *parked)
{
    CHECK(parked->waiter->waitq == waitq && parked->space == 7);
    CHECK(parked->waiter->stake.holder == parked->number);
    ++*(int *)context;
}

static int asleep(void)
{
    int found = 0;
    fl_thread_table_parked(count, &found);
    return found;
}

static void test_parked_thread_is_seen_and_gone_when_it_ends(void)
{
    pthread_t thread;
    waitq = fl_sem_new(0, 1, 0);
    CHECK(pthread_create(&thread, NULL, sleep_for_it, NULL) == 0);
    while (asleep() == 0) {
    }
    uint64_t sleeper = fl_load(&number, relaxed);
    CHECK(fl_thread_table_ident(sleeper) == fl_load(&ident, relaxed));
    CHECK(fl_thread_table_ident(sleeper | FL_OWNER_TASK) == fl_load(&ident, relaxed));
    fl_sem_give(waitq, 1);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(asleep() == 0 && fl_thread_table_ident(sleeper) == 0);
    CHECK(fl_thread_table_ident(fl_owner_thread()) == (uint64_t)pthread_self());
    fl_waitq_unref(waitq);
}

/* A child has its only thread, and no parked thread. */
static void test_child_knows_itself_alone(void)
{
    pthread_t thread;
    waitq = fl_sem_new(0, 1, 0);
    CHECK(pthread_create(&thread, NULL, sleep_for_it, NULL) == 0);
    while (asleep() == 0) {
    }
    pid_t child = fork();
    if (child == 0) {
        bool good = asleep() == 0 && fl_thread_table_ident(fl_load(&number, relaxed)) == 0 &&
                    fl_thread_table_ident(fl_owner_thread()) == (uint64_t)pthread_self();
        _exit(good ? 0 : 1);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    fl_sem_give(waitq, 1);
    CHECK(pthread_join(thread, NULL) == 0);
    fl_waitq_unref(waitq);
}

static struct held {
    fl_parked *at[16];
    int count;
} kept;

static void keep(void *context, fl_parked *parked)
{
    struct held *held = context;
    if (held->count < 16) {
        fl_thread_table_hold(parked);
        held->at[held->count++] = parked;
    }
}

static void *come_and_go(void *unused)
{
    for (int i = 0; i < 2000; i++) {
        sleep_for_it(NULL);
    }
    return unused;
}

static void test_record_that_is_held_stays_as_it_was(void)
{
    pthread_t threads[3];
    waitq = fl_sem_new(1, 1, 0);
    for (int i = 0; i < 3; i++) {
        CHECK(pthread_create(&threads[i], NULL, come_and_go, NULL) == 0);
    }
    for (int i = 0; i < 2000; i++) {
        kept.count = 0;
        fl_thread_table_parked(keep, &kept);
        for (int k = 0; k < kept.count; k++) {
            CHECK(kept.at[k]->waiter->waitq == waitq);
            CHECK(kept.at[k]->waiter->stake.holder == kept.at[k]->number);
            fl_thread_table_release(kept.at[k]);
        }
    }
    for (int i = 0; i < 3; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
    }
    CHECK(asleep() == 0);
    fl_waitq_unref(waitq);
}

static void count_task(void *context, const fl_mailbox *mailbox, fl_waiter *waiter)
{
    CHECK(mailbox->space == 3 && waiter->waitq == waitq);
    ++*(int *)context;
}

static void test_tasks_that_wait_are_seen_by_their_mailbox(void)
{
    waitq = fl_sem_new(0, 1, 0);
    fl_mailbox *mailbox = fl_mailbox_new();
    fl_thread_table_add(mailbox, 3);
    fl_waiter *waiter = fl_mailbox_waiter(mailbox, waitq, 1, FL_HOLDER(fl_owner_task()));
    CHECK(!fl_waitq_enter(waiter));
    int found = 0;
    CHECK(fl_thread_table_tasks(count_task, &found) && found == 1);
    fl_mailbox_close(mailbox);
    CHECK(fl_thread_table_tasks(count_task, &found) && found == 1);
    fl_thread_table_remove(mailbox);
    fl_mailbox_forget(waiter);
    fl_mailbox_unref(mailbox);
    fl_waitq_unref(waitq);
}

int main(void)
{
    CHECK(fl_waitq_setup());
    test_parked_thread_is_seen_and_gone_when_it_ends();
    test_child_knows_itself_alone();
    test_record_that_is_held_stays_as_it_was();
    test_tasks_that_wait_are_seen_by_their_mailbox();
    return 0;
}

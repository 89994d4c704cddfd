/* Handles: what they find, for how long, and that none of them ever means another thing. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "sync/locks/semaphore.h"
#include "interpreters/shared.h"

#define MANY 300

static void test_handle_finds_what_is_shared_until_the_last_reference_is_gone(void)
{
    fl_waitq *waitq = fl_sem_new(1, 1, 0);
    fl_shared *one = fl_shared_new(waitq, 7, NULL, NULL);
    uint64_t handle = fl_shared_handle(one);
    CHECK_EQUAL(waitq->refs, 2);
    fl_shared *again = fl_shared_find(handle);
    CHECK(again == one);
    CHECK_EQUAL(again->type, 7);
    fl_shared_unref(one);
    CHECK(fl_shared_find(handle) == again);
    fl_shared_unref(again);
    fl_shared_unref(again);
    CHECK(fl_shared_find(handle) == NULL);
    CHECK_EQUAL(waitq->refs, 1);
    fl_shared *later = fl_shared_new(waitq, 7, NULL, NULL);
    CHECK_EQUAL(later->slot, (uint32_t)handle);
    CHECK(fl_shared_find(handle) == NULL);
    CHECK(fl_shared_find(0) == NULL && fl_shared_find(UINT64_MAX) == NULL);
    fl_shared_unref(later);
    fl_waitq_unref(waitq);
}

static void test_table_grows(void)
{
    fl_waitq *waitq = fl_sem_new(1, 1, 0);
    fl_shared *many[MANY];
    for (int i = 0; i < MANY; i++) {
        many[i] = fl_shared_new(waitq, (uint32_t)i, NULL, NULL);
    }
    for (int i = 0; i < MANY; i++) {
        fl_shared *found = fl_shared_find(fl_shared_handle(many[i]));
        CHECK(found == many[i] && found->type == (uint32_t)i);
        fl_shared_unref(found);
        fl_shared_unref(many[i]);
    }
    CHECK_EQUAL(waitq->refs, 1);
    fl_waitq_unref(waitq);
}

static fl_item *item(int value)
{
    fl_item *made = malloc(sizeof *made + sizeof value);
    *made = (fl_item){.size = sizeof value, .refs = 1};
    memcpy(made->bytes, &value, sizeof value);
    return made;
}

static void drop(void *body)
{
    fl_item_unref(body);
}

static void test_body_goes_with_the_last_reference(void)
{
    fl_waitq *waitq = fl_sem_new(0, FL_SEM_MOST, 0);
    fl_item *body = item(1);
    fl_shared *one = fl_shared_new(waitq, 0, body, drop), *again = fl_shared_find(fl_shared_handle(one));
    fl_item_ref(body);
    fl_shared_unref(one);
    CHECK_EQUAL(body->refs, 2);
    fl_shared_unref(again);
    CHECK_EQUAL(body->refs, 1);
    fl_item_unref(body); /* freed, as a sanitizer sees */
    fl_waitq_unref(waitq);
}

static void *come_and_go(void *argument)
{
    uint64_t handle = *(uint64_t *)argument;
    fl_waitq *waitq = fl_sem_new(1, 1, 0);
    for (int i = 0; i < 2000; i++) {
        fl_shared *mine = fl_shared_new(waitq, 1, NULL, NULL), *common = fl_shared_find(handle);
        CHECK(common != NULL && common->type == 9);
        fl_shared_unref(common);
        fl_shared_unref(mine);
    }
    fl_waitq_unref(waitq);
    return NULL;
}

static void test_threads_share_and_let_go_at_once(void)
{
    fl_waitq *waitq = fl_sem_new(1, 1, 0);
    fl_shared *common = fl_shared_new(waitq, 9, NULL, NULL);
    uint64_t handle = fl_shared_handle(common);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) {
        CHECK_EQUAL(pthread_create(&threads[i], NULL, come_and_go, &handle), 0);
    }
    for (int i = 0; i < 4; i++) {
        CHECK_EQUAL(pthread_join(threads[i], NULL), 0);
    }
    CHECK_EQUAL(common->refs, 1);
    fl_shared_unref(common);
    fl_waitq_unref(waitq);
}

int main(void)
{
    CHECK(fl_waitq_setup());
    test_handle_finds_what_is_shared_until_the_last_reference_is_gone();
    test_table_grows();
    test_body_goes_with_the_last_reference();
    test_threads_share_and_let_go_at_once();
    return 0;
}

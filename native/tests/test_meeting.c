/* Senders and receivers between real threads, for the sanitizers; the races are the
   model's. */
#include <pthread.h>

#include "check.h"
#include "machine/clock.h"
#include "sync/coordination/meeting.h"
#include "waiting.h"

#define PAIRS 2
#define ROUNDS 2000

static fl_waitq *waitq;

/* One in three waits for a moment only. */
static int64_t some_time(int round)
{
    return round % 3 == 0 ? fl_clock_now() + 1000 * (round % 50) : FL_FOREVER;
}

/* An item: its sender, and its number there. Written by the sender alone, and read by the receiver. */
static struct {
    int sender, number;
} items[PAIRS][ROUNDS];
static fl_handoff handoffs[PAIRS][ROUNDS];
static int received[PAIRS][ROUNDS];

static void *send_all(void *argument)
{
    int self = (int)(uintptr_t)argument;
    for (int i = 0; i < ROUNDS; i++) {
        items[self][i].sender = self;
        items[self][i].number = i;
        handoffs[self][i].object = &items[self][i];
        fl_handoff *mine = &handoffs[self][i];
        if (wait_at(waitq, FL_MEET_SEND, fl_meeting_place(&mine), some_time(i)) != FL_WAIT_GRANTED) {
            CHECK(mine == &handoffs[self][i]);
            CHECK_EQUAL(wait_at(waitq, FL_MEET_SEND, fl_meeting_place(&mine), FL_FOREVER), FL_WAIT_GRANTED);
        }
        CHECK(mine == NULL);
    }
    return NULL;
}

static void *receive_many(void *argument)
{
    (void)argument;
    int last[PAIRS] = {-1, -1};
    for (int i = 0; i < ROUNDS; i++) {
        fl_handoff *came = NULL;
        if (wait_at(waitq, FL_MEET_RECEIVE, fl_meeting_place(&came), some_time(i)) != FL_WAIT_GRANTED) {
            CHECK(came == NULL);
            fl_wait_result result = wait_at(waitq, FL_MEET_RECEIVE, fl_meeting_place(&came), FL_FOREVER);
            CHECK_EQUAL(result, FL_WAIT_GRANTED);
        }
        int sender = ((int *)came->object)[0], number = ((int *)came->object)[1];
        CHECK(number > last[sender]);
        last[sender] = number;
        received[sender][number]++;
    }
    return NULL;
}

static void run(void *(*const *bodies)(void *), int count)
{
    pthread_t threads[2 * PAIRS];
    for (int i = 0; i < count; i++) {
        CHECK(pthread_create(&threads[i], NULL, bodies[i], (void *)(uintptr_t)(i / 2)) == 0);
    }
    for (int i = 0; i < count; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
    }
}

static void test_everything_that_is_sent_is_received_once(void)
{
    waitq = fl_meeting_new();
    run((void *(*[])(void *)){send_all, receive_many, send_all, receive_many}, 2 * PAIRS);
    for (int sender = 0; sender < PAIRS; sender++) {
        for (int i = 0; i < ROUNDS; i++) {
            CHECK_EQUAL(received[sender][i], 1);
        }
    }
    CHECK(waitq->waiting == 0 && fl_meeting_count(waitq).listed == 0);
    fl_waitq_unref(waitq);
}

int main(void)
{
    CHECK(fl_waitq_setup());
    test_everything_that_is_sent_is_received_once();
    return 0;
}

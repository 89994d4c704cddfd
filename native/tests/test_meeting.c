/* Senders and receivers, exchanges and phases between real threads, for the sanitizers; the races are the
   model's. */
#include <pthread.h>
#include <sched.h>

#include "check.h"
#include "sync/wait/choice.h"
#include "machine/clock.h"
#include "sync/coordination/meeting.h"
#include "sync/coordination/phaser.h"
#include "waiting.h"

#define PAIRS 2
#define ROUNDS 2000
#define PARTIES 3

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
            CHECK_EQUAL(wait_at(waitq, FL_MEET_RECEIVE, fl_meeting_place(&came), FL_FOREVER), FL_WAIT_GRANTED);
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
    CHECK(waitq->waiting == 0 && fl_meeting_listed(waitq) == 0);
    fl_waitq_unref(waitq);
}

/* Each begins with a token, and goes on with what it got. */
static int64_t tokens[2 * PAIRS];
static fl_atomic(int) next_token;

static void *exchange_many(void *argument)
{
    (void)argument;
    int self = fl_fetch_add(&next_token, 1, relaxed); /* only unique */
    fl_handoff mine = {.object = (void *)(uintptr_t)(1u << self)};
    fl_handoff *place = &mine;
    for (int i = 0; i < ROUNDS; i++) {
        wait_at(waitq, FL_MEET_SWAP, fl_meeting_place(&place), fl_clock_now() + 20000);
    }
    tokens[self] = (int64_t)(uintptr_t)place->object;
    /* its handoff is on this stack, and another's hand: no thread goes before all are done */
    static fl_atomic(int) done;
    fl_fetch_add(&done, 1, release); /* pairs with the acquire */
    while (fl_load(&done, acquire) < 2 * PAIRS) { /* pairs with the release */
        sched_yield();
    }
    return NULL;
}

static void test_tokens_that_are_exchanged_are_all_there(void)
{
    waitq = fl_meeting_new();
    run((void *(*[])(void *)){exchange_many, exchange_many, exchange_many, exchange_many}, 2 * PAIRS);
    int64_t all = 0;
    for (int i = 0; i < 2 * PAIRS; i++) {
        CHECK((all & tokens[i]) == 0);
        all |= tokens[i];
    }
    CHECK_EQUAL(all, (1 << 2 * PAIRS) - 1);
    CHECK_EQUAL(waitq->waiting, 0);
    fl_waitq_unref(waitq);
}

/* The same at two places at once, with a handoff for each: it goes on with what came at one of them. */
static fl_waitq *waitqs[2];
static fl_handoff brought[2 * PAIRS][ROUNDS][2];
static fl_atomic(int) met;

static void *exchange_by_a_choice(void *argument)
{
    (void)argument;
    int self = fl_fetch_add(&next_token, 1, relaxed); /* only unique */
    void *token = (void *)(uintptr_t)(1u << self);
    for (int i = 0; i < ROUNDS; i++) {
        fl_waiter waiters[2], *pointers[2] = {&waiters[0], &waiters[1]};
        fl_choice choice = {FL_CHOICE_OPEN, 2, pointers};
        fl_handoff *places[2];
        for (uint32_t at = 0; at < 2; at++) {
            places[at] = &brought[self][i][at];
            places[at]->object = token;
            fl_waiter_init(&waiters[at], waitqs[at], FL_MEET_SWAP, fl_meeting_place(&places[at]));
            waiters[at].choice = &choice;
            waiters[at].place_in_choice = at;
        }
        fl_choice_begin(&choice, (uint32_t)(self + i) % 2);
        int64_t deadline = fl_clock_now() + 20000;
        while (fl_choice_wait(&choice, deadline, FL_FOREVER) == FL_WAIT_INTERRUPTED) {
        }
        uint32_t winner = fl_choice_end(&choice);
        for (uint32_t at = 0; at < 2; at++) {
            CHECK((places[at] != &brought[self][i][at]) == (at == winner));
        }
        if (winner != FL_CHOICE_NONE) {
            token = places[winner]->object;
            fl_fetch_add(&met, 1, relaxed); /* a figure */
        }
    }
    tokens[self] = (int64_t)(uintptr_t)token;
    return NULL;
}

static void test_tokens_that_are_exchanged_by_a_choice_are_all_there(void)
{
    fl_store(&next_token, 0, relaxed); /* no thread runs */
    for (int i = 0; i < 2; i++) {
        waitqs[i] = fl_meeting_new();
    }
    run((void *(*[])(void *)){exchange_by_a_choice, exchange_by_a_choice, exchange_by_a_choice,
                              exchange_by_a_choice},
        2 * PAIRS);
    int64_t all = 0;
    for (int i = 0; i < 2 * PAIRS; i++) {
        CHECK((all & tokens[i]) == 0);
        all |= tokens[i];
    }
    CHECK_EQUAL(all, (1 << 2 * PAIRS) - 1);
    CHECK_EQUAL(fl_load(&met, relaxed) % 2, 0); /* all have ended */
    for (int i = 0; i < 2; i++) {
        CHECK_EQUAL(waitqs[i]->waiting, 0);
        fl_waitq_unref(waitqs[i]);
    }
}

/* Each writes for the phase what the others read in the next. */
static fl_phaser root, leaf;
static int written[2][PARTIES];
static fl_atomic(int) next_party;

static void arrive_and_wait(fl_phaser *self)
{
    uint32_t phase;
    fl_phaser_result result = fl_phaser_arrive(self, false, &phase);
    if (result == FL_PHASER_LAST) {
        CHECK(!fl_phaser_advance(&root, false));
    } else {
        CHECK(result == FL_PHASER_OK);
        CHECK_EQUAL(wait_at(root.waitq, phase, (fl_stake){0}, FL_FOREVER), FL_WAIT_GRANTED);
    }
}

static void *write_and_read(void *argument)
{
    (void)argument;
    int self = fl_fetch_add(&next_party, 1, relaxed); /* only unique */
    fl_phaser *mine = self == 0 ? &root : &leaf;
    for (int i = 0; i < ROUNDS; i++) {
        written[i % 2][self] = i;
        arrive_and_wait(mine);
        for (int other = 0; other < PARTIES; other++) {
            CHECK_EQUAL(written[i % 2][other], i);
        }
    }
    uint32_t phase;
    if (fl_phaser_arrive(mine, true, &phase) == FL_PHASER_LAST) {
        CHECK(!fl_phaser_advance(&root, false));
    }
    return NULL;
}

static void test_a_phase_sees_what_was_written_before_it(void)
{
    uint32_t phase;
    waitq = fl_phaser_new_waitq();
    root = (fl_phaser){.waitq = waitq};
    leaf = (fl_phaser){.waitq = waitq, .parent = &root};
    CHECK(fl_phaser_register(&root, 1, &phase) == FL_PHASER_OK);
    CHECK(fl_phaser_register(&leaf, PARTIES - 1, &phase) == FL_PHASER_OK);
    run((void *(*[])(void *)){write_and_read, write_and_read, write_and_read}, PARTIES);
    CHECK(fl_phaser_word(waitq) == (ROUNDS | FL_PHASER_TERMINATED));
    fl_waitq_unref(waitq);
}

/* Phases of half a circle ahead are to come, the others are over; after the last comes 0. */
static void test_phases_go_round(void)
{
    fl_waitq *here = fl_phaser_new_waitq();
    fl_phaser one = {.waitq = here};
    uint32_t phase;
    here->word = FL_PHASER_PHASE;
    CHECK(fl_phaser_register(&one, 1, &phase) == FL_PHASER_OK && phase == FL_PHASER_PHASE);
    CHECK(!fl_phaser_ops.attempt(here, FL_PHASER_PHASE, (fl_stake){0}) && !fl_phaser_ops.attempt(here, 0, (fl_stake){0}));
    CHECK(fl_phaser_ops.attempt(here, FL_PHASER_PHASE - 1, (fl_stake){0}));
    CHECK(fl_phaser_arrive(&one, false, &phase) == FL_PHASER_LAST && phase == FL_PHASER_PHASE);
    CHECK(fl_phaser_arrive(&one, true, &phase) == FL_PHASER_OK && phase == 0);
    CHECK(fl_phaser_arrive(&one, true, &phase) == FL_PHASER_UNREGISTERED);
    CHECK(fl_phaser_advance(&one, false) && fl_phaser_word(here) == FL_PHASER_ADVANCING);
    CHECK(fl_phaser_ops.attempt(here, FL_PHASER_PHASE, (fl_stake){0}));
    CHECK(!fl_phaser_advance(&one, false) && fl_phaser_word(here) == FL_PHASER_TERMINATED);
    fl_waitq_unref(here);
}

int main(void)
{
    CHECK(fl_waitq_setup());
    test_phases_go_round();
    test_everything_that_is_sent_is_received_once();
    test_tokens_that_are_exchanged_are_all_there();
    test_tokens_that_are_exchanged_by_a_choice_are_all_there();
    test_a_phase_sees_what_was_written_before_it();
    return 0;
}

/* Parties of a phaser, which come and go: no phase ends before all that are registered have arrived. */
#include "sync/coordination/phaser.h"
#include "scenarios.h"

#include <string.h>

#define PHASES 4

/* A root, and one that is its party as long as it has some itself. */
static fl_phaser root, leaf;
static uint32_t begun; /* the phase that has begun; the parties look at it */
static bool acting;

static void begin_phaser(uint32_t at_root, uint32_t at_leaf)
{
    memset(frames, 0, sizeof frames);
    wakeup = begun = 0;
    acting = false;
    mailbox = fl_mailbox_new();
    waitq = fl_phaser_new_waitq();
    root = (fl_phaser){.waitq = waitq};
    leaf = (fl_phaser){.waitq = waitq, .parent = &root};
    uint32_t phase;
    MODEL_CHECK(fl_phaser_register(&root, at_root, &phase) == FL_PHASER_OK && phase == 0);
    MODEL_CHECK(fl_phaser_register(&leaf, at_leaf, &phase) == FL_PHASER_OK && phase == 0);
}

static void begin_two(void)
{
    begin_phaser(2, 0);
}

static void begin_three(void)
{
    begin_phaser(3, 0);
}

static void begin_tree(void)
{
    begin_phaser(1, 1);
}

/* The last: no other is. */
static void advance(void)
{
    bool again = true;
    while (again) {
        MODEL_CHECK(!acting);
        acting = true;
        fl_model_point();
        acting = false;
        begun++;
        again = fl_phaser_advance(&root, false);
    }
}

/* At which phase it was. */
static uint32_t arrive(fl_phaser *node, bool deregister)
{
    uint32_t phase = UINT32_MAX;
    fl_phaser_result result = fl_phaser_arrive(node, deregister, &phase);
    MODEL_CHECK(result == FL_PHASER_OK || result == FL_PHASER_LAST);
    if (result == FL_PHASER_LAST) {
        MODEL_CHECK(phase == begun);
        advance();
    }
    return phase;
}

static void await(uint32_t phase, int64_t deadline)
{
    if (model_wait_at(waitq, phase, deadline) == FL_WAIT_GRANTED) {
        MODEL_CHECK(begun > phase);
    }
}

/* Two phases, and away. No phase begins without it. */
static void party(fl_phaser *node)
{
    for (uint32_t phase = 0; phase < 2; phase++) {
        MODEL_CHECK(begun == phase);
        MODEL_CHECK(arrive(node, false) == phase);
        await(phase, FL_FOREVER);
    }
    arrive(node, true);
}

static void party_of_root(void)
{
    party(&root);
}

static void party_of_leaf(void)
{
    party(&leaf);
}

/* Its time may be over, but it has arrived. */
static void party_within_a_time(void)
{
    MODEL_CHECK(arrive(&root, false) == 0);
    await(0, 1);
    await(0, FL_FOREVER);
    arrive(&root, true);
}

static void arrive_and_go(void)
{
    arrive(&root, true);
}

/* Of a node that has perhaps arrived: it counts from the phase on that its registration returned. */
static void come_late_and_go(void)
{
    uint32_t first;
    fl_phaser_result result = fl_phaser_register(&leaf, 1, &first);
    if (result == FL_PHASER_OVER) {
        return;
    }
    MODEL_CHECK(result == FL_PHASER_OK);
    MODEL_CHECK(first == begun || first == begun + 1);
    MODEL_CHECK(begun <= first);
    MODEL_CHECK(arrive(&leaf, true) == first);
}

/* None is through before this one has arrived. */
static void last_of_root(void)
{
    MODEL_CHECK(begun == 0);
    arrive(&root, true);
}

static void leaf_once_and_go(void)
{
    arrive(&leaf, false);
    await(0, FL_FOREVER);
    arrive(&leaf, true);
}

static void watch_the_first_phase(void)
{
    await(0, FL_FOREVER);
}

static void terminate(void)
{
    begun = PHASES; /* all may go on */
    fl_phaser_terminate(waitq);
}

static void wait_for_the_end(void)
{
    uint32_t phase;
    fl_phaser_result result = fl_phaser_arrive(&root, false, &phase);
    MODEL_CHECK(result == FL_PHASER_OK || result == FL_PHASER_OVER);
    if (result == FL_PHASER_OK) {
        await(phase, FL_FOREVER);
    }
}

static void end_phaser(void)
{
    model_end_poison();
    fl_mailbox_close(mailbox);
    MODEL_CHECK(waitq->word & FL_PHASER_TERMINATED);
    MODEL_CHECK(waitq->head == NULL && waitq->waiting == 0 && waitq->lock == 0 && waitq->refs == 1);
    MODEL_CHECK(begun == PHASES || root.parties + leaf.parties == 0);
    fl_waitq_unref(waitq);
    fl_mailbox_unref(mailbox);
}

static const model_scenario scenarios[] = {
    {"phaser-2", 3, 1, PATIENT, begin_two, end_phaser, {party_of_root, party_of_root}},
    {"phaser-2-timed", 3, 0, PATIENT, begin_two, end_phaser, {party_within_a_time, party_within_a_time}},
    {"phaser-2-tree", 3, 0, PATIENT, begin_tree, end_phaser, {party_of_root, party_of_leaf}},
    {"phaser-3-gone", 3, 0, PATIENT, begin_three, end_phaser, {party_of_root, party_of_root, arrive_and_go}},
    {"phaser-3-watched", 2, 0, PATIENT, begin_two, end_phaser,
     {party_of_root, party_of_root, watch_the_first_phase}},
    {"phaser-3-late", 3, 0, PATIENT, begin_tree, end_phaser,
     {last_of_root, leaf_once_and_go, come_late_and_go}},
    {"phaser-3-ended", 3, 0, PATIENT, begin_three, end_phaser,
     {wait_for_the_end, wait_for_the_end, terminate}},
};

const model_table phaser_scenarios = MODEL_TABLE(scenarios);

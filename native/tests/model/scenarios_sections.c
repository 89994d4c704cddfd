/* A combining lock: every order of asking for sections and running them. */
#include "sync/locks/combine.h"
#include "scenarios.h"

#include <string.h>

/* A combining lock: every section that is not cancelled is run once, by one thread at a time, and a thread
   that asked for it sees that it was. */
static struct section {
    unsigned runs;
    bool kept, never;
} sections[MODEL_THREADS][2];
static bool running;

static void run_section(struct section *one)
{
    MODEL_CHECK(!running);
    running = true;
    fl_model_point();
    one->runs++;
    running = false;
}

static void keep_section(void *request)
{
    ((struct section *)request)->kept = true;
}

/* Runs what waits, at most one of the others' sections. */
static void lead_sections(void)
{
    fl_waiter *next = fl_combine_next(waitq, keep_section);
    if (next == NULL) {
        return;
    }
    struct section *theirs = next->request;
    MODEL_CHECK(theirs->kept);
    run_section(theirs);
    theirs->kept = false;
    fl_combine_done(next);
    fl_combine_pass(waitq);
}

static void ask_for_a_section(int which)
{
    struct section *mine = &sections[model_self()][which];
    bool leads = fl_combine_try(waitq);
    if (!leads) {
        frames[model_self()][which].used = true;
        fl_waiter *waiter = &frames[model_self()][which].waiter;
        fl_waiter_init(waiter, waitq, 0, FL_HOLDER(fl_owner_thread()));
        waiter->request = mine;
        leads = fl_waitq_enter(waiter);
        if (!leads) {
            MODEL_CHECK(model_wait_entered(waiter, FL_FOREVER) == FL_WAIT_GRANTED);
            leads = waiter->state == FL_GRANTED;
        }
        model_poison(waiter);
    }
    if (leads) {
        fl_combine_lead(waitq);
        run_section(mine);
        lead_sections();
    }
    MODEL_CHECK(mine->runs == 1);
}

static void ask_once(void)
{
    ask_for_a_section(0);
}

static void ask_twice(void)
{
    ask_for_a_section(0);
    ask_for_a_section(1);
}

/* A task asks; a signal cancels it, and what is not claimed by then is never run. */
static void ask_from_a_loop(void)
{
    struct section *mine = &sections[model_self()][0];
    fl_waiter *waiter = fl_mailbox_waiter(mailbox, waitq, 0, FL_HOLDER(fl_owner_task()));
    MODEL_CHECK(waiter != NULL);
    waiter->request = mine;
    bool leads = fl_waitq_enter(waiter), done = false;
    while (!leads && !done) {
        if (fl_park(&wakeup, 0, FL_FOREVER) == FL_PARK_INTERRUPTED) {
            MODEL_CHECK(fl_waiter_abandon(waiter, FL_CANCELLED));
            break;
        }
        fl_mailbox_hear(mailbox);
        for (fl_waiter *posted = fl_mailbox_drain(mailbox); posted != NULL;) {
            fl_waiter *next = posted->ready;
            fl_mailbox_seen(posted);
            fl_waiter_unref(posted);
            posted = next;
        }
        uint32_t state = FL_GRANTED;
        leads = fl_cas(&waiter->state, &state, FL_TAKEN, acq_rel, acquire);
        done = state == FL_DONE;
    }
    fl_combine_forget(waiter);
    mine->never = !leads && !mine->kept && mine->runs == 0;
    fl_mailbox_forget(waiter);
    if (leads) {
        fl_combine_lead(waitq);
        run_section(mine);
        lead_sections();
    }
    MODEL_CHECK(!done || mine->runs == 1);
    fl_mailbox_close(mailbox);
}

static void begin_sections(void)
{
    model_begin(0, 0);
    fl_waitq_unref(waitq);
    waitq = fl_combine_new();
    memset(sections, 0, sizeof sections);
    running = false;
}

static void end_sections(void)
{
    for (int thread = 0; thread < MODEL_THREADS; thread++) {
        MODEL_CHECK(sections[thread][0].runs <= !sections[thread][0].never);
    }
    permits = 0;
    model_end();
}

static const model_scenario scenarios[] = {
    {"sections-2", 3, 0, PATIENT, begin_sections, end_sections, {ask_twice, ask_twice}},
    {"sections-2-signal", 3, 2, PATIENT, begin_sections, end_sections, {ask_once, ask_twice}},
    {"sections-3", 3, 0, PATIENT, begin_sections, end_sections, {ask_once, ask_once, ask_once}},
    {"sections-2-task", 3, 1, PATIENT, begin_sections, end_sections, {ask_from_a_loop, ask_twice}},
    {"sections-3-task", 3, 1, PATIENT, begin_sections, end_sections, {ask_from_a_loop, ask_once, ask_once}},
};

const model_table section_scenarios = MODEL_TABLE(scenarios);

/* What the scenarios of the model share: a wait queue, a loop's mailbox, and the waiters of threads, which
 * are poisoned when their wait is over. Each file of scenarios has a table of them.
 */
#pragma once

#include "sync/wait/choice.h"
#include "sync/wait/mailbox.h"
#include "sync/locks/semaphore.h"
#include "model.h"

#define PATIENT 1           /* no waiter waits long enough to be served first */
#define IMPATIENT 100000000 /* every waiter does */

typedef struct {
    const model_scenario *at;
    size_t count;
} model_table;

#define MODEL_TABLE(scenarios) {scenarios, sizeof scenarios / sizeof scenarios[0]}

/* The tables of the other files, in the order in which test_model.c runs them. */
#define MODEL_TABLES(X)                                                                                     \
    X(meeting_scenarios)                                                                                    \
    X(section_scenarios)                                                                                    \
    X(queue_scenarios)                                                                                      \
    X(rw_scenarios)                                                                                         \
    X(select_scenarios)                                                                                     \
    X(rate_scenarios)                                                                                       \
    X(meet_scenarios)                                                                                       \
    X(thread_table_scenarios)                                                                               \
    X(chosen_scenarios)                                                                                     \
    X(handler_scenarios)                                                                                    \
    X(place_scenarios)

#define MODEL_TABLE_DECLARATION(table) extern const model_table table;
MODEL_TABLES(MODEL_TABLE_DECLARATION)
#undef MODEL_TABLE_DECLARATION

extern fl_waitq *waitq;
extern uint32_t permits, held; /* how many there are, and are held */
extern fl_mailbox *mailbox;
extern uint32_t wakeup;

struct model_frame {
    fl_waiter waiter;
    bool used;
};
extern struct model_frame frames[MODEL_THREADS][4];

/* What a signal handler may do wherever Python is called: nothing, raise, or fork; each once in an execution
   that allows for it. True: it raised. */
void model_allow_handlers(bool raises, bool forks);
bool model_call_python(void);
extern bool forked; /* this is the child */

/* What the first thread does when a signal interrupts its wait; NULL: nothing. */
extern void (*model_handler)(void);

void model_poison(fl_waiter *waiter);
void model_took(uint32_t wanted);
void model_give(uint32_t count);
/* Of one that is queued: in its place, whatever signals come. */
fl_wait_result model_wait_entered(fl_waiter *waiter, int64_t deadline);
fl_wait_result model_wait_at(fl_waitq *here, uint32_t wanted, int64_t deadline);
bool model_wait_for(uint32_t wanted, int64_t deadline);
bool model_run_loop(fl_waitq *here, bool close_when_interrupted, bool *refused);
bool model_run_loop_as(fl_waitq *here, uint32_t wanted, fl_stake stake, bool close_when_interrupted,
                       bool *refused);
/* The loop of a task that chooses, until that is decided; true: a signal came first. */
bool model_run_loop_of(fl_choice *choice);
void model_begin(uint32_t value, uint32_t flags);
bool model_mailbox_is_empty(void);
void model_end_poison(void);
void model_end(void);

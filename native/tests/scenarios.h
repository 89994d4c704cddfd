/* What the scenarios of the model share: a cell, a loop's port, and the waiters of threads, which are
 * poisoned when their wait is over. Each file of scenarios has a table of them.
 */
#ifndef FL_TESTS_SCENARIOS_H
#define FL_TESTS_SCENARIOS_H

#include "core/choice.h"
#include "core/port.h"
#include "core/semaphore.h"
#include "model.h"

#define PATIENT 1           /* nobody waits long enough to be served first */
#define IMPATIENT 100000000 /* everybody does */

typedef struct {
    const model_scenario *at;
    size_t count;
} model_table;

#define MODEL_TABLE(scenarios) {scenarios, sizeof scenarios / sizeof scenarios[0]}

extern const model_table rw_scenarios, queue_scenarios, section_scenarios, meeting_scenarios;
extern const model_table select_scenarios, rate_scenarios, meet_scenarios, stamped_scenarios;
extern const model_table roster_scenarios, counter_scenarios, phaser_scenarios;
extern const model_table chosen_scenarios, handler_scenarios;

extern fl_cell *cell;
extern uint32_t permits, held; /* how many there are, and are held */
extern fl_port *port;
extern uint32_t bell;

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

void model_poison(fl_waiter *waiter);
void model_took(uint32_t wanted);
void model_give(uint32_t count);
fl_wait_result model_wait_at(fl_cell *here, uint32_t wanted, int64_t deadline);
bool model_wait_for(uint32_t wanted, int64_t deadline);
bool model_run_loop(fl_cell *here, bool close_when_interrupted, bool *refused);
bool model_run_loop_as(fl_cell *here, uint32_t wanted, uint64_t owner, bool close_when_interrupted,
                       bool *refused);
/* The loop of a task that chooses, until that is decided; true: a signal came first. */
bool model_run_loop_of(fl_choice *choice);
void model_begin(uint32_t value, uint32_t flags);
void model_end_poison(void);
void model_end(void);

#endif

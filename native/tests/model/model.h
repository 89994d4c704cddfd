/* model: runs a few threads in every order that a bounded number of pre-emptions allows.
 *
 * Prior art: CHESS (Musuvathi and others, "Finding and Reproducing Heisenbugs in Concurrent Programs", OSDI
 * 2008: most faults need two pre-emptions or fewer) and loom (https://github.com/tokio-rs/loom). The code
 * under test is built with -DFL_MODEL, so that machine/atomic.h announces every operation here. At each, the
 * scheduler either lets the thread go on, or (a pre-emption) takes another; where a thread sleeps or ends,
 * the choice is free. A parked thread with a deadline may wake by it at any time, and any parked thread by a
 * signal, as often as the scenario allows.
 *
 * Where a scenario lets threads die, any of them may at any operation, its own or another's: nothing of it
 * runs again. Memory stays as it is, as that which processes share does. fl_park_shared looks by itself
 * from time to time: as often as the scenario allows, and beyond that once nothing else can go on, but only
 * where there are deaths.
 *
 * Threads that do the same are interchangeable: of those that have not begun the first one begins.
 *
 * An execution is a list of choices. The search is depth first over those lists, and runs each from the
 * start, so that nothing needs to be saved but the list; printed, it replays the failure.
 */
#pragma once

#include <stdint.h>

#define MODEL_THREADS 3

typedef struct {
    const char *name;
    int preemptions;        /* at most */
    int signals;            /* at most, in one execution */
    int64_t tick_ns;        /* by how much each look at the clock advances it */
    void (*begin)(void);    /* before an execution, alone */
    void (*end)(void);      /* after it, alone; checks what must hold then */
    void (*body[MODEL_THREADS])(void);
} model_scenario;

/* Fails the execution unless it is true. */
#define MODEL_CHECK(condition) ((condition) ? (void)0 : model_fail(#condition))
void model_fail(const char *what);

/* In begin(): so many may die in one execution, and parked threads on shared words look so often. */
void model_allow(int deaths, int looks);

/* One of so many, from 0 on: each is tried. */
unsigned model_choose(unsigned options);

/* From now on this thread alone runs, in a child process that has the memory as it is. */
void model_fork(void);

/* The thread that runs, from 0 on. */
int model_self(void);

typedef struct {
    uint64_t executions;
    unsigned longest;     /* operations of the longest execution */
    const char *failure;  /* NULL: none; what was not true */
    const char *schedule; /* of the failure */
} model_result;

/* Runs every execution until one fails. */
model_result model_explore(const model_scenario *scenario);
/* Runs one, from a schedule as model_explore gave it. */
model_result model_replay(const model_scenario *scenario, const char *schedule);

/* What the two endings of a selection share: that of a thread in select.c, that of a task in selection.c. */
#pragma once

#include "sync/bind/wait/operation.h"

#include "sync/wait/choice.h"

typedef struct {
    PyObject *operations, *labels; /* two tuples: a label is a name, or the number of a case without one */
} fl_cases;

static inline fl_operation *fl_select_case(const fl_cases *cases, uint32_t place)
{
    return (fl_operation *)PyTuple_GET_ITEM(cases->operations, place);
}

typedef struct {
    fl_choice choice; /* with room for the waiters */
    uint32_t *wanted; /* of each case */
    uint32_t first;   /* where to begin, another every time */
} fl_select_room;

void fl_cases_clear(fl_cases *cases);

/* The first step: spends the cases, and takes what is there. True: it is over, with *result or an exception.
   False: the room is to be waited in. In any case fl_select_free. */
bool fl_select_at_once(fl_select_room *room, fl_state *state, const fl_cases *cases, uint64_t owner,
                       PyObject **result);
void fl_select_free(fl_select_room *room);

/* All waiters enter their queues. */
void fl_select_begin(fl_choice *choice, const fl_cases *cases, uint32_t first);

/* A waiter for this case, which has its wait queue and its thread's or its task's owner. */
void fl_select_prepare(fl_waiter *waiter, fl_choice *choice, const fl_cases *cases, uint32_t place);

/* The record that a selection ends with; NULL with an exception. */
PyObject *fl_selected(fl_state *state, const fl_cases *cases, uint32_t place, uint32_t wanted, bool refused);

/* An awaitable of these cases, which it takes; NULL with an exception. */
PyObject *fl_selection_new(fl_state *state, fl_cases *cases);

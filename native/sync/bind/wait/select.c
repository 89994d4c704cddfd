/* select and select_async: waits for several things at once, and takes one of them.
 *
 * A case is an operation that is not awaited yet: it says what is wanted of which wait queue, and how
 * what was taken is finished. What is there already is taken without queueing; from which case on they are
 * asked is different every time, so that none of those that are ready is preferred. Else the choice in core
 * decides.
 *
 * The two endings: a thread parks on the choice's word, with waiters that are allocated, because it keeps its
 * places while signal handlers run; a task awaits one future of its mailbox, which is the payload of every
 * waiter (selection.c). A greenlet awaits as a task does.
 */
#include "sync/bind/wait/select.h"
#include "sync/bind/base/arguments.h"
#include "sync/bind/base/task.h"
#include "sync/bind/wait/blocking.h"

#include <stdlib.h>

#include "machine/clock.h"

/* A place to begin at, another every time. */
static uint32_t any_place(uint32_t count)
{
    static fl_atomic(uint32_t) turns;
    uint32_t turn = fl_fetch_add(&turns, 1, relaxed) + 1; /* only different */
    return (uint32_t)(((uint64_t)(turn * 2654435769u ^ turn >> 7) * count) >> 32);
}

PyObject *fl_selected(fl_state *state, const fl_cases *cases, uint32_t place, uint32_t wanted, bool refused)
{
    PyObject *value = fl_operation_finish(fl_select_case(cases, place), wanted, refused);
    PyObject *record = value == NULL ? NULL : PyStructSequence_New(state->selected_type);
    if (record == NULL) {
        Py_XDECREF(value);
        return NULL;
    }
    PyStructSequence_SetItem(record, 0, Py_NewRef(PyTuple_GET_ITEM(cases->labels, place)));
    PyStructSequence_SetItem(record, 1, value);
    return record;
}

void fl_cases_clear(fl_cases *cases)
{
    Py_CLEAR(cases->operations);
    Py_CLEAR(cases->labels);
}

/* Puts one at the end of both; 0, or -1 with an exception set. */
static int add_case(fl_state *state, PyObject *operations, PyObject *labels, PyObject *operation,
                    PyObject *label)
{
    if (label == NULL || !fl_operation_selectable(state, operation)) {
        return -1;
    }
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(operations); i++) {
        if (PyList_GET_ITEM(operations, i) == operation) {
            PyErr_SetString(PyExc_ValueError, "a case is given twice, call it for each");
            return -1;
        }
    }
    return PyList_Append(operations, operation) < 0 ? -1 : PyList_Append(labels, label);
}

/* The cases of a call, by position and by name, and *timeout if it is among the names and wanted; 0, or -1
   with an exception set. */
static int parse_cases(fl_state *state, PyObject *const *args, Py_ssize_t count, PyObject *kwnames,
                       PyObject **timeout, fl_cases *cases)
{
    PyObject *operations = PyList_New(0), *labels = PyList_New(0);
    Py_ssize_t all = count + (kwnames == NULL ? 0 : PyTuple_GET_SIZE(kwnames));
    int parsed = operations == NULL || labels == NULL ? -1 : 0;
    for (Py_ssize_t i = 0; i < all && parsed == 0; i++) {
        PyObject *label = i < count ? PyLong_FromSsize_t(i) : Py_NewRef(PyTuple_GET_ITEM(kwnames, i - count));
        if (i >= count && PyUnicode_CompareWithASCIIString(label, "timeout") == 0) {
            *timeout = args[i];
        } else {
            parsed = add_case(state, operations, labels, args[i], label);
        }
        Py_XDECREF(label);
    }
    *cases = (fl_cases){NULL, NULL};
    if (parsed == 0 && PyList_GET_SIZE(operations) == 0) {
        PyErr_SetString(PyExc_TypeError, "select() needs something to choose from");
    } else if (parsed == 0) {
        *cases = (fl_cases){PyList_AsTuple(operations), PyList_AsTuple(labels)};
    }
    Py_XDECREF(operations);
    Py_XDECREF(labels);
    if (cases->operations == NULL || cases->labels == NULL) {
        fl_cases_clear(cases);
        return -1;
    }
    return 0;
}

/* The place of one that could be taken without waiting, or is refused; -1: none, and *wanted is set for each;
   -2: an exception. */
static Py_ssize_t take_one(const fl_cases *cases, uint64_t owner, uint32_t first, uint32_t *wanted,
                           bool *refused)
{
    uint32_t count = (uint32_t)PyTuple_GET_SIZE(cases->operations);
    for (uint32_t i = 0; i < count; i++) {
        if (fl_operation_spend(fl_select_case(cases, i)) < 0) {
            return -2;
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t place = (first + i) % count;
        int taken = fl_operation_attempt(fl_select_case(cases, place), owner, &wanted[place]);
        if (taken != 0) {
            *refused = taken == FL_REFUSAL;
            return taken < 0 ? -2 : (Py_ssize_t)place;
        }
    }
    return -1;
}

bool fl_select_at_once(fl_select_room *room, fl_state *state, const fl_cases *cases, uint64_t owner,
                       PyObject **result)
{
    uint32_t count = (uint32_t)PyTuple_GET_SIZE(cases->operations);
    *result = NULL;
    *room = (fl_select_room){.choice = {.count = count}, .first = any_place(count)};
    room->choice.waiters = calloc(count, sizeof *room->choice.waiters);
    room->wanted = calloc(count, sizeof *room->wanted);
    if (room->choice.waiters == NULL || room->wanted == NULL) {
        PyErr_NoMemory();
        return true;
    }
    bool refused = false;
    Py_ssize_t taken = take_one(cases, owner, room->first, room->wanted, &refused);
    if (taken >= 0) {
        *result = fl_selected(state, cases, (uint32_t)taken, room->wanted[taken], refused);
    }
    return taken != -1;
}

void fl_select_free(fl_select_room *room)
{
    free(room->choice.waiters);
    free(room->wanted);
}

void fl_select_prepare(fl_waiter *waiter, fl_choice *choice, const fl_cases *cases, uint32_t place)
{
    const fl_operation *operation = fl_select_case(cases, place);
    waiter->stake = fl_operation_stake(operation, waiter->stake.holder);
    waiter->request = operation->wrapper;
    waiter->choice = choice;
    waiter->place_in_choice = place;
}

void fl_select_begin(fl_choice *choice, const fl_cases *cases, uint32_t first)
{
    fl_choice_begin(choice, first);
    for (uint32_t i = 0; i < choice->count; i++) {
        fl_operation_is_refused(fl_select_case(cases, i));
    }
}

/* So that a signal which interrupted no sleep is seen (blocking.c). */
#define LOOK_NS 50000000

/* All waiters are initialized, and none is queued. As fl_wait_thread; 1: *winner is GRANTED or REFUSED. */
static int wait_in_thread(fl_choice *choice, const fl_cases *cases, uint32_t first, int64_t deadline,
                          uint32_t *winner)
{
    fl_select_begin(choice, cases, first);
    for (;;) {
        fl_wait_result result;
        uint32_t generation = fl_fork_generation;
        int64_t look = fl_park_misses_signals() ? fl_clock_now() + LOOK_NS : FL_FOREVER;
        FL_BEGIN_SLEEP(choice->waiters[0], deadline)
        result = fl_choice_wait(choice, deadline, look);
        FL_END_SLEEP
        if (result == FL_WAIT_REFUSED || result == FL_WAIT_TIMED_OUT) {
            *winner = fl_choice_end(choice);
            return 0;
        }
        if (PyErr_CheckSignals() < 0) { /* also when it was granted, as in blocking.c */
            *winner = fl_choice_end(choice);
            const bool won = *winner != FL_CHOICE_NONE;
            if (won && !fl_waiter_abandon(choice->waiters[*winner], FL_CANCELLED) &&
                choice->waiters[*winner]->final) { /* it has met: what was raised comes after that */
                fl_raise_later(choice->waiters[*winner]->request);
                return 1;
            }
            return -1;
        }
        if (result == FL_WAIT_GRANTED) {
            *winner = fl_choice_end(choice);
            return 1;
        }
        if (generation != fl_fork_generation && !fl_choice_decided(choice)) { /* the handler forked */
            fl_select_begin(choice, cases, first);
        }
    }
}

static PyObject *select_in_thread(fl_state *state, const fl_cases *cases, int64_t deadline)
{
    fl_select_room room;
    PyObject *result;
    uint32_t winner;
    fl_waiter *waiters = NULL;
    if (!fl_select_at_once(&room, state, cases, fl_owner_thread(), &result) &&
        (deadline == 0 || fl_refuse_to_block(state) == 0)) {
        waiters = calloc(room.choice.count, sizeof *waiters);
        if (waiters == NULL) {
            PyErr_NoMemory();
        }
    }
    if (waiters != NULL) {
        for (uint32_t i = 0; i < room.choice.count; i++) {
            room.choice.waiters[i] = &waiters[i];
            fl_waiter_init(&waiters[i], fl_select_case(cases, i)->waitq, room.wanted[i],
                           FL_HOLDER(fl_owner_thread()));
            fl_select_prepare(&waiters[i], &room.choice, cases, i);
        }
        int outcome = wait_in_thread(&room.choice, cases, room.first, deadline, &winner);
        if (outcome == 1) {
            bool refused = fl_load(&waiters[winner].state, acquire) == FL_REFUSED; /* settled */
            result = fl_selected(state, cases, winner, waiters[winner].wanted, refused);
        } else if (outcome == 0) {
            result = Py_NewRef(Py_None);
        }
    }
    free(waiters);
    fl_select_free(&room);
    return result;
}

static PyObject *select_one(PyObject *module, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    fl_state *state = fl_state_of(module);
    fl_cases cases;
    PyObject *timeout = NULL, *result = NULL;
    int64_t deadline;
    if (parse_cases(state, args, count, kwnames, &timeout, &cases) < 0) {
        return NULL;
    }
    int greenlet = fl_deadline_parse(NULL, timeout, &deadline) < 0 ? -1 : fl_in_greenlet(state);
    if (greenlet == 0) {
        result = select_in_thread(state, &cases, deadline);
    } else if (greenlet > 0) {
        result = fl_greenlet_wait(fl_selection_new(state, &cases), deadline);
    }
    fl_cases_clear(&cases);
    return result;
}

static PyObject *select_async(PyObject *module, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    fl_state *state = fl_state_of(module);
    fl_cases cases;
    PyObject *timeout = NULL, *made = NULL;
    if (parse_cases(state, args, count, kwnames, &timeout, &cases) < 0) {
        return NULL;
    }
    if (timeout == NULL) {
        made = fl_selection_new(state, &cases);
    } else {
        PyErr_SetString(PyExc_TypeError, "select_async() takes no timeout, use that of the event loop's "
                                         "library");
    }
    fl_cases_clear(&cases);
    return made;
}

PyMethodDef fl_select_functions[] = {
    {"select", FL_FAST_NAMED(select_one), METH_FASTCALL | METH_KEYWORDS, FL_DOC(module, select)},
    {"select_async", FL_FAST_NAMED(select_async), METH_FASTCALL | METH_KEYWORDS,
     FL_DOC(module, select_async)},
    {NULL, NULL, 0, NULL},
};

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
#include "sync/bind/await/select.h"

#include <stdlib.h>

#include "machine/clock.h"

/* A place to begin at, another every time. */
static uint32_t any_place(uint32_t count)
{
    static fl_atomic(uint32_t) turns;
    uint32_t turn = fl_fetch_add(&turns, 1, relaxed) + 1; /* only different */
    return (uint32_t)(((uint64_t)(turn * 2654435769u ^ turn >> 7) * count) >> 32);
}

PyObject *fl_selected(fl_state *state, PyObject *cases, uint32_t place, uint32_t wanted, bool refused)
{
    PyObject *value = fl_operation_finish(fl_select_case(cases, place), wanted, refused), *index, *record;
    if (value == NULL) {
        return NULL;
    }
    index = PyLong_FromUnsignedLong(place);
    record = index == NULL ? NULL : PyStructSequence_New(state->selected_type);
    if (record == NULL) {
        Py_XDECREF(index);
        Py_DECREF(value);
        return NULL;
    }
    PyStructSequence_SetItem(record, 0, index);
    PyStructSequence_SetItem(record, 1, value);
    return record;
}

/* Whether these are cases, as a new tuple; NULL with an exception set. */
static PyObject *checked(fl_state *state, PyObject *const *args, Py_ssize_t count)
{
    if (count == 0) {
        PyErr_SetString(PyExc_TypeError, "select() needs something to choose from");
        return NULL;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        if (!fl_operation_selectable(state, args[i])) {
            return NULL;
        }
        for (Py_ssize_t before = 0; before < i; before++) {
            if (args[before] == args[i]) {
                PyErr_SetString(PyExc_ValueError, "a case is given twice, call it for each");
                return NULL;
            }
        }
    }
    PyObject *cases = PyTuple_New(count);
    for (Py_ssize_t i = 0; cases != NULL && i < count; i++) {
        PyTuple_SET_ITEM(cases, i, Py_NewRef(args[i]));
    }
    return cases;
}

/* The place of one that could be taken without waiting; -1: none, and *wanted is set for each; -2: an
   exception. */
static Py_ssize_t take_one(PyObject *cases, uint64_t owner, uint32_t first, uint32_t *wanted)
{
    uint32_t count = (uint32_t)PyTuple_GET_SIZE(cases);
    for (uint32_t i = 0; i < count; i++) {
        if (fl_operation_spend(fl_select_case(cases, i)) < 0) {
            return -2;
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t place = (first + i) % count;
        int taken = fl_operation_attempt(fl_select_case(cases, place), owner, &wanted[place]);
        if (taken != 0) {
            return taken < 0 ? -2 : (Py_ssize_t)place;
        }
    }
    return -1;
}

bool fl_select_at_once(fl_select_room *room, fl_state *state, PyObject *cases, uint64_t owner,
                       PyObject **result)
{
    uint32_t count = (uint32_t)PyTuple_GET_SIZE(cases);
    *result = NULL;
    *room = (fl_select_room){.choice = {.count = count}, .first = any_place(count)};
    room->choice.waiters = calloc(count, sizeof *room->choice.waiters);
    room->wanted = calloc(count, sizeof *room->wanted);
    if (room->choice.waiters == NULL || room->wanted == NULL) {
        PyErr_NoMemory();
        return true;
    }
    Py_ssize_t taken = take_one(cases, owner, room->first, room->wanted);
    if (taken >= 0) {
        *result = fl_selected(state, cases, (uint32_t)taken, room->wanted[taken], false);
    }
    return taken != -1;
}

void fl_select_free(fl_select_room *room)
{
    free(room->choice.waiters);
    free(room->wanted);
}

void fl_select_prepare(fl_waiter *waiter, fl_choice *choice, PyObject *cases, uint32_t place)
{
    const fl_operation *operation = fl_select_case(cases, place);
    waiter->stake = fl_operation_stake(operation, waiter->stake.holder);
    waiter->request = operation->wrapper;
    waiter->choice = choice;
    waiter->place_in_choice = place;
}

void fl_select_begin(fl_choice *choice, PyObject *cases, uint32_t first)
{
    fl_choice_begin(choice, first);
    for (uint32_t i = 0; i < choice->count; i++) {
        fl_operation_entered(fl_select_case(cases, i));
    }
}

/* So that a signal which interrupted no sleep is seen (wait.c). */
#define LOOK_NS 50000000

/* All waiters are initialized, and none is queued. As fl_wait_thread; 1: *winner is GRANTED or REFUSED. */
static int wait_in_thread(fl_choice *choice, PyObject *cases, uint32_t first, int64_t deadline, uint32_t *winner)
{
    fl_select_begin(choice, cases, first);
    for (;;) {
        fl_wait_result result;
        uint32_t generation = fl_fork_generation;
        int64_t look = fl_park_misses_signals() ? fl_clock_now() + LOOK_NS : FL_FOREVER;
        FL_BEGIN_SLEEP(choice->waiters[0], deadline)
        result = fl_choice_wait(choice, deadline, look);
        FL_END_SLEEP
        if (result != FL_WAIT_INTERRUPTED) {
            *winner = fl_choice_end(choice);
            return result == FL_WAIT_GRANTED;
        }
        if (PyErr_CheckSignals() < 0) {
            *winner = fl_choice_end(choice);
            const bool won = *winner != FL_CHOICE_NONE;
            if (won && !fl_waiter_abandon(choice->waiters[*winner], FL_CANCELLED) &&
                choice->waiters[*winner]->final) { /* it has met: what was raised comes after that */
                fl_raise_later(choice->waiters[*winner]->request);
                return 1;
            }
            return -1;
        }
        if (generation != fl_fork_generation && !fl_choice_decided(choice)) { /* the handler forked */
            fl_select_begin(choice, cases, first);
        }
    }
}

static PyObject *select_in_thread(fl_state *state, PyObject *cases, int64_t deadline)
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
    int64_t deadline;
    if (fl_timeout_argument("select", args + count, 0, kwnames, &deadline) < 0) {
        return NULL;
    }
    PyObject *cases = checked(state, args, count), *result = NULL;
    int greenlet = cases == NULL ? -1 : fl_in_greenlet(state);
    if (greenlet == 0) {
        result = select_in_thread(state, cases, deadline);
    } else if (greenlet > 0) {
        result = fl_greenlet_wait(fl_selection_new(state, cases), deadline);
    }
    Py_XDECREF(cases);
    return result;
}

static PyObject *select_async(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    fl_state *state = fl_state_of(module);
    PyObject *cases = checked(state, args, count);
    PyObject *made = cases == NULL ? NULL : fl_selection_new(state, cases);
    Py_XDECREF(cases);
    return made;
}

PyMethodDef fl_select_functions[] = {
    {"select", FL_FAST_NAMED(select_one), METH_FASTCALL | METH_KEYWORDS, FL_DOC(module, select)},
    {"select_async", FL_FAST(select_async), METH_FASTCALL, FL_DOC(module, select_async)},
    {NULL, NULL, 0, NULL},
};

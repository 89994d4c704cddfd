/* Open addressing, with entries moved up when one goes. See holders.h. */
#include "sync/bind/locks/holders.h"

static uint32_t place(const fl_holders *holders, uint64_t thread, const PyObject *task)
{
    uint64_t key = task != NULL ? (uint64_t)(uintptr_t)task >> 4 : thread;
    return (uint32_t)((key * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & (holders->room - 1);
}

static uint32_t next(const fl_holders *holders, uint32_t at)
{
    return (at + 1) & (holders->room - 1);
}

fl_rw_hold *fl_holders_find(const fl_holders *holders, const fl_caller *who)
{
    if (holders->count == 0) {
        return NULL;
    }
    for (uint32_t i = place(holders, who->thread, who->task);; i = next(holders, i)) {
        fl_rw_hold *hold = &holders->at[i];
        if (hold->thread == 0) {
            return NULL;
        }
        if (hold->task == who->task && (who->task != NULL || hold->thread == who->thread)) {
            return hold;
        }
    }
}

/* There is room, and no equal entry. */
static fl_rw_hold *insert(fl_holders *holders, fl_rw_hold hold)
{
    uint32_t i = place(holders, hold.thread, hold.task);
    while (holders->at[i].thread != 0) {
        i = next(holders, i);
    }
    holders->at[i] = hold;
    holders->count++;
    return &holders->at[i];
}

fl_rw_hold *fl_holders_add(fl_holders *holders, const fl_caller *who)
{
    if (2 * holders->count >= holders->room) {
        fl_holders larger = {.room = holders->room ? 2 * holders->room : 4};
        larger.at = PyMem_RawCalloc(larger.room, sizeof *larger.at);
        if (larger.at == NULL) {
            return NULL;
        }
        for (uint32_t i = 0; i < holders->room; i++) {
            if (holders->at[i].thread != 0) {
                insert(&larger, holders->at[i]);
            }
        }
        PyMem_RawFree(holders->at);
        *holders = larger;
    }
    return insert(holders, (fl_rw_hold){.thread = who->thread, .task = Py_XNewRef(who->task)});
}

PyObject *fl_holders_remove(fl_holders *holders, fl_rw_hold *hold)
{
    PyObject *task = hold->task;
    uint32_t hole = (uint32_t)(hold - holders->at);
    for (uint32_t i = next(holders, hole); holders->at[i].thread != 0; i = next(holders, i)) {
        uint32_t home = place(holders, holders->at[i].thread, holders->at[i].task);
        uint32_t reach = (i - home) & (holders->room - 1);
        if (reach >= ((i - hole) & (holders->room - 1))) { /* it may stand in the hole */
            holders->at[hole] = holders->at[i];
            hole = i;
        }
    }
    holders->at[hole] = (fl_rw_hold){0};
    holders->count--;
    return task;
}

PyObject *fl_holders_append(PyObject *list, uint64_t owner, PyObject *task, bool alone)
{
    if (list == NULL || owner == 0) {
        return list;
    }
    return fl_appended(list, Py_BuildValue("(KOO)", (unsigned long long)owner,
                                           task == NULL ? Py_None : task, alone ? Py_True : Py_False));
}

#include "gil/trace/loops.h"

#include <stdio.h>
#include <string.h>

#include "machine/atomic.h"
#include "machine/ticks.h"

#define MS 1000000u

const uint64_t fl_loop_bounds[FL_LOOP_BOUNDS] = {10 * MS,  25 * MS,   50 * MS,   100 * MS,  250 * MS,
                                                 500 * MS, 1000 * MS, 2500 * MS, 5000ull * MS, 10000ull * MS};

enum { BEATS, LATE, DELAY, OWN, GIL, CORE, COUNTS, NUMBERS = COUNTS + FL_LOOP_BOUNDS + 1 };

typedef struct {
    char name[FL_LOOP_NAME];
    fl_atomic(uint64_t) numbers[NUMBERS];
} series;

/* A family's count is stored after the name that it lets readers see. */
static series loops[FL_LOOP_NAMES], callbacks[FL_LOOP_CALLBACKS];
static fl_atomic(uint32_t) loop_count, callback_count;

static struct {
    fl_atomic(uint64_t) due; /* 0: free */
    fl_atomic(uint32_t) loop;
} watches[FL_LOOPS];

static uint32_t place_of(series *family, fl_atomic(uint32_t) * count, uint32_t room, const char *name)
{
    uint32_t used = fl_load(count, relaxed);
    char shown[FL_LOOP_NAME];
    snprintf(shown, sizeof shown, "%s", name);
    for (uint32_t i = 0; i < used; i++) {
        if (strcmp(family[i].name, shown) == 0) {
            return i;
        }
    }
    if (used == room) {
        return room - 1;
    }
    snprintf(family[used].name, sizeof family[used].name, "%s", used == room - 1 ? FL_LOOP_OTHERS : shown);
    fl_store(count, used + 1, release);
    return used;
}

int fl_loops_open(const char *name, uint64_t due)
{
    for (int number = 0; number < FL_LOOPS; number++) {
        if (fl_load(&watches[number].due, relaxed) == 0) {
            fl_store(&watches[number].loop, place_of(loops, &loop_count, FL_LOOP_NAMES, name), relaxed);
            fl_store(&watches[number].due, due, release);
            return number;
        }
    }
    return -1;
}

static void add(series *to, int number, uint64_t value)
{
    fl_store(&to->numbers[number], fl_load(&to->numbers[number], relaxed) + value, relaxed);
}

void fl_loops_beat(int number, const fl_loop_beat *beat, const char *callback, uint64_t due)
{
    if (fl_load(&watches[number].due, relaxed) == 0) {
        return;
    }
    series *loop = &loops[fl_load(&watches[number].loop, relaxed)];
    int bucket = 0;
    while (bucket < FL_LOOP_BOUNDS && beat->delay > fl_loop_bounds[bucket]) {
        bucket++;
    }
    add(loop, BEATS, 1);
    add(loop, LATE, beat->late);
    add(loop, DELAY, beat->delay);
    add(loop, OWN, beat->own);
    add(loop, GIL, beat->gil);
    add(loop, CORE, beat->core);
    add(loop, COUNTS + bucket, 1);
    if (callback) {
        add(&callbacks[place_of(callbacks, &callback_count, FL_LOOP_CALLBACKS, callback)], OWN, beat->own);
    }
    fl_store(&watches[number].due, due, release);
}

void fl_loops_close(int number)
{
    fl_store(&watches[number].due, 0, release);
}

void fl_loops_read(fl_loops *into)
{
    uint64_t now = fl_ticks_system();
    into->loop_count = fl_load(&loop_count, acquire);
    into->callback_count = fl_load(&callback_count, acquire);
    for (size_t i = 0; i < into->loop_count; i++) {
        series *from = &loops[i];
        fl_loop_sums *to = &into->loops[i];
        memcpy(to->name, from->name, sizeof to->name);
        to->beats = fl_load(&from->numbers[BEATS], relaxed);
        to->late = fl_load(&from->numbers[LATE], relaxed);
        to->delay = fl_load(&from->numbers[DELAY], relaxed);
        to->own = fl_load(&from->numbers[OWN], relaxed);
        to->gil = fl_load(&from->numbers[GIL], relaxed);
        to->core = fl_load(&from->numbers[CORE], relaxed);
        for (int bucket = 0; bucket <= FL_LOOP_BOUNDS; bucket++) {
            to->counts[bucket] = fl_load(&from->numbers[COUNTS + bucket], relaxed);
        }
        to->overdue = 0;
    }
    for (size_t i = 0; i < into->callback_count; i++) {
        memcpy(into->callbacks[i].name, callbacks[i].name, sizeof callbacks[i].name);
        into->callbacks[i].own = fl_load(&callbacks[i].numbers[OWN], relaxed);
    }
    for (int number = 0; number < FL_LOOPS; number++) {
        uint64_t due = fl_load(&watches[number].due, acquire);
        uint32_t loop = fl_load(&watches[number].loop, relaxed);
        if (due && now > due && loop < into->loop_count && now - due > into->loops[loop].overdue) {
            into->loops[loop].overdue = now - due;
        }
    }
}

void fl_loops_subtract(fl_loops *later, const fl_loops *earlier)
{
    for (size_t i = 0; i < earlier->loop_count; i++) {
        fl_loop_sums *loop = &later->loops[i];
        const fl_loop_sums *before = &earlier->loops[i];
        loop->beats -= before->beats;
        loop->late -= before->late;
        loop->delay -= before->delay;
        loop->own -= before->own;
        loop->gil -= before->gil;
        loop->core -= before->core;
        for (int bucket = 0; bucket <= FL_LOOP_BOUNDS; bucket++) {
            loop->counts[bucket] -= before->counts[bucket];
        }
    }
    for (size_t i = 0; i < earlier->callback_count; i++) {
        later->callbacks[i].own -= earlier->callbacks[i].own;
    }
}

void fl_loops_fork(void)
{
    memset(loops, 0, sizeof loops);
    memset(callbacks, 0, sizeof callbacks);
    memset(watches, 0, sizeof watches);
    fl_store(&loop_count, 0, relaxed);
    fl_store(&callback_count, 0, relaxed);
}

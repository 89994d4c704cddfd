/* What watched event loops have counted: sums by name, what finds no place, what is overdue, differences. */
#include "gil/trace/loops.h"

#include <string.h>

#include "check.h"
#include "machine/ticks.h"

#define FAR (fl_ticks_system() + 3600ull * 1000000000u)

static fl_loops found, before;

static void a_beat_is_counted_with_its_parts(void)
{
    int number = fl_loops_open("one", FAR);
    fl_loops_beat(number, &(fl_loop_beat){.delay = 10000000}, NULL, FAR);
    fl_loops_beat(number, &(fl_loop_beat){.delay = 60000000, .late = true, .own = 30, .gil = 20, .core = 10},
                  "handler", FAR);
    fl_loops_read(&found);
    CHECK_EQUAL(found.loop_count, 1);
    CHECK(strcmp(found.loops[0].name, "one") == 0);
    CHECK_EQUAL(found.loops[0].beats, 2);
    CHECK_EQUAL(found.loops[0].late, 1);
    CHECK_EQUAL(found.loops[0].delay, 70000000);
    CHECK_EQUAL(found.loops[0].own, 30);
    CHECK_EQUAL(found.loops[0].gil, 20);
    CHECK_EQUAL(found.loops[0].core, 10);
    CHECK_EQUAL(found.loops[0].counts[0], 1); /* a bound belongs to what it ends */
    CHECK_EQUAL(found.loops[0].counts[3], 1);
    CHECK_EQUAL(found.loops[0].overdue, 0);
    CHECK_EQUAL(found.callback_count, 1);
    CHECK(strcmp(found.callbacks[0].name, "handler") == 0);
    CHECK_EQUAL(found.callbacks[0].own, 30);
    fl_loops_close(number);
}

static void a_loop_of_a_known_name_goes_on_where_that_ended(void)
{
    before = found;
    int number = fl_loops_open("one", FAR);
    fl_loops_beat(number, &(fl_loop_beat){.delay = 1, .late = true, .own = 1}, "another", FAR);
    fl_loops_read(&found);
    CHECK_EQUAL(found.loop_count, 1);
    CHECK_EQUAL(found.loops[0].beats, 3);
    fl_loops_subtract(&found, &before);
    CHECK_EQUAL(found.loops[0].beats, 1);
    CHECK_EQUAL(found.loops[0].delay, 1);
    CHECK_EQUAL(found.callbacks[0].own, 0);
    CHECK_EQUAL(found.callbacks[1].own, 1);
    fl_loops_close(number);
}

static void the_worst_of_a_name_is_overdue_until_it_is_closed(void)
{
    int waits = fl_loops_open("one", FAR), late = fl_loops_open("one", 1);
    fl_loops_read(&found);
    CHECK(found.loops[0].overdue > 0);
    fl_loops_close(late);
    fl_loops_read(&found);
    CHECK_EQUAL(found.loops[0].overdue, 0);
    fl_loops_beat(late, &(fl_loop_beat){.delay = 1}, NULL, 1); /* of a number that is not open */
    fl_loops_read(&found);
    CHECK_EQUAL(found.loops[0].beats, 3);
    fl_loops_close(waits);
}

static void names_that_find_no_place_are_added_up(void)
{
    char name[] = "loop-?";
    for (int i = 0; i < 2 * FL_LOOP_NAMES; i++) {
        name[5] = (char)('A' + i);
        int number = fl_loops_open(name, FAR);
        fl_loops_beat(number, &(fl_loop_beat){.late = true, .own = 1}, name, FAR);
        fl_loops_close(number);
    }
    fl_loops_read(&found);
    CHECK_EQUAL(found.loop_count, FL_LOOP_NAMES);
    CHECK(strcmp(found.loops[FL_LOOP_NAMES - 1].name, FL_LOOP_OTHERS) == 0);
    CHECK_EQUAL(found.loops[FL_LOOP_NAMES - 1].beats, 2 * FL_LOOP_NAMES - (FL_LOOP_NAMES - 2));
    CHECK_EQUAL(found.callback_count, FL_LOOP_CALLBACKS);
    CHECK(strcmp(found.callbacks[FL_LOOP_CALLBACKS - 1].name, FL_LOOP_OTHERS) == 0);
}

static void too_many_at_a_time_are_not_counted(void)
{
    for (int i = 0; i < FL_LOOPS; i++) {
        CHECK_EQUAL(fl_loops_open("many", FAR), i);
    }
    CHECK_EQUAL(fl_loops_open("many", FAR), -1);
}

static void nothing_is_left_in_the_child_of_a_fork(void)
{
    fl_loops_fork();
    fl_loops_read(&found);
    CHECK_EQUAL(found.loop_count + found.callback_count, 0);
    CHECK_EQUAL(fl_loops_open("many", FAR), 0);
}

int main(void)
{
    a_beat_is_counted_with_its_parts();
    a_loop_of_a_known_name_goes_on_where_that_ended();
    the_worst_of_a_name_is_overdue_until_it_is_closed();
    names_that_find_no_place_are_added_up();
    too_many_at_a_time_are_not_counted();
    nothing_is_left_in_the_child_of_a_fork();
    return 0;
}

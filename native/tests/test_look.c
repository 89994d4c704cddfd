/* For how long who waits looks before it sleeps. */
#include "check.h"
#include "core/look.h"

static fl_look look;

static void test_first_look_is_the_longest(void)
{
    fl_look_init(&look, 2);
    CHECK_EQUAL(fl_look_begin(&look), FL_LOOK_MOST_NS);
    fl_look_end(&look, FL_LOOK_MOST_NS, true);
    CHECK_EQUAL(fl_look_begin(&look), FL_LOOK_MOST_NS);
}

static void test_one_looks_at_a_time(void)
{
    fl_look_init(&look, 2);
    CHECK(fl_look_begin(&look) > 0);
    CHECK_EQUAL(fl_look_begin(&look), 0);
    fl_look_end(&look, FL_LOOK_MOST_NS, true);
    CHECK(fl_look_begin(&look) > 0);
}

static void test_nobody_looks_on_a_single_core(void)
{
    fl_look_init(&look, 1);
    for (int i = 0; i < 3 * FL_LOOK_AGAIN; i++) {
        CHECK_EQUAL(fl_look_begin(&look), 0);
    }
}

static void test_looks_in_vain_become_short_and_then_rare_until_one_finds_something(void)
{
    fl_look_init(&look, 2);
    uint64_t spent = 0, last = FL_LOOK_MOST_NS;
    int waits = 0;
    for (uint32_t ns; (ns = fl_look_begin(&look)) > 0; waits++) {
        CHECK(waits == 0 ? ns == last : ns == last / 2);
        last = ns;
        spent += ns;
        fl_look_end(&look, ns, false);
    }
    CHECK(spent <= 2 * FL_LOOK_MOST_NS);
    int looks = 0;
    for (waits++; waits < 10 * FL_LOOK_AGAIN; waits++) {
        uint32_t ns = fl_look_begin(&look);
        if (ns > 0) {
            looks += ns == FL_LOOK_MOST_NS;
            fl_look_end(&look, ns, false);
        }
    }
    CHECK(looks >= 8 && looks <= 10);
    while (fl_look_begin(&look) == 0) {
    }
    fl_look_end(&look, FL_LOOK_MOST_NS, true);
    CHECK_EQUAL(fl_look_begin(&look), FL_LOOK_MOST_NS);
}

int main(void)
{
    test_first_look_is_the_longest();
    test_one_looks_at_a_time();
    test_nobody_looks_on_a_single_core();
    test_looks_in_vain_become_short_and_then_rare_until_one_finds_something();
    return 0;
}

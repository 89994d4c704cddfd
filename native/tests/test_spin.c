/* For how long a waiter spins before it sleeps. */
#include "check.h"
#include "machine/spin.h"

static fl_spin spin;

static void test_first_spin_is_the_longest(void)
{
    fl_spin_init(&spin, 2);
    CHECK_EQUAL(fl_spin_begin(&spin), FL_SPIN_MOST_NS);
    fl_spin_end(&spin, FL_SPIN_MOST_NS, true);
    CHECK_EQUAL(fl_spin_begin(&spin), FL_SPIN_MOST_NS);
}

static void test_one_spins_at_a_time(void)
{
    fl_spin_init(&spin, 2);
    CHECK(fl_spin_begin(&spin) > 0);
    CHECK_EQUAL(fl_spin_begin(&spin), 0);
    fl_spin_end(&spin, FL_SPIN_MOST_NS, true);
    CHECK(fl_spin_begin(&spin) > 0);
}

static void test_no_thread_spins_on_a_single_core(void)
{
    fl_spin_init(&spin, 1);
    for (int i = 0; i < 3 * FL_SPIN_AGAIN; i++) {
        CHECK_EQUAL(fl_spin_begin(&spin), 0);
    }
}

static void test_spins_in_vain_become_short_and_then_rare_until_one_finds_something(void)
{
    fl_spin_init(&spin, 2);
    uint64_t spent = 0, last = FL_SPIN_MOST_NS;
    int waits = 0;
    for (uint32_t ns; (ns = fl_spin_begin(&spin)) > 0; waits++) {
        CHECK(waits == 0 ? ns == last : ns == last / 2);
        last = ns;
        spent += ns;
        fl_spin_end(&spin, ns, false);
    }
    CHECK(spent <= 2 * FL_SPIN_MOST_NS);
    int spins = 0;
    for (waits++; waits < 10 * FL_SPIN_AGAIN; waits++) {
        uint32_t ns = fl_spin_begin(&spin);
        if (ns > 0) {
            spins += ns == FL_SPIN_MOST_NS;
            fl_spin_end(&spin, ns, false);
        }
    }
    CHECK(spins >= 8 && spins <= 10);
    while (fl_spin_begin(&spin) == 0) {
    }
    fl_spin_end(&spin, FL_SPIN_MOST_NS, true);
    CHECK_EQUAL(fl_spin_begin(&spin), FL_SPIN_MOST_NS);
}

int main(void)
{
    test_first_spin_is_the_longest();
    test_one_spins_at_a_time();
    test_no_thread_spins_on_a_single_core();
    test_spins_in_vain_become_short_and_then_rare_until_one_finds_something();
    return 0;
}

/* The table of this very program: getppid() stands for what the interpreter calls through its own. */
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

#include "check.h"
#include "gil/interpreter/got.h"

static pid_t ours(void)
{
    return -7;
}

static pid_t theirs(void)
{
    return -8;
}

int main(void);

static const union {
    pid_t (*function)(void);
    int (*main)(void);
    void *address;
} our_hook = {.function = ours}, their_hook = {.function = theirs}, landmark = {.main = main};

static fl_got_function functions[] = {{.name = "getppid"}, {.name = "no_such_function"}};
static fl_got_function *const called = functions;

static void find(void)
{
    fl_got_object object;
    (void)getppid(); /* so that the dynamic linker has filled its slot */
    CHECK(fl_got_find(landmark.address, &object, functions, 2));
    CHECK((const char *)landmark.address >= object.start && (const char *)landmark.address < object.end);
    CHECK(called->count >= 1 && !called->more && called->real != NULL);
    CHECK_EQUAL(functions[1].count, 0);
}

static void test_an_address_in_no_object_is_not_found(void)
{
    fl_got_object object;
    int on_the_stack = 0;
    CHECK(!fl_got_find(&on_the_stack, &object, functions, 2));
    CHECK_EQUAL(called->count, 0);
}

static void test_more_slots_than_there_is_room_for_are_said_and_not_forgotten(void)
{
    void *slots[FL_GOT_SLOTS + 1] = {NULL};
    fl_got_function function = {.name = "getppid"};
    for (size_t i = 0; i < FL_GOT_SLOTS; i++) {
        fl_got_note(&function, &slots[i]);
        fl_got_note(&function, &slots[i]); /* twice is once */
        CHECK_EQUAL(function.count, i + 1);
        CHECK(!function.more);
    }
    fl_got_note(&function, &slots[FL_GOT_SLOTS]);
    CHECK_EQUAL(function.count, FL_GOT_SLOTS);
    CHECK(function.more);
}

static void test_a_hook_is_called_until_it_is_taken_out(void)
{
    find();
    pid_t real = getppid();
    CHECK_EQUAL(fl_got_set(called, our_hook.address), 0);
    CHECK_EQUAL(getppid(), -7);
    CHECK(fl_got_is(called, our_hook.address) && !fl_got_taken(called, our_hook.address));
    CHECK_EQUAL(fl_got_set(called, our_hook.address), 0); /* twice is once */
    CHECK_EQUAL(fl_got_restore(called, our_hook.address), 0);
    CHECK_EQUAL(getppid(), real);
    CHECK(!fl_got_is(called, our_hook.address) && !fl_got_taken(called, our_hook.address));
}

static void test_a_hook_that_others_put_over_ours_stays(void)
{
    find();
    CHECK_EQUAL(fl_got_set(called, our_hook.address), 0);
    fl_got_function another = *called; /* as another library would know it */
    CHECK_EQUAL(fl_got_set(&another, their_hook.address), 0);
    CHECK(fl_got_taken(called, our_hook.address));
    CHECK_EQUAL(fl_got_restore(called, our_hook.address), 0);
    CHECK_EQUAL(getppid(), -8);
    /* and comes back when ours was over it for a while */
    CHECK_EQUAL(fl_got_set(called, our_hook.address), 0);
    CHECK_EQUAL(getppid(), -7);
    CHECK_EQUAL(fl_got_restore(called, our_hook.address), 0);
    CHECK_EQUAL(getppid(), -8);
}

static void test_a_page_that_another_closes_meanwhile_is_opened(void)
{
    size_t size = (size_t)sysconf(_SC_PAGESIZE);
    void **slot = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(slot != MAP_FAILED);
    fl_got_function function = {.name = "getppid"};
    fl_got_note(&function, slot);
    CHECK_EQUAL(fl_got_set(&function, our_hook.address), 0);
    CHECK_EQUAL(mprotect(slot, size, PROT_READ), 0);
    CHECK_EQUAL(fl_got_set(&function, their_hook.address), 0);
    CHECK(*slot == their_hook.address);
    CHECK_EQUAL(munmap(slot, size), 0);
}

int main(void)
{
    test_an_address_in_no_object_is_not_found();
    test_more_slots_than_there_is_room_for_are_said_and_not_forgotten();
    test_a_hook_is_called_until_it_is_taken_out();
    test_a_hook_that_others_put_over_ours_stays();
    test_a_page_that_another_closes_meanwhile_is_opened();
    return 0;
}

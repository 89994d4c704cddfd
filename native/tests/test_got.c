/* The table of this very program: getppid() stands for what the interpreter calls through its own. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include "check.h"
#include "gil/interpreter/got.h"

static void *watched_page;
static _Atomic(void *) opened; /* the page that may be written to, while fl_got_set() is at it */
static atomic_uint crossings;

/* In place of the C library's: opens and closes of a page must come in pairs, whichever threads make them. */
int mprotect(void *page, size_t size, int protection)
{
    bool opens = protection & PROT_WRITE;
    if (page == watched_page) {
        crossings += atomic_exchange(&opened, opens ? page : NULL) != (opens ? NULL : page);
        sched_yield(); /* another thread's turn, if it may have one */
    }
    return (int)syscall(SYS_mprotect, page, size, protection);
}

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

enum { TURNS = 2000 };

/* Hooks a slot of its own and takes the hook out, again and again. */
static void *hooks_and_takes_out(void *slot)
{
    fl_got_function function = {.name = "getppid"};
    fl_got_note(&function, slot);
    for (int turn = 0; turn < TURNS; turn++) {
        CHECK_EQUAL(fl_got_set(&function, our_hook.address), 0);
        CHECK_EQUAL(fl_got_restore(&function, our_hook.address), 0);
    }
    return NULL;
}

static void test_threads_that_change_slots_of_one_page_do_so_one_after_another(void)
{
    size_t size = (size_t)sysconf(_SC_PAGESIZE);
    void **slots = mmap(NULL, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pthread_t threads[2];
    CHECK(slots != MAP_FAILED);
    watched_page = slots;
    for (int i = 0; i < 2; i++) {
        CHECK_EQUAL(pthread_create(&threads[i], NULL, hooks_and_takes_out, &slots[i]), 0);
    }
    for (int i = 0; i < 2; i++) {
        CHECK_EQUAL(pthread_join(threads[i], NULL), 0);
    }
    watched_page = NULL;
    CHECK_EQUAL(crossings, 0);
    CHECK_EQUAL(munmap(slots, size), 0);
}

int main(void)
{
    test_an_address_in_no_object_is_not_found();
    test_more_slots_than_there_is_room_for_are_said_and_not_forgotten();
    test_a_hook_is_called_until_it_is_taken_out();
    test_a_hook_that_others_put_over_ours_stays();
    test_a_page_that_another_closes_meanwhile_is_opened();
    test_threads_that_change_slots_of_one_page_do_so_one_after_another();
    return 0;
}

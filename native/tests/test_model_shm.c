/* Every order of what 2 and 3 processes do to a primitive in shared memory, up to a bound, and with one of
 * them killed before any of its operations, or of another's.
 *
 * test_model_shm                       all scenarios test_model_shm SCENARIO SCHEDULE     one execution
 * again, as a failure printed it
 *
 * Where nobody dies no look is allowed, so that a wake-up that is lost is found. Built with FL_MODEL_BREAK,
 * which puts a fault into the core, it succeeds when the fault is found.
 */
#include <stdio.h>
#include <string.h>

#include "core/shm_permits.h"
#include "model.h"

static union {
    fl_shm_lock lock;
    fl_shm_flag flag;
    struct {
        fl_shm_permits permits;
        uint64_t owners[2];
    };
} shared;

static int holder; /* the process that has the lock, by its own account; -1: none */

static void begin(void)
{
    memset(&shared, 0, sizeof shared);
    holder = -1;
}

static void begin_with_a_death(void)
{
    begin();
    model_allow(1, 2);
}

static bool lives(int process)
{
    return fl_process_alive((uint64_t)(process + 1) << 32);
}

/* Whoever died with the lock, it is told. */
static void took(fl_shm_result result)
{
    int before = holder; /* which may die now, but not have it any more */
    holder = model_self();
    MODEL_CHECK(before == -1 || (result == FL_SHM_INHERITED && !lives(before)));
}

static fl_shm_result lock(bool inherit)
{
    fl_shm_wait wait = {0};
    uint64_t dead = 0;
    for (;;) {
        fl_shm_result result = fl_shm_lock_try(&shared.lock, fl_process_self(), wait.look, inherit, &dead);
        if (result == FL_SHM_DIED) {
            MODEL_CHECK(!lives(fl_process_number(dead) - 1));
        }
        if (result != FL_SHM_NOT) {
            return result;
        }
        if (!fl_shm_ask(&wait, &shared.lock.turn)) {
            fl_shm_sleep(&wait, FL_FOREVER);
        }
    }
}

static void unlock(void)
{
    holder = -1;
    MODEL_CHECK(fl_shm_lock_release(&shared.lock, fl_process_self()));
}

static void use(void)
{
    took(lock(true));
    unlock();
}

static void use_twice(void)
{
    use();
    use();
}

/* As a caller who is told of the death, and then recovers. */
static void use_when_told(void)
{
    fl_shm_result result = lock(false);
    took(result == FL_SHM_DIED ? lock(true) : result);
    unlock();
}

static void end_lock(void)
{
    uint64_t owner = shared.lock.owner;
    MODEL_CHECK(owner == 0 || !lives(fl_process_number(owner) - 1));
}

/* Permits: counted, of which there is one; and owned ones, of which there are two. */
static bool owned;
static int inside[MODEL_THREADS];

static void begin_counted(void)
{
    begin();
    shared.permits.free = 1;
    owned = false;
    memset(inside, 0, sizeof inside);
}

static void begin_owned(void)
{
    begin_with_a_death();
    owned = true;
    memset(inside, 0, sizeof inside);
}

static void use_permit(void)
{
    fl_shm_wait wait = {0};
    uint64_t me = fl_process_self();
    while ((owned ? fl_shm_owned_try(&shared.permits, 2, me, wait.look)
                  : fl_shm_count_try(&shared.permits)) == FL_SHM_NOT) {
        if (!fl_shm_ask(&wait, &shared.permits.turn)) {
            fl_shm_sleep(&wait, FL_FOREVER);
        }
    }
    inside[model_self()] = 1;
    int living = 0;
    for (int process = 0; process < MODEL_THREADS; process++) {
        living += inside[process] && lives(process);
    }
    MODEL_CHECK(living <= (owned ? 2 : 1));
    inside[model_self()] = 0;
    MODEL_CHECK(owned ? fl_shm_owned_give(&shared.permits, 2, me, 1) : fl_shm_count_give(&shared.permits, 1));
}

static void end_counted(void)
{
    MODEL_CHECK(shared.permits.free == 1);
}

static void end_owned(void)
{
    for (int i = 0; i < 2; i++) {
        uint64_t owner = shared.owners[i];
        MODEL_CHECK(owner == 0 || !lives(fl_process_number(owner) - 1));
    }
}

static void wait_for_flag(void)
{
    fl_shm_wait wait = {0};
    uint32_t since = fl_shm_flag_word(&shared.flag);
    while (!fl_shm_flag_passed(&shared.flag, since)) {
        if (!fl_shm_ask(&wait, &shared.flag.turn)) {
            fl_shm_sleep(&wait, FL_FOREVER);
        }
    }
}

static void set_flag(void)
{
    fl_shm_flag_set(&shared.flag);
}

/* Nobody is to set it before they wait. */
static void set_and_clear_flag(void)
{
    fl_shm_flag_set(&shared.flag);
    fl_shm_flag_clear(&shared.flag);
    fl_shm_flag_set(&shared.flag);
}

static void end_flag(void)
{
    MODEL_CHECK(shared.flag.word & 1);
}

static const model_scenario scenarios[] = {
    {"shm-lock-2", 7, 0, 1, begin, end_lock, {use_twice, use_twice}},
    {"shm-lock-3", 5, 0, 1, begin, end_lock, {use, use, use}},
    {"shm-lock-2-dies", 3, 0, 1, begin_with_a_death, end_lock, {use_twice, use}},
    {"shm-lock-3-dies", 3, 0, 1, begin_with_a_death, end_lock, {use, use, use}},
    {"shm-lock-3-told", 2, 0, 1, begin_with_a_death, end_lock, {use, use_when_told, use_when_told}},
    {"shm-count-3", 4, 0, 1, begin_counted, end_counted, {use_permit, use_permit, use_permit}},
    {"shm-owned-3-dies", 2, 0, 1, begin_owned, end_owned, {use_permit, use_permit, use_permit}},
    {"shm-event-3", 4, 0, 1, begin, end_flag, {wait_for_flag, wait_for_flag, set_and_clear_flag}},
    {"shm-event-3-dies", 2, 0, 1, begin_with_a_death, end_flag, {wait_for_flag, set_flag, set_flag}},
};

static const char *const broken_as[] = {
    [0] = "not at all",
    [31] = "who wakes nobody forgets those who have asked meanwhile",
    [34] = "what is set wakes one of those who wait",
    [33] = "who takes a lock says who it is in a second step",
    [32] = "two take over from the same dead owner",
};

int main(int argc, char **argv)
{
    bool found = false;
    for (size_t i = 0; i < sizeof scenarios / sizeof scenarios[0] && !found; i++) {
        const model_scenario *one = &scenarios[i];
        if (argc > 1 && strcmp(argv[1], one->name) != 0) {
            continue;
        }
        model_result result = argc > 2 ? model_replay(one, argv[2]) : model_explore(one);
        printf("%-22s %d pre-emptions: %9llu executions of up to %u steps\n", one->name, one->preemptions,
               (unsigned long long)result.executions, result.longest);
        if (result.failure != NULL) {
            found = true;
            printf("NOT TRUE: %s\nagain: test_model_shm %s ", result.failure, one->name);
            printf("%s\n", result.schedule);
        }
    }
    if (FL_MODEL_BREAK && !found) {
        printf("broken on purpose (%s), and not found\n", broken_as[FL_MODEL_BREAK]);
    }
    return found != (FL_MODEL_BREAK != 0);
}

/* Every order of what 2 and 3 processes do to a primitive in shared memory, up to a bound, and with one of
 * them killed before any of its operations, or of another's.
 *
 * test_model_shm                       all scenarios test_model_shm SCENARIO SCHEDULE     one execution
 * again, as a failure printed it
 *
 * Where no process dies no look is allowed, so that a wake-up that is lost is found.
 */
#include <stdio.h>
#include <string.h>

#include "sync/processes/barrier.h"
#include "sync/processes/permits.h"
#include "sync/processes/queue.h"
#include "model.h"

static union {
    fl_shm_lock lock;
    fl_shm_flag flag;
    struct {
        fl_shm_permits permits;
        uint64_t owners[2];
    };
    struct {
        fl_shm_barrier barrier;
        uint64_t places[2];
    };
    struct {
        fl_shm_queue queue;
        unsigned char ring[32]; /* two messages of 8 bytes */
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

/* The death of any process that held the lock is reported. */
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
        if (!fl_shm_prepare(&wait, &shared.lock.eventcount)) {
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

/* As a caller that gets an owner-death error and then recovers the lock. */
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
        if (!fl_shm_prepare(&wait, &shared.permits.eventcount)) {
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
        if (!fl_shm_prepare(&wait, &shared.flag.eventcount)) {
            fl_shm_sleep(&wait, FL_FOREVER);
        }
    }
}

static void set_flag(void)
{
    fl_shm_flag_set(&shared.flag);
}

/* It is not to be set before they wait. */
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

/* A queue with room for `room` bytes. A message has its sender and its number there. */
static uint64_t room;
static uint32_t got[MODEL_THREADS][4], last[MODEL_THREADS][MODEL_THREADS];

static void begin_queue(void)
{
    begin();
    room = 16;
    memset(got, 0, sizeof got);
    memset(last, 0, sizeof last);
}

static void begin_queue_with_a_death(void)
{
    begin_queue();
    room = 32;
    model_allow(1, 2);
}

/* False: it is shut. */
static bool pass_queue(bool puts, uint64_t *message)
{
    fl_shm_wait wait = {0};
    uint64_t me = fl_process_self(), dead, length;
    for (;;) {
        fl_shm_eventcount *eventcount = NULL;
        fl_shm_result result =
            puts ? fl_shm_queue_begin_put(&shared.queue, room, 8, me, wait.look, &eventcount, &dead)
                 : fl_shm_queue_begin_get(&shared.queue, me, wait.look, &eventcount, &dead);
        if (result == FL_SHM_SHUT_DOWN) {
            return false;
        }
        if (result == FL_SHM_INHERITED) {
            fl_shm_queue_give_up(puts ? &shared.queue.putting : &shared.queue.getting, me);
        } else if (result == FL_SHM_DONE && puts) {
            fl_shm_queue_end_put(&shared.queue, room, message, 8, me);
            return true;
        } else if (result == FL_SHM_DONE) {
            MODEL_CHECK(fl_shm_queue_length(&shared.queue, room, &length) && length == 8);
            fl_shm_queue_end_get(&shared.queue, room, message, 8, me);
            return true;
        } else if (!fl_shm_prepare(&wait, eventcount)) {
            fl_shm_sleep(&wait, FL_FOREVER);
        }
    }
}

static void put_message(uint32_t number)
{
    uint64_t message = (uint64_t)(model_self() + 1) << 32 | number;
    pass_queue(true, &message);
}

static void get_message(void)
{
    uint64_t message = 0;
    if (pass_queue(false, &message)) {
        uint64_t from = (message >> 32) - 1;
        uint32_t number = (uint32_t)message;
        MODEL_CHECK(from < MODEL_THREADS && number < 4);
        MODEL_CHECK(got[from][number]++ == 0);              /* nothing is doubled */
        MODEL_CHECK(last[model_self()][from] <= number); /* nor turned around */
        last[model_self()][from] = number;
    }
}

static void put_one(void)
{
    put_message(1);
}

static void put_two(void)
{
    put_message(1);
    put_message(2);
}

static void get_one(void)
{
    get_message();
}

static void get_two(void)
{
    get_message();
    get_message();
}

static void put_one_and_shut(void)
{
    put_message(1);
    fl_shm_queue_shut(&shared.queue, FL_SHM_SHUT);
}

static void end_queue(void)
{
    uint32_t sum = 0;
    for (int from = 0; from < MODEL_THREADS; from++) {
        sum += got[from][1] + got[from][2];
    }
    MODEL_CHECK(sum == 2 && shared.queue.head == shared.queue.tail);
}

/* Those that live could do what they were to do, and the ring is whole. */
static void end_queue_with_a_death(void)
{
    uint64_t length = 8;
    if (fl_shm_queue_used(&shared.queue) > 0) {
        MODEL_CHECK(fl_shm_queue_length(&shared.queue, room, &length));
    }
    MODEL_CHECK(length == 8 && fl_shm_queue_used(&shared.queue) <= room);
}

static void end_shut_queue(void)
{
    MODEL_CHECK(got[2][1] <= 1 && shared.queue.head <= shared.queue.tail);
}

/* A barrier of two parties: how many were about to come, and how many met in which phase. */
static uint32_t coming, met[8];

static void begin_barrier(void)
{
    begin();
    coming = 0;
    memset(met, 0, sizeof met);
}

static void begin_barrier_with_a_death(void)
{
    begin_barrier();
    model_allow(1, 2);
}

/* `patience`: how many looks it waits; 0: for ever. True: it met the other. */
static bool meet(int patience)
{
    fl_shm_wait wait = {0};
    fl_shm_party party;
    fl_shm_result result;
    uint64_t dead = 0;
    int looked = 0;
    coming++;
    while ((result = fl_shm_barrier_come(&shared.barrier, 2, fl_process_self(), &party)) == FL_SHM_NOT) {
        if (!fl_shm_prepare(&wait, &shared.barrier.eventcount)) {
            fl_shm_sleep(&wait, FL_FOREVER);
        }
    }
    while (result == FL_SHM_DONE) {
        result = fl_shm_barrier_try(&shared.barrier, 2, &party, wait.look, &dead);
        looked += wait.look;
        if (result != FL_SHM_NOT) {
            break;
        }
        if (patience > 0 && looked >= patience) {
            result = fl_shm_barrier_leave(&shared.barrier, &party) ? FL_SHM_SHUT_DOWN : FL_SHM_DONE;
            break;
        }
        result = FL_SHM_DONE;
        if (!fl_shm_prepare(&wait, &shared.barrier.eventcount)) {
            fl_shm_sleep(&wait, FL_FOREVER);
        }
    }
    if (result != FL_SHM_DONE) {
        MODEL_CHECK(fl_shm_barrier_broken(&shared.barrier));
        return false;
    }
    MODEL_CHECK(coming >= 2 * (party.phase + 1) && ++met[party.phase] <= 2);
    return true;
}

static void meet_twice(void)
{
    MODEL_CHECK(meet(0));
    MODEL_CHECK(meet(0));
}

/* Those that are left over are not to wait for ever. */
static void meet_twice_and_break(void)
{
    meet(0);
    meet(0);
    fl_shm_barrier_break(&shared.barrier);
}

static void meet_and_break(void)
{
    meet(0);
    fl_shm_barrier_break(&shared.barrier);
}

static void meet_or_leave(void)
{
    meet(2);
}

static void end_barrier(void)
{
    MODEL_CHECK(met[0] == 2);
}

static void end_barrier_with_a_death(void)
{
    MODEL_CHECK(met[0] <= 2);
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
    {"shm-queue-2", 4, 0, 1, begin_queue, end_queue, {put_two, get_two}},
    {"shm-queue-3", 2, 0, 1, begin_queue, end_queue, {put_one, put_one, get_two}},
    {"shm-queue-3-gets", 2, 0, 1, begin_queue, end_queue, {put_two, get_one, get_one}},
    {"shm-queue-3-shut", 2, 0, 1, begin_queue, end_shut_queue, {get_one, get_two, put_one_and_shut}},
    {"shm-queue-3-dies", 2, 0, 1, begin_queue_with_a_death, end_queue_with_a_death,
     {put_one, put_one, get_one}},
    {"shm-barrier-2", 4, 0, 1, begin_barrier, end_barrier, {meet_twice, meet_twice}},
    {"shm-barrier-3", 3, 0, 1, begin_barrier, end_barrier,
     {meet_twice_and_break, meet_and_break, meet_and_break}},
    {"shm-barrier-2-dies", 3, 0, 1, begin_barrier_with_a_death, end_barrier_with_a_death,
     {meet_or_leave, meet_or_leave}},
    {"shm-event-3-dies", 2, 0, 1, begin_with_a_death, end_flag, {wait_for_flag, set_flag, set_flag}},
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
    return found;
}

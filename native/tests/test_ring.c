/* The ring between the hooks and the recorder's thread. */
#include <pthread.h>
#include <sched.h>

#include "check.h"
#include "gil/trace/ring.h"

static fl_event event(uint64_t number)
{
    return (fl_event){.t = number, .thread = (uint32_t)number, .value = ~number, .kind = 1};
}

static bool put(fl_ring *ring, uint64_t number)
{
    fl_event one = event(number);
    return fl_ring_put(ring, &one);
}

static void test_events_come_out_as_they_went_in(void)
{
    fl_ring *ring = fl_ring_new(8);
    const fl_event *events;
    CHECK_EQUAL(fl_ring_peek(ring, &events), 0);
    for (uint64_t round = 0; round < 100; round++) {
        for (uint64_t i = 0; i < 5; i++) {
            put(ring, round * 5 + i);
        }
        uint64_t seen = 0;
        for (size_t count; (count = fl_ring_peek(ring, &events)) > 0; fl_ring_take(ring, count)) {
            for (size_t i = 0; i < count; i++) {
                CHECK_EQUAL(events[i].t, round * 5 + seen);
                CHECK(events[i].value == ~events[i].t);
                seen++;
            }
        }
        CHECK_EQUAL(seen, 5);
    }
    fl_event lost;
    CHECK(!fl_ring_lost(ring, &lost));
    fl_ring_free(ring);
}

static void test_peeked_events_stay_until_they_are_taken(void)
{
    fl_ring *ring = fl_ring_new(4);
    const fl_event *events;
    put(ring, 7);
    CHECK_EQUAL(fl_ring_peek(ring, &events), 1);
    CHECK_EQUAL(fl_ring_peek(ring, &events), 1);
    CHECK_EQUAL(events[0].t, 7);
    fl_ring_take(ring, 1);
    CHECK_EQUAL(fl_ring_peek(ring, &events), 0);
    fl_ring_free(ring);
}

static void test_a_full_ring_keeps_what_it_has_and_counts_what_it_loses(void)
{
    fl_ring *ring = fl_ring_new(4);
    const fl_event *events;
    for (uint64_t i = 0; i < 10; i++) {
        put(ring, i);
    }
    fl_event lost;
    CHECK(fl_ring_lost(ring, &lost));
    CHECK_EQUAL(lost.kind, FL_EVENT_LOST);
    CHECK_EQUAL(lost.t, 4);
    CHECK_EQUAL(lost.value, 9);
    CHECK_EQUAL(lost.thread, 6);
    CHECK_EQUAL(fl_ring_peek(ring, &events), 4);
    CHECK_EQUAL(events[3].t, 3);
    fl_ring_free(ring);
}

static void test_a_gap_stands_where_it_was_before_the_event_that_ends_it(void)
{
    fl_ring *ring = fl_ring_new(4);
    const fl_event *events;
    for (uint64_t i = 0; i < 6; i++) {
        put(ring, i);
    }
    fl_ring_take(ring, 1);
    put(ring, 6); /* room for one, but the gap needs a place as well */
    fl_ring_take(ring, 3);
    put(ring, 7);
    CHECK_EQUAL(fl_ring_peek(ring, &events), 2);
    CHECK_EQUAL(events[0].kind, FL_EVENT_LOST);
    CHECK_EQUAL(events[0].t, 4);
    CHECK_EQUAL(events[0].value, 6);
    CHECK_EQUAL(events[0].thread, 3);
    CHECK_EQUAL(events[1].t, 7);
    fl_event lost;
    CHECK(!fl_ring_lost(ring, &lost));
    fl_ring_free(ring);
}

static void test_the_consumer_is_called_when_the_ring_gets_half_full(void)
{
    fl_ring *ring = fl_ring_new(8);
    for (uint64_t i = 0; i < 8; i++) {
        CHECK_EQUAL(put(ring, i), i == 3);
    }
    fl_ring_free(ring);
}

#define MANY 300000

static atomic_bool produced;

static void *produce(void *ring)
{
    for (uint64_t i = 1; i <= MANY; i++) {
        put(ring, i);
    }
    atomic_store(&produced, true);
    return NULL;
}

static void test_between_two_threads_every_event_comes_or_is_counted(void)
{
    fl_ring *ring = fl_ring_new(256);
    pthread_t producer;
    CHECK(pthread_create(&producer, NULL, produce, ring) == 0);
    uint64_t next = 1;
    for (bool last = false; !last;) {
        const fl_event *events;
        last = atomic_load(&produced);
        for (size_t count; (count = fl_ring_peek(ring, &events)) > 0; fl_ring_take(ring, count)) {
            for (size_t i = 0; i < count; i++) {
                CHECK_EQUAL(events[i].t, next);
                if (events[i].kind == FL_EVENT_LOST) {
                    uint64_t lost = events[i].thread | (uint64_t)events[i].other << 32;
                    CHECK_EQUAL(events[i].value, next + lost - 1);
                    next += lost;
                } else {
                    CHECK(events[i].value == ~next);
                    next++;
                }
            }
        }
        sched_yield();
    }
    CHECK(pthread_join(producer, NULL) == 0);
    fl_event rest;
    if (fl_ring_lost(ring, &rest)) {
        CHECK_EQUAL(rest.t, next);
        next += rest.thread;
    }
    CHECK_EQUAL(next, MANY + 1);
    fl_ring_free(ring);
}

int main(void)
{
    test_events_come_out_as_they_went_in();
    test_peeked_events_stay_until_they_are_taken();
    test_a_full_ring_keeps_what_it_has_and_counts_what_it_loses();
    test_a_gap_stands_where_it_was_before_the_event_that_ends_it();
    test_the_consumer_is_called_when_the_ring_gets_half_full();
    test_between_two_threads_every_event_comes_or_is_counted();
    return 0;
}

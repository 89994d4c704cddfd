/* ring: events on their way from where they happen to the file, in bounded memory.
 *
 * One producer and one consumer at a time, which may be different threads. The producer never waits: an
 * event that finds no room is counted, and the next one that finds room is preceded by a record that says
 * how many were lost and between which times. So events come out in order, and every loss is reported.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    uint64_t t;
    uint32_t thread;
    uint32_t other;
    uint64_t value;
    uint16_t gil;
    uint8_t kind;
    uint8_t flags;
    uint32_t stack;
} fl_event;

/* A record in the ring, never in a file: `t` the first and `value` the last time at which an event was lost,
   `thread` + 2^32 * `other` how many were. */
#define FL_EVENT_LOST 255

#define FL_RING_AHEAD 4 /* events: two lines of the cache */

typedef struct {
    _Alignas(64) _Atomic uint64_t head; /* written by the producer */
    uint64_t tail_seen;
    uint64_t lost, lost_first, lost_last;
    _Alignas(64) _Atomic uint64_t tail; /* written by the consumer */
    _Alignas(64) uint64_t size;         /* a power of two */
    fl_event events[];
} fl_ring;

/* `size` is a power of two, at least 4. NULL: no memory. */
fl_ring *fl_ring_new(uint64_t size);
void fl_ring_free(fl_ring *ring);

static inline bool fl_ring_room(fl_ring *ring, uint64_t head, uint64_t wanted)
{
    if (ring->size - (head - ring->tail_seen) >= wanted) {
        return true;
    }
    /* pairs with the release in fl_ring_take: the slots have been read before they are written again */
    ring->tail_seen = atomic_load_explicit(&ring->tail, memory_order_acquire);
    return ring->size - (head - ring->tail_seen) >= wanted;
}

/* Producer. True when the ring has just become half full: the consumer should be woken. */
static inline bool fl_ring_put(fl_ring *ring, const fl_event *event)
{
    uint64_t head = atomic_load_explicit(&ring->head, memory_order_relaxed); /* our own */
    uint64_t mask = ring->size - 1;
    bool gap = ring->lost != 0;
    if (__builtin_expect(!fl_ring_room(ring, head, gap ? 2 : 1), false)) {
        if (!gap) {
            ring->lost_first = event->t;
        }
        ring->lost_last = event->t;
        ring->lost++;
        return false;
    }
    if (__builtin_expect(gap, false)) {
        ring->events[head++ & mask] = (fl_event){
            .t = ring->lost_first,
            .value = ring->lost_last,
            .thread = (uint32_t)ring->lost,
            .other = (uint32_t)(ring->lost >> 32),
            .gil = event->gil,
            .kind = FL_EVENT_LOST,
        };
        ring->lost = 0;
    }
    ring->events[head++ & mask] = *event;
    /* The consumer has had the room that is written next: it takes as long to get back as all else here. */
    __builtin_prefetch(&ring->events[(head + FL_RING_AHEAD) & mask], 1);
    /* pairs with the acquire in fl_ring_peek: the events are written before they are seen */
    atomic_store_explicit(&ring->head, head, memory_order_release);
    return head - ring->tail_seen == ring->size / 2;
}

/* Producer, after the last event: what was lost since the last one that found room. False: nothing. */
bool fl_ring_lost(const fl_ring *ring, fl_event *record);

/* Consumer: the next events that lie in one piece; returns how many, 0 when the ring is empty. They stay in
   the ring until fl_ring_take. */
static inline size_t fl_ring_peek(fl_ring *ring, const fl_event **events)
{
    uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed); /* our own */
    uint64_t head = atomic_load_explicit(&ring->head, memory_order_acquire); /* pairs with fl_ring_put */
    uint64_t start = tail & (ring->size - 1), count = head - tail;
    *events = ring->events + start;
    return (size_t)(count < ring->size - start ? count : ring->size - start);
}

/* Consumer: gives back the room of the first `count` events. */
static inline void fl_ring_take(fl_ring *ring, size_t count)
{
    uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
    atomic_store_explicit(&ring->tail, tail + count, memory_order_release); /* pairs with fl_ring_room */
}

/* heap: a 4-ary min-heap of thread numbers with keys, each thread at most once. O(log n) per change.
 *
 * Equal keys leave in the order in which they came, which is what makes a simulation repeat exactly.
 * `capacity` threads; memory is the caller's. No locking: a heap belongs to one simulation.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef struct fl_heap_entry {
    int64_t key;
    uint64_t order;
    uint32_t thread;
} fl_heap_entry;

typedef struct fl_heap {
    fl_heap_entry *entries;
    uint32_t *where; /* index into entries + 1; 0 when absent */
    uint32_t count;
    uint64_t next_order;
} fl_heap;

bool fl_heap_init(fl_heap *heap, uint32_t capacity); /* false: no memory */
void fl_heap_free(fl_heap *heap);

void fl_heap_set(fl_heap *heap, uint32_t thread, int64_t key); /* insert, or move behind equals */
void fl_heap_remove(fl_heap *heap, uint32_t thread);           /* harmless when absent */

static inline bool fl_heap_empty(const fl_heap *heap)
{
    return heap->count == 0;
}

static inline const fl_heap_entry *fl_heap_first(const fl_heap *heap)
{
    return &heap->entries[0];
}

#include "gil/simulator/heap.h"

#include <stdlib.h>

bool fl_heap_init(fl_heap *heap, uint32_t capacity)
{
    *heap = (fl_heap){
        .entries = malloc(sizeof(fl_heap_entry) * (capacity + 1u)),
        .where = calloc(capacity + 1u, sizeof(uint32_t)),
    };
    return heap->entries != NULL && heap->where != NULL;
}

void fl_heap_free(fl_heap *heap)
{
    free(heap->entries);
    free(heap->where);
}

static bool before(const fl_heap_entry *a, const fl_heap_entry *b)
{
    return a->key != b->key ? a->key < b->key : a->order < b->order;
}

static void put(fl_heap *heap, uint32_t at, fl_heap_entry entry)
{
    heap->entries[at] = entry;
    heap->where[entry.thread] = at + 1;
}

static void sift_up(fl_heap *heap, uint32_t at, fl_heap_entry entry)
{
    while (at > 0) {
        uint32_t parent = (at - 1) / 4;
        if (!before(&entry, &heap->entries[parent])) {
            break;
        }
        put(heap, at, heap->entries[parent]);
        at = parent;
    }
    put(heap, at, entry);
}

static void sift_down(fl_heap *heap, uint32_t at, fl_heap_entry entry)
{
    for (;;) {
        uint64_t child = 4ull * at + 1, best = child;
        if (child >= heap->count) {
            break;
        }
        for (uint64_t other = child + 1; other < child + 4 && other < heap->count; other++) {
            if (before(&heap->entries[other], &heap->entries[best])) {
                best = other;
            }
        }
        if (!before(&heap->entries[best], &entry)) {
            break;
        }
        put(heap, at, heap->entries[best]);
        at = (uint32_t)best;
    }
    put(heap, at, entry);
}

void fl_heap_set(fl_heap *heap, uint32_t thread, int64_t key)
{
    fl_heap_remove(heap, thread);
    sift_up(heap, heap->count++, (fl_heap_entry){.key = key, .order = heap->next_order++, .thread = thread});
}

void fl_heap_remove(fl_heap *heap, uint32_t thread)
{
    uint32_t at = heap->where[thread];

    if (at == 0) {
        return;
    }
    heap->where[thread] = 0;
    fl_heap_entry last = heap->entries[--heap->count];
    if (--at == heap->count) {
        return;
    }
    if (at > 0 && before(&last, &heap->entries[(at - 1) / 4])) {
        sift_up(heap, at, last);
    }
    else {
        sift_down(heap, at, last);
    }
}

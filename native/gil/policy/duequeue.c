#include "gil/policy/duequeue.h"

#include <stdbool.h>
#include <stddef.h>

static bool before(const fl_duelink *a, const fl_duelink *b)
{
    return a->due != b->due ? a->due < b->due : a->since < b->since;
}

static fl_duelink *meld(fl_duelink *a, fl_duelink *b)
{
    if (a == NULL || b == NULL) {
        return a != NULL ? a : b;
    }
    if (before(b, a)) {
        fl_duelink *swap = a;
        a = b;
        b = swap;
    }
    b->prev = a;
    b->next = a->child;
    if (a->child != NULL) {
        a->child->prev = b;
    }
    a->child = b;
    a->next = a->prev = NULL;
    return a;
}

/* Meld a list of siblings in pairs from the left, then all pairs from the right. */
static fl_duelink *meld_siblings(fl_duelink *list)
{
    fl_duelink *pairs = NULL, *heap = NULL;

    while (list != NULL) {
        fl_duelink *a = list, *b = a->next;
        list = b != NULL ? b->next : NULL;
        a->next = a->prev = NULL;
        if (b != NULL) {
            b->next = b->prev = NULL;
        }
        a = meld(a, b);
        a->next = pairs;
        pairs = a;
    }
    while (pairs != NULL) {
        fl_duelink *rest = pairs->next;
        pairs->next = NULL;
        heap = meld(heap, pairs);
        pairs = rest;
    }
    return heap;
}

void fl_duequeue_add(fl_duequeue *queue, fl_duelink *link)
{
    link->child = link->next = link->prev = NULL;
    queue->first = meld(queue->first, link);
    queue->count++;
}

void fl_duequeue_remove(fl_duequeue *queue, fl_duelink *link)
{
    fl_duelink *orphans = meld_siblings(link->child);

    if (queue->first == link) {
        queue->first = orphans;
    }
    else {
        if (link->prev->child == link) {
            link->prev->child = link->next;
        }
        else {
            link->prev->next = link->next;
        }
        if (link->next != NULL) {
            link->next->prev = link->prev;
        }
        queue->first = meld(queue->first, orphans);
    }
    link->child = link->next = link->prev = NULL;
    queue->count--;
}

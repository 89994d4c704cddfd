/* See roster.h. */
#include "core/roster.h"

#include "core/semaphore.h"

#include <stdlib.h>
#ifndef FL_MODEL
#include <pthread.h>
#endif

#ifdef FL_MODEL
#define SHARDS 1u
#else
#define SHARDS 32u
#endif

static struct {
    fl_mutex lock;
    fl_sleeper *first;
    char own_line[48];
} shards[SHARDS] __attribute__((aligned(64)));

static struct {
    fl_mutex lock;
    fl_port *first;
    uint32_t count;
} ports;

static uint32_t shard_of(uint64_t number)
{
    return (uint32_t)(number >> 1) % SHARDS;
}

static void link_in(fl_sleeper *sleeper)
{
    fl_sleeper **first = &shards[shard_of(sleeper->number)].first;
    sleeper->next = *first;
    sleeper->link = first;
    if (*first != NULL) {
        (*first)->link = &sleeper->next;
    }
    *first = sleeper;
}

#ifdef FL_MODEL /* its threads have no storage of their own, and are all there from the beginning */
static fl_sleeper model_records[4];
static bool ended(uint64_t owner);

fl_sleeper *fl_roster_own(void)
{
    return &model_records[fl_owner_thread() >> 1];
}

bool fl_roster_setup(void)
{
    shards[0].first = NULL;
    for (uint32_t i = 0; i < sizeof model_records / sizeof model_records[0]; i++) {
        model_records[i] = (fl_sleeper){.number = (uint64_t)i << 1, .ident = i};
        link_in(&model_records[i]);
    }
    fl_owner_ended = ended;
    return true;
}
#else
static bool ended(uint64_t owner);
static fl_atomic(uint64_t) threads;
static pthread_key_t ending;
static bool ready;

static _Thread_local uint64_t mine __attribute__((tls_model("initial-exec")));
static _Thread_local fl_sleeper *record __attribute__((tls_model("initial-exec")));

/* Never given twice, unlike the thread identifiers of the system. Without memory for its record, or before
   fl_roster_setup, a thread is one that nobody knows. */
static void enlist(void)
{
    mine = (fl_fetch_add(&threads, 1, relaxed) + 1) << 1; /* only unique; the low bit says "task" */
    fl_sleeper *made = ready ? calloc(1, sizeof *made) : NULL;
    if (made == NULL || pthread_setspecific(ending, made) != 0) {
        fl_owner_ended = NULL; /* from now on not everyone who is not there has ended */
        free(made);
        return;
    }
    made->number = mine;
    made->ident = (uint64_t)pthread_self();
    fl_mutex *lock = &shards[shard_of(mine)].lock;
    fl_mutex_lock(lock);
    link_in(made);
    fl_mutex_unlock(lock);
    record = made;
}

uint64_t fl_owner_thread(void)
{
    if (__builtin_expect(mine == 0, false)) {
        enlist();
    }
    return mine;
}

/* What it may do after that, it does as another. */
static void end(void *op)
{
    fl_roster_strike(op);
    free(op);
    record = NULL;
    mine = 0;
}

fl_sleeper *fl_roster_own(void)
{
    fl_owner_thread();
    return record;
}

static void before_fork(void)
{
    for (uint32_t i = 0; i < SHARDS; i++) {
        fl_mutex_lock(&shards[i].lock);
    }
    fl_mutex_lock(&ports.lock);
}

static void after_fork(void)
{
    fl_mutex_unlock(&ports.lock);
    for (uint32_t i = 0; i < SHARDS; i++) {
        fl_mutex_unlock(&shards[i].lock);
    }
}

/* Only the thread that forked is in the child. */
static void after_fork_in_child(void)
{
    for (uint32_t i = 0; i < SHARDS; i++) {
        fl_sleeper *next;
        for (fl_sleeper *sleeper = shards[i].first; sleeper != NULL; sleeper = next) {
            next = sleeper->next;
            if (sleeper != record) {
                free(sleeper);
            }
        }
        shards[i].first = NULL;
    }
    if (record != NULL) {
        link_in(record);
    }
    after_fork();
}

static void set_up(void)
{
    ready = pthread_key_create(&ending, end) == 0 &&
            pthread_atfork(before_fork, after_fork, after_fork_in_child) == 0;
    fl_owner_ended = ready ? ended : NULL;
}

bool fl_roster_setup(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, set_up);
    return ready;
}
#endif

void fl_roster_begin(fl_waiter *waiter, int64_t deadline, void *state, int64_t space)
{
    fl_sleeper *me = fl_roster_own();
    if (me == NULL) {
        return;
    }
    fl_mutex *lock = &shards[shard_of(me->number)].lock;
    fl_mutex_lock(lock);
    me->waiter = waiter;
    me->deadline = deadline;
    me->state = state;
    me->space = space;
    fl_mutex_unlock(lock);
}

void fl_roster_end(void)
{
    fl_sleeper *me = fl_roster_own();
    if (me == NULL) {
        return;
    }
    fl_mutex *lock = &shards[shard_of(me->number)].lock;
    fl_mutex_lock(lock);
    uint32_t held;
    while ((held = fl_load(&me->held, relaxed)) != 0 && FL_MODEL_BREAK != 30) { /* under the lock */
        fl_mutex_unlock(lock);
        fl_park(&me->held, held, FL_FOREVER);
        fl_mutex_lock(lock);
    }
    me->waiter = NULL;
    fl_mutex_unlock(lock);
}

void fl_roster_sleepers(void (*see)(void *context, fl_sleeper *sleeper), void *context)
{
    for (uint32_t i = 0; i < SHARDS; i++) {
        fl_mutex_lock(&shards[i].lock);
        for (fl_sleeper *sleeper = shards[i].first; sleeper != NULL; sleeper = sleeper->next) {
            if (sleeper->waiter != NULL) {
                see(context, sleeper);
            }
        }
        fl_mutex_unlock(&shards[i].lock);
    }
}

void fl_roster_hold(fl_sleeper *sleeper)
{
    fl_fetch_add(&sleeper->held, 1, relaxed); /* under the lock */
}

void fl_roster_release(fl_sleeper *sleeper)
{
    fl_mutex *lock = &shards[shard_of(sleeper->number)].lock;
    fl_mutex_lock(lock);
    bool last = fl_fetch_sub(&sleeper->held, 1, relaxed) == 1; /* under the lock */
    fl_mutex_unlock(lock);
    if (last) {
        fl_unpark(&sleeper->held); /* its address only: it may have gone on */
    }
}

uint64_t fl_roster_ident(uint64_t owner)
{
    uint64_t number = fl_owner_place(owner) & ~(uint64_t)FL_OWNER_TASK, ident = 0;
    fl_mutex *lock = &shards[shard_of(number)].lock;
    fl_mutex_lock(lock);
    for (fl_sleeper *sleeper = shards[shard_of(number)].first; sleeper != NULL; sleeper = sleeper->next) {
        if (sleeper->number == number) {
            ident = sleeper->ident;
        }
    }
    fl_mutex_unlock(lock);
    return ident;
}

void fl_roster_add(fl_port *port, int64_t space)
{
    port->space = space;
    fl_mutex_lock(&ports.lock);
    port->listed = ports.first;
    port->link = &ports.first;
    if (ports.first != NULL) {
        ports.first->link = &port->listed;
    }
    ports.first = port;
    ports.count++;
    fl_mutex_unlock(&ports.lock);
}

void fl_roster_remove(fl_port *port)
{
    fl_mutex_lock(&ports.lock);
    *port->link = port->listed;
    if (port->listed != NULL) {
        port->listed->link = port->link;
    }
    ports.count--;
    fl_mutex_unlock(&ports.lock);
}

/* All ports, each with a reference; NULL: no memory. */
static fl_port **all_ports(uint32_t *count)
{
    uint32_t room = 0;
    fl_port **found = NULL;
    for (;;) {
        fl_mutex_lock(&ports.lock);
        *count = ports.count;
        bool fits = ports.count <= room;
        uint32_t at = 0;
        for (fl_port *port = ports.first; fits && port != NULL; port = port->listed) {
            fl_fetch_add(&port->refs, 1, relaxed); /* whoever has listed it has one */
            found[at++] = port;
        }
        fl_mutex_unlock(&ports.lock);
        if (fits && found != NULL) {
            return found;
        }
        free(found);
        room = *count + 8;
        found = calloc(room, sizeof *found);
        if (found == NULL) {
            return NULL;
        }
    }
}

/* `states`: a bit for each of the states that are looked for. */
static bool see_tasks(uint32_t states, void (*see)(void *context, const fl_port *port, fl_waiter *waiter),
                      void *context)
{
    uint32_t count;
    fl_port **found = all_ports(&count);
    if (found == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        fl_port_lock(found[i]);
        for (fl_waiter *waiter = found[i]->all; waiter != NULL; waiter = waiter->after) {
            if (states >> fl_load(&waiter->state, acquire) & 1) { /* pairs with settle */
                see(context, found[i], waiter);
            }
        }
        fl_mutex_unlock(&found[i]->lock);
    }
    for (uint32_t i = 0; i < count; i++) {
        fl_port_unref(found[i]);
    }
    free(found);
    return true;
}

bool fl_roster_tasks(void (*see)(void *context, const fl_port *port, fl_waiter *waiter), void *context)
{
    return see_tasks(1u << FL_WAITING | 1u << FL_NUDGED, see, context);
}

typedef struct {
    const fl_cell *cell;
    uint32_t granted;
} permit_count;

static void count_granted(void *context, const fl_port *port, fl_waiter *waiter)
{
    permit_count *counted = context;
    bool ours = waiter->generation == fl_fork_generation ||
                fl_load(&port->home, relaxed) == fl_fork_thread; /* written before the fork */
    if (waiter->cell == counted->cell && ours) {
        counted->granted += waiter->wanted;
    }
}

uint32_t fl_roster_granted(const fl_cell *cell)
{
    permit_count counted = {.cell = cell};
    see_tasks(1u << FL_GRANTED, count_granted, &counted); /* without memory: as if there were no tasks */
    return counted.granted;
}

static bool ended(uint64_t owner)
{
    return fl_roster_ident(owner) == 0;
}

/* What one who ends leaves behind: cells that somebody waits for, each once and with a reference. */
typedef struct {
    uint64_t number;
    fl_cell **at;
    size_t count, room;
} estate;

static void leave_behind(estate *left, fl_cell *cell)
{
    if (cell->kind != &fl_sem_kind || !(cell->flags & FL_CELL_OWNED) ||
        /* its own, and nobody else's by now */
        (fl_owner_place(fl_load(&cell->owner, relaxed)) & ~(uint64_t)FL_OWNER_TASK) != left->number) {
        return;
    }
    for (size_t i = 0; i < left->count; i++) {
        if (left->at[i] == cell) {
            return;
        }
    }
    if (left->count == left->room) {
        size_t room = left->room ? 2 * left->room : 8;
        fl_cell **larger = realloc(left->at, room * sizeof *larger);
        if (larger == NULL) {
            return; /* who comes next is told */
        }
        left->at = larger;
        left->room = room;
    }
    fl_cell_ref(cell);
    left->at[left->count++] = cell;
}

static void see_sleeper(void *context, fl_sleeper *sleeper)
{
    const fl_waiter *first = sleeper->waiter;
    if (first->choice == NULL) { /* who waits for several things may yet get another */
        leave_behind(context, first->cell);
    }
}

static void see_task(void *context, const fl_port *port, fl_waiter *waiter)
{
    (void)port;
    leave_behind(context, waiter->cell);
}

void fl_roster_strike(fl_sleeper *sleeper)
{
    estate left = {.number = sleeper->number};
    fl_mutex *lock = &shards[shard_of(sleeper->number)].lock;
#if FL_MODEL_BREAK == 31
    fl_roster_sleepers(see_sleeper, &left);
#endif
    fl_mutex_lock(lock);
    *sleeper->link = sleeper->next;
    if (sleeper->next != NULL) {
        sleeper->next->link = sleeper->link;
    }
    fl_mutex_unlock(lock);
#if FL_MODEL_BREAK != 31
    fl_roster_sleepers(see_sleeper, &left);
#endif
    fl_roster_tasks(see_task, &left);
    for (size_t i = 0; i < left.count; i++) {
        if (left.at[i]->flags & FL_CELL_BREAKS) {
            fl_sem_close(left.at[i]);
        } else {
            fl_cell_alarm(left.at[i]);
        }
        fl_cell_unref(left.at[i]);
    }
    free(left.at);
}

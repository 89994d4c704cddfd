#define _GNU_SOURCE /* gettid */

#include "gil/threads/threads.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "gil/trace/pool.h"
#include "gil/threads/patience.h"

#ifndef FL_PROBE_REFUSAL

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_key_t key;
static char inherited[FL_THREAD_NAME]; /* what threads are called in the system that have no name in Python */
static bool prepared;
static fl_pool pool = FL_POOL_OF(fl_thread);

/* Under the lock. */
static fl_thread *threads;
static uint32_t serials;

int fl_threads_prepare(void (*ends)(void *thread))
{
    if (!prepared) {
        int error = pthread_key_create(&key, ends);
        if (error) {
            return error;
        }
        FILE *file = fopen("/proc/self/comm", "re");
        if (file) {
            if (fgets(inherited, sizeof inherited, file)) {
                inherited[strcspn(inherited, "\n")] = 0;
            }
            fclose(file);
        }
        prepared = true;
    }
    return 0;
}

fl_thread *fl_threads_new(uint16_t gil)
{
    fl_thread *thread = fl_pool_take(&pool);
    if (thread == NULL) {
        return NULL;
    }
    if (pthread_setspecific(key, thread) != 0) {
        fl_pool_give(&pool, thread);
        return NULL;
    }
    thread->native_id = gettid();
    thread->gil = gil;
    atomic_init(&thread->references, 1);
    pthread_mutex_lock(&lock);
    thread->serial = ++serials;
    thread->next = threads;
    if (threads) {
        threads->previous = thread;
    }
    threads = thread;
    pthread_mutex_unlock(&lock);
    return thread;
}

/* Under the lock. */
static void release(fl_thread *thread)
{
    if (atomic_fetch_sub(&thread->references, 1) != 1) {
        return;
    }
    *(thread->previous ? &thread->previous->next : &threads) = thread->next;
    if (thread->next) {
        thread->next->previous = thread->previous;
    }
    fl_pool_give(&pool, thread);
}

void fl_threads_release(fl_thread *thread)
{
    pthread_mutex_lock(&lock);
    release(thread);
    pthread_mutex_unlock(&lock);
}

void fl_threads_end(fl_thread *thread)
{
    char name[FL_THREAD_NAME] = "";
    (void)prctl(PR_GET_NAME, name, 0, 0, 0);
    pthread_mutex_lock(&lock);
    thread->ended = true;
    thread->seats = NULL;
    if (!thread->name[0] && strcmp(name, inherited) != 0) {
        memcpy(thread->name, name, sizeof name);
        thread->recorded = false;
    }
    release(thread);
    pthread_mutex_unlock(&lock);
}

/* Under the lock. */
static size_t copy(fl_thread_record *records, size_t room, bool unrecorded)
{
    size_t count = 0;
    for (fl_thread *thread = threads; thread; thread = thread->next) {
        if (unrecorded && thread->recorded) {
            continue;
        }
        if (count < room) {
            fl_thread_record *record = &records[count];
            *record = (fl_thread_record){.serial = thread->serial,
                                         .native_id = thread->native_id,
                                         .gil = thread->gil,
                                         .ended = thread->ended};
            memcpy(record->name, thread->name, sizeof record->name);
            thread->recorded = thread->recorded || unrecorded;
        }
        count++;
    }
    return count;
}

size_t fl_threads_copy(fl_thread_record *records, size_t room, bool unrecorded)
{
    pthread_mutex_lock(&lock);
    size_t count = copy(records, room, unrecorded);
    pthread_mutex_unlock(&lock);
    return count;
}

bool fl_threads_copy_until(fl_thread_record *records, size_t room, size_t *count, uint64_t until)
{
    if (!fl_lock_until(&lock, until)) {
        return false;
    }
    *count = copy(records, room, false);
    pthread_mutex_unlock(&lock);
    return true;
}

static int by_native_id(const void *left, const void *right)
{
    pid_t a = ((const fl_thread_name *)left)->native_id, b = ((const fl_thread_name *)right)->native_id;
    return (a > b) - (a < b);
}

/* Under the lock. */
static void rename_thread(fl_thread *thread, const fl_thread_name *to)
{
    size_t size = to->size;
    if (size >= FL_THREAD_NAME) {
        size = FL_THREAD_NAME - 1;
        while (size > 0 && ((unsigned char)to->name[size] & 0xC0) == 0x80) { /* not within a character */
            size--;
        }
    }
    if (strlen(thread->name) != size || memcmp(thread->name, to->name, size) != 0) {
        memset(thread->name, 0, sizeof thread->name);
        memcpy(thread->name, to->name, size);
        thread->recorded = false;
    }
}

void fl_threads_name(fl_thread_name *names, size_t count)
{
    size_t left = count;
    pthread_mutex_lock(&lock);
    for (fl_thread *thread = threads; thread && left > 0; thread = thread->next) {
        fl_thread_name wanted = {.native_id = thread->native_id};
        fl_thread_name *found = bsearch(&wanted, names, count, sizeof wanted, by_native_id);
        if (found && !found->given) {
            rename_thread(thread, found);
            found->given = true;
            left--;
        }
    }
    pthread_mutex_unlock(&lock);
}

void fl_threads_record_anew(void)
{
    pthread_mutex_lock(&lock);
    for (fl_thread *thread = threads; thread; thread = thread->next) {
        thread->recorded = false;
    }
    pthread_mutex_unlock(&lock);
}

size_t fl_threads_bytes(void)
{
    size_t used, left;
    fl_pool_measure(&pool, &used, &left);
    return used + left;
}

void fl_threads_fork(fl_thread *self, uint16_t gil)
{
    /* Another thread may have been anywhere: nothing that it could have been changing is looked at. */
    pthread_mutex_init(&lock, NULL);
    fl_pool_fork(&pool, self != NULL);
    threads = self;
    serials = self != NULL;
    if (self) {
        memset(self, 0, sizeof *self);
        self->serial = 1;
        self->native_id = gettid();
        self->gil = gil;
        atomic_init(&self->references, 1);
    }
}

#endif

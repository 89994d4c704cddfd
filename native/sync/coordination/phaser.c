/* See phaser.h. */
#include "sync/coordination/phaser.h"

static uint64_t word_of(fl_waitq *waitq)
{
    return fl_load(&waitq->word, relaxed); /* under the queue lock */
}

static uint32_t phase_of(uint64_t word)
{
    return (uint32_t)word & FL_PHASER_PHASE;
}

static uint32_t next_phase(uint32_t phase)
{
    return (phase + 1) & FL_PHASER_PHASE;
}

/* Whether that phase is in the past, as far as half of the circle. */
static bool over(uint64_t word, uint32_t wanted)
{
    uint32_t since = (phase_of(word) - wanted) & FL_PHASER_PHASE;
    return (word & FL_PHASER_TERMINATED) || (since > 0 && since <= FL_PHASER_PHASE / 2);
}

static bool attempt(fl_waitq *waitq, uint32_t wanted, fl_stake stake)
{
    (void)stake;
    return over(fl_phaser_word(waitq), wanted);
}

static bool enter(fl_waitq *waitq, fl_waiter *waiter, fl_wakes *wakes)
{
    (void)wakes;
    if (over(fl_load(&waitq->word, acquire), waiter->wanted)) { /* pairs with fl_phaser_advance */
        return true;
    }
    fl_waitq_push(waitq, waiter);
    return false;
}

/* The party that was about to advance it does not exist in the child, or finds this done. */
static void forked(fl_waitq *waitq)
{
    uint64_t word = fl_load(&waitq->word, relaxed); /* alone in this wait queue */
    if (word & FL_PHASER_ADVANCING) {
        fl_store(&waitq->word, phase_of(word) | FL_PHASER_TERMINATED, relaxed); /* published with it */
    }
}

const fl_waitq_ops fl_phaser_ops = {
    .attempt = attempt,
    .enter = enter,
    .forked = forked,
};

/* Queue lock. */
static void catch_up(fl_phaser *self, uint64_t word)
{
    if (self->phase != phase_of(word)) {
        self->phase = phase_of(word);
        self->unarrived = self->parties;
        self->children_missing = self->children;
    }
}

/* Queue lock. How many it has, each child as one, and how many of them have not arrived. */
static uint32_t members(const fl_phaser *self)
{
    return self->parties + self->children;
}

static uint32_t missing(const fl_phaser *self)
{
    return self->unarrived + self->children_missing;
}

/* Queue lock. Whether there is room for more in it and in those above it that it would be a child of. */
static bool has_room(const fl_phaser *self, uint32_t parties)
{
    while (self != NULL) {
        if (parties > FL_PHASER_MOST - members(self)) {
            return false;
        }
        if (members(self) > 0) {
            return true;
        }
        self = self->parent;
        parties = 1;
    }
    return true;
}

/* Queue lock. Makes room above for one more that has something; whether that is for this phase, and not only
   from the next one on. */
static bool join(fl_phaser *self, uint64_t word)
{
    catch_up(self, word);
    if (members(self) > 0) {
        return missing(self) > 0;
    }
    if (self->parent == NULL) {
        return !(word & FL_PHASER_ADVANCING);
    }
    bool now = join(self->parent, word);
    self->parent->children++;
    self->parent->children_missing += now;
    return now;
}

fl_phaser_result fl_phaser_register(fl_phaser *self, uint32_t parties, uint32_t *phase)
{
    fl_wakes wakes = {0};
    fl_phaser_result result = FL_PHASER_OK;
    fl_waitq_lock(self->waitq);
    uint64_t word = word_of(self->waitq);
    *phase = phase_of(word);
    if (word & FL_PHASER_TERMINATED) {
        result = FL_PHASER_OVER;
    } else if (!has_room(self, parties)) {
        result = FL_PHASER_TOO_MANY;
    } else if (parties > 0) {
        bool now = join(self, word);
        self->parties += parties;
        self->unarrived += now ? parties : 0;
        *phase = now ? *phase : next_phase(*phase);
    }
    fl_waitq_unlock(self->waitq, &wakes);
    return result;
}

static fl_phaser *early_ones(fl_waitq *waitq)
{
    return (fl_phaser *)(uintptr_t)fl_load(&waitq->owner, relaxed); /* under the queue lock */
}

static void set_early_ones(fl_waitq *waitq, fl_phaser *first)
{
    fl_store(&waitq->owner, (uint64_t)(uintptr_t)first, relaxed); /* under the queue lock */
}

/* Queue lock. One of a node's own parties, which is missing; true: the last of the tree. */
static bool arrive(fl_phaser *self, bool deregister, uint64_t word)
{
    self->unarrived--;
    self->parties -= deregister;
    while (missing(self) == 0 && self->parent != NULL) {
        deregister = members(self) == 0;
        self = self->parent;
        catch_up(self, word);
        self->children_missing--;
        self->children -= deregister;
    }
    if (missing(self) > 0) {
        return false;
    }
    fl_store(&self->waitq->word, word | FL_PHASER_ADVANCING, relaxed); /* under the queue lock */
    return true;
}

fl_phaser_result fl_phaser_arrive(fl_phaser *self, bool deregister, uint32_t *phase)
{
    fl_wakes wakes = {0};
    fl_waitq *waitq = self->waitq;
    fl_phaser_result result = FL_PHASER_OK;
    fl_waitq_lock(waitq);
    uint64_t word = word_of(waitq);
    *phase = phase_of(word);
    catch_up(self, word);
    if (word & FL_PHASER_TERMINATED) {
        result = FL_PHASER_OVER;
    } else if (self->unarrived > 0) {
        result = arrive(self, deregister, word) ? FL_PHASER_LAST : FL_PHASER_OK;
    } else if (self->early == self->parties) {
        result = FL_PHASER_UNREGISTERED;
    } else {
        if (self->early++ == 0) {
            self->next = early_ones(waitq);
            set_early_ones(waitq, self);
        }
        self->early_gone += deregister;
        *phase = next_phase(*phase);
    }
    fl_waitq_unlock(waitq, &wakes);
    return result;
}

/* Queue lock. */
static void change(fl_waitq *waitq, uint64_t word, fl_wakes *wakes)
{
    fl_waiter *next;
    fl_store(&waitq->word, word, release); /* pairs with fl_phaser_word */
    for (fl_waiter *waiter = waitq->head; waiter != NULL; waiter = next) {
        next = waiter->next;
        if (over(word, waiter->wanted)) {
            fl_waitq_grant(waitq, waiter, wakes);
        }
    }
}

bool fl_phaser_advance(fl_phaser *root, bool terminate)
{
    fl_wakes wakes = {0};
    fl_waitq *waitq = root->waitq;
    bool again = false;
    fl_waitq_lock_for_all(waitq, &wakes);
    uint64_t word = word_of(waitq);
    if (!(word & FL_PHASER_ADVANCING)) {
        /* it was terminated meanwhile */
    } else if (terminate || members(root) == 0) {
        change(waitq, phase_of(word) | FL_PHASER_TERMINATED, &wakes);
    } else {
        word = next_phase(phase_of(word));
        change(waitq, word, &wakes);
        fl_phaser *next;
        fl_phaser *node = early_ones(waitq);
        set_early_ones(waitq, NULL);
        for (; node != NULL; node = next) {
            next = node->next;
            catch_up(node, word);
            for (; node->early > 0; node->early--) {
                again = arrive(node, node->early <= node->early_gone, word);
            }
            node->early_gone = 0;
        }
    }
    fl_waitq_unlock(waitq, &wakes);
    return again;
}

void fl_phaser_forget(fl_phaser *self)
{
    fl_wakes wakes = {0};
    fl_waitq_lock(self->waitq);
    if (self->early > 0) {
        fl_phaser *before = early_ones(self->waitq);
        if (before == self) {
            set_early_ones(self->waitq, self->next);
        } else {
            while (before != NULL && before->next != self) {
                before = before->next;
            }
            if (before != NULL) {
                before->next = self->next;
            }
        }
    }
    fl_waitq_unlock(self->waitq, &wakes);
}

void fl_phaser_terminate(fl_waitq *waitq)
{
    fl_wakes wakes = {0};
    fl_waitq_lock(waitq);
    change(waitq, phase_of(word_of(waitq)) | FL_PHASER_TERMINATED, &wakes);
    fl_waitq_unlock(waitq, &wakes);
}

void fl_phaser_counts(fl_phaser *self, uint32_t *parties, uint32_t *unarrived)
{
    fl_wakes wakes = {0};
    fl_waitq_lock(self->waitq);
    catch_up(self, word_of(self->waitq));
    *parties = members(self);
    *unarrived = missing(self);
    fl_waitq_unlock(self->waitq, &wakes);
}

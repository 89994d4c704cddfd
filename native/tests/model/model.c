/* See model.h. The threads are contexts of one thread, so that nothing but the list of choices decides. They
 * are made once (ucontext.h) and switched by _setjmp and _longjmp, which unlike swapcontext make no system
 * call: a switch is the most frequent thing that happens here.
 */
#undef _FORTIFY_SOURCE /* it takes a jump to another stack for a mistake */
#include "model.h"

#include <setjmp.h>

#include <string.h>
#include <ucontext.h>

#include "sync/wait/waitq.h"
#include "machine/clock.h"
#include "machine/thread.h"
#include "sync/processes/shm.h"

#define STACK 65536
#define MOST_CHOICES 4000
#define MOST_OPERATIONS 100000

enum run_state { RUNNING, PARKED, ENDED, DEAD };

static struct {
    jmp_buf base, here; /* the bottom of its stack; where it goes on */
    bool started;
    enum run_state state;
    const void *word; /* where it is parked */
    bool timed;       /* by a deadline */
    bool looks;       /* which is only a look */
    int looked;       /* the number of its last one */
    fl_park_result result;
    char stack[STACK];
} threads[MODEL_THREADS];

static const model_scenario *scenario;
static jmp_buf searcher;
static int self, count, preemptions, signals;
static int deaths, looks, deaths_allowed, looks_allowed;
static int64_t now;
static unsigned operations;
static const char *failure;

/* The choices of this execution: which option was taken, of how many. */
static struct {
    uint8_t taken, options;
} choices[MOST_CHOICES];
static int made, given; /* how many this execution has come to, and how many are prescribed */

static char schedule[MOST_CHOICES + 1];

int model_self(void)
{
    return self;
}

static void leave_execution(void)
{
    _longjmp(searcher, 1);
}

void model_fail(const char *what)
{
    if (failure == NULL) {
        failure = what;
    }
    leave_execution();
}

void model_allow(int dying, int looking)
{
    deaths_allowed = dying;
    looks_allowed = looking;
}

/* Of threads that do the same, and have not begun, the first begins first: which of them is which makes no
   difference. */
static bool may_start(int thread)
{
    if (threads[thread].started) {
        return true;
    }
    for (int other = 0; other < thread; other++) {
        if (!threads[other].started && threads[other].state != DEAD &&
            scenario->body[other] == scenario->body[thread]) {
            return false;
        }
    }
    return true;
}

/* Of those that sleep and look, the one whose last look is the longest ago: each has its turn. */
static bool looks_next(int thread)
{
    for (int other = 0; other < count; other++) {
        if (threads[other].state == PARKED && threads[other].looks &&
            threads[other].looked < threads[thread].looked) {
            return false;
        }
    }
    return deaths_allowed > 0;
}

/* Whether a thread can run, and if it sleeps, why it would wake. `stuck`: nothing else can. */
static bool can_run(int thread, bool stuck, fl_park_result *why)
{
    bool may_look = !threads[thread].looks || looks < looks_allowed || (stuck && looks_next(thread));
    if (threads[thread].state == PARKED && threads[thread].timed && may_look) {
        *why = FL_PARK_TIMED_OUT;
    } else if (threads[thread].state == PARKED && signals < scenario->signals) {
        *why = FL_PARK_INTERRUPTED;
    } else {
        *why = FL_PARK_WOKEN;
        return threads[thread].state == RUNNING && may_start(thread);
    }
    return true;
}

static unsigned choose(unsigned options)
{
    if (options == 1) {
        return 0;
    }
    if (made == MOST_CHOICES) {
        model_fail("the execution never ends");
    }
    if (made >= given) {
        choices[made].taken = 0;
    }
    choices[made].options = (uint8_t)options;
    return choices[made++].taken;
}

unsigned model_choose(unsigned options)
{
    return choose(options);
}

void model_fork(void)
{
    for (int thread = 0; thread < count; thread++) {
        if (thread != self) {
            threads[thread].state = DEAD;
        }
    }
    fl_waitq_forked();
}

/* Comes back when another switches to this one, which one that has ended never does. */
static void switch_to(int next)
{
    int before = self;
    self = next;
    threads[next].started = true;
    if (next != before && _setjmp(threads[before].here) == 0) {
        _longjmp(threads[next].here, 1);
    }
}

/* Lets a thread run next: this one, if it can, or another; or lets one die first. Returns in the context
   of this one, later. */
static void schedule_next(void)
{
    int ready[2 * MODEL_THREADS];
    fl_park_result why[MODEL_THREADS];
    int before = self;
    for (;;) {
        unsigned options = 0;
        bool goes_on = threads[before].state == RUNNING;
        if (goes_on) {
            ready[options++] = before;
        }
        for (int stuck = 0; stuck < 2 && options <= goes_on; stuck++) {
            for (int thread = 0; thread < count; thread++) {
                if (goes_on ? !stuck && thread != before && preemptions < scenario->preemptions &&
                                  can_run(thread, false, &why[thread])
                            : can_run(thread, stuck, &why[thread])) {
                    ready[options++] = thread;
                }
            }
        }
        if (options == 0) {
            bool ended = true;
            for (int thread = 0; thread < count; thread++) {
                ended = ended && threads[thread].state >= ENDED;
            }
            if (!ended) {
                model_fail("some thread can go on (a wake-up was lost)");
            }
            leave_execution();
        }
        unsigned live = options;
        for (int thread = 0; thread < count && deaths < deaths_allowed; thread++) {
            if (threads[thread].state < ENDED && (threads[thread].started || may_start(thread))) {
                ready[options++] = thread;
            }
        }
        unsigned taken = choose(options);
        int next = ready[taken];
        if (taken >= live) {
            threads[next].state = DEAD;
            deaths++;
            continue;
        }
        if (next == before && goes_on) {
            return;
        }
        preemptions += goes_on;
        if (threads[next].state == PARKED) {
            signals += why[next] == FL_PARK_INTERRUPTED;
            if (why[next] == FL_PARK_TIMED_OUT && threads[next].looks) {
                threads[next].looked = ++looks;
            }
            threads[next].state = RUNNING;
            threads[next].result = why[next];
        }
        switch_to(next);
        return;
    }
}

static bool exploring;

void fl_model_point(void)
{
    if (exploring) { /* not while a scenario begins or ends */
        if (operations++ == MOST_OPERATIONS) {
            model_fail("the execution ends");
        }
        schedule_next();
    }
}

static fl_park_result park(uint32_t *word, uint32_t value, int64_t deadline, bool shared)
{
    fl_model_point();
    if (*word != value) {
        return FL_PARK_WOKEN;
    }
    threads[self].state = PARKED;
    threads[self].word = word;
    threads[self].timed = deadline != FL_FOREVER;
    threads[self].looks = shared;
    schedule_next();
    return threads[self].result;
}

fl_park_result fl_park(uint32_t *word, uint32_t value, int64_t deadline)
{
    return park(word, value, deadline, false);
}

fl_park_result fl_park_shared(uint32_t *word, uint32_t value, int64_t deadline)
{
    return park(word, value, deadline, true);
}

uint32_t fl_unpark_shared(const uint32_t *word, uint32_t most)
{
    uint32_t woken = 0;
    fl_model_point();
    for (int thread = 0; thread < count && woken < most; thread++) {
        if (threads[thread].state == PARKED && threads[thread].word == word) {
            threads[thread].state = RUNNING;
            threads[thread].result = FL_PARK_WOKEN;
            woken++;
        }
    }
    return woken;
}

void fl_unpark(const uint32_t *word)
{
    fl_unpark_shared(word, 1);
}

/* The model forks by its scenarios, and never the process. */
bool fl_fork_call(void (*before)(void), void (*parent)(void), void (*child)(void))
{
    (void)before;
    (void)parent;
    (void)child;
    return true;
}

/* Each thread is a process, for those that can die. */
static uint64_t identity(int thread)
{
    return (uint64_t)(thread + 1) << 32;
}

uint64_t fl_process_self(void)
{
    return identity(self);
}

bool fl_process_alive(uint64_t process)
{
    fl_model_point();
    int thread = fl_process_number(process) - 1;
    return thread < 0 || thread >= MODEL_THREADS || threads[thread].state != DEAD;
}

int64_t fl_clock_now(void)
{
    return now += scenario->tick_ns;
}

uint64_t fl_owner_thread(void)
{
    return (uint64_t)(self + 1) << 1;
}

static ucontext_t maker;

/* Once for all executions: every one begins by a jump to the bottom of this stack. */
static void run_thread(void)
{
    if (_setjmp(threads[self].base) == 0) {
        setcontext(&maker);
    }
    scenario->body[self]();
    threads[self].state = ENDED;
    schedule_next();
}

static void make_threads(void)
{
    static bool made_them;
    for (self = 0; self < MODEL_THREADS && !made_them; self++) {
        ucontext_t context;
        getcontext(&context);
        context.uc_stack.ss_sp = threads[self].stack;
        context.uc_stack.ss_size = STACK;
        makecontext(&context, run_thread, 0);
        swapcontext(&maker, &context);
    }
    made_them = true;
}

/* One execution by the prescribed choices, and the first option wherever there is none. */
static void execute(void)
{
    made = preemptions = signals = deaths = looks = 0;
    model_allow(0, 0);
    operations = 0;
    failure = NULL;
    now = 1;
    fl_fork_thread = 0;
    make_threads();
    scenario->begin();
    for (count = 0; count < MODEL_THREADS && scenario->body[count] != NULL; count++) {
        memcpy(threads[count].here, threads[count].base, sizeof(jmp_buf));
        threads[count].state = RUNNING;
        threads[count].started = false;
        threads[count].looked = 0;
    }
    if (_setjmp(searcher) == 0) {
        exploring = true;
        /* which thread begins is a choice, like any other that is free */
        int first[MODEL_THREADS];
        unsigned options = 0;
        for (int thread = 0; thread < count; thread++) {
            if (may_start(thread)) {
                first[options++] = thread;
            }
        }
        self = first[choose(options)];
        threads[self].started = true;
        _longjmp(threads[self].here, 1);
    }
    exploring = false;
    if (failure == NULL && _setjmp(searcher) == 0) { /* where a check that fails in end() comes back to */
        scenario->end();
    }
}

static const char *written_schedule(void)
{
    int length = 0;
    for (int i = 0; i < made; i++) {
        schedule[i] = (char)('0' + choices[i].taken);
        length = choices[i].taken ? i + 1 : length;
    }
    schedule[length] = '\0'; /* after it the first option is taken */
    return schedule;
}

model_result model_explore(const model_scenario *which)
{
    model_result result = {0};
    scenario = which;
    given = 0;
    for (;;) {
        execute();
        result.executions++;
        result.longest = operations > result.longest ? operations : result.longest;
        if (failure != NULL) {
            result.failure = failure;
            result.schedule = written_schedule();
            return result;
        }
        while (made > 0 && choices[made - 1].taken + 1 == choices[made - 1].options) {
            made--;
        }
        if (made == 0) {
            return result;
        }
        choices[made - 1].taken++;
        given = made;
    }
}

model_result model_replay(const model_scenario *which, const char *text)
{
    scenario = which;
    given = 0;
    for (; *text >= '0' && *text <= '9' && given < MOST_CHOICES; text++) {
        choices[given++].taken = (uint8_t)(*text - '0');
    }
    execute();
    return (model_result){1, operations, failure, written_schedule()};
}

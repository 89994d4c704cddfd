/* take_gil() and drop_gil() of a variant, run by three threads in every order up to a bound.
 *
 *     gil_model                       all scenarios
 *     gil_model SCENARIO SCHEDULE     one execution again, as a failure printed it
 *
 * explore.py cuts the functions out of the variant's ceval_gil.c, unchanged, into gil_under_test.h. gil_shim.h
 * has the few things of CPython that they use, and looks after what must hold. Memory is sequentially
 * consistent; the memory orders are argued in memory.md.
 *
 * What must hold:
 *
 * - one thread is between take_gil() and drop_gil();
 * - whenever gil->mutex is released and the GIL is free, a wake-up of the first waiter is under way; and when
 *   a thread holds it, the first waiter has a timer, or a wake-up under way (with the queue);
 * - a hand-over goes to the waiter that arrived first, of those that compute or of the others (with the queue);
 * - no thread state is touched once it is freed, no condition variable once it is destroyed;
 * - each thread comes to its end.
 */
#include <stdio.h>
#include <string.h>

#include "gil_shim.h"

/* What the threads do. */
static void begin(void)
{
    memset(&gil, 0, sizeof gil);
    memset(states, 0, sizeof states);
    memset(threads, 0, sizeof threads);
    now = 1000;
    arrivals = 0;
    holder = -1;
    interp = (PyInterpreterState){.ceval.gil = &gil};
    for (int thread = 0; thread < MODEL_THREADS; thread++) {
        states[thread].base.interp = &interp;
    }
    gil.interval = INTERVAL_US;
#ifdef Py_GIL_DISABLED
    gil.enabled = 1;
#endif
    create_gil(&gil);
}

static void end(void)
{
    MODEL_CHECK(!gil.locked && !gil.mutex.held);
#ifdef QUEUE
    if (gil.first_waiter != NULL || gil.last_waiter != NULL) {
        model_fail("a waiter that is gone is in the queue");
    }
#endif
}

static PyThreadState *mine(void)
{
    return &states[model_self()].base;
}

static void take(void)
{
    take_gil(mine());
    MODEL_CHECK(holder == model_self());
    fl_model_point(); /* where another thread could be inside as well */
    MODEL_CHECK(holder == model_self());
}

static void drop(void)
{
    holder = -1;
    drop_gil(&interp, mine(), 0);
}

/* As _Py_HandlePending() does. */
static void compute_until_asked(void)
{
    int self = model_self();
    while (!(mine()->eval_breaker & _PY_GIL_DROP_REQUEST_BIT)) {
        bool alone = true;
        for (int other = 0; other < MODEL_THREADS; other++) {
            alone = alone && (other == self || threads[other].ended);
        }
        if (alone) {
            return;
        }
        threads[self].asked = 0;
        fl_park(&threads[self].asked, 0, FL_FOREVER);
    }
    states[self].gil_preempted = 1;
}

static void leave(void)
{
    threads[model_self()].ended = true;
    for (int other = 0; other < MODEL_THREADS; other++) {
        tell(other);
    }
}

static void do_io(void)
{
    for (int call = 0; call < 2; call++) {
        take();
        drop();
    }
    leave();
}

static void do_io_once(void)
{
    take();
    drop();
    leave();
}

static void compute(void)
{
    take();
    compute_until_asked();
    drop();
    take();
    drop();
    leave();
}

/* One that was asked so often before that it is held to compute. */
static void compute_much(void)
{
    states[model_self()].gil_preemptions = 100;
    compute();
}

static void daemon_thread(void)
{
    if (setjmp(threads[model_self()].exit) == 0) {
        compute();
    } else {
        leave();
    }
}

/* Daemon threads' states are freed while this thread holds the GIL. */
static void finalize(void)
{
    take();
    compute_until_asked();
    interp.finalizing = mine();
    for (int other = 0; other < MODEL_THREADS; other++) {
        threads[other].freed = other != model_self();
    }
    drop();
    take();
    drop();
    leave();
}

static void fork_one(void)
{
    take();
    model_fork();
    for (int other = 0; other < MODEL_THREADS; other++) {
        if (other != model_self()) {
            threads[other].ended = true;
            threads[other].withheld = false;
            threads[other].cond = NULL;
            threads[other].arrival = 0;
        }
    }
    holder = -1;
    recreate_gil(&gil);
    take();
    drop();
    leave();
}

#ifdef Py_GIL_DISABLED
/* As _PyEval_DisableGIL(). */
static void disable(void)
{
    take();
    gil.enabled = 0;
    holder = -1;
    DROP_IMPL(mine());
    leave();
}

static void take_while_it_is_enabled(void)
{
    take_gil(mine());
    if (mine()->_status.holds_gil) {
        drop();
    }
    leave();
}
#endif

static const model_scenario scenarios[] = {
#ifdef Py_GIL_DISABLED
    {"disabled", BOUND, 0, 0, begin, end, {disable, take_while_it_is_enabled, take_while_it_is_enabled}},
#else
    {"io", BOUND, 0, 0, begin, end, {do_io, do_io, do_io}},
    {"io-two", 4, 0, 0, begin, end, {do_io, do_io}},
    {"compute", BOUND, 0, 0, begin, end, {compute, do_io, do_io_once}},
    {"compute-two", BOUND, 0, 0, begin, end, {compute, compute, do_io_once}},
    {"compute-much", BOUND, 0, 0, begin, end, {compute_much, compute_much, do_io}},
    {"finalize", BOUND, 0, 0, begin, end, {finalize, daemon_thread, daemon_thread}},
    {"fork", BOUND, 0, 0, begin, end, {fork_one, compute, do_io_once}},
#endif
};

int main(int argc, char **argv)
{
    for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++) {
        if (argc > 1 && strcmp(argv[1], scenarios[i].name) != 0) {
            continue;
        }
        model_result result =
            argc > 2 ? model_replay(&scenarios[i], argv[2]) : model_explore(&scenarios[i]);
        printf("%s,%llu,%s,%s\n", scenarios[i].name, (unsigned long long)result.executions,
               result.failure ? result.schedule : "", result.failure ? result.failure : "");
        fflush(stdout);
    }
    return 0;
}

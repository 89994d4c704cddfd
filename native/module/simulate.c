/* The simulator of threads, cores and the GIL. */
#define PY_SSIZE_T_CLEAN /* "#" in formats is a Py_ssize_t; needed to 3.12 */
#include "sync/bind/base/state.h"

#include <string.h>

#include "gil/simulator/sim.h"

#define STEPS_BETWEEN_SIGNALS 2000000

/* Settings are a dict of whole numbers; every name is needed, so that no default lives in two places. */
typedef struct {
    const char *name;
    void *to;
    size_t size;
} setting;

static int read_settings(PyObject *settings, const setting *table)
{
    for (; table->name != NULL; table++) {
        PyObject *value = PyDict_GetItemString(settings, table->name);
        if (value == NULL) {
            PyErr_Format(PyExc_KeyError, "no setting %s", table->name);
            return -1;
        }
        long long number = PyLong_AsLongLong(value);
        if (number == -1 && PyErr_Occurred()) {
            return -1;
        }
        if (number < 0) {
            PyErr_Format(PyExc_ValueError, "%s is negative", table->name);
            return -1;
        }
        if (table->size < sizeof number && (unsigned long long)number >> (8 * table->size) != 0) {
            PyErr_Format(PyExc_OverflowError, "%s is too large", table->name);
            return -1;
        }
        switch (table->size) {
        case 1: *(uint8_t *)table->to = (uint8_t)number; break;
        case 4: *(uint32_t *)table->to = (uint32_t)number; break;
        default: *(int64_t *)table->to = number; break;
        }
    }
    return 0;
}

static int read_config(PyObject *settings, fl_sim_config *config)
{
    uint32_t gil, mode, share;
    int64_t seed, log_limit;
    fl_kernel *kernel = &config->kernel;
    const setting table[] = {
#define SETTING(name, where) {#name, &(where), sizeof(where)}
        SETTING(gil, gil),
        SETTING(mode, mode),
        SETTING(share, share),
        SETTING(seed, seed),
        SETTING(log_limit, log_limit),
        SETTING(interval_ns, config->interval_ns),
        SETTING(queued, config->queued),
        SETTING(return_divisor, config->return_divisor),
        SETTING(take_ns, config->take_ns),
        SETTING(check_ns, config->check_ns),
        SETTING(lost_wakes, config->lost_wakes),
        SETTING(cores, kernel->cores),
        SETTING(fair, kernel->fair),
        SETTING(preempt, kernel->preempt),
        SETTING(slice_ns, kernel->slice_ns),
        SETTING(granularity_ns, kernel->granularity_ns),
        SETTING(credit_ns, kernel->credit_ns),
        SETTING(switch_ns, kernel->switch_ns),
        SETTING(resume_ns, kernel->resume_ns),
        SETTING(wake_ns, kernel->wake_ns),
        SETTING(wake_jitter_ns, kernel->wake_jitter_ns),
        SETTING(idle_exit_ns, kernel->idle_exit_ns),
        SETTING(idle_after_ns, kernel->idle_after_ns),
        SETTING(call_ns, kernel->call_ns),
        SETTING(slack_ns, kernel->slack_ns),
#define CONSTANT(name, value) SETTING(name, config->constants.name),
        FL_POLICY_CONSTANTS(CONSTANT)
#undef CONSTANT
#undef SETTING
        {NULL, NULL, 0},
    };

    if (read_settings(settings, table) < 0) {
        return -1;
    }
    if (gil > FL_GIL_SCHED || mode > FL_MODE_INTERACTIVE || share < 1 || share >= FL_SHARE_ONE
        || config->interval_ns < 1 || config->return_divisor < 1
        || (config->queued != 0 && gil != FL_GIL_STOCK)
        || kernel->cores < 1 || kernel->cores > 1024 || kernel->slice_ns < 1
        || config->constants.floor_slice_ns < 1 || config->constants.floor_slice_ns > 1000000000
        || config->constants.stretch < 0 || config->constants.stretch > 1000000 || log_limit > 100000000) {
        PyErr_SetString(PyExc_ValueError, "a setting is out of range");
        return -1;
    }
    config->gil = (fl_gil_kind)gil;
    config->mode = (fl_policy_mode)mode;
    config->share = (int32_t)share;
    config->seed = (uint64_t)seed;
    config->log_limit = (size_t)log_limit;
    return 0;
}

/* Nothing that the simulator follows may lead out of its arrays. */
static int check_program(const fl_sim_config *config)
{
    for (uint32_t i = 0; i < config->ops_count; i++) {
        const fl_op *op = &config->ops[i];
        uint32_t limit = UINT32_MAX;
        bool jumps = op->kind == FL_OP_UNTIL || op->kind == FL_OP_LOOP || op->kind == FL_OP_JUMP
                     || op->kind == FL_OP_SOMETIMES;
        switch (op->kind) {
        case FL_OP_ACQUIRE: case FL_OP_RELEASE: case FL_OP_RECEIVE: case FL_OP_SEND: case FL_OP_ARRIVE:
        case FL_OP_STAMPED:
            limit = config->semaphores_count;
            break;
        case FL_OP_ADD: case FL_OP_UNTIL:
            limit = config->counters_count;
            break;
        case FL_OP_START: case FL_OP_JOIN:
            limit = config->groups_count;
            break;
        default:
            break;
        }
        if (op->kind >= FL_OPS || op->index >= limit || op->depth >= FL_SIM_DEPTH || op->jitter > 1000
            || (jumps && op->target >= config->ops_count)
            || (op->kind == FL_OP_END && op->target > config->groups_count)
            || (op->kind == FL_OP_LOOP && (op->ns < 1 || op->ns > UINT32_MAX))
            || (op->ns < 0 && op->kind != FL_OP_ADD && op->kind != FL_OP_UNTIL)) {
            PyErr_Format(PyExc_ValueError, "operation %u of the program is out of range", (unsigned)i);
            return -1;
        }
    }
    if (config->ops_count == 0 || config->ops[config->ops_count - 1].kind != FL_OP_EXIT) {
        PyErr_SetString(PyExc_ValueError, "the program does not end with EXIT");
        return -1;
    }
    uint64_t threads = 0;
    for (uint32_t g = 0; g < config->groups_count; g++) {
        const fl_group *group = &config->groups[g];
        threads += group->threads;
        if (group->entry >= config->ops_count || group->initial > group->threads
            || group->priority > FL_PRIORITY_BACKGROUND || threads > INT32_MAX) {
            PyErr_Format(PyExc_ValueError, "group %u of the program is out of range", (unsigned)g);
            return -1;
        }
    }
    return 0;
}

static fl_sim_status run(fl_sim *sim, int64_t until)
{
    fl_sim_status status;

    do {
        Py_BEGIN_ALLOW_THREADS
        status = fl_sim_run(sim, STEPS_BETWEEN_SIGNALS, until);
        Py_END_ALLOW_THREADS
    } while (status == FL_SIM_RUNNING && PyErr_CheckSignals() == 0);
    return status;
}

static PyObject *totals_dict(const fl_sim *sim)
{
    fl_sim_totals totals = fl_sim_get_totals(sim);
    return Py_BuildValue(
        "{s:L,s:L,s:(LL),s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:I,s:I,s:N}", "elapsed_ns",
        (long long)totals.elapsed, "free_wanted_ns", (long long)totals.gil_free_wanted, "max_wait_ns",
        (long long)totals.max_wait[FL_CLASS_SERVING], (long long)totals.max_wait[FL_CLASS_COMPUTING],
        "passes", (unsigned long long)totals.passes, "switches", (unsigned long long)totals.switches,
        "context_switches", (unsigned long long)totals.context_switches, "wakeups",
        (unsigned long long)totals.wakeups, "asked", (unsigned long long)totals.asked, "forced",
        (unsigned long long)totals.forced, "direct_handovers", (unsigned long long)totals.direct_handovers,
        "dropped_unclaimed", (unsigned long long)totals.dropped_unclaimed, "woken_early",
        (unsigned long long)totals.woken_early, "steps", (unsigned long long)totals.steps, "logged",
        (unsigned long long)totals.logged, "threads", (unsigned int)totals.threads, "finished",
        (unsigned int)totals.finished, "tripped", PyBool_FromLong(totals.tripped));
}

static PyObject *threads_bytes(const fl_sim *sim)
{
    uint32_t count = fl_sim_get_totals(sim).threads;
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(count * sizeof(fl_thread_stats)));
    if (bytes == NULL) {
        return NULL;
    }
    char *to = PyBytes_AS_STRING(bytes);
    for (uint32_t i = 0; i < count; i++) {
        fl_thread_stats stats = fl_sim_get_thread(sim, i);
        memcpy(to + i * sizeof stats, &stats, sizeof stats);
    }
    return bytes;
}

/* (requests, sum, max, ((low, high, count) of each bucket that is not empty)) */
static PyObject *group_tuple(const fl_group_stats *stats)
{
    PyObject *buckets = PyList_New(0);
    if (buckets == NULL) {
        return NULL;
    }
    for (uint32_t b = 0; b < FL_SIM_BUCKETS; b++) {
        if (stats->buckets[b] == 0) {
            continue;
        }
        long long low = fl_sim_bucket_low(b), high = fl_sim_bucket_low(b + 1);
        PyObject *bucket = Py_BuildValue("(LLI)", low, high, (unsigned int)stats->buckets[b]);
        if (bucket == NULL || PyList_Append(buckets, bucket) < 0) {
            Py_XDECREF(bucket);
            Py_DECREF(buckets);
            return NULL;
        }
        Py_DECREF(bucket);
    }
    return Py_BuildValue("(KLLN)", (unsigned long long)stats->requests, (long long)stats->sum,
                         (long long)stats->max, buckets);
}

static PyObject *groups_list(const fl_sim *sim, uint32_t count)
{
    PyObject *list = PyList_New(count);
    for (uint32_t g = 0; list != NULL && g < count; g++) {
        PyObject *group = group_tuple(fl_sim_get_group(sim, g));
        if (group == NULL) {
            Py_CLEAR(list);
            break;
        }
        PyList_SET_ITEM(list, g, group);
    }
    return list;
}

static PyObject *result_of(const fl_sim *sim, fl_sim_status status, uint32_t groups)
{
    size_t logged;
    const fl_sim_event *log = fl_sim_get_log(sim, &logged);
    return Py_BuildValue("(iNNNy#)", (int)status, totals_dict(sim), threads_bytes(sim),
                         groups_list(sim, groups), (const char *)log,
                         (Py_ssize_t)(logged * sizeof(fl_sim_event)));
}

static PyObject *simulate(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *settings, *result = NULL;
    Py_buffer ops, groups, counters, semaphores;
    long long until;
    fl_sim_config config = {0};

    if (!PyArg_ParseTuple(args, "O!y*y*y*y*L:simulate", &PyDict_Type, &settings, &ops, &groups, &counters,
                          &semaphores, &until)) {
        return NULL;
    }
    config.ops = ops.buf;
    config.ops_count = (uint32_t)((size_t)ops.len / sizeof(fl_op));
    config.groups = groups.buf;
    config.groups_count = (uint32_t)((size_t)groups.len / sizeof(fl_group));
    config.counters = counters.buf;
    config.counters_count = (uint32_t)((size_t)counters.len / sizeof(int64_t));
    config.semaphores = semaphores.buf;
    config.semaphores_count = (uint32_t)((size_t)semaphores.len / sizeof(int64_t));
    if (read_config(settings, &config) == 0 && check_program(&config) == 0) {
        fl_sim *sim = fl_sim_new(&config);
        if (sim == NULL) {
            PyErr_NoMemory();
        }
        else {
            fl_sim_status status = run(sim, until);
            if (!PyErr_Occurred()) {
                result = result_of(sim, status, config.groups_count);
            }
            fl_sim_free(sim);
        }
    }
    PyBuffer_Release(&ops);
    PyBuffer_Release(&groups);
    PyBuffer_Release(&counters);
    PyBuffer_Release(&semaphores);
    return result;
}

static PyObject *policy_constants(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    PyObject *dict = PyDict_New();
    static const struct { const char *name; long long value; } table[] = {
#define CONSTANT(name, value) {#name, value},
        FL_POLICY_CONSTANTS(CONSTANT)
#undef CONSTANT
    };
    for (size_t i = 0; dict != NULL && i < Py_ARRAY_LENGTH(table); i++) {
        PyObject *value = PyLong_FromLongLong(table[i].value);
        if (value == NULL || PyDict_SetItemString(dict, table[i].name, value) < 0) {
            Py_CLEAR(dict);
        }
        Py_XDECREF(value);
    }
    return dict;
}

PyMethodDef fl_simulate_functions[] = {
    {"simulate", simulate, METH_VARARGS, FL_DOC(module, simulate)},
    {"policy_constants", policy_constants, METH_NOARGS, FL_DOC(module, policy_constants)},
    {NULL, NULL, 0, NULL},
};

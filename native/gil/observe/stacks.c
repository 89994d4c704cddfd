#include "gil/observe/stacks.h"

#include <stdlib.h>
#include <string.h>

#include "gil/trace/utf8.h"
#include "gil/interpreter/compat.h"

#ifndef FL_PROBE_REFUSAL

#define STRINGS (4u << 20) /* bytes of names in all */
#define NAMES 32768        /* different names; a power of two, half of it used at most */
#define FRAMES 32768       /* different instructions; a power of two, half of it used at most */
#define STACKS 16384       /* different stacks; likewise */
#define LINKS (1u << 18)   /* frames of stacks, in all */
#define NAME_SIZE 256
#define PATH_SIZE 1024

typedef struct {
    const void *code; /* may be another by now: the names tell */
    int offset, first_line;
    Py_ssize_t size;
    fl_stack_frame seen;
} known_frame;

typedef struct {
    uint32_t start, depth; /* in links */
} known_stack;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool usable;

/* Under the lock. Allocated when the first stack is seen, and never given back: strings are referred to. */
static struct {
    char *strings;
    uint32_t *names;       /* open addressing by content: places in strings, plus 1 */
    known_frame *frames;   /* open addressing by code and offset; code NULL: free */
    uint32_t *stack_table; /* open addressing by content: ids */
    known_stack *stacks;   /* by id - 1 */
    uint32_t *links;       /* places in frames, innermost first */
    size_t strings_used, names_used, frames_used, links_used;
    uint32_t stack_count;
} known;

static bool allocate(void)
{
    if (known.links != NULL) {
        return true;
    }
    known.strings = malloc(STRINGS);
    known.names = calloc(NAMES, sizeof *known.names);
    known.frames = calloc(FRAMES, sizeof *known.frames);
    known.stack_table = calloc(STACKS, sizeof *known.stack_table);
    known.stacks = malloc(STACKS / 2 * sizeof *known.stacks);
    known.links = malloc(LINKS * sizeof *known.links);
    if (known.strings && known.names && known.frames && known.stack_table && known.stacks && known.links) {
        return true;
    }
    free(known.strings);
    free(known.names);
    free(known.frames);
    free(known.stack_table);
    free(known.stacks);
    free(known.links);
    memset(&known, 0, sizeof known);
    return false;
}

static uint64_t mix(uint64_t value)
{
    value ^= value >> 32;
    value *= 0x9E3779B97F4A7C15u;
    return value ^ value >> 29;
}

/* Copies a str as UTF-8, cut to fit, by reading it and nothing else. */
static size_t copy_name(PyObject *name, char *into, size_t room)
{
    size_t size = 0;
    if (name == NULL || !PyUnicode_Check(name)) {
        into[0] = 0;
        return 0;
    }
    Py_ssize_t length = PyUnicode_GET_LENGTH(name);
    int kind = (int)PyUnicode_KIND(name);
    const void *data = PyUnicode_DATA(name);
    for (Py_ssize_t i = 0; i < length; i++) {
        Py_UCS4 c = PyUnicode_READ(kind, data, i);
        size_t count = fl_utf8_put(c, into + size, room - 1 - size);
        if (count == 0) {
            break;
        }
        size += count;
    }
    into[size] = 0;
    return size;
}

/* The name among those kept, NULL when there is no room. Under the lock. */
static const char *keep(const char *name, size_t size)
{
    uint64_t hash = size;
    for (size_t i = 0; i < size; i++) {
        hash = (hash ^ (unsigned char)name[i]) * 0x100000001B3u;
    }
    size_t at = (size_t)mix(hash) & (NAMES - 1);
    for (; known.names[at]; at = (at + 1) & (NAMES - 1)) {
        if (strcmp(known.strings + known.names[at] - 1, name) == 0) {
            return known.strings + known.names[at] - 1;
        }
    }
    if (known.names_used >= NAMES / 2 || STRINGS - known.strings_used < size + 1) {
        return NULL;
    }
    char *place = known.strings + known.strings_used;
    memcpy(place, name, size + 1);
    known.names[at] = (uint32_t)known.strings_used + 1;
    known.names_used++;
    known.strings_used += size + 1;
    return place;
}

/* The place of a frame in the table, FRAMES when there is no room. Under the lock. */
static uint32_t frame_place(PyCodeObject *code, int offset)
{
    char function[NAME_SIZE], file[PATH_SIZE];
    size_t function_size = copy_name(code->co_qualname, function, sizeof function);
    size_t file_size = copy_name(code->co_filename, file, sizeof file);
    uint32_t at = (uint32_t)mix((uintptr_t)code ^ (uint64_t)(uint32_t)offset << 40) & (FRAMES - 1);
    for (; known.frames[at].code != NULL; at = (at + 1) & (FRAMES - 1)) {
        const known_frame *frame = &known.frames[at];
        if (frame->code == code && frame->offset == offset && frame->first_line == code->co_firstlineno
            && frame->size == Py_SIZE(code) && strcmp(frame->seen.function, function) == 0
            && strcmp(frame->seen.file, file) == 0) {
            return at;
        }
    }
    if (known.frames_used >= FRAMES / 2) {
        return FRAMES;
    }
    known_frame *frame = &known.frames[at];
    frame->seen.function = keep(function, function_size);
    frame->seen.file = keep(file, file_size);
    if (frame->seen.function == NULL || frame->seen.file == NULL) {
        return FRAMES;
    }
    if (!PyCode_Addr2Location(code, offset, &frame->seen.line, &frame->seen.column, &frame->seen.end_line,
                              &frame->seen.end_column)) {
        frame->seen.line = code->co_firstlineno;
        frame->seen.column = frame->seen.end_line = frame->seen.end_column = -1;
    }
    frame->code = code;
    frame->offset = offset;
    frame->first_line = code->co_firstlineno;
    frame->size = Py_SIZE(code);
    known.frames_used++;
    return at;
}

/* Likewise, of a frame of which no code object is known. */
static uint32_t named_place(const fl_stack_frame *wanted)
{
    const char *function = keep(wanted->function, strlen(wanted->function));
    const char *file = keep(wanted->file, strlen(wanted->file));
    uint32_t at = (uint32_t)mix((uintptr_t)function ^ (uint64_t)(uint32_t)wanted->line << 40) & (FRAMES - 1);
    if (function == NULL || file == NULL) {
        return FRAMES;
    }
    for (; known.frames[at].code != NULL; at = (at + 1) & (FRAMES - 1)) {
        const known_frame *frame = &known.frames[at];
        if (frame->code == function && frame->offset == wanted->line && frame->seen.file == file) {
            return at;
        }
    }
    if (known.frames_used >= FRAMES / 2) {
        return FRAMES;
    }
    known.frames[at] = (known_frame){.code = function, .offset = wanted->line, .seen = *wanted};
    known.frames[at].seen.function = function;
    known.frames[at].seen.file = file;
    known.frames_used++;
    return at;
}

/* The id of a stack, 0 when there is no room. Under the lock. */
static uint32_t stack_id(const uint32_t *frames, uint32_t depth)
{
    uint64_t hash = depth;
    for (uint32_t i = 0; i < depth; i++) {
        hash = mix(hash + frames[i]);
    }
    size_t at = (size_t)hash & (STACKS - 1);
    for (; known.stack_table[at]; at = (at + 1) & (STACKS - 1)) {
        const known_stack *stack = &known.stacks[known.stack_table[at] - 1];
        if (stack->depth == depth
            && memcmp(known.links + stack->start, frames, depth * sizeof *frames) == 0) {
            return known.stack_table[at];
        }
    }
    if (known.stack_count >= STACKS / 2 || LINKS - known.links_used < depth) {
        return 0;
    }
    known.stacks[known.stack_count] = (known_stack){(uint32_t)known.links_used, depth};
    memcpy(known.links + known.links_used, frames, depth * sizeof *frames);
    known.links_used += depth;
    return known.stack_table[at] = ++known.stack_count;
}

static uint32_t look(PyThreadState *tstate)
{
    uint32_t frames[FL_STACK_DEPTH], depth = 0, id = 0;
    pthread_mutex_lock(&lock);
    bool room = allocate();
    for (fl_py_frame *frame = fl_frame_top(tstate); room && frame && depth < FL_STACK_DEPTH;
         frame = frame->previous) {
        PyCodeObject *code = fl_frame_code(frame);
        if (code != NULL) {
            frames[depth] = frame_place(code, fl_frame_offset(frame, code));
            room = frames[depth++] != FRAMES;
        }
    }
    if (room && depth > 0) {
        id = stack_id(frames, depth);
    }
    pthread_mutex_unlock(&lock);
    return id;
}

uint32_t fl_stacks_add(const fl_stack_frame *frames, size_t depth)
{
    uint32_t places[FL_STACK_DEPTH], id = 0;
    pthread_mutex_lock(&lock);
    bool room = depth > 0 && depth <= FL_STACK_DEPTH && allocate();
    for (size_t i = 0; room && i < depth; i++) {
        places[i] = named_place(&frames[i]);
        room = places[i] != FRAMES;
    }
    if (room) {
        id = stack_id(places, (uint32_t)depth);
    }
    pthread_mutex_unlock(&lock);
    return id;
}

uint32_t fl_stacks_look(const fl_gil *gil, fl_stack_look *last)
{
    /* The thread state that has the GIL is the calling thread's own, unless the GIL was passed on between
       several of one thread in a way that the GIL itself does not notice; and while the interpreter is being
       finalised, thread states are freed that still come to take the GIL. */
    PyThreadState *tstate = PyGILState_GetThisThreadState();
    if (!fl_stacks_readable() || tstate == NULL || tstate != gil->py->last_holder || fl_finalizing()) {
        return 0;
    }
    uint64_t hash = 1;
    int depth = 0;
    for (fl_py_frame *frame = fl_frame_top(tstate); frame && depth < FL_STACK_DEPTH;
         frame = frame->previous, depth++) {
        hash = mix(hash + (uintptr_t)frame->executable) + (uintptr_t)frame->instruction;
    }
    if (hash != last->hash) {
        last->id = look(tstate);
        last->hash = hash;
    }
    return last->id;
}

bool fl_stacks_prepare(void)
{
    PyThreadState *tstate = PyThreadState_Get();
    fl_py_frame *seen = fl_frame_top(tstate);
    PyFrameObject *real = PyThreadState_GetFrame(tstate);
    bool same = true;
    while (real != NULL && same) {
        PyCodeObject *code = NULL;
        while (seen != NULL && (code = fl_frame_code(seen)) == NULL) {
            seen = seen->previous;
        }
        PyCodeObject *real_code = PyFrame_GetCode(real);
        same = code == real_code
               && PyCode_Addr2Line(code, fl_frame_offset(seen, code)) == PyFrame_GetLineNumber(real);
        Py_DECREF(real_code);
        PyFrameObject *back = PyFrame_GetBack(real);
        Py_DECREF(real);
        real = back;
        seen = seen ? seen->previous : NULL;
    }
    Py_XDECREF(real);
    atomic_store_explicit(&usable, same, memory_order_relaxed);
    return same;
}

bool fl_stacks_readable(void)
{
    return atomic_load_explicit(&usable, memory_order_relaxed);
}

uint32_t fl_stacks_count(void)
{
    pthread_mutex_lock(&lock);
    uint32_t count = known.stack_count;
    pthread_mutex_unlock(&lock);
    return count;
}

size_t fl_stacks_bytes(void)
{
    pthread_mutex_lock(&lock);
    bool made = known.links != NULL;
    pthread_mutex_unlock(&lock);
    size_t bytes = STRINGS + NAMES * sizeof *known.names + FRAMES * sizeof *known.frames;
    bytes += STACKS * sizeof *known.stack_table + STACKS / 2 * sizeof *known.stacks;
    bytes += LINKS * sizeof *known.links;
    return made ? bytes : 0;
}

bool fl_stacks_frame(uint32_t id, size_t depth, fl_stack_frame *frame)
{
    pthread_mutex_lock(&lock);
    bool found = id > 0 && id <= known.stack_count && depth < known.stacks[id - 1].depth;
    if (found) {
        *frame = known.frames[known.links[known.stacks[id - 1].start + depth]].seen;
    }
    pthread_mutex_unlock(&lock);
    return found;
}

static void add_number(fl_text *text, int number)
{
    fl_text_add(text, number < 0 ? ",-" : ",");
    fl_text_number(text, (uint64_t)(number < 0 ? -(int64_t)number : number));
}

void fl_stacks_describe(uint32_t id, fl_text *text)
{
    fl_stack_frame frame;
    fl_text_add(text, "[");
    for (size_t depth = 0; fl_stacks_frame(id, depth, &frame); depth++) {
        fl_text_add(text, depth ? ",[" : "[");
        fl_text_string(text, frame.function, strlen(frame.function));
        fl_text_add(text, ",");
        fl_text_string(text, frame.file, strlen(frame.file));
        add_number(text, frame.line);
        add_number(text, frame.column);
        add_number(text, frame.end_line);
        add_number(text, frame.end_column);
        fl_text_add(text, "]");
    }
    fl_text_add(text, "]");
}

void fl_stacks_fork(void)
{
    /* Another thread may have been adding to the tables: they are left alone, and new ones made. */
    pthread_mutex_init(&lock, NULL);
    memset(&known, 0, sizeof known);
}

#endif

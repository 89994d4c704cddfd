#include "gil/observe/outside.h"

#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "gil/trace/utf8.h"
#include "gil/interpreter/compat.h"
#include "gil/observe/stacks.h"

#ifndef FL_PROBE_REFUSAL

#define CODE_BYTES offsetof(PyCodeObject, co_code_adaptive)
#define LINES_AT_MOST 16384 /* bytes of a code object's table of lines */
#define UNIT ((int)sizeof(uint16_t))
#define DESTROYS "<deallocation>" /* above a frame that destroys objects; without a file or a line */

/* A thread's stack may be as small as 32 kB, so what is large is here. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned char lines[LINES_AT_MOST];

/* Reads so many bytes that lie at an address of this process, if there is memory. */
static bool copy(int memory, const void *from, void *into, size_t size)
{
    return pread(memory, into, size, (off_t)(uintptr_t)from) == (ssize_t)size;
}

static bool is_a(const PyObject *copied, const PyTypeObject *type)
{
    return copied->ob_type == type;
}

/* A str, as UTF-8, cut to fit. */
static bool copy_text(int memory, const void *from, char *into, size_t room)
{
    PyCompactUnicodeObject head;
    unsigned char data[4 * 256];
    if (from == NULL || !copy(memory, from, &head, sizeof(PyASCIIObject))
        || !is_a((const PyObject *)&head, &PyUnicode_Type) || !head._base.state.compact) {
        return false;
    }
    size_t kind = head._base.state.kind, start = head._base.state.ascii ? sizeof(PyASCIIObject) : sizeof head;
    size_t length = head._base.length < 0 ? 0 : (size_t)head._base.length;
    length = length < room ? length : room;
    length = length < sizeof data / 4 ? length : sizeof data / 4;
    if ((kind != 1 && kind != 2 && kind != 4)
        || !copy(memory, (const char *)from + start, data, length * kind)) {
        return false;
    }
    size_t size = 0;
    for (size_t i = 0; i < length; i++) {
        uint16_t two;
        uint32_t c;
        memcpy(&two, data + i * 2, sizeof two);
        memcpy(&c, data + (kind == 4 ? i * 4 : 0), sizeof c);
        c = kind == 4 ? c : kind == 2 ? two : data[i];
        size_t count = fl_utf8_put(c, into + size, room - 1 - size);
        if (count == 0) {
            break;
        }
        size += count;
    }
    into[size] = 0;
    return true;
}

/* ---- Lines: the table of PEP 626, as it is from 3.11 on (Objects/locations.md of CPython) */

static int signed_number(const unsigned char *table, size_t size, size_t at)
{
    unsigned value = 0;
    for (unsigned shift = 0; at < size && shift < 30; at++, shift += 6) {
        value |= (table[at] & 63u) << shift;
        if (!(table[at] & 64)) {
            break;
        }
    }
    return value & 1 ? -(int)(value >> 1) : (int)(value >> 1);
}

/* The line of the instruction at an offset in bytes; 0: it has none. */
static int line_in(const unsigned char *table, size_t size, int line, int offset)
{
    int end = 0;
    for (size_t at = 0; at < size;) {
        unsigned head = table[at++], code = head >> 3 & 15;
        if (code >= 10 && code <= 12) {
            line += (int)code - 10;
        } else if (code == 13 || code == 14) {
            line += signed_number(table, size, at);
        }
        end += ((int)(head & 7) + 1) * UNIT;
        if (offset < end) {
            return code == 15 ? 0 : line;
        }
        while (at < size && !(table[at] & 0x80)) {
            at++;
        }
    }
    return 0;
}

static int line_of(int memory, const PyCodeObject *code, int offset)
{
    PyVarObject head;
    if (offset < 0 || code->co_linetable == NULL || !copy(memory, code->co_linetable, &head, sizeof head)
        || !is_a((const PyObject *)&head, &PyBytes_Type) || head.ob_size < 0) {
        return code->co_firstlineno;
    }
    size_t size = (size_t)head.ob_size < sizeof lines ? (size_t)head.ob_size : sizeof lines;
    const char *start = (const char *)code->co_linetable + offsetof(PyBytesObject, ob_sval);
    return copy(memory, start, lines, size) ? line_in(lines, size, code->co_firstlineno, offset) : 0;
}

/* ---- Frames */

typedef struct {
    fl_py_frame frames[FL_OUTSIDE_DEPTH * 2]; /* those that are no Python code among them */
    size_t count;
} chain;

static bool copy_chain(int memory, const void *tstate, chain *into)
{
    const void *at = NULL;
    into->count = 0;
    if (!copy(memory, (const char *)tstate + FL_TOP_OFFSET, &at, sizeof at)) {
        return false;
    }
#ifdef FL_TOP_OFFSET_WITHIN
    if (at == NULL || !copy(memory, (const char *)at + FL_TOP_OFFSET_WITHIN, &at, sizeof at)) {
        return false;
    }
#endif
    while (at && into->count < sizeof into->frames / sizeof *into->frames
           && copy(memory, at, &into->frames[into->count], sizeof *into->frames)) {
        at = into->frames[into->count++].previous;
    }
    return into->count > 0;
}

static bool describe(int memory, const fl_py_frame *frame, fl_outside_frame *into)
{
    PyCodeObject code;
    PyCodeObject *at = (PyCodeObject *)fl_frame_executable(frame); /* an address, and no more */
    if (frame->owner >= FL_FRAME_OWNER_NOT_PYTHON || at == NULL || !copy(memory, at, &code, CODE_BYTES)
        || !is_a((const PyObject *)&code, &PyCode_Type)) {
        return false;
    }
    int offset = fl_frame_offset(frame, at);
    if (frame->owner != FL_FRAME_OWNER_GENERATOR && offset < code._co_firsttraceable * UNIT) {
        return false;
    }
    into->line = line_of(memory, &code, offset);
    return copy_text(memory, code.co_qualname, into->function, sizeof into->function)
           && copy_text(memory, code.co_filename, into->file, sizeof into->file);
}

static bool destroys(int memory, const fl_py_frame *frame)
{
    unsigned char at = 0, called = 0;
    const char *instruction = frame->instruction;
    return copy(memory, instruction, &at, sizeof at)
           && copy(memory, instruction - FL_UNITS_FROM_CALL * UNIT, &called, sizeof called)
           && (fl_opcode_destroys(at) || (at == FL_BEHIND_CALL(called) && fl_opcode_calls_python(called)));
}

static size_t look(const void *tstate, fl_outside_frame frames[FL_OUTSIDE_DEPTH], bool *exact,
                   bool *destroying)
{
    static chain before, after;
    size_t count = 0;
    *exact = *destroying = false;
    int memory = tstate && fl_stacks_readable() ? open("/proc/self/mem", O_RDONLY | O_CLOEXEC) : -1;
    if (memory < 0) {
        return 0;
    }
    if (copy_chain(memory, tstate, &before)) {
        for (size_t i = 0; i < before.count && count < FL_OUTSIDE_DEPTH; i++) {
            if (describe(memory, &before.frames[i], &frames[count])) {
                *destroying = count == 0 ? destroys(memory, &before.frames[i]) : *destroying;
                count++;
            }
        }
        *exact = copy_chain(memory, tstate, &after) && after.count == before.count
                 && memcmp(before.frames, after.frames, before.count * sizeof *before.frames) == 0;
    }
    close(memory);
    return count;
}

size_t fl_outside_look(const void *tstate, fl_outside_frame frames[FL_OUTSIDE_DEPTH], bool *exact)
{
    bool destroying;
    pthread_mutex_lock(&lock);
    size_t count = look(tstate, frames, exact, &destroying);
    pthread_mutex_unlock(&lock);
    return count;
}

uint32_t fl_outside_stack(const void *tstate, bool ran)
{
    static fl_outside_frame frames[FL_OUTSIDE_DEPTH];
    static fl_stack_frame named[FL_OUTSIDE_DEPTH + 1] = {{DESTROYS, "", 0, -1, -1, -1}};
    bool exact, destroying;
    uint32_t id = 0;
    if (pthread_mutex_trylock(&lock) != 0) {
        return 0;
    }
    size_t depth = look(tstate, frames, &exact, &destroying);
    for (size_t i = 0; i < depth; i++) {
        named[i + 1] = (fl_stack_frame){frames[i].function, frames[i].file, frames[i].line, -1, -1, -1};
    }
    if (exact) {
        id = ran && destroying && depth < FL_STACK_DEPTH ? fl_stacks_add(named, depth + 1)
                                                  : fl_stacks_add(named + 1, depth);
    }
    pthread_mutex_unlock(&lock);
    return id;
}

void fl_outside_fork(void)
{
    pthread_mutex_init(&lock, NULL);
}

#endif

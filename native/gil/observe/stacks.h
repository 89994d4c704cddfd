/* stacks: what Python code a thread is in, without touching it.
 *
 * A thread samples its own stack, at two moments only, in both of which it has the GIL: just after it took
 * the GIL, and just before it drops it. So no frame moves, and no thread state can have been freed. Nothing
 * of Python's is allocated, changed or kept: names are copied when they are first seen, and compared with
 * the copy whenever the same code object seems to come again, because another may lie at its address by
 * then. Memory is bounded: a stack that finds no room gets the id 0.
 *
 * Sampling profilers read from outside the stack of a thread that goes on running. That may give a torn
 * stack, needs the right to read the process's memory, and would have to happen while the holder holds.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gil/trace/text.h"
#include "gil/threads/gil.h"

#define FL_STACK_DEPTH 64 /* innermost frames */

typedef struct {
    const char *function, *file;
    int line, column, end_line, end_column; /* -1: not known */
} fl_stack_frame;

/* Whether stacks can be read: compares what is seen of the calling thread's frames with what the interpreter
   itself says of them. Attached, with the GIL. Sets no error. */
bool fl_stacks_prepare(void);

/* What fl_stacks_prepare found. Any thread, any time. */
bool fl_stacks_readable(void);

/* The stack of the calling thread, which has this GIL; 0: none, or no room. `last` is the thread's previous
   sample: threads mostly wait where they waited before, and then names need not be compared again. */
uint32_t fl_stacks_look(const fl_gil *gil, fl_stack_look *last);

/* The id of a stack that was read elsewhere, innermost frame first; 0: no room. Strings are copied. */
uint32_t fl_stacks_add(const fl_stack_frame *frames, size_t depth);

/* How many stacks there are; their ids are 1 to that number. */
uint32_t fl_stacks_count(void);

/* How many bytes the tables take: nothing until the first sample, then always the same. */
size_t fl_stacks_bytes(void);

/* Adds the frames of a stack, innermost first, as JSON: [[function, file, line, column, end_line,
   end_column], ...]; the last four are those of the instruction, columns from 0 in UTF-8 bytes, -1 when not
   known. */
void fl_stacks_describe(uint32_t id, fl_text *text);

/* One frame of a stack; strings live for ever. False: there is none at this depth (0 is the innermost). */
bool fl_stacks_frame(uint32_t id, size_t depth, fl_stack_frame *frame);

/* In the child of a fork: there are none. */
void fl_stacks_fork(void);

/* text: a growing buffer that JSON is written into. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    char *data;
    size_t size;
    size_t room;
    bool failed; /* no memory: what came later is missing, and so is the text as a whole */
} fl_text;

/* All zeros is an empty text. */
void fl_text_free(fl_text *text);

/* Empties the text and keeps its memory. */
void fl_text_clear(fl_text *text);

void fl_text_add(fl_text *text, const char *plain);
void fl_text_number(fl_text *text, uint64_t number);

/* A JSON string, with its quotes. `string` is UTF-8; bytes that are not are replaced. */
void fl_text_string(fl_text *text, const char *string, size_t size);

/* ,"name":number - for all members of an object but the first. `name` needs no escape. */
void fl_text_member(fl_text *text, const char *name, uint64_t number);

/* ,"name":[numbers] */
void fl_text_members(fl_text *text, const char *name, const uint64_t *numbers, size_t count);

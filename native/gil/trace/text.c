#include "gil/trace/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void add(fl_text *text, const char *data, size_t size)
{
    if (text->failed) {
        return;
    }
    if (text->room - text->size < size) {
        size_t room = text->room * 2 + size + 256;
        char *grown = realloc(text->data, room);
        if (grown == NULL) {
            text->failed = true;
            return;
        }
        text->data = grown;
        text->room = room;
    }
    memcpy(text->data + text->size, data, size);
    text->size += size;
}

void fl_text_free(fl_text *text)
{
    free(text->data);
    *text = (fl_text){0};
}

void fl_text_clear(fl_text *text)
{
    text->size = 0;
    text->failed = false;
}

void fl_text_add(fl_text *text, const char *plain)
{
    add(text, plain, strlen(plain));
}

void fl_text_number(fl_text *text, uint64_t number)
{
    char digits[24];
    int size = snprintf(digits, sizeof digits, "%" PRIu64, number);
    add(text, digits, (size_t)size);
}

/* Length of the UTF-8 sequence at `at`, 0 when there is none: overlong forms, surrogates and what lies beyond
   U+10FFFF are none. */
static size_t sequence(const unsigned char *at, size_t size)
{
    if (at[0] < 0x80) {
        return 1;
    }
    size_t length = at[0] >= 0xF0 ? 4 : at[0] >= 0xE0 ? 3 : 2;
    if (at[0] < 0xC2 || at[0] > 0xF4 || length > size) {
        return 0;
    }
    for (size_t i = 1; i < length; i++) {
        if ((at[i] & 0xC0) != 0x80) {
            return 0;
        }
    }
    bool outside = (at[0] == 0xE0 && at[1] < 0xA0) || (at[0] == 0xED && at[1] >= 0xA0)
                   || (at[0] == 0xF0 && at[1] < 0x90) || (at[0] == 0xF4 && at[1] >= 0x90);
    return outside ? 0 : length;
}

void fl_text_string(fl_text *text, const char *string, size_t size)
{
    const unsigned char *at = (const unsigned char *)string;
    add(text, "\"", 1);
    while (size > 0) {
        size_t length = sequence(at, size);
        if (length == 0) {
            add(text, "\xEF\xBF\xBD", 3);
            length = 1;
        } else if (at[0] == '"' || at[0] == '\\') {
            char escaped[2] = {'\\', (char)at[0]};
            add(text, escaped, 2);
        } else if (at[0] < 0x20 || at[0] == 0x7F) {
            char escaped[8];
            snprintf(escaped, sizeof escaped, "\\u%04x", (unsigned)at[0]);
            add(text, escaped, 6);
        } else {
            add(text, (const char *)at, length);
        }
        at += length;
        size -= length;
    }
    add(text, "\"", 1);
}

void fl_text_member(fl_text *text, const char *name, uint64_t number)
{
    fl_text_add(text, ",\"");
    fl_text_add(text, name);
    fl_text_add(text, "\":");
    fl_text_number(text, number);
}

void fl_text_members(fl_text *text, const char *name, const uint64_t *numbers, size_t count)
{
    fl_text_add(text, ",\"");
    fl_text_add(text, name);
    fl_text_add(text, "\":[");
    for (size_t i = 0; i < count; i++) {
        if (i > 0) {
            fl_text_add(text, ",");
        }
        fl_text_number(text, numbers[i]);
    }
    fl_text_add(text, "]");
}

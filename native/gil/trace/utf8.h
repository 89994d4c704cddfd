/* utf8: one character as UTF-8. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Returns how many bytes were written; 0: there is no room for all of them. What is no character of Unicode
   becomes U+FFFD. */
static inline size_t fl_utf8_put(uint32_t c, char *into, size_t room)
{
    if (c > 0x10FFFF || (c >= 0xD800 && c <= 0xDFFF)) {
        c = 0xFFFD;
    }
    static const unsigned char lead[5] = {0, 0, 0xC0, 0xE0, 0xF0};
    unsigned char bytes[4];
    size_t count = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    if (count > room) {
        return 0;
    }
    for (size_t at = count - 1; at > 0; at--, c >>= 6) {
        bytes[at] = (unsigned char)(0x80 | (c & 0x3F));
    }
    bytes[0] = (unsigned char)(lead[count] | c);
    memcpy(into, bytes, count);
    return count;
}

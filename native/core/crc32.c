/* Eight bytes a step, by eight tables ("slicing-by-8", Kounavis and Berry, 2005). */
#include "core/crc32.h"

#include <pthread.h>

static uint32_t tables[8][256];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_tables(void)
{
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t crc = byte;
        for (int bit = 0; bit < 8; bit++) {
            crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320u : 0);
        }
        tables[0][byte] = crc;
    }
    for (int table = 1; table < 8; table++) {
        for (int byte = 0; byte < 256; byte++) {
            uint32_t crc = tables[table - 1][byte];
            tables[table][byte] = crc >> 8 ^ tables[0][crc & 255];
        }
    }
}

uint32_t fl_crc32(uint32_t crc, const void *data, size_t size)
{
    pthread_once(&once, make_tables);
    const unsigned char *at = data;
    crc = ~crc;
    for (; size >= 8; size -= 8, at += 8) {
        uint32_t low =
            crc ^ ((uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24);
        crc = tables[7][low & 255] ^ tables[6][low >> 8 & 255] ^ tables[5][low >> 16 & 255]
              ^ tables[4][low >> 24] ^ tables[3][at[4]] ^ tables[2][at[5]] ^ tables[1][at[6]]
              ^ tables[0][at[7]];
    }
    for (; size > 0; size--) {
        crc = crc >> 8 ^ tables[0][(crc ^ *at++) & 255];
    }
    return ~crc;
}

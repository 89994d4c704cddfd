/* A fold of 64 bytes a step where the processor multiplies without carries, else eight bytes a step by eight
 * tables ("slicing-by-8", Kounavis and Berry, 2005).
 *
 * The fold is that of V. Gopal and others, "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ
 * Instruction" (Intel, 2009): 128 bits of the message are replaced by what they amount to 512 (or 128) bits
 * further on, by multiplying each half with the power of x, modulo the polynomial, that it is moved by. What
 * is left in the end are 16 bytes with the checksum of all that was folded, which the tables give.
 */
#include "gil/trace/crc32.h"

#include <pthread.h>
#include <stdbool.h>

#if defined(__x86_64__)
#include <wmmintrin.h>
static bool folds;
#endif

static uint32_t tables[8][256];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void prepare(void)
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
#if defined(__x86_64__)
    folds = __builtin_cpu_supports("pclmul");
#endif
}

/* The register's next state; the complements at both ends are not taken. */
static uint32_t by_tables(uint32_t crc, const unsigned char *at, size_t size)
{
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
    return crc;
}

#if defined(__x86_64__)
#define FOLDED_AT_ONCE 64

__attribute__((target("pclmul"))) static inline __m128i moved(__m128i value, __m128i by, __m128i onto)
{
    __m128i low = _mm_clmulepi64_si128(value, by, 0x00), high = _mm_clmulepi64_si128(value, by, 0x11);
    return _mm_xor_si128(_mm_xor_si128(low, high), onto);
}

static inline __m128i load(const unsigned char *at)
{
    return _mm_loadu_si128((const __m128i *)(const void *)at);
}

/* `size` is a multiple of FOLDED_AT_ONCE, and not 0. */
__attribute__((target("pclmul"))) static uint32_t by_folding(uint32_t crc, const unsigned char *at,
                                                             size_t size)
{
    /* x to the powers of 512 + 32 and 512 - 32, and of 128 + 32 and 128 - 32, with the bits reversed */
    const __m128i by_64 = _mm_set_epi64x(0x1C6E41596, 0x154442BD4);
    const __m128i by_16 = _mm_set_epi64x(0x0CCAA009E, 0x1751997D0);
    __m128i parts[4];
    for (int i = 0; i < 4; i++) {
        parts[i] = load(at + 16 * i);
    }
    parts[0] = _mm_xor_si128(parts[0], _mm_cvtsi32_si128((int)crc));
    for (at += FOLDED_AT_ONCE, size -= FOLDED_AT_ONCE; size > 0;
         at += FOLDED_AT_ONCE, size -= FOLDED_AT_ONCE) {
        for (int i = 0; i < 4; i++) {
            parts[i] = moved(parts[i], by_64, load(at + 16 * i));
        }
    }
    for (int i = 1; i < 4; i++) {
        parts[i] = moved(parts[i - 1], by_16, parts[i]);
    }
    unsigned char left[16];
    _mm_storeu_si128((__m128i *)(void *)left, parts[3]);
    return by_tables(0, left, sizeof left);
}
#endif

uint32_t fl_crc32(uint32_t crc, const void *data, size_t size)
{
    pthread_once(&once, prepare);
    const unsigned char *at = data;
    crc = ~crc;
#if defined(__x86_64__)
    size_t many = size / FOLDED_AT_ONCE * FOLDED_AT_ONCE;
    if (folds && many > 0) {
        crc = by_folding(crc, at, many);
        at += many;
        size -= many;
    }
#endif
    return ~by_tables(crc, at, size);
}

/* A check that is never compiled out, unlike assert(). */
#pragma once

#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                                   \
    do {                                                                                   \
        if (!(condition)) {                                                                \
            fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition);      \
            exit(1);                                                                       \
        }                                                                                  \
    } while (0)

/* As CHECK(got == wanted), for whole numbers, and prints both. */
#define CHECK_EQUAL(got, wanted)                                                           \
    do {                                                                                   \
        long long got_ = (long long)(got), wanted_ = (long long)(wanted);                  \
        if (got_ != wanted_) {                                                             \
            fprintf(stderr, "%s:%d: %s is %lld, not %lld\n", __FILE__, __LINE__, #got,     \
                    got_, wanted_);                                                        \
            exit(1);                                                                       \
        }                                                                                  \
    } while (0)

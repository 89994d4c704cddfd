/* Memory that begins at a multiple of something larger than malloc()'s: a cache line, say. */
#pragma once

#include <stdlib.h>

#ifdef _WIN32
#include <malloc.h>
#endif

/* `alignment` is a power of two and `size` a multiple of it. NULL: no memory. */
static inline void *fl_aligned_alloc(size_t alignment, size_t size)
{
#ifdef _WIN32
    return _aligned_malloc(size, alignment);
#else
    return aligned_alloc(alignment, size);
#endif
}

/* crc32: zlib's checksum (polynomial 0xEDB88320, reflected), without zlib. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* The checksum of `size` bytes that follow those `crc` is of; 0 for none. Any thread; about 2 GB/s, on x86-64
   10. */
uint32_t fl_crc32(uint32_t crc, const void *data, size_t size);

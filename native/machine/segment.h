/* Memory that processes share, as pages of a file. Implemented by machine/os/; where processes share none
   (fl_process_self is 0) all of it fails with ENOSYS. */
#pragma once

#include <stddef.h>

/* Gives the file that many bytes, none of which is missing when it is first written to: that would be a
   SIGBUS. The error number; 0: done. */
int fl_segment_reserve(int fd, size_t size);

/* The size of the file in *size. The error number; 0: done. */
int fl_segment_size(int fd, size_t *size);

/* The file's bytes, to be read and written; NULL: errno says why. */
void *fl_segment_map(int fd, size_t size);
void fl_segment_unmap(void *map, size_t size);

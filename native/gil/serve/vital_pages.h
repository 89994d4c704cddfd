/* vital_pages: the endpoint's answers: the state of the GILs, as text. Called by the server's thread, which
 * never has a GIL; one call at a time.
 */
#pragma once

#include "gil/serve/serve.h"

/* Sets the limits by which /healthz judges. */
void fl_vital_pages_limit(uint64_t stalled_ns, uint64_t busy_ns);

/* In the child of a fork: as if nothing had been served. */
void fl_vital_pages_fork(void);

extern const fl_serve_pages fl_vital_pages;

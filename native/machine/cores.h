/* How many processor cores there are, and how many of them this process can keep busy. */
#pragma once

/* Cores that the operating system has online; at least 1. Implemented by machine/os/. */
int fl_cores_online(void);

/* Cores that the calling thread may be scheduled on; at least 1. A system that cannot tell answers
   with the cores online. Implemented by machine/os/. */
int fl_cores_affinity(void);

/* Cores worth of work that can run at once: max(1, min(affinity, ceil(quota))). `quota` is in
   cores; pass infinity when there is none. */
int fl_cores_usable(int affinity, double quota);

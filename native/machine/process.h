/* The identity of a process, for others that share memory with it, and whether it still runs.
 *
 * An identity is a number of 54 bits: the number of the process (22 bits, as many as Linux gives) above the
 * low 32 bits of the time at which it started, in ticks of 10 ms since the machine did. A number that is
 * given again goes with another start, so that an identity is not mistaken: both would have to be the same
 * again after a multiple of 497 days. It fits the word that names the holder of something, together with
 * ten bits for its user.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define FL_PROCESS_BITS 54

/* This process; another in a forked child. 0: the system does not say. Any thread; reads a file once. */
uint64_t fl_process_self(void);

/* Whether it runs: false once it has ended, though its parent may not have noticed. Where that cannot be
   known it does. Costs system calls: some 10 us. */
bool fl_process_alive(uint64_t identity);

static inline int fl_process_number(uint64_t identity)
{
    return (int)(identity >> 32);
}

/* Kills a process and its descendants: the children that there are, and theirs. A process whose parent
   had ended before is no descendant. Without /proc, or its lists of children, the process alone. */
void fl_process_kill_tree(int pid);

/* Has the kernel end this process, whatever it does, when the other end of a pipe is closed. It kills its
   descendants first, in a handler of SIGIO. 0, or errno. */
int fl_process_end_with(int descriptor);

/* The space that numbers of processes are unique in; 0: the system does not say. */
uint64_t fl_process_space(void);

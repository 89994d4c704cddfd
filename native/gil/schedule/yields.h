/* yields: sleep(0) and sched_yield(), which the interpreter calls through the same table as what it takes
 * its GIL with. The hook of each lets the policy know that the thread's absence is a yield and not a wait. */
#pragma once

/* For good; harmless when done before, or when there are no such calls: then a yield is taken for a short
 * wait, which is slower, not wrong. With the GIL held, after there is a scheduler, whose record of a thread
 * (fl_seat.schedule) begins with an fl_policy_thread. */
void fl_yields_hook(void);

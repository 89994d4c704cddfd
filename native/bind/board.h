/* What the two sides of a board have in common: calls and replies cross as messages (codec.h). */
#ifndef FL_BIND_BOARD_H
#define FL_BIND_BOARD_H

#include "bind/codec.h"
#include "bind/wait.h"

#include "core/board.h"

/* What news are; the kinds between are the worker's (pools/seat.py). */
#define FL_NEWS_BEGUN 0
#define FL_NEWS_UNREADABLE 255

/* Waits for a permit, as fl_wait_thread. Waits of this kind are never of a greenlet's alone. `look`: of the
   board, for who is likely to be given one soon; NULL: sleep at once. */
int fl_wait_permit(PyObject *what, fl_cell *cell, fl_look *look, int64_t deadline);

#endif

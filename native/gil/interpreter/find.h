/* find: where the GIL lies. */
#pragma once

#include "gil/interpreter/compat.h"
#include "gil/interpreter/got.h"

#include <stdbool.h>
#include <time.h>

typedef enum {
    FL_LOCK,
    FL_UNLOCK,
    FL_TIMEDWAIT,
    FL_SIGNAL,
    FL_WAIT,
    FL_WATCHED, /* so many are watched to find the GIL */
    FL_INIT = FL_WATCHED,
    FL_DESTROY,
    FL_FUNCTIONS
} fl_function;

/* The functions themselves, as the interpreter would reach them without the probe. */
typedef struct {
    int (*lock)(pthread_mutex_t *mutex);
    int (*unlock)(pthread_mutex_t *mutex);
    int (*timedwait)(pthread_cond_t *cond, pthread_mutex_t *mutex, const struct timespec *deadline);
    int (*signal)(pthread_cond_t *cond);
    int (*wait)(pthread_cond_t *cond, pthread_mutex_t *mutex);
    int (*init)(pthread_cond_t *cond, const pthread_condattr_t *attributes);
    int (*destroy)(pthread_cond_t *cond);
} fl_real;

extern fl_real fl_find_real;
extern fl_got_function fl_find_functions[FL_FUNCTIONS];

/* An address within the object that holds the interpreter. */
const void *fl_find_landmark(void);

/* Finds the slots and the functions behind them. NULL, or why not. Any number of times. */
const char *fl_find_slots(void);

/* Finds the GIL of the calling thread, which holds it, by watching it let go and take it again. NULL, or why
   not. The table is as it was afterwards. */
const char *fl_find_gil(fl_py_gil **gil);

/* The GIL of the calling thread, which holds it, where it must be by what fl_find_gil found; NULL: it is not
   there. Nothing is watched, so the hooks may be in. */
fl_py_gil *fl_find_own_gil(void);

/* Whether an interpreter's own GIL lies at `gil`, which may be any address: the thread state that would be
   its last holder belongs to an interpreter that has its GIL just there. Known after fl_find_gil. */
bool fl_find_is_gil(const fl_py_gil *gil);

/* Whether this is the main interpreter's. */
bool fl_find_is_main(const fl_py_gil *gil);

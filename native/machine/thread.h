/* Threads that the core starts, their identity, and calls at a fork. Implemented by machine/os/. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* How the core's own thread-local variables are reached. The GNU C library keeps room for some at a fixed
   distance in libraries that are loaded later, which saves a call per access; musl refuses to load them. */
#ifdef __GLIBC__
#define FL_THREAD_LOCAL_MODEL __attribute__((tls_model("initial-exec")))
#else
#define FL_THREAD_LOCAL_MODEL
#endif

/* Runs body(argument) in a detached thread with a small stack, which receives no signals: a handler of
   Python's would find no thread of Python's there. False: it could not be started. */
bool fl_thread_start(void *(*body)(void *), void *argument);

/* What threading.get_ident() says in the calling thread. */
uint64_t fl_thread_ident(void);

/* Has a fork call `before` in the thread that forks, then `parent` there and `child` in the new process; each
   may be NULL. False: no memory. True, and nothing is ever called, where processes do not fork. */
bool fl_fork_call(void (*before)(void), void (*parent)(void), void (*child)(void));

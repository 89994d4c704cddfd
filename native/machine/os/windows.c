/* Windows: sleeping on a word by WaitOnAddress, waking an event loop by a socket, and the kernel's accounts.

   Built with a compiler that has GNU C and winpthreads (MinGW-w64, or zig). The C tests of the core run under
   Wine; under Windows itself this is not yet run. */
#define _WIN32_WINNT 0x0602 /* WaitOnAddress */

#include <winsock2.h>
#include <ws2tcpip.h>
#include <windows.h>

#include <errno.h>
#include <pthread.h>
#include <psapi.h>
#include <time.h>

#include "machine/atomic.h"
#include "machine/clock.h"
#include "machine/cores.h"
#include "machine/quota.h"
#include "machine/thread.h"
#include "machine/usage.h"

#define STACK 65536

int64_t fl_clock_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now); /* the performance counter, as fl_ticks_system has it, too */
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int fl_cores_online(void)
{
    DWORD online = GetActiveProcessorCount(ALL_PROCESSOR_GROUPS);
    return online < 1 ? 1 : (int)online;
}

/* Of a process in several groups of processors the mask says nothing. */
int fl_cores_affinity(void)
{
    DWORD_PTR mine = 0, all;
    if (!GetProcessAffinityMask(GetCurrentProcess(), &mine, &all) || mine == 0) {
        return fl_cores_online();
    }
    return __builtin_popcountll(mine);
}

/* The limit of the job that the process is in, as a container has one: hundredths of a percent of all
   cores. */
fl_quota_result fl_quota_read(const char *root, double *cores)
{
    (void)root;
    JOBOBJECT_CPU_RATE_CONTROL_INFORMATION limit = {0};
    const DWORD capped = JOB_OBJECT_CPU_RATE_CONTROL_ENABLE | JOB_OBJECT_CPU_RATE_CONTROL_HARD_CAP;
    if (!QueryInformationJobObject(NULL, JobObjectCpuRateControlInformation, &limit, sizeof limit, NULL) ||
        (limit.ControlFlags & capped) != capped || limit.CpuRate == 0) {
        return FL_QUOTA_NONE;
    }
    *cores = limit.CpuRate / 10000.0 * fl_cores_online();
    return FL_QUOTA_LIMITED;
}

static int64_t nanoseconds(FILETIME time)
{
    return (int64_t)((uint64_t)time.dwHighDateTime << 32 | time.dwLowDateTime) * 100;
}

fl_usage_result fl_usage_read(fl_usage_scope scope, fl_usage *usage)
{
    FILETIME begun, ended, system, user;
    PROCESS_MEMORY_COUNTERS memory = {0};
    BOOL found = scope == FL_USAGE_THREAD
                     ? GetThreadTimes(GetCurrentThread(), &begun, &ended, &system, &user)
                     : GetProcessTimes(GetCurrentProcess(), &begun, &ended, &system, &user);
    if (!found || scope == FL_USAGE_CHILDREN) {
        return FL_USAGE_UNSUPPORTED;
    }
    K32GetProcessMemoryInfo(GetCurrentProcess(), &memory, sizeof memory);
    *usage = (fl_usage){
        .user_ns = nanoseconds(user),
        .system_ns = nanoseconds(system),
        .max_rss_kb = (int64_t)(memory.PeakWorkingSetSize / 1024),
    };
    return FL_USAGE_OK;
}

/* See fl_park. */
bool fl_in_main_thread(void)
{
    return true;
}

bool fl_park_misses_signals(void)
{
    return false;
}

/* A Ctrl-C comes in a thread of its own and interrupts no sleep: so sleeps are cut into slices, and for some
   slices after one they end as interrupted, since Python learns of it a moment later than this. A waiter that
   is interrupted leaves its queue, which costs it its place, so none is without need. */
#define SLICE_NS 20000000
#define TOLD_NS (5 * SLICE_NS)

static fl_atomic(int64_t) interrupted_at = -TOLD_NS;

static BOOL WINAPI interrupted(DWORD kind)
{
    (void)kind;
    fl_store(&interrupted_at, fl_clock_now(), relaxed); /* orders nothing */
    return FALSE;                                       /* Python's own comes next */
}

__attribute__((constructor)) static void hear_of_interrupts(void)
{
    SetConsoleCtrlHandler(interrupted, TRUE);
}

fl_park_result fl_park(fl_atomic(uint32_t) *word, uint32_t value, int64_t deadline)
{
    for (;;) {
        int64_t left = deadline - fl_clock_now();
        int64_t sleep = left > SLICE_NS ? SLICE_NS : left > 0 ? left : 0;
        DWORD milliseconds = (DWORD)((sleep + 999999) / 1000000);
        if (WaitOnAddress(word, &value, sizeof value, milliseconds) || GetLastError() != ERROR_TIMEOUT) {
            return FL_PARK_WOKEN;
        }
        int64_t now = fl_clock_now();
        if (now >= deadline) {
            return FL_PARK_TIMED_OUT;
        }
        if (now - fl_load(&interrupted_at, relaxed) < TOLD_NS) {
            return FL_PARK_INTERRUPTED;
        }
    }
}

void fl_unpark(const fl_atomic(uint32_t) *word)
{
    WakeByAddressSingle((void *)(uintptr_t)word);
}

/* Event loops poll sockets only. A datagram socket that is connected to itself serves as an eventfd: no other
   socket's datagrams reach it, and when it takes no more it has been rung. */
static bool connect_to_itself(SOCKET made)
{
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int size = sizeof here;
    u_long on = 1;
    return bind(made, (struct sockaddr *)&here, size) == 0 &&
           getsockname(made, (struct sockaddr *)&here, &size) == 0 &&
           connect(made, (struct sockaddr *)&here, size) == 0 && ioctlsocket(made, (long)FIONBIO, &on) == 0;
}

bool fl_wakeup_open(fl_wakeup *wakeup)
{
    WSADATA data;
    errno = EMFILE;
    if (WSAStartup(MAKEWORD(2, 2), &data) != 0) {
        return false;
    }
    SOCKET made = WSASocketW(AF_INET, SOCK_DGRAM, IPPROTO_UDP, NULL, 0, WSA_FLAG_NO_HANDLE_INHERIT);
    if (made != INVALID_SOCKET && !connect_to_itself(made)) {
        closesocket(made);
        made = INVALID_SOCKET;
    }
    if (made == INVALID_SOCKET) {
        WSACleanup();
        return false;
    }
    wakeup->poll.number = wakeup->ring.number = (int)made; /* handles have 32 bits in 64-bit processes, too */
    return true;
}

void fl_wakeup_close(fl_wakeup *wakeup)
{
    closesocket((SOCKET)wakeup->poll.number);
    WSACleanup();
}

void fl_wakeup_ring(const fl_wakeup *wakeup)
{
    DWORD error = GetLastError();
    send((SOCKET)wakeup->ring.number, "", 1, 0);
    SetLastError(error);
}

void fl_wakeup_clear(const fl_wakeup *wakeup)
{
    char some[64];
    while (recv((SOCKET)wakeup->poll.number, some, sizeof some, 0) > 0) {
    }
}

bool fl_thread_start(void *(*body)(void *), void *argument)
{
    pthread_attr_t attributes;
    pthread_t thread;
    if (pthread_attr_init(&attributes) != 0) {
        return false;
    }
    pthread_attr_setstacksize(&attributes, STACK);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    bool started = pthread_create(&thread, &attributes, body, argument) == 0;
    pthread_attr_destroy(&attributes);
    return started;
}

uint64_t fl_thread_ident(void)
{
    return GetCurrentThreadId();
}

bool fl_fork_call(void (*before)(void), void (*parent)(void), void (*child)(void))
{
    (void)before;
    (void)parent;
    (void)child;
    return true;
}

#include "gil/policy/watchdog.h"

#include <stddef.h>

void fl_watchdog_missing(fl_watchdog *dog, fl_watched *thread, int64_t now)
{
    if (!thread->missing) {
        *thread = (fl_watched){.next = dog->first, .missing = true};
        dog->first = thread;
        dog->missing++;
    }
    thread->since = now;
    thread->roused = false;
}

void fl_watchdog_seen(fl_watchdog *dog, fl_watched *thread)
{
    if (!thread->missing) {
        return;
    }
    fl_watched **place = &dog->first;
    while (*place != thread) {
        place = &(*place)->next;
    }
    *place = thread->next;
    thread->missing = false;
    dog->missing--;
}

void fl_watchdog_forget(fl_watchdog *dog)
{
    while (dog->first != NULL) {
        fl_watchdog_seen(dog, dog->first);
    }
}

bool fl_watchdog_look(fl_watchdog *dog, uint32_t enough, int64_t long_ns, int64_t now,
                      bool (*asleep_since)(fl_watched *thread), void (*rouse)(fl_watched *thread))
{
    uint32_t lost = 0;

    if (dog->missing < enough || now < dog->t_look) {
        return false;
    }
    dog->t_look = now + long_ns;
    for (fl_watched *thread = dog->first; thread != NULL; thread = thread->next) {
        if (now - thread->since < long_ns) {
            dog->t_look = thread->since + long_ns < dog->t_look ? thread->since + long_ns : dog->t_look;
        }
        else if (asleep_since(thread)) {
            lost += thread->roused;
            if (!thread->roused) {
                thread->roused = true;
                thread->since = now;
                rouse(thread);
            }
        }
    }
    return lost >= enough;
}

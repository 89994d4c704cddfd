#include "machine/cores.h"

int fl_cores_usable(int affinity, double quota)
{
    int usable = affinity;
    if (quota < (double)affinity) {
        usable = (int)quota;
        if ((double)usable < quota) {
            usable++;
        }
    }
    return usable < 1 ? 1 : usable;
}

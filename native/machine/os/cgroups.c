/* Where a process's CPU quota stands, from outside in:

   /proc/self/cgroup says which group the process is in, once per hierarchy; /proc/self/mountinfo
   says where a hierarchy is mounted and which of its groups the mount shows as its top. Together
   they give a directory; the limits are in files of that directory and of each one above it, up to
   the mount point, and every one of them holds. What lies above the mount point (a container sees
   its own group as the top, or a bind mount of it) cannot be seen from here.

   Formats: man 7 cgroups, man 5 proc, and the kernel's cgroup-v2 and cfs-bandwidth documents. */
#include "machine/quota.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VERSION_1, VERSION_2, VERSIONS };

/* One hierarchy that can hold CPU limits; all strings are owned, NULL means not found. */
typedef struct {
    char *group;        /* the process's group, from the hierarchy's top */
    char *mount_point;  /* where the hierarchy is mounted */
    char *mount_top;    /* the group that is seen at the mount point */
} hierarchy;

static char *join(const char *first, const char *second, const char *third)
{
    size_t size = strlen(first) + strlen(second) + strlen(third) + 1;
    char *joined = malloc(size);
    if (joined != NULL) {
        snprintf(joined, size, "%s%s%s", first, second, third);
    }
    return joined;
}

static bool replace(char **place, const char *text)
{
    char *copy = strdup(text);
    free(*place);
    *place = copy;
    return copy != NULL;
}

/* Whether `word` is an element of the comma-separated `list`. */
static bool list_has(const char *list, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = list; at != NULL; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, word, length) == 0 && (at[length] == ',' || at[length] == '\0')) {
            return true;
        }
    }
    return false;
}

/* The part of `group` below `top` ("" or "/a/b"), or NULL when `group` is not at or below `top`. A
   group outside the process's own cgroup namespace is written with "/.." in front. */
static const char *below(const char *group, const char *top)
{
    size_t length = strcmp(top, "/") == 0 ? 0 : strlen(top);
    if (strncmp(group, top, length) != 0) {
        return NULL;
    }
    const char *rest = group + length;
    if (strcmp(rest, "/") == 0) {
        return "";
    }
    if (strncmp(rest, "/..", 3) == 0 && (rest[3] == '/' || rest[3] == '\0')) {
        return NULL;
    }
    return *rest == '/' || *rest == '\0' ? rest : NULL;
}

/* Undoes the octal escapes that mountinfo has for spaces and the like. */
static void unescape(char *text)
{
    char *to = text;
    for (const char *from = text; *from != '\0'; to++) {
        if (from[0] == '\\' && strspn(from + 1, "01234567") >= 3) {
            *to = (char)((from[1] - '0') * 64 + (from[2] - '0') * 8 + (from[3] - '0'));
            from += 4;
        } else {
            *to = *from++;
        }
    }
    *to = '\0';
}

/* One line of /proc/self/cgroup: "ID:CONTROLLERS:GROUP", where version 2 has no controllers. */
static bool take_membership(hierarchy *found, char *line)
{
    char *controllers = strchr(line, ':');
    char *group = controllers == NULL ? NULL : strchr(controllers + 1, ':');
    if (group == NULL) {
        return true;
    }
    *controllers++ = '\0';
    *group++ = '\0';
    if (strcmp(line, "0") == 0 && *controllers == '\0') {
        return replace(&found[VERSION_2].group, group);
    }
    if (list_has(controllers, "cpu")) {
        return replace(&found[VERSION_1].group, group);
    }
    return true;
}

/* Whether a mount with this top shows more of the groups above ours than the one we have. */
static bool better_mount(const hierarchy *have, const char *top)
{
    if (have->mount_top == NULL) {
        return true;
    }
    if (below(have->group, top) == NULL) {
        return false;
    }
    return below(have->group, have->mount_top) == NULL || strlen(top) < strlen(have->mount_top);
}

/* One line of /proc/self/mountinfo:
   "ID PARENT DEVICE TOP POINT OPTIONS [TAG...] - TYPE SOURCE SUPER_OPTIONS". */
static bool take_mount(hierarchy *found, char *line)
{
    char *rest = strstr(line, " - ");
    if (rest == NULL) {
        return true;
    }
    *rest = '\0';
    rest += strlen(" - ");
    char *save = NULL;
    const char *type = strtok_r(rest, " ", &save);
    strtok_r(NULL, " ", &save);
    const char *options = strtok_r(NULL, " ", &save);
    char *fields[5];
    for (int i = 0; i < 5; i++) {
        fields[i] = strtok_r(i == 0 ? line : NULL, " ", &save);
        if (fields[i] == NULL) {
            return true;
        }
    }
    char *top = fields[3], *point = fields[4];
    hierarchy *one;
    if (type != NULL && strcmp(type, "cgroup2") == 0) {
        one = &found[VERSION_2];
    } else if (type != NULL && strcmp(type, "cgroup") == 0 && options != NULL &&
               list_has(options, "cpu")) {
        one = &found[VERSION_1];
    } else {
        return true;
    }
    unescape(top);
    unescape(point);
    if (one->group == NULL || !better_mount(one, top)) {
        return true;
    }
    return replace(&one->mount_top, top) && replace(&one->mount_point, point);
}

/* Hands every line of a file to `take`; false when memory ran out. An absent file has no lines. */
static bool each_line(const char *root, const char *name, bool (*take)(hierarchy *, char *), hierarchy *found)
{
    char *path = join(root, name, "");
    if (path == NULL) {
        return false;
    }
    FILE *file = fopen(path, "re");
    free(path);
    if (file == NULL) {
        return true;
    }
    char *line = NULL;
    size_t room = 0;
    bool fine = true;
    while (fine && getline(&line, &room, file) >= 0) {
        line[strcspn(line, "\n")] = '\0';
        fine = take(found, line);
    }
    free(line);
    fclose(file);
    return fine;
}

/* Reads the first `count` whole numbers of a small file; false unless all are there. */
static bool read_numbers(const char *directory, const char *name, int count, long long *numbers, bool *fine)
{
    char *path = join(directory, "/", name);
    if (path == NULL) {
        *fine = false;
        return false;
    }
    FILE *file = fopen(path, "re");
    free(path);
    if (file == NULL) {
        return false;
    }
    int read = 0;
    while (read < count && fscanf(file, "%lld", &numbers[read]) == 1) {
        read++;
    }
    fclose(file);
    return read == count;
}

/* What is done with each group; false when memory ran out. */
typedef bool take_group(int version, const char *directory, void *context);

/* Tightens a number of cores by the limit of one group. An unlimited group has "max" (version 2) or -1
   (version 1) in the quota's place. */
static bool take_limit(int version, const char *directory, void *context)
{
    double *cores = context;
    long long limit[2];  /* quota and period, in microseconds */
    bool fine = true, there;
    if (version == VERSION_2) {
        there = read_numbers(directory, "cpu.max", 2, limit, &fine);
    } else {
        there = read_numbers(directory, "cpu.cfs_quota_us", 1, &limit[0], &fine) &&
                read_numbers(directory, "cpu.cfs_period_us", 1, &limit[1], &fine);
    }
    if (there && limit[0] > 0 && limit[1] > 0) {
        double quota = (double)limit[0] / (double)limit[1];
        if (*cores <= 0 || quota < *cores) {
            *cores = quota;
        }
    }
    return fine;
}

/* Adds how often one group was throttled. */
static bool take_throttled(int version, const char *directory, void *context)
{
    (void)version;
    uint64_t *times = context;
    char *path = join(directory, "/", "cpu.stat");
    if (path == NULL) {
        return false;
    }
    FILE *file = fopen(path, "re");
    free(path);
    if (file == NULL) {
        return true;
    }
    char name[64];
    long long value;
    while (fscanf(file, "%63s %lld", name, &value) == 2) {
        if (strcmp(name, "nr_throttled") == 0 && value > 0) {
            *times += (uint64_t)value;
        }
    }
    fclose(file);
    return true;
}

/* The process's group in one hierarchy, and all that can be seen above it. */
static bool each_above(const char *root, int version, const hierarchy *one, take_group *take, void *context)
{
    if (one->group == NULL || one->mount_point == NULL) {
        return true;
    }
    const char *rest = below(one->group, one->mount_top);
    char *directory = join(root, one->mount_point, rest == NULL ? "" : rest);
    if (directory == NULL) {
        return false;
    }
    size_t top = strlen(root) + strlen(one->mount_point);
    bool fine = take(version, directory, context);
    while (fine && strlen(directory) > top) {
        *strrchr(directory, '/') = '\0';
        fine = take(version, directory, context);
    }
    free(directory);
    return fine;
}

static bool each_group(const char *root, take_group *take, void *context)
{
    hierarchy found[VERSIONS] = {{0}};
    bool fine = each_line(root, "/proc/self/cgroup", take_membership, found) &&
                each_line(root, "/proc/self/mountinfo", take_mount, found);
    for (int version = 0; version < VERSIONS; version++) {
        fine = fine && each_above(root, version, &found[version], take, context);
        free(found[version].group);
        free(found[version].mount_point);
        free(found[version].mount_top);
    }
    return fine;
}

fl_quota_result fl_quota_read(const char *root, double *cores)
{
    double tightest = 0;
    if (!each_group(root, take_limit, &tightest)) {
        return FL_QUOTA_NO_MEMORY;
    }
    if (tightest <= 0) {
        return FL_QUOTA_NONE;
    }
    *cores = tightest;
    return FL_QUOTA_LIMITED;
}

uint64_t fl_quota_throttled(const char *root)
{
    uint64_t times = 0;
    return each_group(root, take_throttled, &times) ? times : 0;
}

/* Every test writes the files of some machine below a directory of its own and reads them there. */
#define _GNU_SOURCE
#include <ftw.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "check.h"
#include "machine/quota.h"

static char root[64];

static void machine_begin(void)
{
    strcpy(root, "/tmp/fairlead-quota-XXXXXX");
    CHECK(mkdtemp(root) != NULL);
}

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *place)
{
    (void)status, (void)type, (void)place;
    return remove(path);
}

static void machine_end(void)
{
    CHECK(nftw(root, remove_entry, 16, FTW_DEPTH | FTW_PHYS) == 0);
}

/* Writes `text` to `name` below the machine's root, and makes the directories on the way. */
static void put(const char *name, const char *text)
{
    char path[4096];
    CHECK(snprintf(path, sizeof path, "%s%s", root, name) < (int)sizeof path);
    for (char *slash = strchr(path + strlen(root) + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0700);
        *slash = '/';
    }
    FILE *file = fopen(path, "w");
    CHECK(file != NULL);
    CHECK(fputs(text, file) >= 0);
    CHECK(fclose(file) == 0);
}

static void check_limit(double wanted)
{
    double cores = -1;
    CHECK(fl_quota_read(root, &cores) == FL_QUOTA_LIMITED);
    if (fabs(cores - wanted) > 1e-9) {
        fprintf(stderr, "quota is %g, not %g\n", cores, wanted);
        exit(1);
    }
}

static void check_no_limit(void)
{
    double cores = -1;
    CHECK(fl_quota_read(root, &cores) == FL_QUOTA_NONE);
    CHECK(cores < 0);
}

#define MOUNT_V2 "25 22 0:23 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
#define MOUNT_V1 "33 25 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:8 - cgroup cgroup rw,cpu,cpuacct\n"

static void test_no_limit_where_there_are_no_files(void)
{
    check_no_limit();
}

static void test_no_limit_when_every_group_says_max(void)
{
    put("/proc/self/cgroup", "0::/a/b\n");
    put("/proc/self/mountinfo", MOUNT_V2);
    put("/sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
    put("/sys/fs/cgroup/a/cpu.max", "max 100000\n");
    check_no_limit();
}

static void test_version_2_limit_of_the_own_group(void)
{
    put("/proc/self/cgroup", "0::/user.slice/job\n");
    put("/proc/self/mountinfo", "22 1 0:21 / / rw - ext4 /dev/vda rw\n" MOUNT_V2);
    put("/sys/fs/cgroup/user.slice/job/cpu.max", "150000 100000\n");
    check_limit(1.5);
}

static void test_version_2_limit_of_a_group_above_is_tighter(void)
{
    put("/proc/self/cgroup", "0::/a/b/c\n");
    put("/proc/self/mountinfo", MOUNT_V2);
    put("/sys/fs/cgroup/a/b/c/cpu.max", "400000 100000\n");
    put("/sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
    put("/sys/fs/cgroup/a/cpu.max", "50000 20000\n");
    check_limit(2.5);
}

static void test_version_2_limit_of_the_own_group_is_tighter(void)
{
    put("/proc/self/cgroup", "0::/a/b\n");
    put("/proc/self/mountinfo", MOUNT_V2);
    put("/sys/fs/cgroup/a/b/cpu.max", "10000 100000\n");
    put("/sys/fs/cgroup/a/cpu.max", "300000 100000\n");
    check_limit(0.1);
}

static void test_version_2_limit_at_the_top_of_a_container(void)
{
    put("/proc/self/cgroup", "0::/\n");
    put("/proc/self/mountinfo", MOUNT_V2);
    put("/sys/fs/cgroup/cpu.max", "200000 100000\n");
    check_limit(2);
}

static void test_version_1_limit_of_a_group_above_is_tighter(void)
{
    put("/proc/self/cgroup", "11:memory:/other\n4:cpu,cpuacct:/a/b\n1:name=systemd:/a\n");
    put("/proc/self/mountinfo", MOUNT_V1);
    put("/sys/fs/cgroup/cpu,cpuacct/a/b/cpu.cfs_quota_us", "-1\n");
    put("/sys/fs/cgroup/cpu,cpuacct/a/b/cpu.cfs_period_us", "100000\n");
    put("/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "300000\n");
    put("/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us", "100000\n");
    check_limit(3);
}

static void test_version_1_cpuset_is_not_taken_for_cpu(void)
{
    put("/proc/self/cgroup", "4:cpuset:/a\n3:cpuacct:/a\n");
    put("/proc/self/mountinfo", "33 25 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpuset\n");
    put("/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "100000\n");
    put("/sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n");
    check_no_limit();
}

static void test_tightest_of_both_versions_in_a_hybrid_set_up(void)
{
    put("/proc/self/cgroup", "4:cpu:/a\n0::/b\n");
    put("/proc/self/mountinfo", MOUNT_V1 "26 22 0:24 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
    put("/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "300000\n");
    put("/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us", "100000\n");
    put("/sys/fs/cgroup/unified/b/cpu.max", "200000 100000\n");
    check_limit(2);
}

static void test_bind_mounted_group_of_a_container_is_found_below_the_mount_point(void)
{
    put("/proc/self/cgroup", "4:cpu,cpuacct:/docker/f00/inner\n");
    put("/proc/self/mountinfo",
        "33 25 0:29 /docker/f00 /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu,cpuacct\n");
    put("/sys/fs/cgroup/cpu/inner/cpu.cfs_quota_us", "120000\n");
    put("/sys/fs/cgroup/cpu/inner/cpu.cfs_period_us", "100000\n");
    check_limit(1.2);
}

static void test_group_outside_the_mount_takes_the_mount_point_itself(void)
{
    put("/proc/self/cgroup", "0::/docker/f00\n");
    put("/proc/self/mountinfo", "25 22 0:23 /docker/f000 /sys/fs/cgroup ro - cgroup2 cgroup2 rw\n");
    put("/sys/fs/cgroup/cpu.max", "70000 100000\n");
    put("/sys/fs/cgroup/0/cpu.max", "10000 100000\n");
    check_limit(0.7);
}

static void test_group_outside_the_namespace_does_not_lead_out_of_the_mount(void)
{
    put("/proc/self/cgroup", "0::/../../x\n");
    put("/proc/self/mountinfo", MOUNT_V2);
    put("/sys/x/cpu.max", "10000 100000\n");
    put("/sys/fs/cgroup/cpu.max", "300000 100000\n");
    check_limit(3);
}

static void test_mount_that_shows_the_most_groups_is_taken(void)
{
    put("/proc/self/cgroup", "0::/a/b\n");
    put("/proc/self/mountinfo",
        "40 22 0:23 /elsewhere /mnt/one rw - cgroup2 cgroup2 rw\n"
        "41 22 0:23 /a /mnt/two rw - cgroup2 cgroup2 rw\n" MOUNT_V2
        "42 22 0:23 /a/b /mnt/three rw - cgroup2 cgroup2 rw\n");
    put("/mnt/two/b/cpu.max", "max 100000\n");
    put("/mnt/three/cpu.max", "max 100000\n");
    put("/sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
    put("/sys/fs/cgroup/a/cpu.max", "250000 100000\n");
    check_limit(2.5);
}

static void test_mount_point_with_a_space_is_unescaped(void)
{
    put("/proc/self/cgroup", "0::/a\n");
    put("/proc/self/mountinfo", "25 22 0:23 / /mnt/c\\040g\\134x rw - cgroup2 cgroup2 rw\n");
    put("/mnt/c g\\x/a/cpu.max", "100000 100000\n");
    check_limit(1);
}

static void test_group_that_was_deleted_leaves_those_above(void)
{
    put("/proc/self/cgroup", "0::/a/gone (deleted)\n");
    put("/proc/self/mountinfo", MOUNT_V2);
    put("/sys/fs/cgroup/a/cpu.max", "600000 100000\n");
    check_limit(6);
}

static void test_group_name_with_a_colon_is_kept_whole(void)
{
    put("/proc/self/cgroup", "0::/a:b/c\n");
    put("/proc/self/mountinfo", MOUNT_V2);
    put("/sys/fs/cgroup/a:b/c/cpu.max", "100000 50000\n");
    check_limit(2);
}

static void test_files_that_make_no_sense_set_no_limit(void)
{
    static const char *nonsense[] = {
        "", "\n", "100000\n", "a b\n", "0 100000\n", "100000 0\n", "-5 100000\n", "100000 -1\n",
    };
    put("/proc/self/cgroup", "\n:\n0:\nnonsense\n4:cpu\n0::/a\n");
    put("/proc/self/mountinfo",
        "\n - \n1 2 3\n - cgroup2\n25 22 - cgroup2 x rw\n1 2 3 4 5 6 - cgroup\n" MOUNT_V2);
    for (size_t i = 0; i < sizeof nonsense / sizeof *nonsense; i++) {
        put("/sys/fs/cgroup/a/cpu.max", nonsense[i]);
        check_no_limit();
    }
}

static void test_line_of_any_length_is_read(void)
{
    enum { LENGTH = 200000 };
    char *text = malloc(LENGTH + 200);
    CHECK(text != NULL);
    strcpy(text, "22 1 0:21 / / rw - overlay overlay rw,lowerdir=");
    size_t end = strlen(text);
    memset(text + end, 'x', LENGTH);
    strcpy(text + end + LENGTH, "\n" MOUNT_V2);
    put("/proc/self/cgroup", "0::/a\n");
    put("/proc/self/mountinfo", text);
    free(text);
    put("/sys/fs/cgroup/a/cpu.max", "100000 100000\n");
    check_limit(1);
}

static void test_throttled_times_of_all_groups_add_up(void)
{
    put("/proc/self/cgroup", "4:cpu,cpuacct:/old\n0::/a/b\n");
    put("/proc/self/mountinfo", MOUNT_V2 MOUNT_V1);
    CHECK(fl_quota_throttled(root) == 0);
    put("/sys/fs/cgroup/a/b/cpu.stat", "usage_usec 12\nnr_periods 9\nnr_throttled 3\nthrottled_usec 5\n");
    put("/sys/fs/cgroup/a/cpu.stat", "usage_usec 12\nnr_periods 9\nnr_throttled 4\n");
    put("/sys/fs/cgroup/cpu.stat", "usage_usec 12\n");
    CHECK(fl_quota_throttled(root) == 7);
    put("/sys/fs/cgroup/cpu,cpuacct/old/cpu.stat", "nr_periods 9\nnr_throttled 20\nthrottled_time 5\n");
    CHECK(fl_quota_throttled(root) == 27);
    put("/sys/fs/cgroup/a/cpu.stat", "nonsense\n");
    CHECK(fl_quota_throttled(root) == 23);
}

static void test_this_machine_can_be_read(void)
{
    double cores = 0;
    fl_quota_result result = fl_quota_read("", &cores);
    CHECK(result == FL_QUOTA_NONE || (result == FL_QUOTA_LIMITED && cores > 0));
}

int main(void)
{
    static void (*const tests[])(void) = {
        test_no_limit_where_there_are_no_files,
        test_no_limit_when_every_group_says_max,
        test_version_2_limit_of_the_own_group,
        test_version_2_limit_of_a_group_above_is_tighter,
        test_version_2_limit_of_the_own_group_is_tighter,
        test_version_2_limit_at_the_top_of_a_container,
        test_version_1_limit_of_a_group_above_is_tighter,
        test_version_1_cpuset_is_not_taken_for_cpu,
        test_tightest_of_both_versions_in_a_hybrid_set_up,
        test_bind_mounted_group_of_a_container_is_found_below_the_mount_point,
        test_group_outside_the_mount_takes_the_mount_point_itself,
        test_group_outside_the_namespace_does_not_lead_out_of_the_mount,
        test_mount_that_shows_the_most_groups_is_taken,
        test_mount_point_with_a_space_is_unescaped,
        test_group_that_was_deleted_leaves_those_above,
        test_group_name_with_a_colon_is_kept_whole,
        test_files_that_make_no_sense_set_no_limit,
        test_line_of_any_length_is_read,
        test_throttled_times_of_all_groups_add_up,
        test_this_machine_can_be_read,
    };
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
        machine_begin();
        tests[i]();
        machine_end();
    }
    return 0;
}

#define _GNU_SOURCE /* dl_iterate_phdr, RTLD_DEFAULT */

#include "gil/interpreter/got.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__aarch64__)
#define JUMP_SLOT R_AARCH64_JUMP_SLOT
#define GLOB_DAT R_AARCH64_GLOB_DAT
#else
#define JUMP_SLOT R_X86_64_JUMP_SLOT
#define GLOB_DAT R_X86_64_GLOB_DAT
#endif

typedef struct {
    uintptr_t address;
    fl_got_object *object;
    fl_got_function *functions;
    size_t count;
    bool found;
} search;

/* The dynamic section's pointers. */
typedef struct {
    const ElfW(Sym) * symbols;
    const char *strings;
    const ElfW(Rela) * tables[2];
    size_t sizes[2];
} dynamic;

/* `base` is what is to be added to the pointers: the dynamic linker has done so already, but for a section
   that it cannot write to. */
static dynamic read_dynamic(const ElfW(Dyn) * entry, uintptr_t base)
{
    dynamic out = {0};
    for (; entry->d_tag != DT_NULL; entry++) {
        const void *pointer = (const void *)(base + entry->d_un.d_ptr);
        switch (entry->d_tag) {
        case DT_SYMTAB:
            out.symbols = pointer;
            break;
        case DT_STRTAB:
            out.strings = pointer;
            break;
        case DT_JMPREL:
            out.tables[0] = pointer;
            break;
        case DT_PLTRELSZ:
            out.sizes[0] = entry->d_un.d_val;
            break;
        case DT_RELA:
            out.tables[1] = pointer;
            break;
        case DT_RELASZ:
            out.sizes[1] = entry->d_un.d_val;
            break;
        default:
            break;
        }
    }
    return out;
}

void fl_got_note(fl_got_function *function, void **slot)
{
    for (size_t i = 0; i < function->count; i++) {
        if (function->slots[i] == slot) {
            return;
        }
    }
    if (function->count == FL_GOT_SLOTS) {
        function->more = true;
        return;
    }
    function->slots[function->count] = slot;
    function->protection[function->count] = 0;
    function->found[function->count] = function->before[function->count] = *slot;
    function->count++;
}

static void note_slot(const search *wanted, const char *name, void **slot)
{
    for (size_t i = 0; i < wanted->count; i++) {
        if (strcmp(name, wanted->functions[i].name) == 0) {
            fl_got_note(&wanted->functions[i], slot);
        }
    }
}

static int visit(struct dl_phdr_info *info, size_t size, void *argument)
{
    (void)size;
    search *wanted = argument;
    const ElfW(Dyn) *section = NULL;
    bool contains = false, writable = false;
    uintptr_t start = UINTPTR_MAX, end = 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        uintptr_t from = info->dlpi_addr + header->p_vaddr, until = from + header->p_memsz;
        if (header->p_type == PT_DYNAMIC) {
            section = (const ElfW(Dyn) *)from;
            writable = header->p_flags & PF_W;
        } else if (header->p_type == PT_LOAD) {
            contains = contains || (wanted->address >= from && wanted->address < until);
            start = from < start ? from : start;
            end = until > end ? until : end;
        }
    }
    if (!contains || section == NULL) {
        return contains;
    }
    dynamic tables = read_dynamic(section, writable ? 0 : info->dlpi_addr);
    if (tables.symbols == NULL || tables.strings == NULL) {
        return 1;
    }
    wanted->found = true;
    *wanted->object = (fl_got_object){info->dlpi_name, (const char *)start, (const char *)end};
    for (int table = 0; table < 2; table++) {
        const ElfW(Rela) *entry = tables.tables[table];
        for (size_t left = entry ? tables.sizes[table] / sizeof *entry : 0; left > 0; left--, entry++) {
            unsigned long type = ELF64_R_TYPE(entry->r_info);
            if (type == JUMP_SLOT || type == GLOB_DAT) {
                const char *name = tables.strings + tables.symbols[ELF64_R_SYM(entry->r_info)].st_name;
                note_slot(wanted, name, (void **)(info->dlpi_addr + entry->r_offset));
            }
        }
    }
    return 1;
}

static bool within(const fl_got_object *object, const void *address)
{
    return (const char *)address >= object->start && (const char *)address < object->end;
}

/* The function that a slot leads to: maybe another library's, which has hooked it before us. What lies within
   the object itself is a stub that asks the dynamic linker, or goes through the slot again: then it is what
   the dynamic linker would find. */
static void *behind(const fl_got_function *function, const fl_got_object *object)
{
    void *there = function->count > 0 ? function->found[0] : NULL;
    there = there != NULL && !within(object, there) ? there : dlsym(RTLD_DEFAULT, function->name);
    return there != NULL && !within(object, there) ? there : NULL;
}

bool fl_got_find(const void *address, fl_got_object *object, fl_got_function *functions, size_t count)
{
    search wanted = {(uintptr_t)address, object, functions, count, false};
    for (size_t i = 0; i < count; i++) {
        functions[i].count = 0;
        functions[i].more = false;
        functions[i].real = NULL;
    }
    dl_iterate_phdr(visit, &wanted);
    for (size_t i = 0; wanted.found && i < count; i++) {
        functions[i].real = behind(&functions[i], object);
    }
    return wanted.found;
}

/* The protection of the page that `address` lies in, -1 when it is not known. */
static int protection(const void *address)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    if (maps == NULL) {
        return -1;
    }
    int found = -1;
    char line[512];
    while (found < 0 && fgets(line, sizeof line, maps)) {
        unsigned long from, until;
        char flags[5];
        if (sscanf(line, "%lx-%lx %4s", &from, &until, flags) == 3 && (uintptr_t)address >= from
            && (uintptr_t)address < until) {
            found = (flags[0] == 'r' ? PROT_READ : 0) | (flags[1] == 'w' ? PROT_WRITE : 0)
                    | (flags[2] == 'x' ? PROT_EXEC : 0);
        }
    }
    fclose(maps);
    return found;
}

static pthread_mutex_t changing = PTHREAD_MUTEX_INITIALIZER;

/* The one place that stores into a slot. With `changing` held. */
static int poke(fl_got_function *function, size_t i, void *value)
{
    void **slot = function->slots[i];
    int before = function->protection[i] ? function->protection[i] : protection(slot);
    if (before < 0) {
        return FL_GOT_NO_MAPS;
    }
    function->protection[i] = before;
    uintptr_t size = (uintptr_t)sysconf(_SC_PAGESIZE);
    void *page = (void *)((uintptr_t)slot & ~(size - 1));
    bool closed = !(before & PROT_WRITE);
    if (mprotect(page, size, before | PROT_WRITE) != 0) { /* one that was open may be closed by now */
        return errno;
    }
    /* Release: a thread that calls the new function finds what it relies on. */
    __atomic_store_n(slot, value, __ATOMIC_RELEASE);
    if (closed) {
        (void)mprotect(page, size, before);
    }
    return 0;
}

static int set(fl_got_function *function, void *target)
{
    for (size_t i = 0; i < function->count; i++) {
        void *there = __atomic_load_n(function->slots[i], __ATOMIC_RELAXED);
        int error = there == target ? 0 : poke(function, i, target);
        if (error) {
            while (i-- > 0) {
                (void)poke(function, i, function->before[i]);
            }
            return error;
        }
        function->before[i] = there == target ? function->before[i] : there;
    }
    return 0;
}

int fl_got_set(fl_got_function *function, void *target)
{
    pthread_mutex_lock(&changing);
    int error = set(function, target);
    pthread_mutex_unlock(&changing);
    return error;
}

void fl_got_forked(void)
{
    pthread_mutex_init(&changing, NULL);
}

const char *fl_got_failure(int error)
{
    static char text[256];
    if (error == FL_GOT_NO_MAPS) {
        return "the interpreter's table of functions cannot be changed, because /proc/self/maps cannot be "
               "read: mount /proc, and leave a file descriptor free";
    }
    snprintf(text, sizeof text, "the interpreter's table of functions cannot be changed (%s)",
             strerror(error));
    return text;
}

int fl_got_restore(fl_got_function *function, void *target)
{
    int error = 0;
    pthread_mutex_lock(&changing);
    for (size_t i = 0; i < function->count && !error; i++) {
        /* Else another library has been here since, and what it put there may well call us. */
        if (__atomic_load_n(function->slots[i], __ATOMIC_RELAXED) == target) {
            error = poke(function, i, function->before[i]);
        }
    }
    pthread_mutex_unlock(&changing);
    return error;
}

bool fl_got_is(const fl_got_function *function, const void *target)
{
    for (size_t i = 0; i < function->count; i++) {
        if (__atomic_load_n(function->slots[i], __ATOMIC_RELAXED) != target) {
            return false;
        }
    }
    return true;
}

bool fl_got_taken(const fl_got_function *function, const void *target)
{
    for (size_t i = 0; i < function->count; i++) {
        const void *there = __atomic_load_n(function->slots[i], __ATOMIC_RELAXED);
        if (there != target && there != function->real && there != function->found[i]) {
            return true;
        }
    }
    return false;
}

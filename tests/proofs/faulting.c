/* Makes one chosen call of a process fail, or kills the process in it.
 *
 * Loaded by LD_PRELOAD. A page shared with the test says which call: the Nth of those that touch
 * a file below one folder, counted over all threads and processes together. strace counts for
 * each thread on its own, so with it the calls of the journal's and the mirror's threads cannot be
 * chosen. The first process to make such a call owns the page: who is killed elsewhere (a helper,
 * a git) takes it along, as if the machine had failed, unless it is to die alone.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

enum { KILLED = 0, INPUT_OUTPUT = 1, NO_SPACE = 2, TORN = 3, ALONE = 4 };

struct page {
    volatile long at;   /* 0: pay no attention; negative: only count; else the call to strike */
    volatile long kind;
    volatile long seen;
    volatile long hit;
    volatile long owner; /* 0 until the first call */
    volatile long changing; /* count only what changes something */
    char folder[1024];
    char what[1024];
};

static struct page *page;

__attribute__((constructor)) static void begin(void) {
    const char *name = getenv("FAULTING_PAGE");
    int file = name ? open(name, O_RDWR | O_CLOEXEC) : -1;
    if (file < 0)
        return;
    void *found = mmap(NULL, sizeof(struct page), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    page = found == MAP_FAILED ? NULL : found;
    close(file);
}

static int chosen(const char *call, const char *path) {
    if (!page || !page->at)
        return 0;
    size_t length = strlen(page->folder);
    if (strncmp(path, page->folder, length) != 0)
        return 0;
    __sync_bool_compare_and_swap(&page->owner, 0, getpid());
    if (page->kind == ALONE && page->owner == getpid())
        return 0;
    if (__sync_add_and_fetch(&page->seen, 1) != page->at)
        return 0;
    snprintf(page->what, sizeof page->what, "%s of %s", call, path + length);
    page->hit = 1;
    return 1;
}

static void die(void) {
    if (page->kind != ALONE && page->owner != getpid())
        kill(page->owner, SIGKILL);
    kill(getpid(), SIGKILL);
    for (;;)
        pause();
}

/* Gives 1 when the call must fail; errno says how. */
static int strikes(const char *call, const char *path) {
    int before = errno;
    if (page && page->at && page->kind == TORN)
        return 0; /* only writes can be torn */
    if (!chosen(call, path)) {
        errno = before;
        return 0;
    }
    if (page->kind == KILLED || page->kind == ALONE)
        die();
    errno = page->kind == INPUT_OUTPUT ? EIO : ENOSPC;
    return 1;
}

static const char *path_of(int file, char *room) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, room, PATH_MAX - 1);
    room[length < 0 ? 0 : length] = 0;
    return room;
}

static const char *path_at(int folder, const char *name, char *room) {
    if (name[0] == '/')
        return name;
    if (folder != AT_FDCWD)
        path_of(folder, room);
    else if (!getcwd(room, PATH_MAX))
        return name;
    size_t length = strlen(room);
    snprintf(room + length, PATH_MAX - length, "/%s", name);
    return room;
}

static int strikes_at(const char *call, int folder, const char *name) {
    char room[PATH_MAX];
    return strikes(call, path_at(folder, name, room));
}

#define NEXT(name) \
    static __typeof__(name) *next; \
    if (!next) next = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

#define ATTENDS (page && page->at)

static int counts(int flags) {
    return !page->changing || flags & (O_CREAT | O_TRUNC);
}

#define OPENING(name) \
    int name(const char *path, int flags, ...) { \
        NEXT(name); \
        va_list more; \
        va_start(more, flags); \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0; \
        va_end(more); \
        if (ATTENDS && counts(flags) && strikes_at("open", AT_FDCWD, path)) \
            return -1; \
        return next(path, flags, mode); \
    }
OPENING(open)
OPENING(open64)

#define OPENING_AT(name) \
    int name(int folder, const char *path, int flags, ...) { \
        NEXT(name); \
        va_list more; \
        va_start(more, flags); \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0; \
        va_end(more); \
        if (ATTENDS && counts(flags) && strikes_at("open", folder, path)) \
            return -1; \
        return next(folder, path, flags, mode); \
    }
OPENING_AT(openat)
OPENING_AT(openat64)

#define SYNCING(name) \
    int name(int file) { \
        NEXT(name); \
        char room[PATH_MAX]; \
        return ATTENDS && strikes(#name, path_of(file, room)) ? -1 : next(file); \
    }
SYNCING(fsync)
SYNCING(fdatasync)

ssize_t write(int file, const void *content, size_t size) {
    NEXT(write);
    char room[PATH_MAX];
    if (ATTENDS && page->kind == TORN && chosen("write", path_of(file, room))) {
        next(file, content, size / 2);
        die();
    }
    return ATTENDS && strikes("write", path_of(file, room)) ? -1 : next(file, content, size);
}

#define WRITING_AT(name) \
    ssize_t name(int file, const void *content, size_t size, off_t offset) { \
        NEXT(name); \
        char room[PATH_MAX]; \
        if (ATTENDS && page->kind == TORN && chosen("pwrite", path_of(file, room))) { \
            next(file, content, size / 2, offset); \
            die(); \
        } \
        if (ATTENDS && strikes("pwrite", path_of(file, room))) \
            return -1; \
        return next(file, content, size, offset); \
    }
WRITING_AT(pwrite)
WRITING_AT(pwrite64)

#define CUTTING(name) \
    int name(int file, off_t size) { \
        NEXT(name); \
        char room[PATH_MAX]; \
        return ATTENDS && strikes("ftruncate", path_of(file, room)) ? -1 : next(file, size); \
    }
CUTTING(ftruncate)
CUTTING(ftruncate64)

int rename(const char *from, const char *to) {
    NEXT(rename);
    return ATTENDS && strikes_at("rename", AT_FDCWD, to) ? -1 : next(from, to);
}

int renameat(int there, const char *from, int folder, const char *to) {
    NEXT(renameat);
    return ATTENDS && strikes_at("rename", folder, to) ? -1 : next(there, from, folder, to);
}

int link(const char *from, const char *to) {
    NEXT(link);
    return ATTENDS && strikes_at("link", AT_FDCWD, to) ? -1 : next(from, to);
}

int unlink(const char *path) {
    NEXT(unlink);
    return ATTENDS && strikes_at("unlink", AT_FDCWD, path) ? -1 : next(path);
}

int unlinkat(int folder, const char *path, int flags) {
    NEXT(unlinkat);
    return ATTENDS && strikes_at("unlink", folder, path) ? -1 : next(folder, path, flags);
}

int mkdir(const char *path, mode_t mode) {
    NEXT(mkdir);
    return ATTENDS && strikes_at("mkdir", AT_FDCWD, path) ? -1 : next(path, mode);
}

int mkdirat(int folder, const char *path, mode_t mode) {
    NEXT(mkdirat);
    return ATTENDS && strikes_at("mkdir", folder, path) ? -1 : next(folder, path, mode);
}

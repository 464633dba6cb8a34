/* Shifts the wall clock of a process, and nothing else, by an offset that a test may change.
 *
 * Loaded by LD_PRELOAD. The offset, in nanoseconds, is the first word of a file shared with the
 * test. Waits are left alone, as they are when the clock of a machine is set.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile long long *offset;

__attribute__((constructor)) static void begin(void) {
    const char *name = getenv("SHIFTING_PAGE");
    int file = name ? open(name, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0)
        return;
    void *found = mmap(NULL, sizeof(long long), PROT_READ, MAP_SHARED, file, 0);
    offset = found == MAP_FAILED ? NULL : found;
    close(file);
}

#define NEXT(name) \
    static __typeof__(name) *next; \
    if (!next) next = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

int clock_gettime(clockid_t clock, struct timespec *now) {
    NEXT(clock_gettime);
    int failed = next(clock, now);
    if (failed || !offset || (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE))
        return failed;
    long long shifted = now->tv_sec * 1000000000LL + now->tv_nsec + *offset;
    now->tv_sec = shifted / 1000000000LL;
    now->tv_nsec = shifted % 1000000000LL;
    return 0;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec exact;
    if (zone)
        *(struct timezone *)zone = (struct timezone){0};
    if (clock_gettime(CLOCK_REALTIME, &exact))
        return -1;
    now->tv_sec = exact.tv_sec;
    now->tv_usec = exact.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *where) {
    struct timespec exact;
    clock_gettime(CLOCK_REALTIME, &exact);
    if (where)
        *where = exact.tv_sec;
    return exact.tv_sec;
}

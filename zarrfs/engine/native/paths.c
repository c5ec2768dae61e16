/* The names of stored values, and opening of files below a directory. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "native.h"

/* Write the name of a value relative to the directory. Fails if it is too long. */
int format_name(const struct zarrfs_read *read, const int64_t *value, char *name) {
    int ndim = read->chain->ndim;
    size_t length = strlen(read->head);
    if (length >= MAX_NAME) return -1;
    memcpy(name, read->head, length);
    for (int i = 0; i < ndim; i++) {
        int d = read->names_reversed ? ndim - 1 - i : i;
        char digits[24];
        int count = 0;
        uint64_t number = (uint64_t)read->dimensions[d].value[value[d]];
        do digits[count++] = (char)('0' + number % 10);
        while (number /= 10);
        if (length + (size_t)count + 2 > MAX_NAME) return -1;
        if (length) name[length++] = (char)read->separator;
        while (count) name[length++] = digits[--count];
    }
    name[length] = 0;
    return 0;
}

/* Open each directory of the path in turn, without following a link. For kernels without openat2. */
static int open_stepwise(int directory, char *name, int flags) {
    int current = directory;
    for (char *slash; (slash = strchr(name, '/')); name = slash + 1) {
        *slash = 0;
        int next = openat(current, name, O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        int error = errno;
        if (current != directory) close(current);
        errno = error;
        if (next < 0) return -1;
        current = next;
    }
    int fd = openat(current, name, flags);
    int error = errno;
    if (current != directory) close(current);
    errno = error;
    return fd;
}

/* ZARRFS_WITHOUT_OPENAT2 is defined by tests of the other implementation. */
#if defined(SYS_openat2) && !defined(ZARRFS_WITHOUT_OPENAT2)
#define HAS_OPENAT2
struct zarrfs_open_how {
    uint64_t flags, mode, resolve;
};
#define RESOLVE_NO_SYMLINKS_AND_BENEATH (0x04 | 0x08)
#endif

/* Open a file below the directory. Symbolic links are not followed: the caller decides where they may lead. */
int open_below(int directory, char *name, int flags) {
    if (!strchr(name, '/')) return openat(directory, name, flags | O_NOFOLLOW);
#ifdef HAS_OPENAT2
    struct zarrfs_open_how how = {(uint64_t)flags, 0, RESOLVE_NO_SYMLINKS_AND_BENEATH};
    int fd = (int)syscall(SYS_openat2, directory, name, &how, sizeof how);
    if (fd >= 0 || (errno != ENOSYS && errno != EPERM && errno != EINVAL && errno != EAGAIN)) return fd;
#endif
    return open_stepwise(directory, name, flags | O_NOFOLLOW);
}

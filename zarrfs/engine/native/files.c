/* Files of values that are written: their locks, the temporary file, its renaming, and the directories. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "writing.h"

#define DIRECTORY_FLAGS (O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW)
#define CREATE_FLAGS (O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW)
/* How often a directory is created again if other writers remove it. */
#define MAX_CREATE_ATTEMPTS 100

static int directory_flags(const struct zarrfs_write *write) {
    /* Only a directory that is open for reading can be synchronized. */
    return DIRECTORY_FLAGS | (write->durable ? O_RDONLY : O_PATH);
}

void close_parent(struct writer *writer) {
    if (writer->parent.fd >= 0) close(writer->parent.fd);
    writer->parent.fd = -1;
}

/* Create the missing directories of a path and return a descriptor of the last one. */
static int make_directories(const struct zarrfs_write *write, char *path) {
    int current = write->read.directory, last = 0;
    for (char *component = path; !last;) {
        char *slash = strchr(component, '/');
        last = !slash;
        if (slash) *slash = 0;
        int next = openat(current, component, directory_flags(write));
        if (next < 0 && errno == ENOENT && (!mkdirat(current, component, 0777) || errno == EEXIST)) {
            next = write->durable && fsync(current) ? -1 : openat(current, component, directory_flags(write));
        }
        int error = errno;
        if (slash) *slash = '/';
        if (current != write->read.directory) close(current);
        errno = error;
        if (next < 0) return -1;
        current = next;
        component = slash + 1;
    }
    return current;
}

/* Return a descriptor of the directory of a value, which belongs to the writer. `base` is set to the name in it. */
static int open_parent(struct writer *writer, char *name, int create, const char **base) {
    char *slash = strrchr(name, '/');
    *base = slash ? slash + 1 : name;
    if (!slash) return writer->write->read.directory;
    size_t length = (size_t)(slash - name);
    struct parent *parent = &writer->parent;
    if (parent->fd >= 0 && !strncmp(parent->name, name, length) && !parent->name[length]) return parent->fd;
    close_parent(writer);
    char path[MAX_NAME];
    memcpy(path, name, length);
    path[length] = 0;
    int fd = open_below(writer->write->read.directory, path, directory_flags(writer->write));
    if (fd < 0 && errno == ENOENT && create) {
        memcpy(path, name, length); /* it may have been divided */
        path[length] = 0;
        fd = make_directories(writer->write, path);
    }
    if (fd < 0) return -1;
    memcpy(parent->name, name, length);
    parent->name[length] = 0;
    return parent->fd = fd;
}

int lock_value(struct writer *writer, const char *name, int *fd, struct stat *status) {
    char copy[MAX_NAME]; /* it may be divided */
    struct stat current;
    int directory = writer->write->read.directory;
    memcpy(copy, name, strlen(name) + 1);
    do *fd = open_below(directory, copy, READ_FLAGS);
    while (*fd < 0 && errno == EINTR);
    if (*fd < 0) return errno == ENOENT ? 0 : -1;
    if (!fstat(*fd, status) && S_ISREG(status->st_mode) && !flock(*fd, LOCK_EX | LOCK_NB) &&
        !fstatat(directory, name, &current, 0) && current.st_ino == status->st_ino &&
        current.st_dev == status->st_dev)
        return 0;
    unlock_value(fd);
    return -1;
}

void unlock_value(int *fd) {
    if (*fd < 0) return;
    /* Unlocked explicitly: a process that was forked in between has the file open too. */
    flock(*fd, LOCK_UN);
    close(*fd);
    *fd = -1;
}

int begin_file(struct writer *writer, char *name, int64_t number, struct value_file *file) {
    int length = snprintf(file->temporary, sizeof file->temporary, "%s%llx", writer->write->temporary,
                          (unsigned long long)number);
    file->fd = -1;
    if (length < 0 || (size_t)length >= sizeof file->temporary) return -1;
    for (int attempt = 0; attempt < MAX_CREATE_ATTEMPTS; attempt++) {
        file->parent = open_parent(writer, name, 1, &file->base);
        if (file->parent >= 0) {
            file->fd = openat(file->parent, file->temporary, CREATE_FLAGS, 0666);
            if (file->fd >= 0) return 0;
        }
        if (errno == EINTR) continue;
        if (errno != ENOENT) return -1;
        /* Another writer removed the directory when it deleted the last value in it. */
        close_parent(writer);
    }
    return -1;
}

int write_file_range(const struct value_file *file, const unsigned char *data, int64_t size, int64_t offset) {
    while (size > 0) {
        ssize_t done = pwrite(file->fd, data, (size_t)size, offset);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return -1;
        data += done;
        offset += done;
        size -= done;
    }
    return 0;
}

void abandon_file(struct value_file *file) {
    if (file->fd < 0) return;
    close(file->fd);
    file->fd = -1;
    unlinkat(file->parent, file->temporary, 0);
}

/* Rename the temporary file to a name that must not exist. */
static int rename_to_new(const struct value_file *file) {
#ifdef SYS_renameat2
    const unsigned no_replace = 1; /* RENAME_NOREPLACE */
    if (!syscall(SYS_renameat2, file->parent, file->temporary, file->parent, file->base, no_replace)) return 0;
    if (errno != EINVAL && errno != ENOSYS) return -1;
#endif
    return linkat(file->parent, file->temporary, file->parent, file->base, 0) ||
                   unlinkat(file->parent, file->temporary, 0)
               ? -1
               : 0;
}

int commit_file(struct writer *writer, struct value_file *file, int is_new) {
    if (writer->write->durable && fsync(file->fd)) {
        abandon_file(file);
        return -1;
    }
    int failed = close(file->fd); /* network file systems report errors here */
    file->fd = -1;
    if (!failed)
        failed = is_new ? rename_to_new(file) : renameat(file->parent, file->temporary, file->parent, file->base);
    if (failed) {
        unlinkat(file->parent, file->temporary, 0);
        return -1;
    }
    return writer->write->durable ? fsync(file->parent) : 0;
}

int delete_value(struct writer *writer, char *name) {
    const char *base;
    int directory = writer->write->read.directory, parent = open_parent(writer, name, 0, &base);
    if (parent < 0) return errno == ENOENT ? 0 : -1;
    if (unlinkat(parent, base, 0)) {
        if (errno != ENOENT) return -1;
    } else if (writer->write->durable && fsync(parent)) {
        return -1;
    }
    for (char *slash; (slash = strrchr(name, '/'));) {
        *slash = 0;
        if (unlinkat(directory, name, AT_REMOVEDIR)) break;
        __atomic_store_n(&writer->write->pruned, 1, __ATOMIC_RELAXED);
        close_parent(writer);
    }
    return 0;
}

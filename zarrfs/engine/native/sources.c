/* Buffers, and the bytes of a stored value in memory or in a file. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "native.h"

unsigned char *reserve(struct buffer *buffer, size_t size) {
    if (size > buffer->capacity || !buffer->data) {
        free(buffer->data);
        buffer->data = malloc(size ? size : 1);
        buffer->capacity = buffer->data ? size : 0;
    }
    return buffer->data;
}

/* Copy a range of the source to `target`. Fails at the end of the file. */
int fetch(const struct source *source, int64_t offset, int64_t size, unsigned char *target) {
    if (offset < 0 || size < 0 || offset > source->size || size > source->size - offset) return -1;
    if (source->memory) {
        memcpy(target, source->memory + offset, (size_t)size);
        return 0;
    }
    while (size > 0) {
        if (source->request_count) ++*source->request_count;
        ssize_t done = pread(source->fd, target, (size_t)size, source->base + offset);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return -1;
        target += done;
        offset += done;
        size -= done;
    }
    return 0;
}

int is_unchanged(int fd, const struct stat *before) {
    struct stat now;
    return !fstat(fd, &now) && now.st_mtim.tv_sec == before->st_mtim.tv_sec &&
           now.st_mtim.tv_nsec == before->st_mtim.tv_nsec && now.st_size == before->st_size;
}

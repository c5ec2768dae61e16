/* The bytes of a shard that is being written: new bytes in memory, and ranges of the old shard.
 *
 * Ranges of the old shard are copied from file to file when the output is written. They need no memory, and the kernel
 * copies them once, or not at all on file systems whose files can share blocks.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "writing.h"

#define COPY_NBYTES (64 << 10)

void free_output(struct output *output) {
    free(output->buffer.data);
    free(output->segments);
    *output = (struct output){0};
}

/* Add a segment, or extend the last one if the new bytes follow it. */
static int add_segment(struct output *output, int64_t old_offset, int64_t size) {
    struct segment *last = output->count ? &output->segments[output->count - 1] : NULL;
    if (last && (old_offset < 0 ? last->old_offset < 0
                                : last->old_offset >= 0 && last->old_offset + last->size == old_offset)) {
        last->size += size;
        return 0;
    }
    if (output->count == output->capacity) {
        size_t capacity = output->capacity ? 2 * output->capacity : 16, nbytes;
        if (__builtin_mul_overflow(capacity, sizeof *last, &nbytes)) return -1;
        struct segment *segments = realloc(output->segments, nbytes);
        if (!segments) return -1;
        output->segments = segments;
        output->capacity = capacity;
    }
    output->segments[output->count++] = (struct segment){old_offset, size};
    return 0;
}

int add_bytes(struct output *output, const unsigned char *data, int64_t size) {
    size_t needed;
    if (!size) return 0;
    if (__builtin_add_overflow(output->size, (size_t)size, &needed)) return -1;
    if (needed > output->buffer.capacity) {
        size_t capacity = needed + needed / 2;
        unsigned char *grown = realloc(output->buffer.data, capacity);
        if (!grown) return -1;
        output->buffer = (struct buffer){grown, capacity};
    }
    if (add_segment(output, -1, size)) return -1;
    memcpy(output->buffer.data + output->size, data, (size_t)size);
    output->size = needed;
    return 0;
}

int add_old_bytes(struct output *output, int64_t offset, int64_t size) {
    return size ? add_segment(output, offset, size) : 0;
}

/* Copy a range of the old shard. Fails at its end. */
static int copy_range(int old_fd, int64_t offset, int64_t size, const struct value_file *file, int64_t position) {
    unsigned char buffer[COPY_NBYTES];
    struct source old = {NULL, old_fd, 0, INT64_MAX, NULL};
    while (size > 0) {
        loff_t from = offset, to = position;
        ssize_t done = copy_file_range(old_fd, &from, file->fd, &to, (size_t)size, 0);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) break; /* not supported here, or an error, which is found again */
        offset += done;
        position += done;
        size -= done;
    }
    while (size > 0) {
        int64_t count = size < COPY_NBYTES ? size : COPY_NBYTES;
        if (fetch(&old, offset, count, buffer) || write_file_range(file, buffer, count, position)) return -1;
        offset += count;
        position += count;
        size -= count;
    }
    return 0;
}

int write_output(struct output *output, int old_fd, const struct value_file *file, int64_t *position) {
    const unsigned char *data = output->buffer.data;
    int failed = 0;
    for (size_t i = 0; i < output->count && !failed; i++) {
        const struct segment *segment = &output->segments[i];
        if (segment->old_offset >= 0) {
            failed = copy_range(old_fd, segment->old_offset, segment->size, file, *position);
        } else {
            failed = write_file_range(file, data, segment->size, *position);
            data += segment->size;
        }
        *position += segment->size;
    }
    output->size = output->count = 0;
    return failed;
}

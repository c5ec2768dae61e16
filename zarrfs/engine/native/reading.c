/* Execution of a read: its tasks, and the threads that take them from a counter. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "native.h"

int zarrfs_native_version(void) { return ZARRFS_NATIVE_VERSION; }

void zarrfs_structure_sizes(int64_t sizes[6]) {
    sizes[0] = sizeof(struct zarrfs_read);
    sizes[1] = sizeof(struct zarrfs_chain);
    sizes[2] = sizeof(struct zarrfs_shard);
    sizes[3] = sizeof(struct zarrfs_dimension);
    sizes[4] = sizeof(struct zarrfs_functions);
    sizes[5] = sizeof(struct zarrfs_limits);
}

/* -- tasks ------------------------------------------------------------------------------------------------------- */

/* Read one chunk: the value is a file. */
static int read_file(struct worker *worker, int fd, const struct stat *status, const int64_t *value) {
    const struct zarrfs_read *read = worker->read;
    int64_t entries[MAX_NDIM];
    struct box box;
    int64_t request_count = 0;
    struct source source = {NULL, fd, 0, status->st_size, &request_count};
    for (int d = 0; d < read->chain->ndim; d++) entries[d] = read->dimensions[d].first[value[d]];
    entry_box(read, entries, &box);
    if (read_chunk(worker, &source, &box)) return -1;
    /* The bytes of several requests must belong to one version of the file. */
    return request_count > 1 && !is_unchanged(fd, status) ? -1 : 0;
}

/* Read one chunk as a whole into `kept`, and copy the requested elements from there. */
static int read_kept_file(struct worker *worker, int fd, const struct stat *status, const int64_t *value,
                          unsigned char *kept) {
    struct zarrfs_read *read = worker->read, whole = *read, copy = *read;
    struct zarrfs_chain plain = *read->chain;
    int64_t entries[MAX_NDIM], strides[MAX_NDIM] = {0};
    struct box box;
    int64_t request_count = 0;
    struct source source = {NULL, fd, 0, status->st_size, &request_count};
    for (int d = 0; d < plain.ndim; d++) {
        plain.axes[d] = d;
        box.start[d] = 0;
        box.length[d] = plain.shape[d];
        box.step[d] = 1;
    }
    box.out = kept;
    plain.element = ELEMENT_COPY;
    chunk_strides(&plain, plain.shape, strides);
    memcpy(whole.out_strides, strides, sizeof strides);
    worker->read = &whole;
    int outcome = read_chunk(worker, &source, &box);
    worker->read = read;
    if (outcome || (request_count > 1 && !is_unchanged(fd, status))) return -1;
    for (int d = 0; d < plain.ndim; d++) entries[d] = read->dimensions[d].first[value[d]];
    entry_box(read, entries, &box);
    copy.chain = &plain;
    copy_box(&copy, &box, kept, strides);
    return 0;
}

/* Fill the part of the output that belongs to a missing value. */
static void fill_value(const struct zarrfs_read *read, const int64_t *value) {
    struct box box;
    box.out = read->out;
    for (int d = 0; d < read->chain->ndim; d++) {
        const struct zarrfs_dimension *dimension = &read->dimensions[d];
        int64_t low = dimension->first[value[d]], high = dimension->first[value[d] + 1];
        int64_t begin = dimension->target[low], end = dimension->target[high - 1] + dimension->length[high - 1];
        box.start[d] = 0;
        box.step[d] = 1;
        box.length[d] = end - begin;
        box.out += begin * read->out_strides[d];
    }
    fill_box(read, &box);
}

static int run_task(struct worker *worker, int64_t number, const int64_t *value, int64_t part) {
    const struct zarrfs_read *read = worker->read;
    unsigned char *kept = read->kept ? read->kept[number] : NULL;
    int64_t *stamp = read->stamps ? read->stamps + 3 * (number * read->parts + part) : NULL;
    char name[MAX_NAME];
    struct stat status;
    int fd, outcome = -1;
    if (format_name(read, value, name)) return -1;
    do fd = open_below(read->directory, name, READ_FLAGS);
    while (fd < 0 && errno == EINTR);
    if (fd < 0) {
        if (errno != ENOENT || read->missing_falls_back) return -1;
        if (stamp) stamp[0] = -1;
        if (part == 0) fill_value(read, value);
        return 0;
    }
    if (!fstat(fd, &status) && S_ISREG(status.st_mode)) {
        if (stamp) {
            stamp[0] = (int64_t)status.st_mtim.tv_sec * 1000000000 + status.st_mtim.tv_nsec;
            stamp[1] = status.st_size;
            stamp[2] = (int64_t)status.st_ino;
        }
        if (read->shard->present)
            outcome = read_shard(worker, fd, &status, value, part);
        else
            outcome = kept ? read_kept_file(worker, fd, &status, value, kept)
                           : read_file(worker, fd, &status, value);
    }
    close(fd);
    return outcome;
}

int64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

void free_worker(struct worker *worker) {
    struct buffer *buffers[] = {&worker->encoded,  &worker->decoded, &worker->blocks,
                                &worker->shuffled, &worker->index,   &worker->entries};
    free_contexts(worker);
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++) free(buffers[i]->data);
}

/* Take tasks until none is left or the time is up. */
static void *run_tasks(void *argument) {
    struct worker *worker = argument;
    struct zarrfs_read *read = worker->read;
    int64_t task_count = read->value_count * read->parts;
    do {
        int64_t task = __atomic_fetch_add(&read->next, 1, __ATOMIC_RELAXED);
        if (task >= task_count) break;
        int64_t number = task / read->parts, rest = number, value[MAX_NDIM];
        if (__atomic_load_n(&read->unread[number], __ATOMIC_RELAXED)) continue;
        for (int d = read->chain->ndim - 1; d >= 0; d--) {
            value[d] = rest % read->dimensions[d].value_count;
            rest /= read->dimensions[d].value_count;
        }
        if (run_task(worker, number, value, task % read->parts))
            __atomic_store_n(&read->unread[number], 1, __ATOMIC_RELAXED);
    } while (now_ns() < worker->deadline);
    free_worker(worker);
    return NULL;
}

int zarrfs_execute(struct zarrfs_read *read) {
    struct worker workers[MAX_THREADS];
    pthread_t threads[MAX_THREADS];
    int count = read->threads < 1 ? 1 : read->threads > MAX_THREADS ? MAX_THREADS : read->threads, started = 0;
    int64_t deadline = now_ns() + read->budget_ns;
    for (int i = 0; i < count; i++) workers[i] = (struct worker){.read = read, .deadline = deadline};
    if (count > 1) {
        /* Signals are delivered to the threads of the interpreter only. */
        sigset_t all, before;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        while (started < count - 1 && !pthread_create(&threads[started], NULL, run_tasks, &workers[started + 1]))
            started++;
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    run_tasks(&workers[0]);
    while (started) pthread_join(threads[--started], NULL);
    return read->next < read->value_count * read->parts;
}

/* Execution of a read: names, files, and the threads that take tasks from a counter. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "native.h"


int zarrfs_native_version(void) { return ZARRFS_NATIVE_VERSION; }

void zarrfs_structure_sizes(int64_t sizes[5]) {
    sizes[0] = sizeof(struct zarrfs_read);
    sizes[1] = sizeof(struct zarrfs_chain);
    sizes[2] = sizeof(struct zarrfs_shard);
    sizes[3] = sizeof(struct zarrfs_dimension);
    sizes[4] = sizeof(struct zarrfs_functions);
}

unsigned char *reserve(struct buffer *buffer, size_t size) {
    if (size > buffer->capacity || !buffer->data) {
        free(buffer->data);
        buffer->data = malloc(size ? size : 1);
        buffer->capacity = buffer->data ? size : 0;
    }
    return buffer->data;
}

/* -- files ------------------------------------------------------------------------------------------------------- */

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

int is_unchanged(int fd, const struct stat *before) {
    struct stat now;
    return !fstat(fd, &now) && now.st_mtim.tv_sec == before->st_mtim.tv_sec &&
           now.st_mtim.tv_nsec == before->st_mtim.tv_nsec && now.st_size == before->st_size;
}

/* -- tasks ------------------------------------------------------------------------------------------------------- */

void entry_box(const struct zarrfs_read *read, const int64_t *entries, struct box *box) {
    box->out = read->out;
    for (int d = 0; d < read->chain->ndim; d++) {
        const struct zarrfs_dimension *dimension = &read->dimensions[d];
        box->start[d] = dimension->start[entries[d]];
        box->length[d] = dimension->length[entries[d]];
        box->step[d] = dimension->step;
        box->out += dimension->target[entries[d]] * read->out_strides[d];
    }
}

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

/* -- checks ------------------------------------------------------------------------------------------------------ */

static int check_chain(const struct zarrfs_chain *chain) {
    int64_t nbytes = chain->itemsize, seen = 0;
    if (chain->ndim < 1 || chain->ndim > MAX_NDIM || chain->step_count < 0 || chain->step_count > MAX_STEPS ||
        chain->itemsize < 1 || chain->max_encoded < 0)
        return -1;
    if (chain->element != ELEMENT_COPY && chain->element != ELEMENT_BOOL && chain->element != ELEMENT_SWAP2 &&
        chain->element != ELEMENT_SWAP4 && chain->element != ELEMENT_SWAP8)
        return -1;
    if (chain->element > 1 && chain->itemsize % chain->element) return -1;
    if (chain->element == ELEMENT_BOOL && chain->itemsize != 1) return -1;
    int compressors = 0;
    for (int i = 0; i < chain->step_count; i++) compressors += chain->steps[i] != STEP_CRC32C;
    if (compressors > 1) return -1;
    for (int d = 0; d < chain->ndim; d++) {
        if (chain->shape[d] < 1 || chain->axes[d] < 0 || chain->axes[d] >= chain->ndim) return -1;
        if (chain->n5 && (chain->n5_axes[d] < 0 || chain->n5_axes[d] >= chain->ndim)) return -1;
        if (__builtin_mul_overflow(nbytes, chain->shape[d], &nbytes)) return -1;
        seen |= (int64_t)1 << chain->axes[d];
    }
    return nbytes == chain->nbytes && seen == ((int64_t)1 << chain->ndim) - 1 ? 0 : -1;
}

static int check_dimension(const struct zarrfs_read *read, int d) {
    const struct zarrfs_dimension *dimension = &read->dimensions[d];
    if (dimension->value_count < 1 || dimension->step < 1 || dimension->first[0] != 0 ||
        dimension->first[dimension->value_count] != dimension->entry_count)
        return -1;
    for (int64_t i = 0; i < dimension->entry_count; i++) {
        int64_t start = dimension->start[i], length = dimension->length[i], target = dimension->target[i], last;
        if (start < 0 || length < 1 || target < 0 || dimension->chunk[i] < 0) return -1;
        if (__builtin_mul_overflow(length - 1, dimension->step, &last) ||
            __builtin_add_overflow(last, start, &last) || last >= read->chain->shape[d])
            return -1;
        if (target > read->out_shape[d] || length > read->out_shape[d] - target) return -1;
        if (i && target != dimension->target[i - 1] + dimension->length[i - 1]) return -1;
    }
    for (int64_t k = 0; k < dimension->value_count; k++) {
        int64_t low = dimension->first[k], high = dimension->first[k + 1], begin;
        if (dimension->value[k] < 0 || low >= high || high > dimension->entry_count) return -1;
        if (!read->shard->present) {
            if (high - low != 1) return -1;
            continue;
        }
        if (__builtin_mul_overflow(dimension->value[k], read->shard->grid[d], &begin)) return -1;
        for (int64_t i = low; i < high; i++)
            if (dimension->chunk[i] < begin || dimension->chunk[i] - begin >= read->shard->grid[d]) return -1;
    }
    return 0;
}

int zarrfs_check(const struct zarrfs_read *read) {
    int64_t values = 1, cells = 16, tasks;
    if (check_chain(read->chain) || read->parts < 1 || read->next < 0) return -1;
    if (read->kept && (!read->stamps || read->shard->present)) return -1;
    if (read->parts > 1 && (!read->stamps || !read->shard->present)) return -1;
    if (read->separator != '/' && read->separator != '.') return -1;
    for (int d = 0; d < read->chain->ndim; d++) {
        if (read->shard->present && (read->shard->grid[d] < 1 ||
                                     __builtin_mul_overflow(cells, read->shard->grid[d], &cells)))
            return -1;
        if (check_dimension(read, d)) return -1;
        if (__builtin_mul_overflow(values, read->dimensions[d].value_count, &values)) return -1;
    }
    if (read->shard->present && read->shard->index_nbytes != cells + (read->shard->index_has_checksum ? 4 : 0))
        return -1;
    return values == read->value_count && !__builtin_mul_overflow(values, read->parts, &tasks) ? 0 : -1;
}

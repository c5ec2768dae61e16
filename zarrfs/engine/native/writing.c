/* Execution of a write: chunks, and the threads that take tasks from a counter. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "writing.h"

void zarrfs_write_structure_sizes(int64_t sizes[3]) {
    sizes[0] = sizeof(struct zarrfs_write);
    sizes[1] = sizeof(struct zarrfs_encoders);
    sizes[2] = sizeof(struct zarrfs_step_options);
}

/* -- chunks ------------------------------------------------------------------------------------------------------ */

int covers_chunk(const struct zarrfs_read *read, const struct box *box) { return !is_partial(read, box); }

int is_whole(const struct zarrfs_write *write, const int64_t *value) {
    const struct zarrfs_read *read = &write->read;
    for (int d = 0; d < read->chain->ndim; d++) {
        const struct zarrfs_dimension *dimension = &read->dimensions[d];
        int64_t length = read->chain->shape[d] * (read->shard->present ? read->shard->grid[d] : 1);
        int64_t rest = write->shape[d] - dimension->value[value[d]] * length;
        int64_t low = dimension->first[value[d]], high = dimension->first[value[d] + 1];
        int64_t count = dimension->target[high - 1] + dimension->length[high - 1] - dimension->target[low];
        if (count != (rest < length ? rest : length)) return 0;
    }
    return 1;
}

int is_deleted(const struct zarrfs_write *write, const unsigned char *data) {
    size_t itemsize = (size_t)write->read.chain->itemsize, nbytes = (size_t)write->read.chain->nbytes;
    if (!write->delete_filled || memcmp(data, write->stored_fill, itemsize)) return 0;
    return !memcmp(data, data + itemsize, nbytes - itemsize);
}

/* The whole chunk in the memory of the writer. */
static void whole_box(struct writer *writer, struct box *box) {
    const struct zarrfs_chain *chain = writer->write->read.chain;
    for (int d = 0; d < chain->ndim; d++) {
        box->start[d] = 0;
        box->step[d] = 1;
        box->length[d] = chain->shape[d];
    }
    box->out = writer->chunk.data;
}

int assemble_chunk(struct writer *writer, const struct box *box, int covered, const struct source *old,
                   const unsigned char **data) {
    const struct zarrfs_read *read = &writer->write->read;
    if (covered && is_direct(read, box)) {
        *data = box->out;
        return 0;
    }
    unsigned char *chunk = reserve(&writer->chunk, (size_t)read->chain->nbytes);
    if (!chunk) return -1;
    if (!covered) {
        struct box all;
        whole_box(writer, &all);
        if (!old)
            fill_box(&writer->stored, &all);
        else if (read_chunk(&writer->reader, old, &all))
            return -1;
    }
    *data = chunk;
    for (int d = 0; d < read->chain->ndim; d++)
        if (!box->length[d]) return 0;
    store_box(read, box, chunk, writer->strides);
    return 0;
}

/* The header of an N5 block in the mode "default", in the shape of the chunk. Return its size. */
static int64_t make_n5_header(const struct zarrfs_chain *chain, unsigned char *header) {
    unsigned char *position = header;
    uint32_t words[MAX_NDIM + 1] = {(uint32_t)chain->ndim};
    for (int i = 0; i < chain->ndim; i++) words[i + 1] = (uint32_t)chain->shape[chain->n5_axes[i]];
    for (int i = 0; i <= chain->ndim; i++)
        for (int shift = 24; shift >= 0; shift -= 8) *position++ = (unsigned char)(words[i] >> shift);
    return position - header;
}

static int store_chunk(struct writer *writer, char *name, int64_t number, const unsigned char *data) {
    const struct zarrfs_write *write = writer->write;
    const struct zarrfs_chain *chain = write->read.chain;
    const unsigned char *encoded;
    int64_t size;
    struct value_file file;
    if (encode_steps(&writer->encoder, write, data, chain->nbytes, &encoded, &size)) return -1;
    if (begin_file(writer, name, number, &file)) return -1;
    unsigned char header[4 * (MAX_NDIM + 1)];
    int64_t header_nbytes = chain->n5 ? make_n5_header(chain, header) : 0;
    if ((header_nbytes && write_file_range(&file, header, header_nbytes, 0)) ||
        write_file_range(&file, encoded, size, header_nbytes)) {
        abandon_file(&file);
        return -1;
    }
    return commit_file(writer, &file);
}

/* Write one chunk: the value is a file. */
static int write_chunk(struct writer *writer, int64_t number, const int64_t *value) {
    const struct zarrfs_write *write = writer->write;
    const struct zarrfs_read *read = &write->read;
    int64_t entries[MAX_NDIM];
    char name[MAX_NAME], copy[MAX_NAME];
    struct box box;
    const unsigned char *data;
    if (format_name(read, value, name)) return -1;
    for (int d = 0; d < read->chain->ndim; d++) entries[d] = read->dimensions[d].first[value[d]];
    entry_box(read, entries, &box);
    int covered = covers_chunk(read, &box), fd = -1;
    struct source old = {NULL, -1, 0, 0, NULL};
    struct stat status;
    if (!covered && !is_whole(write, value)) {
        memcpy(copy, name, sizeof copy);
        do fd = open_below(read->directory, copy, READ_FLAGS);
        while (fd < 0 && errno == EINTR);
        if (fd < 0 && errno != ENOENT) return -1;
        if (fd >= 0 && (fstat(fd, &status) || !S_ISREG(status.st_mode))) {
            close(fd);
            return -1;
        }
        old.fd = fd;
        old.size = fd >= 0 ? status.st_size : 0;
    }
    int failed = assemble_chunk(writer, &box, covered, fd >= 0 ? &old : NULL, &data);
    if (fd >= 0) close(fd);
    if (failed) return -1;
    return is_deleted(write, data) ? delete_value(writer, name) : store_chunk(writer, name, number, data);
}

/* -- tasks ------------------------------------------------------------------------------------------------------- */

static void start_writer(struct writer *writer, struct zarrfs_write *write) {
    memset(writer, 0, sizeof *writer);
    writer->write = write;
    writer->parent.fd = -1;
    writer->encoder.functions = write->encoders;
    writer->stored_chain = *write->read.chain;
    if (writer->stored_chain.element != ELEMENT_BOOL) writer->stored_chain.element = ELEMENT_COPY;
    writer->stored = write->read;
    writer->stored.chain = &writer->stored_chain;
    writer->stored.fill = write->stored_fill;
    chunk_strides(write->read.chain, write->read.chain->shape, writer->strides);
    memcpy(writer->stored.out_strides, writer->strides, sizeof writer->strides);
    writer->reader.read = &writer->stored;
}

static void end_writer(struct writer *writer) {
    close_parent(writer);
    free_encoder(&writer->encoder);
    free_worker(&writer->reader);
    free(writer->chunk.data);
    free_output(&writer->output);
}

/* Take the next task. Return -1 if none is to be begun now. The parts of a value that was begun are all taken. */
static int64_t take_task(const struct writer *writer) {
    struct zarrfs_write *write = writer->write;
    int64_t task = __atomic_load_n(&write->next, __ATOMIC_RELAXED);
    for (;;) {
        if (task >= write->limit) return -1;
        /* Each call begins at least one value, whatever the time is. */
        if (task % write->parts == 0 && (__atomic_load_n(&write->failed, __ATOMIC_RELAXED) ||
                                         (task != writer->first_task && now_ns() >= writer->deadline)))
            return -1;
        if (__atomic_compare_exchange_n(&write->next, &task, task + 1, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            return task;
    }
}

static void *write_tasks(void *argument) {
    struct writer *writer = argument;
    struct zarrfs_write *write = writer->write;
    int64_t task, value[MAX_NDIM];
    while ((task = take_task(writer)) >= 0) {
        int64_t number = task / write->parts, rest = number;
        for (int d = write->read.chain->ndim - 1; d >= 0; d--) {
            value[d] = rest % write->read.dimensions[d].value_count;
            rest /= write->read.dimensions[d].value_count;
        }
        /* Within a call only the last part of a value sets its flag. */
        if (__atomic_load_n(&write->read.unread[number], __ATOMIC_RELAXED)) continue;
        if (write->read.shard->present ? write_shard(writer, number, value, task % write->parts)
                                       : write_chunk(writer, number, value)) {
            __atomic_store_n(&write->read.unread[number], 1, __ATOMIC_RELAXED);
            __atomic_store_n(&write->failed, 1, __ATOMIC_RELAXED);
        }
    }
    return NULL;
}

/* Return the writers of all threads, or NULL if memory is exhausted. Their buffers are used by all calls of a write:
 * memory that is allocated again has to be mapped again. */
static struct writer *get_writers(struct zarrfs_write *write, int count) {
    if (!write->writers && (write->writers = malloc((size_t)count * sizeof *write->writers))) {
        write->writer_count = count;
        for (int i = 0; i < count; i++) start_writer(&write->writers[i], write);
    }
    return write->writers;
}

void zarrfs_end_write(struct zarrfs_write *write) {
    for (int i = 0; write->writers && i < write->writer_count; i++) end_writer(&write->writers[i]);
    free(write->writers);
    write->writers = NULL;
}

int zarrfs_execute_write(struct zarrfs_write *write) {
    pthread_t threads[MAX_THREADS];
    int started = 0, count = write->read.threads;
    if (write->writers) count = write->writer_count;
    count = count < 1 ? 1 : count > MAX_THREADS ? MAX_THREADS : count;
    int64_t first = write->next / write->parts, end = write->limit / write->parts;
    struct writer *writers = get_writers(write, count);
    struct jobs *jobs = write->read.shard->present && end > first ? create_jobs(write, first, end - first) : NULL;
    write->failed = 0;
    if (!writers || (write->read.shard->present && end > first && !jobs)) {
        /* Memory is exhausted. */
        for (int64_t number = first; number < end; number++) write->read.unread[number] = 1;
        write->next = write->limit;
        free_jobs(jobs);
        return 0;
    }
    int64_t deadline = now_ns() + write->read.budget_ns;
    for (int i = 0; i < count; i++) {
        writers[i].jobs = jobs;
        writers[i].deadline = deadline;
        writers[i].first_task = write->next;
    }
    if (count > 1) {
        /* Signals are delivered to the threads of the interpreter only. */
        sigset_t all, before;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        while (started < count - 1 && !pthread_create(&threads[started], NULL, write_tasks, &writers[started + 1]))
            started++;
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    write_tasks(&writers[0]);
    while (started) pthread_join(threads[--started], NULL);
    /* The directories may be replaced before the next call. */
    for (int i = 0; i < count; i++) close_parent(&writers[i]);
    free_jobs(jobs);
    return write->next < write->limit;
}

int zarrfs_check_write(const struct zarrfs_write *write) {
    int64_t tasks;
    if (zarrfs_check(&write->read) || write->read.kept || write->read.parts != 1) return -1;
    if (write->parts < 1 || (write->parts > 1 && !write->read.shard->present)) return -1;
    if (__builtin_mul_overflow(write->read.value_count, write->parts, &tasks)) return -1;
    if (write->next < 0 || write->limit > tasks || write->limit % write->parts || write->next % write->parts) return -1;
    for (int d = 0; d < write->read.chain->ndim; d++) {
        const struct zarrfs_dimension *dimension = &write->read.dimensions[d];
        int64_t last = dimension->entry_count - 1, end;
        /* Elements outside of the array are not written. */
        if (__builtin_mul_overflow(dimension->chunk[last], write->read.chain->shape[d], &end) ||
            end >= write->shape[d])
            return -1;
    }
    return 0;
}

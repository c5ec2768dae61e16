/* Execution of a write: the threads that take tasks from a counter. */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "writing.h"

void zarrfs_write_structure_sizes(int64_t sizes[3]) {
    sizes[0] = sizeof(struct zarrfs_write);
    sizes[1] = sizeof(struct zarrfs_encoders);
    sizes[2] = sizeof(struct zarrfs_step_options);
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

/* Writing of shards: inner chunks in C order and the index, as in codecs/sharding/encoding.py.
 *
 * A shard is one task, whose output is written to the temporary file as it grows, or several tasks. Then each task
 * encodes a range of the inner chunks to memory, and the last one writes the file.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "writing.h"

#define MISSING UINT64_MAX
#define MAX_OUTPUT_NBYTES (1 << 20)

/* One shard. Each task sets its own entries of `sizes`; the rest is changed under the lock, or by one task only. */
struct job {
    int is_prepared, has_failed;
    int64_t remaining;        /* parts that are not complete */
    uint64_t *sizes;          /* of the new inner chunks; MISSING for those that are not stored */
    unsigned char *old_index; /* NULL if there is no old shard, or it is not needed */
    int old_fd; /* locked; -1 if there is no old shard */
    struct stat old_status;
    struct output *outputs; /* one per part; NULL if there is one part */
};

struct jobs {
    pthread_mutex_t lock;
    int64_t first, parts;
    struct job entries[];
};

static uint64_t load_le64(const unsigned char *p) {
    return (uint64_t)load_le32(p) | (uint64_t)load_le32(p + 4) << 32;
}

static void store_le64(unsigned char *p, uint64_t value) {
    for (int i = 0; i < 8; i++) p[i] = (unsigned char)(value >> 8 * i);
}

static int64_t cell_count(const struct zarrfs_read *read) {
    int64_t count = 1;
    for (int d = 0; d < read->chain->ndim; d++) count *= read->shard->grid[d];
    return count;
}

/* -- jobs -------------------------------------------------------------------------------------------------------- */

struct jobs *create_jobs(const struct zarrfs_write *write, int64_t first, int64_t count) {
    size_t nbytes;
    if (__builtin_mul_overflow((size_t)count, sizeof(struct job), &nbytes)) return NULL;
    struct jobs *jobs = calloc(1, sizeof *jobs + nbytes);
    if (!jobs) return NULL;
    pthread_mutex_init(&jobs->lock, NULL);
    jobs->first = first;
    jobs->parts = write->parts;
    for (int64_t i = 0; i < count; i++) {
        jobs->entries[i].remaining = write->parts;
        jobs->entries[i].old_fd = -1;
    }
    return jobs;
}

void free_jobs(struct jobs *jobs) {
    if (!jobs) return;
    pthread_mutex_destroy(&jobs->lock);
    free(jobs);
}

static void clear_job(struct jobs *jobs, struct job *job) {
    unlock_value(&job->old_fd);
    free(job->sizes);
    free(job->old_index);
    for (int64_t part = 0; job->outputs && part < jobs->parts; part++) free_output(&job->outputs[part]);
    free(job->outputs);
    job->sizes = NULL;
    job->old_index = NULL;
    job->outputs = NULL;
}

/* Read the index of the old shard. All its entries must be valid: inner chunks that do not change are copied. */
static int read_old_index(const struct zarrfs_write *write, struct job *job) {
    const struct zarrfs_shard *shard = write->read.shard;
    int64_t size = job->old_status.st_size, nbytes = shard->index_nbytes;
    if (size > write->max_stored || size < nbytes) return -1;
    struct source file = {NULL, job->old_fd, 0, size, NULL};
    unsigned char *index = job->old_index = malloc((size_t)nbytes);
    if (!index || fetch(&file, shard->index_at_start ? 0 : size - nbytes, nbytes, index)) return -1;
    if (shard->index_has_checksum && zarrfs_crc32c(index, (size_t)nbytes - 4) != load_le32(index + nbytes - 4))
        return -1;
    for (int64_t cell = 0, cells = cell_count(&write->read); cell < cells; cell++) {
        uint64_t offset = load_le64(index + 16 * cell), length = load_le64(index + 16 * cell + 8);
        if (offset == MISSING && length == MISSING) continue;
        if (offset > (uint64_t)size || length > (uint64_t)size - offset) return -1;
    }
    return 0;
}

/* Whether all elements of a shard are written. */
static int covers_shard(const struct zarrfs_read *read, const int64_t *value) {
    for (int d = 0; d < read->chain->ndim; d++) {
        const struct zarrfs_dimension *dimension = &read->dimensions[d];
        int64_t low = dimension->first[value[d]], high = dimension->first[value[d] + 1];
        int64_t count = dimension->target[high - 1] + dimension->length[high - 1] - dimension->target[low];
        if (count != read->chain->shape[d] * read->shard->grid[d]) return 0;
    }
    return 1;
}

static int prepare_job(struct writer *writer, struct job *job, const int64_t *value, const char *name) {
    const struct zarrfs_write *write = writer->write;
    int64_t cells = cell_count(&write->read);
    job->is_prepared = 1;
    job->sizes = malloc((size_t)cells * sizeof *job->sizes);
    if (!job->sizes) return -1;
    if (write->parts > 1 && !(job->outputs = calloc((size_t)write->parts, sizeof *job->outputs))) return -1;
    if (lock_value(writer, name, &job->old_fd, &job->old_status)) return -1;
    return job->old_fd < 0 || covers_shard(&write->read, value) ? 0 : read_old_index(write, job);
}

/* -- output ------------------------------------------------------------------------------------------------------ */

/* Where the bytes of a shard go: to memory, and from there to the file if there is one. */
struct sink {
    struct output *output;
    struct value_file file; /* used if `streams` */
    int streams, old_fd;
    int64_t written; /* bytes of the file */
    char *name;
    int64_t number;
};

static int flush(struct writer *writer, struct sink *sink) {
    if (sink->file.fd < 0 && begin_file(writer, sink->name, sink->number, &sink->file)) return -1;
    return write_output(sink->output, sink->old_fd, &sink->file, &sink->written);
}

static int emit(struct writer *writer, struct sink *sink, const unsigned char *data, int64_t size) {
    if (add_bytes(sink->output, data, size)) return -1;
    return sink->streams && sink->output->size >= MAX_OUTPUT_NBYTES ? flush(writer, sink) : 0;
}

/* -- inner chunks ------------------------------------------------------------------------------------------------ */

/* Find the entry of inner chunk number `chunk` among entries `low` to `high` of a dimension; -1 if it is not selected. */
static int64_t find_entry(const struct zarrfs_dimension *dimension, int64_t low, int64_t high, int64_t chunk) {
    int64_t guess = low + chunk - dimension->chunk[low];
    if (guess >= low && guess < high && dimension->chunk[guess] == chunk) return guess;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (dimension->chunk[middle] == chunk) return middle;
        if (dimension->chunk[middle] < chunk)
            low = middle + 1;
        else
            high = middle;
    }
    return -1;
}

/* Set the box of an inner chunk. Return 1 if it is selected, 0 if not. */
static int inner_box(const struct zarrfs_read *read, const int64_t *value, int64_t cell, struct box *box) {
    int64_t entries[MAX_NDIM];
    for (int d = read->chain->ndim - 1; d >= 0; d--) {
        const struct zarrfs_dimension *dimension = &read->dimensions[d];
        int64_t chunk = dimension->value[value[d]] * read->shard->grid[d] + cell % read->shard->grid[d];
        cell /= read->shard->grid[d];
        entries[d] = find_entry(dimension, dimension->first[value[d]], dimension->first[value[d] + 1], chunk);
        if (entries[d] < 0) return 0;
    }
    entry_box(read, entries, box);
    return 1;
}

/* Encode inner chunks `low` to `high` (exclusive). */
static int encode_inner_chunks(struct writer *writer, struct job *job, const int64_t *value, int64_t low, int64_t high,
                               struct sink *sink) {
    const struct zarrfs_write *write = writer->write;
    const struct zarrfs_read *read = &write->read;
    for (int64_t cell = low; cell < high; cell++) {
        struct box box;
        uint64_t offset = MISSING, nbytes = MISSING;
        if (job->old_index) {
            offset = load_le64(job->old_index + 16 * cell);
            nbytes = load_le64(job->old_index + 16 * cell + 8);
        }
        int is_stored = offset != MISSING || nbytes != MISSING, is_selected = inner_box(read, value, cell, &box);
        if (!is_selected) {
            job->sizes[cell] = is_stored ? nbytes : MISSING;
            if (!is_stored) continue;
            if (add_old_bytes(sink->output, (int64_t)offset, (int64_t)nbytes)) return -1;
            continue;
        }
        struct source old = {NULL, job->old_fd, (int64_t)offset, (int64_t)nbytes, NULL};
        int covered = covers_chunk(read, &box);
        const unsigned char *data, *encoded;
        int64_t size;
        if (assemble_chunk(writer, &box, covered, is_stored ? &old : NULL, &data)) return -1;
        if (is_deleted(write, data)) {
            job->sizes[cell] = MISSING;
            continue;
        }
        if (encode_steps(&writer->encoder, write, data, read->chain->nbytes, &encoded, &size)) return -1;
        job->sizes[cell] = (uint64_t)size;
        if (emit(writer, sink, encoded, size)) return -1;
    }
    return 0;
}

/* Return the encoded index, which the caller frees, or NULL. `count` is set to the number of stored inner chunks. */
static unsigned char *encode_index(const struct zarrfs_read *read, const struct job *job, int64_t *count) {
    const struct zarrfs_shard *shard = read->shard;
    unsigned char *index = malloc((size_t)shard->index_nbytes);
    uint64_t offset = shard->index_at_start ? (uint64_t)shard->index_nbytes : 0;
    *count = 0;
    for (int64_t cell = 0, cells = cell_count(read); index && cell < cells; cell++) {
        int is_stored = job->sizes[cell] != MISSING;
        store_le64(index + 16 * cell, is_stored ? offset : MISSING);
        store_le64(index + 16 * cell + 8, job->sizes[cell]);
        if (is_stored) offset += job->sizes[cell];
        *count += is_stored;
    }
    if (index && shard->index_has_checksum) {
        unsigned char *end = index + shard->index_nbytes - 4;
        uint32_t checksum = zarrfs_crc32c(index, (size_t)shard->index_nbytes - 4);
        for (int i = 0; i < 4; i++) end[i] = (unsigned char)(checksum >> 8 * i);
    }
    return index;
}

/* Whether the old shard, of which bytes were read, has changed. */
static int is_changed(const struct job *job) {
    return job->old_index && !is_unchanged(job->old_fd, &job->old_status);
}

/* Write what is left of a shard whose inner chunks are encoded, and rename the file. */
static int complete_shard(struct writer *writer, struct job *job, struct sink *sink, char *name) {
    const struct zarrfs_write *write = writer->write;
    const struct zarrfs_shard *shard = write->read.shard;
    int64_t count;
    unsigned char *index = encode_index(&write->read, job, &count);
    int failed = !index;
    if (!failed && !count && write->delete_filled) {
        free(index);
        if (is_changed(job)) return -1;
        abandon_file(&sink->file);
        return job->old_fd < 0 ? 0 : delete_value(writer, name);
    }
    for (int64_t part = 0; !failed && job->outputs && part < write->parts; part++) {
        sink->output = &job->outputs[part];
        failed = flush(writer, sink);
    }
    if (!failed && !shard->index_at_start) failed = emit(writer, sink, index, shard->index_nbytes);
    if (!failed) failed = flush(writer, sink);
    if (!failed && shard->index_at_start) failed = write_file_range(&sink->file, index, shard->index_nbytes, 0);
    free(index);
    return failed || is_changed(job) ? -1 : commit_file(writer, &sink->file, job->old_fd < 0);
}

int write_shard(struct writer *writer, int64_t number, const int64_t *value, int64_t part) {
    const struct zarrfs_write *write = writer->write;
    struct jobs *jobs = writer->jobs;
    struct job *job = &jobs->entries[number - jobs->first];
    struct output *streamed = &writer->output;
    char name[MAX_NAME];
    int failed = format_name(&write->read, value, name);
    pthread_mutex_lock(&jobs->lock);
    if (!failed && !job->is_prepared && prepare_job(writer, job, value, name)) job->has_failed = 1;
    failed |= job->has_failed;
    pthread_mutex_unlock(&jobs->lock);
    struct sink sink = {.output = job->outputs ? &job->outputs[part] : streamed,
                        .file = {.fd = -1},
                        .streams = !job->outputs,
                        .old_fd = job->old_fd,
                        .written = write->read.shard->index_at_start ? write->read.shard->index_nbytes : 0,
                        .name = name,
                        .number = number};
    int64_t cells = cell_count(&write->read);
    if (!failed)
        failed = encode_inner_chunks(writer, job, value, cells * part / write->parts,
                                     cells * (part + 1) / write->parts, &sink);
    pthread_mutex_lock(&jobs->lock);
    if (failed) job->has_failed = 1;
    failed = job->has_failed;
    int is_last = --job->remaining == 0;
    pthread_mutex_unlock(&jobs->lock);
    if (is_last && !failed) failed = complete_shard(writer, job, &sink, name);
    if (is_last && failed) abandon_file(&sink.file);
    streamed->size = streamed->count = 0;
    if (is_last) clear_job(jobs, job);
    return is_last && failed ? -1 : 0;
}

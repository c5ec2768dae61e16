/* Writing of chunks: the stored form of a chunk, and the file of a value that is one chunk. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "writing.h"

int covers_chunk(const struct zarrfs_read *read, const struct box *box) { return !is_partial(read, box); }

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

static int store_chunk(struct writer *writer, char *name, int64_t number, const unsigned char *data, int is_new) {
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
    return commit_file(writer, &file, is_new);
}

int write_chunk(struct writer *writer, int64_t number, const int64_t *value) {
    const struct zarrfs_write *write = writer->write;
    const struct zarrfs_read *read = &write->read;
    int64_t entries[MAX_NDIM];
    char name[MAX_NAME];
    struct box box;
    const unsigned char *data;
    if (format_name(read, value, name)) return -1;
    for (int d = 0; d < read->chain->ndim; d++) entries[d] = read->dimensions[d].first[value[d]];
    entry_box(read, entries, &box);
    int covered = covers_chunk(read, &box), fd;
    struct stat status;
    if (lock_value(writer, name, &fd, &status)) return -1;
    struct source old = {NULL, fd, 0, fd >= 0 ? status.st_size : 0, NULL};
    int failed = assemble_chunk(writer, &box, covered, fd >= 0 ? &old : NULL, &data);
    if (!failed && !is_deleted(write, data))
        failed = store_chunk(writer, name, number, data, fd < 0);
    else if (!failed && fd >= 0)
        failed = delete_value(writer, name);
    unlock_value(&fd);
    return failed;
}

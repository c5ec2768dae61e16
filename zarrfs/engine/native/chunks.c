/* Reading one chunk: the whole encoded value, or only the parts that the requested elements need. */
#include <string.h>

#include "native.h"

/* The number of bytes from the first to the last element of a box. */
static int64_t box_span(const struct zarrfs_chain *chain, const struct box *box, const int64_t *strides) {
    int64_t span = chain->itemsize;
    for (int d = 0; d < chain->ndim; d++) span += (box->length[d] - 1) * box->step[d] * strides[d];
    return span;
}

static int64_t box_end(const struct zarrfs_read *read, const struct box *box, const int64_t *strides) {
    int64_t end = box_span(read->chain, box, strides);
    for (int d = 0; d < read->chain->ndim; d++) end += box->start[d] * strides[d];
    return end;
}

/* Read the elements of an uncompressed chunk. */
static int read_pieces(struct worker *worker, const struct source *source, const struct box *box,
                       const int64_t *strides) {
    const struct zarrfs_read *read = worker->read;
    const struct zarrfs_chain *chain = read->chain;
    int64_t span = box_span(chain, box, strides), outer = 0, d = 0;
    while (outer < chain->ndim && box->length[chain->axes[outer]] == 1) outer++;
    struct box piece = *box;
    if (span > read->limits->max_piece && outer < chain->ndim) {
        d = chain->axes[outer];
        int64_t stride = strides[d] * box->step[d], count = read->limits->max_piece / stride;
        if (count >= box->length[d]) count = box->length[d] - 1;
        if (count < 1) count = 1;
        for (int64_t low = 0; low < box->length[d]; low += count) {
            piece.start[d] = box->start[d] + low * box->step[d];
            piece.length[d] = low + count < box->length[d] ? count : box->length[d] - low;
            piece.out = box->out + low * read->out_strides[d];
            if (read_pieces(worker, source, &piece, strides)) return -1;
        }
        return 0;
    }
    struct ranges ranges;
    find_ranges(chain, box, strides, read->limits->gap, &ranges);
    unsigned char *target = reserve(&worker->decoded, (size_t)span);
    if (!target || fetch_ranges(source, 0, &ranges, ranges.first, target)) return -1;
    for (d = 0; d < chain->ndim; d++) piece.start[d] = 0;
    copy_box(read, &piece, target, strides);
    return 0;
}

/* -- whole chunks ------------------------------------------------------------------------------------------------ */

/* Parse the header of an N5 block: its shape, per dimension of the array, and the size of the header. Blocks of
 * another mode than "default", and those that do not contain the whole box, are left to the caller. */
static int parse_n5_header(const struct zarrfs_chain *chain, const unsigned char *data, int64_t size,
                           const struct box *box, int64_t *shape, int64_t *header_nbytes) {
    int ndim = chain->ndim;
    *header_nbytes = 4 + 4 * (int64_t)ndim;
    if (size < *header_nbytes || data[0] || data[1] || data[2] || data[3] != ndim) return -1;
    for (int i = 0; i < ndim; i++) {
        int64_t d = chain->n5_axes[i], length = load_be32(data + 4 + 4 * i);
        if (length < 1 || length > chain->shape[d]) return -1;
        if (box->start[d] + (box->length[d] - 1) * box->step[d] >= length) return -1;
        shape[d] = length;
    }
    return 0;
}

/* Return the size that a step decodes to: the elements and the checksums that later steps remove. */
static int64_t step_nbytes(const struct zarrfs_chain *chain, int step, int64_t nbytes) {
    for (int later = step + 1; later < chain->step_count; later++)
        if (chain->steps[later] == STEP_CRC32C) nbytes += 4;
    return nbytes;
}

static int has_compressor(const struct zarrfs_chain *chain, int first) {
    for (int i = first; i < chain->step_count; i++)
        if (chain->steps[i] != STEP_CRC32C) return 1;
    return 0;
}

/* Decode an encoded chunk in memory and copy the box. */
static int decode_chunk(struct worker *worker, const unsigned char *data, int64_t size, const struct box *box) {
    const struct zarrfs_read *read = worker->read;
    const struct zarrfs_chain *chain = read->chain;
    int64_t shape[MAX_NDIM], strides[MAX_NDIM], nbytes = chain->itemsize;
    memcpy(shape, chain->shape, sizeof shape);
    if (chain->n5) {
        int64_t header_nbytes;
        if (parse_n5_header(chain, data, size, box, shape, &header_nbytes)) return -1;
        data += header_nbytes;
        size -= header_nbytes;
    }
    for (int d = 0; d < chain->ndim; d++) nbytes *= shape[d]; /* at most chain->nbytes, which was checked */
    int is_output = 0, partial = is_partial(read, box);
    chunk_strides(chain, shape, strides);
    for (int i = 0; i < chain->step_count; i++) {
        int64_t expected = step_nbytes(chain, i, nbytes);
        if (chain->steps[i] == STEP_CRC32C) {
            if (size < 4 || (!has_compressor(chain, i + 1) && size - 4 != expected)) return -1;
            size -= 4;
            if (zarrfs_crc32c(data, (size_t)size) != load_le32(data + size)) return -1;
            continue;
        }
        int is_last = i + 1 == chain->step_count;
        is_output = is_last && is_direct(read, box);
        if (is_last && partial && chain->steps[i] == STEP_BLOSC &&
            !read_blosc_elements(worker, data, size, expected, box, strides))
            return 0;
        if (is_last && partial && chain->steps[i] == STEP_ZSTD &&
            !decode_zstd_begin(worker, data, size, expected, box_end(read, box, strides))) {
            data = worker->decoded.data;
            size = expected;
            continue;
        }
        unsigned char *target = is_output ? box->out : reserve(&worker->decoded, (size_t)expected);
        if (!target || decode_step(worker, chain->steps[i], data, size, target, expected)) return -1;
        data = target;
        size = expected;
    }
    if (size != nbytes) return -1;
    if (is_output) return 0;
    copy_box(read, box, data, strides);
    return 0;
}

int read_chunk(struct worker *worker, const struct source *source, const struct box *box) {
    const struct zarrfs_chain *chain = worker->read->chain;
    if (source->size > chain->max_encoded) return -1;
    int outcome = read_chunk_partially(worker, source, box);
    if (outcome <= 0) return outcome;
    if (source->memory) return decode_chunk(worker, source->memory, source->size, box);
    if (!chain->step_count && !chain->n5) {
        int64_t strides[MAX_NDIM];
        if (source->size != chain->nbytes) return -1;
        if (is_direct(worker->read, box)) return fetch(source, 0, source->size, box->out);
        chunk_strides(chain, chain->shape, strides);
        return read_pieces(worker, source, box, strides);
    }
    unsigned char *encoded = reserve(&worker->encoded, (size_t)source->size);
    if (!encoded || fetch(source, 0, source->size, encoded)) return -1;
    return decode_chunk(worker, encoded, source->size, box);
}

/* -- parts of chunks --------------------------------------------------------------------------------------------- */

int read_chunk_partially(struct worker *worker, const struct source *source, const struct box *box) {
    const struct zarrfs_read *read = worker->read;
    const struct zarrfs_chain *chain = read->chain;
    int is_blosc = chain->step_count == 1 && chain->steps[0] == STEP_BLOSC;
    if (chain->n5 || (chain->step_count && !is_blosc) || !is_partial(read, box)) return 1;
    if (chain->nbytes < (is_blosc ? read->limits->min_partial_compressed : read->limits->min_partial)) return 1;
    int64_t strides[MAX_NDIM];
    struct ranges ranges;
    chunk_strides(chain, chain->shape, strides);
    find_ranges(chain, box, strides, read->limits->gap, &ranges);
    if (ranges.nbytes > chain->nbytes - chain->nbytes / read->limits->min_rest) return 1;
    if (!is_blosc) {
        if (source->memory) return 1; /* copied from there */
        return source->size == chain->nbytes ? read_pieces(worker, source, box, strides) : -1;
    }
    struct source value;
    int outcome = read_blosc_partially(worker, source, &ranges, box, strides, &value);
    if (outcome > 0 && value.memory) return decode_chunk(worker, value.memory, value.size, box);
    return outcome;
}

/* Reading one chunk: the whole encoded value, or only the parts that the requested elements need. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "native.h"

/* Ranges of decoded bytes that are closer are read as one: a second request costs more. As in bytes.py. */
#define COALESCING_GAP (16 << 10)
/* Smaller chunks are read and decoded whole. */
#define MIN_PARTIAL_NBYTES (16 << 10)
#define MIN_PARTIAL_COMPRESSED_NBYTES (64 << 10)
/* A value of at most this size is read whole, even if only some of its blocks are decoded. */
#define MAX_SMALL_VALUE (48 << 10)

#define BLOSC_HEADER 16
#define BLOSC_MEMCPYED 0x2
#define MAX_BLOCKS 2048

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
    int is_output = 0;
    for (int i = 0; i < chain->step_count; i++) {
        int64_t expected = step_nbytes(chain, i, nbytes);
        if (chain->steps[i] == STEP_CRC32C) {
            if (size < 4 || (!has_compressor(chain, i + 1) && size - 4 != expected)) return -1;
            size -= 4;
            if (zarrfs_crc32c(data, (size_t)size) != load_le32(data + size)) return -1;
            continue;
        }
        is_output = i + 1 == chain->step_count && is_direct(read, box);
        unsigned char *target = is_output ? box->out : reserve(&worker->decoded, (size_t)expected);
        if (!target || decode_step(worker, chain->steps[i], data, size, target, expected)) return -1;
        data = target;
        size = expected;
    }
    if (size != nbytes) return -1;
    if (is_output) return 0;
    chunk_strides(chain, shape, strides);
    copy_box(read, box, data, strides);
    return 0;
}

int read_chunk(struct worker *worker, const struct source *source, const struct box *box) {
    const struct zarrfs_chain *chain = worker->read->chain;
    if (source->size > chain->max_encoded) return -1;
    int outcome = read_chunk_partially(worker, source, box);
    if (outcome <= 0) return outcome;
    if (source->memory) return decode_chunk(worker, source->memory, source->size, box);
    if (!chain->step_count && is_direct(worker->read, box))
        return source->size == chain->nbytes ? fetch(source, 0, source->size, box->out) : -1;
    unsigned char *encoded = reserve(&worker->encoded, (size_t)source->size);
    if (!encoded || fetch(source, 0, source->size, encoded)) return -1;
    return decode_chunk(worker, encoded, source->size, box);
}

/* -- parts of chunks --------------------------------------------------------------------------------------------- */

/* The byte ranges of a box in the decoded chunk: `count` dimensions of ranges, each `span` bytes. */
struct ranges {
    int count;
    int64_t first, span, nbytes;
    int64_t lengths[MAX_NDIM], strides[MAX_NDIM];
};

/* Join runs of elements that are close together, from the fastest dimension outwards. */
static void find_ranges(const struct zarrfs_chain *chain, const struct box *box, const int64_t *strides,
                        struct ranges *ranges) {
    int joined = chain->ndim;
    ranges->first = 0;
    ranges->span = chain->itemsize;
    for (int d = 0; d < chain->ndim; d++) ranges->first += box->start[d] * strides[d];
    while (joined) {
        int64_t d = chain->axes[joined - 1], stride = strides[d] * box->step[d];
        if (box->length[d] != 1 && stride - ranges->span > COALESCING_GAP) break;
        ranges->span += (box->length[d] - 1) * stride;
        joined--;
    }
    ranges->count = joined;
    ranges->nbytes = ranges->span;
    for (int i = 0; i < joined; i++) {
        int64_t d = chain->axes[i];
        ranges->lengths[i] = box->length[d];
        ranges->strides[i] = strides[d] * box->step[d];
        ranges->nbytes *= box->length[d];
    }
}

/* Call `visit` for each range, in ascending order. */
static int for_each_range(const struct ranges *ranges, int (*visit)(void *context, int64_t start, int64_t size),
                          void *context) {
    int64_t index[MAX_NDIM] = {0}, start = ranges->first;
    for (;;) {
        if (visit(context, start, ranges->span)) return -1;
        int i = ranges->count - 1;
        for (; i >= 0; i--) {
            start += ranges->strides[i];
            if (++index[i] < ranges->lengths[i]) break;
            start -= ranges->lengths[i] * ranges->strides[i];
            index[i] = 0;
        }
        if (i < 0) return 0;
    }
}

/* Uncompressed bytes: ranges of the source are fetched to the same place in the buffer. */
struct plain {
    const struct source *source;
    int64_t offset;
    unsigned char *target;
};

static int fetch_range(void *context, int64_t start, int64_t size) {
    struct plain *plain = context;
    return fetch(plain->source, plain->offset + start, size, plain->target + start);
}

/* Blosc blocks: a range marks the blocks that contain it. */
struct marks {
    int64_t blocksize;
    unsigned char needed[MAX_BLOCKS];
};

static int mark_blocks(void *context, int64_t start, int64_t size) {
    struct marks *marks = context;
    for (int64_t block = start / marks->blocksize; block <= (start + size - 1) / marks->blocksize; block++)
        marks->needed[block] = 1;
    return 0;
}

/* The end of an encoded block is the next larger offset. Threads may have stored the blocks in any order. */
static int64_t block_end(const unsigned char *offsets, int64_t count, int64_t start, int64_t cbytes) {
    int64_t end = cbytes;
    for (int64_t i = 0; i < count; i++) {
        int64_t offset = load_le32(offsets + 4 * i);
        if (offset > start && offset < end) end = offset;
    }
    return end;
}

/* Decode blocks `low` to `high` (exclusive) to their place in `decoded`, from a buffer that is assembled of them. */
static int decode_blocks(struct worker *worker, const struct source *source, const unsigned char *head, int64_t low,
                         int64_t high, int64_t count, unsigned char *decoded) {
    int64_t blocksize = load_le32(head + 8), cbytes = load_le32(head + 12), total = load_le32(head + 4);
    const unsigned char *offsets = head + BLOSC_HEADER;
    int64_t position = BLOSC_HEADER + 4 * (high - low);
    int64_t nbytes = (high == count ? total : high * blocksize) - low * blocksize;
    int64_t capacity = position;
    for (int64_t block = low; block < high; block++) {
        int64_t start = load_le32(offsets + 4 * block);
        capacity += block_end(offsets, count, start, cbytes) - start;
    }
    if (capacity > cbytes) return -1; /* blocks overlap */
    unsigned char *run = reserve(&worker->blocks, (size_t)capacity);
    if (!run) return -1;
    int64_t pending = 0, pending_start = 0, pending_position = 0;
    for (int64_t block = low; block < high; block++) {
        int64_t start = load_le32(offsets + 4 * block), size = block_end(offsets, count, start, cbytes) - start;
        uint32_t offset = (uint32_t)position;
        for (int i = 0; i < 4; i++) run[BLOSC_HEADER + 4 * (block - low) + i] = (unsigned char)(offset >> 8 * i);
        if (pending && start == pending_start + pending) {
            pending += size;
        } else {
            if (pending && fetch(source, pending_start, pending, run + pending_position)) return -1;
            pending = size;
            pending_start = start;
            pending_position = position;
        }
        position += size;
    }
    if (pending && fetch(source, pending_start, pending, run + pending_position)) return -1;
    memcpy(run, head, 4);
    int64_t sizes[3] = {nbytes, blocksize < nbytes ? blocksize : nbytes, position};
    for (int field = 0; field < 3; field++)
        for (int i = 0; i < 4; i++) run[4 + 4 * field + i] = (unsigned char)((uint32_t)sizes[field] >> 8 * i);
    return decode_step(worker, STEP_BLOSC, run, position, decoded + low * blocksize, nbytes);
}

/* Read the header and the block offsets of a Blosc buffer, and the blocks of the ranges. */
static int read_blosc_blocks(struct worker *worker, const struct source *source, const struct ranges *ranges) {
    int64_t nbytes = worker->read->chain->nbytes;
    unsigned char head[BLOSC_HEADER + 4 * MAX_BLOCKS];
    struct marks marks;
    int64_t available = source->size < 1024 ? source->size : 1024;
    if (fetch(source, 0, available, head) || check_blosc_header(head, source->size, nbytes)) return -1;
    marks.blocksize = load_le32(head + 8);
    int64_t cbytes = load_le32(head + 12), count = (nbytes + marks.blocksize - 1) / marks.blocksize;
    if (head[2] & BLOSC_MEMCPYED) {
        unsigned char *decoded = reserve(&worker->decoded, (size_t)nbytes);
        struct plain plain = {source, BLOSC_HEADER, decoded};
        return decoded ? for_each_range(ranges, fetch_range, &plain) : -1;
    }
    int64_t head_nbytes = BLOSC_HEADER + 4 * count;
    if (count < 2 || count > MAX_BLOCKS) return 1;
    if (head_nbytes > available && fetch(source, available, head_nbytes - available, head + available)) return -1;
    for (int64_t i = 0; i < count; i++) {
        int64_t offset = load_le32(head + BLOSC_HEADER + 4 * i);
        if (offset < head_nbytes || offset >= cbytes) return -1;
    }
    memset(marks.needed, 0, (size_t)count);
    for_each_range(ranges, mark_blocks, &marks);
    /* The last block is shorter than the others. A buffer that consists of it alone would not be valid. */
    if (marks.needed[count - 1] && nbytes % marks.blocksize) marks.needed[count - 2] = 1;
    int64_t needed = 0;
    for (int64_t i = 0; i < count; i++) needed += marks.needed[i];
    if (needed == count) return 1;
    unsigned char *decoded = reserve(&worker->decoded, (size_t)nbytes);
    if (!decoded) return -1;
    for (int64_t low = 0; low < count;) {
        int64_t high = low;
        while (high < count && marks.needed[high]) high++;
        if (high > low && decode_blocks(worker, source, head, low, high, count, decoded)) return -1;
        low = high > low ? high : low + 1;
    }
    return 0;
}

int read_chunk_partially(struct worker *worker, const struct source *source, const struct box *box) {
    const struct zarrfs_read *read = worker->read;
    const struct zarrfs_chain *chain = read->chain;
    int is_blosc = chain->step_count == 1 && chain->steps[0] == STEP_BLOSC;
    if (chain->n5 || (chain->step_count && !is_blosc) || !is_partial(read, box)) return 1;
    if (chain->nbytes < (is_blosc ? MIN_PARTIAL_COMPRESSED_NBYTES : MIN_PARTIAL_NBYTES)) return 1;
    int64_t strides[MAX_NDIM];
    struct ranges ranges;
    chunk_strides(chain, chain->shape, strides);
    find_ranges(chain, box, strides, &ranges);
    if (ranges.nbytes > chain->nbytes - chain->nbytes / 8) return 1;
    if (!is_blosc) {
        unsigned char *decoded = reserve(&worker->decoded, (size_t)chain->nbytes);
        struct plain plain = {source, 0, decoded};
        if (source->memory) return 1; /* copied from there */
        if (source->size != chain->nbytes || !decoded || for_each_range(&ranges, fetch_range, &plain)) return -1;
    } else {
        struct source small = *source;
        if (!source->memory && source->size <= MAX_SMALL_VALUE) {
            unsigned char *encoded = reserve(&worker->encoded, (size_t)source->size);
            if (!encoded || fetch(source, 0, source->size, encoded)) return -1;
            small.memory = encoded;
        }
        int outcome = read_blosc_blocks(worker, &small, &ranges);
        if (outcome > 0 && small.memory) return decode_chunk(worker, small.memory, small.size, box);
        if (outcome) return outcome;
    }
    copy_box(read, box, worker->decoded.data, strides);
    return 0;
}

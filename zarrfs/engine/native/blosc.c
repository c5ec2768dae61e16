/* Decoding of Blosc-1 buffers, of which only some blocks or only some elements are needed.
 *
 * The library decodes whole buffers, allocates memory and compression contexts for each of them, and moves every byte of
 * a shuffled block. For a plane of a chunk most of these bytes are not needed. Here the streams of the needed blocks are
 * decoded, and only the requested elements are collected from the shuffled bytes. Buffers with other compressors or
 * filters are left to the library.
 */
#include <string.h>

#include "native.h"

#define MAX_BLOCKS 2048
#define FIRST_NBYTES 1024

#define VERSION_FORMAT 2
#define FLAG_SHUFFLE 0x01
#define FLAG_MEMCPYED 0x02
#define FLAG_DONT_SPLIT 0x10
#define FLAGS_UNSUPPORTED (0x04 | 0x08) /* bit shuffle; reserved */
#define MAX_SPLITS 16
#define MIN_SPLIT_NBYTES 128

enum { FORMAT_LZ4 = 1, FORMAT_ZSTD = 4 };

/* The header of a buffer. */
struct blosc {
    const unsigned char *offsets; /* 4 bytes per block */
    int64_t count, blocksize, nbytes, cbytes;
    int typesize, format, is_shuffled, is_split;
};

static void store_le32(unsigned char *p, uint32_t value) {
    for (int i = 0; i < 4; i++) p[i] = (unsigned char)(value >> 8 * i);
}

/* Set the fields for a header that check_blosc_header accepts. */
static void parse_header(const unsigned char *head, struct blosc *blosc) {
    blosc->offsets = head + BLOSC_HEADER;
    blosc->nbytes = load_le32(head + 4);
    blosc->blocksize = load_le32(head + 8);
    blosc->cbytes = load_le32(head + 12);
    blosc->count = (blosc->nbytes + blosc->blocksize - 1) / blosc->blocksize;
    blosc->typesize = head[3];
    blosc->format = head[2] >> 5;
    blosc->is_shuffled = (head[2] & FLAG_SHUFFLE) && head[3] > 1;
    blosc->is_split = !(head[2] & FLAG_DONT_SPLIT) && head[3] && head[3] <= MAX_SPLITS &&
                      blosc->blocksize / head[3] >= MIN_SPLIT_NBYTES;
}

/* Whether the blocks can be decoded here, for elements of `itemsize` bytes. */
static int is_supported(const struct zarrfs_functions *functions, const unsigned char *head, const struct blosc *blosc,
                        int64_t itemsize) {
    if (head[0] != VERSION_FORMAT || head[1] != 1 || (head[2] & (FLAGS_UNSUPPORTED | FLAG_MEMCPYED))) return 0;
    if (blosc->typesize < 1 || blosc->count > MAX_BLOCKS) return 0;
    if (blosc->is_split && blosc->blocksize % blosc->typesize) return 0;
    if (blosc->is_shuffled &&
        (blosc->typesize != itemsize || blosc->blocksize % itemsize || blosc->nbytes % itemsize))
        return 0;
    if (blosc->format == FORMAT_LZ4) return functions->blosc_lz4_decompress != NULL;
    return blosc->format == FORMAT_ZSTD && functions->blosc_zstd_create_context && functions->blosc_zstd_free_context &&
           functions->blosc_zstd_decompress;
}

static int64_t block_nbytes(const struct blosc *blosc, int64_t block) {
    return block + 1 < blosc->count ? blosc->blocksize : blosc->nbytes - block * blosc->blocksize;
}

/* Decode the streams of a block to `out`, without the inverse of the filter. `size` bytes follow `data`. */
static int decode_streams(struct worker *worker, const struct blosc *blosc, int64_t block, const unsigned char *data,
                          int64_t size, unsigned char *out) {
    const struct zarrfs_functions *functions = worker->read->functions;
    int64_t nbytes = block_nbytes(blosc, block);
    int count = blosc->is_split && nbytes == blosc->blocksize ? blosc->typesize : 1;
    int64_t expected = nbytes / count;
    for (int stream = 0; stream < count; stream++, out += expected) {
        if (size < 4) return -1;
        int64_t encoded = load_le32(data);
        data += 4;
        size -= 4;
        if (encoded > size || encoded > INT32_MAX) return -1;
        if (encoded == expected) {
            memcpy(out, data, (size_t)expected);
        } else if (blosc->format == FORMAT_LZ4) {
            if (functions->blosc_lz4_decompress((const char *)data, (char *)out, (int)encoded, (int)expected) !=
                expected)
                return -1;
        } else {
            if (!worker->blosc_zstd && !(worker->blosc_zstd = functions->blosc_zstd_create_context())) return -1;
            if (functions->blosc_zstd_decompress(worker->blosc_zstd, out, (size_t)expected, data, (size_t)encoded) !=
                (size_t)expected)
                return -1;
        }
        data += encoded;
        size -= encoded;
    }
    return 0;
}

/* Collect the elements that a block contains. `data` is the decoded block, before the inverse of the shuffle. */
static void collect_block(struct collection *collection, const struct blosc *blosc, int64_t block,
                          const unsigned char *data) {
    collect(collection, data, block * blosc->blocksize, block_nbytes(blosc, block),
            blosc->is_shuffled ? blosc->typesize : 0);
}

/* -- whole buffers ----------------------------------------------------------------------------------------------- */

int read_blosc_elements(struct worker *worker, const unsigned char *data, int64_t size, int64_t nbytes,
                        const struct box *box, const int64_t *strides) {
    struct blosc blosc;
    struct collection collection;
    if (size < BLOSC_HEADER || check_blosc_header(data, size, nbytes)) return 1;
    parse_header(data, &blosc);
    if (!is_supported(worker->read->functions, data, &blosc, worker->read->chain->itemsize)) return 1;
    unsigned char *decoded = reserve(&worker->blocks, (size_t)blosc.blocksize);
    if (!decoded || begin_collection(worker, box, strides, &collection)) return 1;
    int64_t count = collection.ranges.nbytes / collection.ranges.span;
    /* The contexts of zstd, which are created once here, are worth more than unshuffling all elements. */
    if (blosc.format == FORMAT_LZ4 && count > nbytes / worker->read->limits->min_per_range) return 1;
    for (int64_t block = 0; block < blosc.count; block++) {
        int64_t offset = load_le32(blosc.offsets + 4 * block);
        if (offset < BLOSC_HEADER || offset >= blosc.cbytes ||
            decode_streams(worker, &blosc, block, data + offset, blosc.cbytes - offset, decoded))
            return 1;
        collect_block(&collection, &blosc, block, decoded);
    }
    copy_collection(worker, box);
    return 0;
}

/* -- some blocks of a value -------------------------------------------------------------------------------------- */

/* The blocks that contain any of the ranges. */
struct needed_blocks {
    int64_t blocksize;
    unsigned char needed[MAX_BLOCKS]; /* 1: needed */
};

static int add_blocks(void *context, int64_t start, int64_t size) {
    struct needed_blocks *blocks = context;
    for (int64_t block = start / blocks->blocksize; block <= (start + size - 1) / blocks->blocksize; block++)
        blocks->needed[block] = 1;
    return 0;
}

/* The end of an encoded block is the next larger offset. Threads may have stored the blocks in any order. */
static int64_t block_end(const struct blosc *blosc, int64_t start) {
    int64_t end = blosc->cbytes;
    for (int64_t i = 0; i < blosc->count; i++) {
        int64_t offset = load_le32(blosc->offsets + 4 * i);
        if (offset > start && offset < end) end = offset;
    }
    return end;
}

/* Assemble a buffer of blocks `low` to `high` (exclusive) in `worker->blocks`. Return its size, or -1. */
static int64_t assemble_blocks(struct worker *worker, const struct source *source, const struct blosc *blosc,
                               int64_t low, int64_t high) {
    int64_t position = BLOSC_HEADER + 4 * (high - low), capacity = position;
    for (int64_t block = low; block < high; block++) {
        int64_t start = load_le32(blosc->offsets + 4 * block);
        capacity += block_end(blosc, start) - start;
    }
    if (capacity > blosc->cbytes) return -1; /* blocks overlap */
    unsigned char *run = reserve(&worker->blocks, (size_t)capacity);
    if (!run) return -1;
    int64_t pending = 0, pending_start = 0, pending_position = 0;
    for (int64_t block = low; block < high; block++) {
        int64_t start = load_le32(blosc->offsets + 4 * block), size = block_end(blosc, start) - start;
        store_le32(run + BLOSC_HEADER + 4 * (block - low), (uint32_t)position);
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
    return position;
}

/* Decode blocks `low` to `high` (exclusive) with the library, as a buffer of these blocks. */
static int decode_with_library(struct worker *worker, const struct source *source, const unsigned char *head,
                               const struct blosc *blosc, int64_t low, int64_t high, unsigned char *decoded) {
    int64_t size = assemble_blocks(worker, source, blosc, low, high);
    if (size < 0) return -1;
    unsigned char *run = worker->blocks.data;
    int64_t nbytes = (high == blosc->count ? blosc->nbytes : high * blosc->blocksize) - low * blosc->blocksize;
    memcpy(run, head, 4);
    store_le32(run + 4, (uint32_t)nbytes);
    store_le32(run + 8, (uint32_t)(blosc->blocksize < nbytes ? blosc->blocksize : nbytes));
    store_le32(run + 12, (uint32_t)size);
    return decode_step(worker, STEP_BLOSC, run, size, decoded + low * blosc->blocksize, nbytes);
}

/* Decode the streams of blocks `low` to `high` (exclusive) and collect their elements. */
static int decode_run(struct worker *worker, const struct source *source, const struct blosc *blosc, int64_t low,
                      int64_t high, struct collection *collection) {
    int64_t size = assemble_blocks(worker, source, blosc, low, high);
    unsigned char *decoded = reserve(&worker->shuffled, (size_t)blosc->blocksize);
    if (size < 0 || !decoded) return -1;
    for (int64_t block = low; block < high; block++) {
        int64_t offset = load_le32(worker->blocks.data + BLOSC_HEADER + 4 * (block - low));
        if (decode_streams(worker, blosc, block, worker->blocks.data + offset, size - offset, decoded)) return -1;
        collect_block(collection, blosc, block, decoded);
    }
    return 0;
}

/* Read and decode the needed blocks, and copy the elements of the box. */
static int read_needed(struct worker *worker, const struct source *source, const unsigned char *head,
                       const struct blosc *blosc, const struct needed_blocks *blocks, const struct box *box,
                       const int64_t *strides) {
    struct collection collection;
    int collects = is_supported(worker->read->functions, head, blosc, worker->read->chain->itemsize);
    unsigned char *decoded = NULL;
    if (collects ? begin_collection(worker, box, strides, &collection)
                 : !(decoded = reserve(&worker->decoded, (size_t)blosc->nbytes)))
        return -1;
    for (int64_t low = 0, high; low < blosc->count; low = high) {
        for (high = low; high < blosc->count && blocks->needed[high]; high++) continue;
        if (high == low)
            high++;
        else if (collects ? decode_run(worker, source, blosc, low, high, &collection)
                          : decode_with_library(worker, source, head, blosc, low, high, decoded))
            return -1;
    }
    if (collects)
        copy_collection(worker, box);
    else
        copy_box(worker->read, box, decoded, strides);
    return 0;
}

/* Read the header and the block offsets of a buffer, and the blocks of the box. */
static int read_blocks(struct worker *worker, const struct source *source, const struct ranges *ranges,
                       const struct box *box, const int64_t *strides) {
    int64_t nbytes = worker->read->chain->nbytes;
    unsigned char head[BLOSC_HEADER + 4 * MAX_BLOCKS];
    struct needed_blocks blocks;
    struct blosc blosc;
    int64_t available = source->size < FIRST_NBYTES ? source->size : FIRST_NBYTES;
    if (fetch(source, 0, available, head) || check_blosc_header(head, source->size, nbytes)) return -1;
    parse_header(head, &blosc);
    if (head[2] & FLAG_MEMCPYED) {
        unsigned char *decoded = reserve(&worker->decoded, (size_t)nbytes);
        if (!decoded || fetch_ranges(source, BLOSC_HEADER, ranges, 0, decoded)) return -1;
        copy_box(worker->read, box, decoded, strides);
        return 0;
    }
    int64_t head_nbytes = BLOSC_HEADER + 4 * blosc.count;
    if (blosc.count < 2 || blosc.count > MAX_BLOCKS) return 1;
    if (head_nbytes > available && fetch(source, available, head_nbytes - available, head + available)) return -1;
    for (int64_t i = 0; i < blosc.count; i++) {
        int64_t offset = load_le32(blosc.offsets + 4 * i);
        if (offset < head_nbytes || offset >= blosc.cbytes) return -1;
    }
    blocks.blocksize = blosc.blocksize;
    memset(blocks.needed, 0, (size_t)blosc.count);
    for_each_range(ranges, add_blocks, &blocks);
    /* The last block is shorter than the others. A buffer that consists of it alone would not be valid. */
    if (blocks.needed[blosc.count - 1] && nbytes % blosc.blocksize) blocks.needed[blosc.count - 2] = 1;
    int64_t needed = 0;
    for (int64_t i = 0; i < blosc.count; i++) needed += blocks.needed[i];
    return needed == blosc.count ? 1 : read_needed(worker, source, head, &blosc, &blocks, box, strides);
}

int read_blosc_partially(struct worker *worker, const struct source *source, const struct ranges *ranges,
                         const struct box *box, const int64_t *strides, struct source *whole) {
    *whole = *source;
    if (!source->memory && source->size <= worker->read->limits->max_small_value) {
        unsigned char *encoded = reserve(&worker->encoded, (size_t)source->size);
        if (!encoded || fetch(source, 0, source->size, encoded)) return -1;
        whole->memory = encoded;
    }
    return read_blocks(worker, whole, ranges, box, strides);
}

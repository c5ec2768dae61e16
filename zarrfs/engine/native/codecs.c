/* Decoding of the bytes->bytes codecs to an exact size. */
#include <stdlib.h>
#include <string.h>

#include "native.h"

#define BLOSC_MEMCPYED 0x2
#define MAX_BLOSC_NBYTES (INT32_MAX - BLOSC_HEADER)

/* The first fields of ISA-L's struct inflate_state, which are the same in all releases of version 2. */
struct inflate_head {
    uint8_t *next_out;
    uint32_t avail_out;
    uint32_t total_out;
    uint8_t *next_in;
    uint64_t read_in;
    uint32_t avail_in;
    int32_t read_in_length;
};

/* ISA-L's structure has about 90 KB. */
#define INFLATE_STATE_NBYTES (1 << 19)

/* The checks of check_header in codecs/bytes_to_bytes/blosc.py. `available` is the size of the encoded data, of which
 * the first 16 bytes are in memory. The library does not check the encoded size in the header. */
int check_blosc_header(const unsigned char *header, int64_t available, int64_t nbytes) {
    if (available < BLOSC_HEADER || nbytes < 1 || nbytes > MAX_BLOSC_NBYTES) return -1;
    int64_t declared = load_le32(header + 4), blocksize = load_le32(header + 8), cbytes = load_le32(header + 12);
    if (header[0] != 1 && header[0] != 2) return -1;
    if (declared != nbytes || blocksize < 1 || blocksize > nbytes) return -1;
    int64_t minimum = header[2] & BLOSC_MEMCPYED ? nbytes : 4 * ((nbytes + blocksize - 1) / blocksize);
    return cbytes < BLOSC_HEADER + minimum || cbytes > available ? -1 : 0;
}

static int decode_blosc(const struct zarrfs_functions *functions, const unsigned char *data, int64_t size,
                        unsigned char *out, int64_t capacity) {
    if (size < BLOSC_HEADER || check_blosc_header(data, size, capacity)) return -1;
    return functions->blosc_decompress_ctx(data, out, (size_t)capacity, 1) == capacity ? 0 : -1;
}

static int decode_zstd(struct worker *worker, const struct zarrfs_functions *functions, const unsigned char *data,
                       int64_t size, unsigned char *out, int64_t capacity) {
    if (!worker->zstd && !(worker->zstd = functions->zstd_create_context())) return -1;
    size_t done = functions->zstd_decompress(worker->zstd, out, (size_t)capacity, data, (size_t)size);
    return done == (size_t)capacity ? 0 : -1;
}

/* -- the beginning of a zstd frame ------------------------------------------------------------------------------- */

#define ZSTD_MAGIC 0xFD2FB528u

/* Check that the data is one frame of `nbytes` bytes without a checksum and a dictionary, whose blocks end with the
 * data: damage that only the end of the frame would show is found without decoding it. */
static int check_zstd_frame(const unsigned char *data, int64_t size, int64_t nbytes) {
    static const int widths[4] = {0, 2, 4, 8};
    if (size < 10 || load_le32(data) != ZSTD_MAGIC) return -1;
    int descriptor = data[4], is_single = descriptor & 0x20, width = widths[descriptor >> 6];
    if (descriptor & 0x1F) return -1;
    if (is_single && !width) width = 1;
    int64_t position = is_single ? 5 : 6;
    if (!width || size < position + width) return -1;
    uint64_t declared = 0;
    for (int i = width - 1; i >= 0; i--) declared = declared << 8 | data[position + i];
    if (declared + (width == 2 ? 256 : 0) != (uint64_t)nbytes) return -1;
    for (position += width; size - position >= 3;) {
        uint32_t header = (uint32_t)data[position] | (uint32_t)data[position + 1] << 8 |
                          (uint32_t)data[position + 2] << 16;
        int kind = header >> 1 & 3;
        if (kind == 3) return -1;
        position += 3 + (kind == 1 ? 1 : (int64_t)(header >> 3));
        if (header & 1) return position == size ? 0 : -1;
    }
    return -1;
}

int decode_zstd_begin(struct worker *worker, const unsigned char *data, int64_t size, int64_t nbytes, int64_t needed) {
    const struct zarrfs_functions *functions = worker->read->functions;
    if (nbytes - needed < worker->read->limits->min_skipped || !functions->zstd_continue) return 1;
    if (check_zstd_frame(data, size, nbytes)) return 1;
    unsigned char *out = reserve(&worker->decoded, (size_t)nbytes);
    if (!out || (!worker->zstd && !(worker->zstd = functions->zstd_create_context()))) return 1;
    if (functions->zstd_begin(worker->zstd)) return 1;
    for (int64_t done = 0; done < needed;) {
        size_t count = functions->zstd_next_size(worker->zstd);
        if (!count || count > (uint64_t)size) return 1;
        size_t written = functions->zstd_continue(worker->zstd, out + done, (size_t)(nbytes - done), data, count);
        if (written > (uint64_t)(nbytes - done)) return 1;
        done += (int64_t)written;
        data += count;
        size -= (int64_t)count;
    }
    return 0;
}

/* numcodecs writes the decoded size before the block. */
static int decode_lz4(const struct zarrfs_functions *functions, const unsigned char *data, int64_t size,
                      unsigned char *out, int64_t capacity) {
    if (size < 4 || size > INT32_MAX || capacity > INT32_MAX || load_le32(data) != (uint64_t)capacity) return -1;
    int done = functions->lz4_decompress_safe((const char *)data + 4, (char *)out, (int)(size - 4), (int)capacity);
    return done == capacity ? 0 : -1;
}

/* One deflate stream without a container. It must fill all of the input and all of the output. */
static int inflate_raw(struct worker *worker, const struct zarrfs_functions *functions, const unsigned char *data,
                       int64_t size, unsigned char *out, int64_t capacity) {
    if (!worker->inflate && !(worker->inflate = malloc(INFLATE_STATE_NBYTES))) return -1;
    struct inflate_head *head = worker->inflate;
    functions->isal_inflate_init(head);
    head->next_in = (uint8_t *)data;
    head->avail_in = (uint32_t)size;
    head->next_out = out;
    head->avail_out = (uint32_t)capacity;
    if (functions->isal_inflate_stateless(head)) return -1;
    return head->avail_out == 0 && head->avail_in == 0 ? 0 : -1;
}

/* A member without optional fields, and nothing after it. */
static int decode_gzip(struct worker *worker, const struct zarrfs_functions *functions, const unsigned char *data,
                       int64_t size, unsigned char *out, int64_t capacity) {
    if (size < 18 || size > INT32_MAX || capacity > INT32_MAX) return -1;
    if (data[0] != 0x1F || data[1] != 0x8B || data[2] != 8 || data[3] != 0) return -1;
    if (load_le32(data + size - 4) != (uint32_t)capacity) return -1;
    if (inflate_raw(worker, functions, data + 10, size - 18, out, capacity)) return -1;
    return functions->isal_crc32(0, out, (uint64_t)capacity) == load_le32(data + size - 8) ? 0 : -1;
}

static int decode_zlib(struct worker *worker, const struct zarrfs_functions *functions, const unsigned char *data,
                       int64_t size, unsigned char *out, int64_t capacity) {
    if (size < 6 || size > INT32_MAX || capacity > INT32_MAX) return -1;
    if ((data[0] & 0x0F) != 8 || data[0] >> 4 > 7 || data[1] & 0x20 || (data[0] << 8 | data[1]) % 31) return -1;
    if (inflate_raw(worker, functions, data + 2, size - 6, out, capacity)) return -1;
    return functions->isal_adler32(1, out, (uint64_t)capacity) == load_be32(data + size - 4) ? 0 : -1;
}

static int decode_with(struct worker *worker, const struct zarrfs_functions *functions, int step,
                       const unsigned char *data, int64_t size, unsigned char *out, int64_t capacity) {
    switch (step) {
    case STEP_BLOSC: return decode_blosc(functions, data, size, out, capacity);
    case STEP_ZSTD: return decode_zstd(worker, functions, data, size, out, capacity);
    case STEP_LZ4: return decode_lz4(functions, data, size, out, capacity);
    case STEP_GZIP: return decode_gzip(worker, functions, data, size, out, capacity);
    case STEP_ZLIB: return decode_zlib(worker, functions, data, size, out, capacity);
    default: return -1;
    }
}

int decode_step(struct worker *worker, int step, const unsigned char *data, int64_t size, unsigned char *out,
                int64_t capacity) {
    return decode_with(worker, worker->read->functions, step, data, size, out, capacity);
}

static void free_all(struct worker *worker, const struct zarrfs_functions *functions) {
    if (worker->zstd) functions->zstd_free_context(worker->zstd);
    if (worker->blosc_zstd) functions->blosc_zstd_free_context(worker->blosc_zstd);
    free(worker->inflate);
}

void free_contexts(struct worker *worker) { free_all(worker, worker->read->functions); }

int zarrfs_decode_step(const struct zarrfs_functions *functions, int step, const unsigned char *data, int64_t size,
                       unsigned char *out, int64_t capacity) {
    struct worker worker = {0};
    int result = decode_with(&worker, functions, step, data, size, out, capacity);
    free_all(&worker, functions);
    return result;
}

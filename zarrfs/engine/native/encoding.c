/* Encoding of the bytes->bytes codecs, with the functions and parameters of the Python codecs. */
#include <stdlib.h>
#include <string.h>

#include "writing.h"

#define BLOSC_HEADER 16
#define CHECKSUM_NBYTES 4
#define ZSTD_LEVEL_PARAMETER 100
#define ZSTD_CHECKSUM_PARAMETER 201

static void store_le32(unsigned char *p, uint32_t value) {
    for (int i = 0; i < 4; i++) p[i] = (unsigned char)(value >> 8 * i);
}

static int64_t encode_zstd(struct encoder *encoder, int slot, const struct zarrfs_step_options *options,
                           const unsigned char *data, int64_t size, unsigned char *out, int64_t capacity) {
    const struct zarrfs_encoders *functions = encoder->functions;
    void *context = encoder->zstd[slot];
    if (!context) {
        context = encoder->zstd[slot] = functions->zstd_create_context();
        if (!context) return -1;
        if (functions->zstd_is_error(functions->zstd_set_parameter(context, ZSTD_LEVEL_PARAMETER, options->level)) ||
            functions->zstd_is_error(
                functions->zstd_set_parameter(context, ZSTD_CHECKSUM_PARAMETER, options->checksum))) {
            functions->zstd_free_context(context);
            encoder->zstd[slot] = NULL;
            return -1;
        }
    }
    size_t done = functions->zstd_compress(context, out, (size_t)capacity, data, (size_t)size);
    return functions->zstd_is_error(done) ? -1 : (int64_t)done;
}

/* numcodecs writes the decoded size before the block. */
static int64_t encode_lz4(const struct zarrfs_encoders *functions, const struct zarrfs_step_options *options,
                          const unsigned char *data, int64_t size, unsigned char *out, int64_t capacity) {
    if (size > INT32_MAX || capacity < 4) return -1;
    int64_t room = capacity - 4 > INT32_MAX ? INT32_MAX : capacity - 4;
    store_le32(out, (uint32_t)size);
    int done = functions->lz4_compress_fast((const char *)data, (char *)out + 4, (int)size, (int)room, options->level);
    return done > 0 ? done + 4 : -1;
}

/* Return the capacity that `size` bytes need at most, or -1. */
static int64_t encoded_bound(const struct encoder *encoder, int step, int64_t size) {
    switch (step) {
    case STEP_BLOSC: return size > INT32_MAX - BLOSC_HEADER ? -1 : size + BLOSC_HEADER;
    case STEP_ZSTD: return (int64_t)encoder->functions->zstd_bound((size_t)size);
    case STEP_LZ4: return 4 + size + size / 255 + 16;
    default: return -1;
    }
}

static int64_t encode_step(struct encoder *encoder, int slot, int step, const struct zarrfs_step_options *options,
                           const unsigned char *data, int64_t size, unsigned char *out, int64_t capacity) {
    switch (step) {
    case STEP_BLOSC: {
        int done = encoder->functions->blosc_compress_ctx(options->level, options->shuffle, (size_t)options->typesize,
                                                          (size_t)size, data, out, (size_t)capacity, options->cname,
                                                          (size_t)options->blocksize, 1);
        return done > 0 ? done : -1;
    }
    case STEP_ZSTD: return encode_zstd(encoder, slot, options, data, size, out, capacity);
    case STEP_LZ4: return encode_lz4(encoder->functions, options, data, size, out, capacity);
    default: return -1;
    }
}

int encode_steps(struct encoder *encoder, const struct zarrfs_write *write, const unsigned char *data, int64_t size,
                 const unsigned char **encoded, int64_t *encoded_size) {
    const struct zarrfs_chain *chain = write->read.chain;
    const int64_t slack = MAX_STEPS * CHECKSUM_NBYTES;
    struct buffer *current = NULL;
    for (int i = chain->step_count - 1; i >= 0; i--) {
        int step = chain->steps[i];
        struct buffer *next = current == &encoder->stages[0] ? &encoder->stages[1] : &encoder->stages[0];
        if (step == STEP_CRC32C) {
            if (!current) {
                unsigned char *copy = reserve(next, (size_t)(size + slack));
                if (!copy) return -1;
                memcpy(copy, data, (size_t)size);
                data = copy;
                current = next;
            }
            store_le32(current->data + size, zarrfs_crc32c(data, (size_t)size));
            size += CHECKSUM_NBYTES;
            continue;
        }
        int64_t bound = encoded_bound(encoder, step, size);
        unsigned char *out = bound < 0 ? NULL : reserve(next, (size_t)(bound + slack));
        int64_t done = out ? encode_step(encoder, i, step, &write->options[i], data, size, out, bound) : -1;
        if (done < 0) return -1;
        data = out;
        size = done;
        current = next;
    }
    *encoded = data;
    *encoded_size = size;
    return 0;
}

void free_encoder(struct encoder *encoder) {
    for (int slot = 0; slot < MAX_STEPS; slot++)
        if (encoder->zstd[slot]) encoder->functions->zstd_free_context(encoder->zstd[slot]);
    free(encoder->stages[0].data);
    free(encoder->stages[1].data);
}

int64_t zarrfs_encode_step(const struct zarrfs_encoders *encoders, int step, const struct zarrfs_step_options *options,
                           const unsigned char *data, int64_t size, unsigned char *out, int64_t capacity) {
    struct encoder encoder = {.functions = encoders};
    int64_t bound = encoded_bound(&encoder, step, size);
    int64_t done = bound < 0 || bound > capacity ? -1 : encode_step(&encoder, 0, step, options, data, size, out, bound);
    free_encoder(&encoder);
    return done;
}

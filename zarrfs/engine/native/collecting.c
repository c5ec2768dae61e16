/* Collecting the requested elements of a chunk from its decoded blocks, with the inverse of the byte shuffle. */
#include <string.h>

#include "native.h"

int begin_collection(struct worker *worker, const struct box *box, const int64_t *strides,
                     struct collection *collection) {
    find_ranges(worker->read->chain, box, strides, 0, &collection->ranges);
    collection->position = first_position(&collection->ranges);
    collection->start = collection->position.start;
    collection->size = collection->ranges.span;
    collection->out = reserve(&worker->decoded, (size_t)collection->ranges.nbytes);
    return collection->out ? 0 : -1;
}

/* Collect `count` elements of SIZE bytes from `planes`, which are `stride` bytes apart. */
#define UNSHUFFLE(SIZE)                                                                                              \
    for (int64_t i = 0; i < count; i++)                                                                              \
        for (int j = 0; j < SIZE; j++) out[i * SIZE + j] = planes[j * stride + i]

__attribute__((optimize("O3"))) static void unshuffle(unsigned char *restrict out,
                                                      const unsigned char *restrict planes, int64_t count,
                                                      int64_t stride, int64_t itemsize) {
    switch (itemsize) {
    case 2: UNSHUFFLE(2); return;
    case 4: UNSHUFFLE(4); return;
    case 8: UNSHUFFLE(8); return;
    default: UNSHUFFLE(itemsize);
    }
}

/* Collect `count` single elements of SIZE bytes, which are `step` elements apart. */
#define COLLECT_SINGLE(SIZE)                                                                                         \
    for (int64_t i = 0; i < count; i++)                                                                              \
        for (int j = 0; j < SIZE; j++) out[i * SIZE + j] = planes[j * stride + i * step]

static void collect_single(unsigned char *restrict out, const unsigned char *restrict planes, int64_t count,
                           int64_t step, int64_t stride, int64_t itemsize) {
    switch (itemsize) {
    case 2: COLLECT_SINGLE(2); return;
    case 4: COLLECT_SINGLE(4); return;
    case 8: COLLECT_SINGLE(8); return;
    default: COLLECT_SINGLE(itemsize);
    }
}

/* Collect the present range and those that follow it in the fastest dimension of the ranges, as far as they are in the
 * first `nbytes` bytes of a shuffled block, which is byte `begin` of the chunk. Return 0 if not even the present one
 * is. Divisions are slow, so that there are few for many short ranges. */
static int collect_whole_ranges(struct collection *collection, const unsigned char *data, int64_t begin,
                                int64_t nbytes, int64_t itemsize) {
    const struct ranges *ranges = &collection->ranges;
    struct position *position = &collection->position;
    int fastest = ranges->count - 1;
    int64_t start = collection->start - begin, span = ranges->span;
    if (fastest < 0 || collection->size != span || nbytes - start < span) return 0;
    /* Ranges with a distance of at most their size were joined: the distance is positive. */
    int64_t distance = ranges->strides[fastest], count = (nbytes - start - span) / distance + 1;
    int64_t left = ranges->lengths[fastest] - position->index[fastest];
    if (count > left) count = left;
    int64_t stride = nbytes / itemsize, step = distance / itemsize;
    const unsigned char *planes = data + start / itemsize;
    if (span == itemsize) {
        collect_single(collection->out, planes, count, step, stride, itemsize);
    } else {
        int64_t length = span / itemsize;
        for (int64_t i = 0; i < count; i++)
            unshuffle(collection->out + i * span, planes + i * step, length, stride, itemsize);
    }
    collection->out += count * span;
    position->index[fastest] += count - 1;
    position->start += (count - 1) * distance;
    collection->size = 0;
    return 1;
}

void collect(struct collection *collection, const unsigned char *data, int64_t begin, int64_t nbytes,
             int64_t itemsize) {
    while (collection->size && collection->start < begin + nbytes) {
        if (!itemsize || !collect_whole_ranges(collection, data, begin, nbytes, itemsize)) {
            int64_t start = collection->start - begin, part = nbytes - start;
            if (part > collection->size) part = collection->size;
            if (itemsize)
                unshuffle(collection->out, data + start / itemsize, part / itemsize, nbytes / itemsize, itemsize);
            else
                memcpy(collection->out, data + start, (size_t)part);
            collection->out += part;
            collection->start += part;
            collection->size -= part;
        }
        if (!collection->size && next_position(&collection->ranges, &collection->position)) {
            collection->start = collection->position.start;
            collection->size = collection->ranges.span;
        }
    }
}

void copy_collection(struct worker *worker, const struct box *box) {
    int64_t strides[MAX_NDIM];
    struct box collected = *box;
    for (int d = 0; d < worker->read->chain->ndim; d++) {
        collected.start[d] = 0;
        collected.step[d] = 1;
    }
    chunk_strides(worker->read->chain, box->length, strides);
    copy_box(worker->read, &collected, worker->decoded.data, strides);
}

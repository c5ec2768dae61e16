/* The byte ranges of a box in a decoded chunk. */
#include "native.h"

/* Join runs of elements that are close together, from the fastest dimension outwards. */
void find_ranges(const struct zarrfs_chain *chain, const struct box *box, const int64_t *strides, int64_t gap,
                 struct ranges *ranges) {
    int joined = chain->ndim;
    ranges->first = 0;
    ranges->span = chain->itemsize;
    for (int d = 0; d < chain->ndim; d++) ranges->first += box->start[d] * strides[d];
    while (joined) {
        int64_t d = chain->axes[joined - 1], stride = strides[d] * box->step[d];
        if (box->length[d] != 1 && stride - ranges->span > gap) break;
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

struct position first_position(const struct ranges *ranges) { return (struct position){.start = ranges->first}; }

int next_position(const struct ranges *ranges, struct position *position) {
    for (int i = ranges->count - 1; i >= 0; i--) {
        position->start += ranges->strides[i];
        if (++position->index[i] < ranges->lengths[i]) return 1;
        position->start -= ranges->lengths[i] * ranges->strides[i];
        position->index[i] = 0;
    }
    return 0;
}

int for_each_range(const struct ranges *ranges, int (*visit)(void *context, int64_t start, int64_t size),
                   void *context) {
    struct position position = first_position(ranges);
    do
        if (visit(context, position.start, ranges->span)) return -1;
    while (next_position(ranges, &position));
    return 0;
}

/* The context of fetch_range: byte `first` of the chunk, which begins at `offset` of the source, goes to `target`. */
struct fetching {
    const struct source *source;
    int64_t offset, first;
    unsigned char *target;
};

static int fetch_range(void *context, int64_t start, int64_t size) {
    struct fetching *fetching = context;
    return fetch(fetching->source, fetching->offset + start, size, fetching->target + (start - fetching->first));
}

int fetch_ranges(const struct source *source, int64_t offset, const struct ranges *ranges, int64_t first,
                 unsigned char *target) {
    struct fetching fetching = {source, offset, first, target};
    return for_each_range(ranges, fetch_range, &fetching);
}

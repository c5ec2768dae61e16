/* Copying of the requested elements of a decoded chunk to the output. */
#include <string.h>

#include "native.h"

/* One dimension of a copy; strides are in bytes. */
struct extent {
    int64_t length, from, to;
};

/* The strides in bytes, per dimension of the array, of a chunk of `shape` as it is stored. */
void chunk_strides(const struct zarrfs_chain *chain, const int64_t *shape, int64_t *strides) {
    int64_t stride = chain->itemsize;
    for (int i = chain->ndim - 1; i >= 0; i--) {
        strides[chain->axes[i]] = stride;
        stride *= shape[chain->axes[i]];
    }
}

static inline void copy_element(unsigned char *to, const unsigned char *from, int64_t itemsize, int element) {
    switch (element) {
    case ELEMENT_COPY: memcpy(to, from, (size_t)itemsize); return;
    default:
        for (int64_t group = 0; group < itemsize; group += element)
            for (int i = 0; i < element; i++) to[group + i] = from[group + element - 1 - i];
    }
}

/* The loops are separate for each size, so that the compiler knows it. */
#define COPY_STRIDED(SIZE)                                                                                           \
    for (int64_t i = 0; i < extent.length; i++) memcpy(to + i * extent.to, from + i * extent.from, SIZE)
#define SWAP_STRIDED(TYPE, SWAP)                                                                                     \
    for (int64_t i = 0; i < extent.length; i++) {                                                                    \
        TYPE value;                                                                                                  \
        memcpy(&value, from + i * extent.from, sizeof value);                                                        \
        value = SWAP(value);                                                                                         \
        memcpy(to + i * extent.to, &value, sizeof value);                                                            \
    }

/* memcpy for runs that may be short: a call costs more than copying them. */
static inline void copy_run(unsigned char *to, const unsigned char *from, size_t nbytes) {
    if (nbytes > 64) {
        memcpy(to, from, nbytes);
    } else if (nbytes >= 32) {
        memcpy(to, from, 32);
        memcpy(to + nbytes - 32, from + nbytes - 32, 32);
    } else if (nbytes >= 16) {
        memcpy(to, from, 16);
        memcpy(to + nbytes - 16, from + nbytes - 16, 16);
    } else if (nbytes >= 8) {
        memcpy(to, from, 8);
        memcpy(to + nbytes - 8, from + nbytes - 8, 8);
    } else {
        for (size_t i = 0; i < nbytes; i++) to[i] = from[i];
    }
}

static void copy_row(unsigned char *to, const unsigned char *from, struct extent extent, int64_t itemsize,
                     int element) {
    if (element == ELEMENT_COPY) {
        if (extent.from == itemsize && extent.to == itemsize) {
            memcpy(to, from, (size_t)(extent.length * itemsize));
            return;
        }
        switch (itemsize) {
        case 1: COPY_STRIDED(1); return;
        case 2: COPY_STRIDED(2); return;
        case 4: COPY_STRIDED(4); return;
        case 8: COPY_STRIDED(8); return;
        case 16: COPY_STRIDED(16); return;
        }
    } else if (element == itemsize) {
        switch (element) {
        case ELEMENT_BOOL:
            for (int64_t i = 0; i < extent.length; i++) to[i * extent.to] = from[i * extent.from] != 0;
            return;
        case ELEMENT_SWAP2: SWAP_STRIDED(uint16_t, __builtin_bswap16); return;
        case ELEMENT_SWAP4: SWAP_STRIDED(uint32_t, __builtin_bswap32); return;
        case ELEMENT_SWAP8: SWAP_STRIDED(uint64_t, __builtin_bswap64); return;
        }
    }
    for (int64_t i = 0; i < extent.length; i++)
        copy_element(to + i * extent.to, from + i * extent.from, itemsize, element);
}

static int64_t magnitude(int64_t stride) { return stride < 0 ? -stride : stride; }

/* Sort the dimensions so that the output varies fastest in the last one, and join those that are one run in both. */
static int simplify(struct extent *extents, int count) {
    for (int i = 1; i < count; i++)
        for (int j = i; j > 0 && magnitude(extents[j].to) > magnitude(extents[j - 1].to); j--) {
            struct extent other = extents[j];
            extents[j] = extents[j - 1];
            extents[j - 1] = other;
        }
    for (int i = count - 2; i >= 0; i--)
        if (extents[i].from == extents[i + 1].from * extents[i + 1].length &&
            extents[i].to == extents[i + 1].to * extents[i + 1].length) {
            extents[i + 1].length *= extents[i].length;
            memmove(extents + i, extents + i + 1, (size_t)(count - i - 1) * sizeof *extents);
            count--;
        }
    return count;
}

/* The dimensions of the box of more than one element. */
static int box_extents(const struct zarrfs_read *read, const struct box *box, const int64_t *strides,
                       struct extent *extents) {
    int count = 0;
    for (int d = 0; d < read->chain->ndim; d++)
        if (box->length[d] != 1)
            extents[count++] = (struct extent){box->length[d], strides ? strides[d] * box->step[d] : 0,
                                               read->out_strides[d]};
    if (!count) extents[count++] = (struct extent){1, read->chain->itemsize, read->chain->itemsize};
    return simplify(extents, count);
}

static void copy_rows(unsigned char *to, const unsigned char *from, const struct extent *extents, int count,
                      int64_t itemsize, int element) {
    if (count == 1) {
        copy_row(to, from, *extents, itemsize, element);
        return;
    }
    if (count == 2 && element == ELEMENT_COPY && extents[1].from == itemsize && extents[1].to == itemsize) {
        size_t nbytes = (size_t)(extents[1].length * itemsize);
        for (int64_t i = 0; i < extents->length; i++) copy_run(to + i * extents->to, from + i * extents->from, nbytes);
        return;
    }
    for (int64_t i = 0; i < extents->length; i++)
        copy_rows(to + i * extents->to, from + i * extents->from, extents + 1, count - 1, itemsize, element);
}

void copy_box(const struct zarrfs_read *read, const struct box *box, const unsigned char *chunk,
              const int64_t *strides) {
    struct extent extents[MAX_NDIM];
    int count = box_extents(read, box, strides, extents);
    for (int d = 0; d < read->chain->ndim; d++) chunk += box->start[d] * strides[d];
    copy_rows(box->out, chunk, extents, count, read->chain->itemsize, read->chain->element);
}

void store_box(const struct zarrfs_read *read, const struct box *box, unsigned char *chunk, const int64_t *strides) {
    struct extent extents[MAX_NDIM];
    int64_t itemsize = read->chain->itemsize;
    int count = 0;
    for (int d = 0; d < read->chain->ndim; d++) {
        chunk += box->start[d] * strides[d];
        if (box->length[d] != 1)
            extents[count++] = (struct extent){box->length[d], read->out_strides[d], strides[d] * box->step[d]};
    }
    if (!count) extents[count++] = (struct extent){1, itemsize, itemsize};
    count = simplify(extents, count);
    copy_rows(chunk, box->out, extents, count, itemsize, read->chain->element);
}

static void fill_rows(unsigned char *to, const unsigned char *fill, const struct extent *extents, int count,
                      int64_t itemsize, int is_zero) {
    if (count == 1) {
        if (is_zero && extents->to == itemsize)
            memset(to, 0, (size_t)(extents->length * itemsize));
        else
            copy_row(to, fill, (struct extent){extents->length, 0, extents->to}, itemsize, ELEMENT_COPY);
        return;
    }
    for (int64_t i = 0; i < extents->length; i++)
        fill_rows(to + i * extents->to, fill, extents + 1, count - 1, itemsize, is_zero);
}

void fill_box(const struct zarrfs_read *read, const struct box *box) {
    struct extent extents[MAX_NDIM];
    int is_zero = 1;
    for (int64_t i = 0; i < read->chain->itemsize; i++) is_zero &= read->fill[i] == 0;
    int count = box_extents(read, box, NULL, extents);
    fill_rows(box->out, read->fill, extents, count, read->chain->itemsize, is_zero);
}

int is_direct(const struct zarrfs_read *read, const struct box *box) {
    const struct zarrfs_chain *chain = read->chain;
    int64_t strides[MAX_NDIM];
    if (chain->element != ELEMENT_COPY || chain->n5) return 0;
    chunk_strides(chain, chain->shape, strides);
    for (int d = 0; d < chain->ndim; d++) {
        if (box->length[d] != chain->shape[d] || (box->length[d] != 1 && box->step[d] != 1)) return 0;
        if (box->length[d] != 1 && strides[d] != read->out_strides[d]) return 0;
    }
    return 1;
}

int is_partial(const struct zarrfs_read *read, const struct box *box) {
    for (int d = 0; d < read->chain->ndim; d++)
        if (box->length[d] != read->chain->shape[d]) return 1;
    return 0;
}

void entry_box(const struct zarrfs_read *read, const int64_t *entries, struct box *box) {
    box->out = read->out;
    for (int d = 0; d < read->chain->ndim; d++) {
        const struct zarrfs_dimension *dimension = &read->dimensions[d];
        box->start[d] = dimension->start[entries[d]];
        box->length[d] = dimension->length[entries[d]];
        box->step[d] = dimension->step;
        box->out += dimension->target[entries[d]] * read->out_strides[d];
    }
}

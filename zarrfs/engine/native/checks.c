/* Checks of the description of a read: no copy can leave a buffer. */
#include "native.h"

static int check_chain(const struct zarrfs_chain *chain) {
    int64_t nbytes = chain->itemsize, seen = 0;
    if (chain->ndim < 1 || chain->ndim > MAX_NDIM || chain->step_count < 0 || chain->step_count > MAX_STEPS ||
        chain->itemsize < 1 || chain->max_encoded < 0)
        return -1;
    if (chain->element != ELEMENT_COPY && chain->element != ELEMENT_BOOL && chain->element != ELEMENT_SWAP2 &&
        chain->element != ELEMENT_SWAP4 && chain->element != ELEMENT_SWAP8)
        return -1;
    if (chain->element > 1 && chain->itemsize % chain->element) return -1;
    if (chain->element == ELEMENT_BOOL && chain->itemsize != 1) return -1;
    int compressors = 0;
    for (int i = 0; i < chain->step_count; i++) compressors += chain->steps[i] != STEP_CRC32C;
    if (compressors > 1) return -1;
    for (int d = 0; d < chain->ndim; d++) {
        if (chain->shape[d] < 1 || chain->axes[d] < 0 || chain->axes[d] >= chain->ndim) return -1;
        if (chain->n5 && (chain->n5_axes[d] < 0 || chain->n5_axes[d] >= chain->ndim)) return -1;
        if (__builtin_mul_overflow(nbytes, chain->shape[d], &nbytes)) return -1;
        seen |= (int64_t)1 << chain->axes[d];
    }
    return nbytes == chain->nbytes && seen == ((int64_t)1 << chain->ndim) - 1 ? 0 : -1;
}

static int check_dimension(const struct zarrfs_read *read, int d) {
    const struct zarrfs_dimension *dimension = &read->dimensions[d];
    if (dimension->value_count < 1 || dimension->step < 1 || dimension->first[0] != 0 ||
        dimension->first[dimension->value_count] != dimension->entry_count)
        return -1;
    for (int64_t i = 0; i < dimension->entry_count; i++) {
        int64_t start = dimension->start[i], length = dimension->length[i], target = dimension->target[i], last;
        if (start < 0 || length < 1 || target < 0 || dimension->chunk[i] < 0) return -1;
        if (__builtin_mul_overflow(length - 1, dimension->step, &last) ||
            __builtin_add_overflow(last, start, &last) || last >= read->chain->shape[d])
            return -1;
        if (target > read->out_shape[d] || length > read->out_shape[d] - target) return -1;
        if (i && target != dimension->target[i - 1] + dimension->length[i - 1]) return -1;
    }
    for (int64_t k = 0; k < dimension->value_count; k++) {
        int64_t low = dimension->first[k], high = dimension->first[k + 1], begin;
        if (dimension->value[k] < 0 || low >= high || high > dimension->entry_count) return -1;
        if (!read->shard->present) {
            if (high - low != 1) return -1;
            continue;
        }
        if (__builtin_mul_overflow(dimension->value[k], read->shard->grid[d], &begin)) return -1;
        for (int64_t i = low; i < high; i++)
            if (dimension->chunk[i] < begin || dimension->chunk[i] - begin >= read->shard->grid[d]) return -1;
    }
    return 0;
}

int zarrfs_check(const struct zarrfs_read *read) {
    int64_t values = 1, cells = 16, tasks;
    if (check_chain(read->chain) || read->parts < 1 || read->next < 0) return -1;
    if (read->limits->min_rest < 1 || read->limits->max_piece < 1 || read->limits->min_per_range < 1) return -1;
    if (read->kept && (!read->stamps || read->shard->present)) return -1;
    if (read->parts > 1 && (!read->stamps || !read->shard->present)) return -1;
    if (read->separator != '/' && read->separator != '.') return -1;
    for (int d = 0; d < read->chain->ndim; d++) {
        if (read->shard->present && (read->shard->grid[d] < 1 ||
                                     __builtin_mul_overflow(cells, read->shard->grid[d], &cells)))
            return -1;
        if (check_dimension(read, d)) return -1;
        if (__builtin_mul_overflow(values, read->dimensions[d].value_count, &values)) return -1;
    }
    if (read->shard->present && read->shard->index_nbytes != cells + (read->shard->index_has_checksum ? 4 : 0))
        return -1;
    return values == read->value_count && !__builtin_mul_overflow(values, read->parts, &tasks) ? 0 : -1;
}

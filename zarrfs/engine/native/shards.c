/* Reading inner chunks of a shard: the index, then the inner chunks, nearby ones in one request. */
#include <stdlib.h>
#include <string.h>

#include "native.h"

#define MISSING UINT64_MAX

/* One requested inner chunk: where it is in the file, and its number among those that are requested of the shard. */
struct inner {
    int64_t offset, nbytes, number;
};

/* The entries of a shard in each dimension: the first one, and how many. */
struct window {
    int64_t first[MAX_NDIM], counts[MAX_NDIM];
};

static int by_offset(const void *left, const void *right) {
    int64_t a = ((const struct inner *)left)->offset, b = ((const struct inner *)right)->offset;
    return a < b ? -1 : a > b;
}

static uint64_t load_le64(const unsigned char *p) {
    return (uint64_t)load_le32(p) | (uint64_t)load_le32(p + 4) << 32;
}

static const unsigned char *read_index(struct worker *worker, const struct source *file) {
    const struct zarrfs_shard *shard = worker->read->shard;
    int64_t nbytes = shard->index_nbytes;
    unsigned char *index = reserve(&worker->index, (size_t)nbytes);
    if (!index || fetch(file, shard->index_at_start ? 0 : file->size - nbytes, nbytes, index)) return NULL;
    if (shard->index_has_checksum && zarrfs_crc32c(index, (size_t)nbytes - 4) != load_le32(index + nbytes - 4))
        return NULL;
    return index;
}

static void find_entries(const struct zarrfs_read *read, const struct window *window, int64_t number,
                         int64_t *entries) {
    for (int d = read->chain->ndim - 1; d >= 0; d--) {
        entries[d] = window->first[d] + number % window->counts[d];
        number /= window->counts[d];
    }
}

/* Find the inner chunks number `low` to `high` of those that are requested of a shard. Missing ones are filled.
 * Return their number, or -1 if an entry of the index is invalid. */
static int64_t find_inner_chunks(struct worker *worker, const struct source *file, const unsigned char *index,
                                 const int64_t *value, const struct window *window, int64_t low, int64_t high,
                                 struct inner *found) {
    const struct zarrfs_read *read = worker->read;
    const struct zarrfs_chain *chain = read->chain;
    int64_t entries[MAX_NDIM], count = 0;
    for (int64_t number = low; number < high; number++) {
        int64_t cell = 0;
        find_entries(read, window, number, entries);
        for (int d = 0; d < chain->ndim; d++) {
            const struct zarrfs_dimension *dimension = &read->dimensions[d];
            int64_t begin = dimension->value[value[d]] * read->shard->grid[d];
            cell = cell * read->shard->grid[d] + dimension->chunk[entries[d]] - begin;
        }
        uint64_t offset = load_le64(index + 16 * cell), nbytes = load_le64(index + 16 * cell + 8);
        if (offset == MISSING && nbytes == MISSING) {
            struct box box;
            if (read->missing_falls_back) return -1;
            entry_box(read, entries, &box);
            fill_box(read, &box);
            continue;
        }
        if (nbytes > (uint64_t)chain->max_encoded || offset > (uint64_t)file->size ||
            nbytes > (uint64_t)file->size - offset)
            return -1;
        found[count++] = (struct inner){(int64_t)offset, (int64_t)nbytes, number};
    }
    return count;
}

/* Read inner chunks in the order of their offsets. */
static int read_inner_chunks(struct worker *worker, const struct source *file, const struct window *window,
                             const struct inner *inner, int64_t count) {
    const struct zarrfs_read *read = worker->read;
    int64_t entries[MAX_NDIM];
    struct box box;
    for (int64_t i = 0; i < count;) {
        int64_t start = inner[i].offset, end = start + inner[i].nbytes, next = i + 1;
        struct source part = {NULL, file->fd, start, inner[i].nbytes, NULL};
        find_entries(read, window, inner[i].number, entries);
        entry_box(read, entries, &box);
        int outcome = read_chunk_partially(worker, &part, &box);
        if (outcome < 0) return -1;
        if (outcome == 0) {
            i++;
            continue;
        }
        for (; next < count && inner[next].offset <= end + read->limits->inner_gap; next++) {
            int64_t other_end = inner[next].offset + inner[next].nbytes;
            if (other_end > end) {
                if (other_end - start > read->limits->max_request) break;
                end = other_end;
            }
        }
        unsigned char *encoded = reserve(&worker->encoded, (size_t)(end - start));
        if (!encoded || fetch(file, start, end - start, encoded)) return -1;
        for (; i < next; i++) {
            struct source memory = {encoded + (inner[i].offset - start), -1, 0, inner[i].nbytes, NULL};
            find_entries(read, window, inner[i].number, entries);
            entry_box(read, entries, &box);
            if (read_chunk(worker, &memory, &box)) return -1;
        }
    }
    return 0;
}

/* Read part number `part` of the requested inner chunks of an open shard. */
int read_shard(struct worker *worker, int fd, const struct stat *status, const int64_t *value, int64_t part) {
    const struct zarrfs_read *read = worker->read;
    struct source file = {NULL, fd, 0, status->st_size, NULL};
    struct window window;
    int64_t total = 1;
    for (int d = 0; d < read->chain->ndim; d++) {
        const int64_t *first = read->dimensions[d].first + value[d];
        window.first[d] = first[0];
        window.counts[d] = first[1] - first[0];
        total *= window.counts[d];
    }
    int64_t low = total * part / read->parts, high = total * (part + 1) / read->parts;
    if (low == high) return 0;
    const unsigned char *index = read_index(worker, &file);
    if (!index) return -1;
    if ((uint64_t)(high - low) > SIZE_MAX / sizeof(struct inner)) return -1;
    struct inner *inner = (struct inner *)reserve(&worker->entries, (size_t)(high - low) * sizeof *inner);
    if (!inner) return -1;
    int64_t count = find_inner_chunks(worker, &file, index, value, &window, low, high, inner);
    if (count < 0) return -1;
    for (int64_t i = 1; i < count; i++)
        if (inner[i].offset < inner[i - 1].offset) {
            qsort(inner, (size_t)count, sizeof *inner, by_offset);
            break;
        }
    if (read_inner_chunks(worker, &file, &window, inner, count)) return -1;
    /* The index and the inner chunks must belong to one version of the shard. */
    return count && !is_unchanged(fd, status) ? -1 : 0;
}

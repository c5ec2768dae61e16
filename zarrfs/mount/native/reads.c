/* Reads of ranges of files that are in memory, without the interpreter.
 *
 * libfuse calls zarrfs_mount_read on its threads. A request within a published range is copied from memory; every other
 * request is passed to the callback of Python. Python publishes ranges of blocks for open files, and retracts them
 * before it uses the memory for anything else, and before a change of the data or the metadata can be seen.
 *
 * Ownership: the memory of a range belongs to Python. zarrfs_mount_publish borrows it until zarrfs_mount_retract of the
 * same slot has returned. A copy pins its slot. A retraction lets no new copy begin, and waits for those in progress.
 *
 * One mutex protects all slots. It is not held while bytes are copied or while Python is called, and a thread that
 * holds it or that has pinned a slot never waits for the interpreter lock.
 */
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>

#define EXPORT __attribute__((visibility("default")))

/* A handle has the slots of one bucket. A block has at most 64 * UNIT_WORDS units. */
enum { VERSION = 1, BUCKETS = 64, WAYS = 8, UNIT_NBYTES = 64 << 10, UNIT_WORDS = 16 };

/* A request that begins within this distance of the end of the preceding ones continues them. */
enum { REORDERING_WINDOW = 256 << 10 };

/* The operation `read` of libfuse. `path` may be NULL, `out` has `size` bytes, `file` is a struct fuse_file_info. */
typedef int (*read_callback)(const char *path, char *out, size_t size, off_t offset, void *file);

/* A range of an open file whose bytes are a part of one block in memory. */
struct range {
    uint64_t handle;      /* the handle of the file, unique in the process */
    int64_t start, stop;  /* the range in the file; it is empty if nothing is published */
    const uint8_t *data;  /* the byte at `start`. Borrowed from Python until the range is retracted */
    int64_t block_offset; /* the offset of `data` in the block */
    int64_t block_nbytes; /* the size of the block */
    int64_t expires;      /* in nanoseconds of CLOCK_MONOTONIC. Later requests are passed to Python */
    int64_t max_run;      /* consecutive requests of more bytes are passed to Python, which may read ahead */
};

/* What was served from a range. */
struct usage {
    int64_t nbytes;             /* bytes since the last call of zarrfs_mount_collect */
    uint64_t units[UNIT_WORDS]; /* the units of the block whose last byte was read since then, as bits */
    int64_t used_at;            /* the time of the last request in nanoseconds of CLOCK_MONOTONIC, or 0 */
    int64_t end, run;           /* the end of the last consecutive requests in the file, and their bytes */
};

struct slot {
    struct range range;
    struct usage usage;
    int pins; /* copies in progress */
};

/* Counters of the process. */
struct totals {
    int64_t requests, nbytes; /* requests that were served here, and their bytes */
    int64_t active;           /* those that are in progress */
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t unpinned = PTHREAD_COND_INITIALIZER;
static struct slot slots[BUCKETS * WAYS];
static struct totals totals;
static read_callback python_read; /* kept alive by Python. Set before the first request */
static size_t handle_offset;      /* of `fh` in struct fuse_file_info, which depends on the version of libfuse */

static int64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

static struct slot *bucket_of(uint64_t handle) { return slots + handle % BUCKETS * WAYS; }

/* Record a request. The mutex is held. */
static void record(struct slot *slot, int64_t offset, int64_t size, int64_t time) {
    const struct range *range = &slot->range;
    struct usage *usage = &slot->usage;
    int64_t distance = offset - usage->end, low = range->block_offset + offset - range->start, high = low + size;
    int continues = usage->used_at && distance >= -REORDERING_WINDOW && distance <= REORDERING_WINDOW;
    usage->run = continues ? usage->run + size : size;
    if (!continues || offset + size > usage->end) usage->end = offset + size;
    usage->used_at = time;
    usage->nbytes += size;
    int64_t end = high == range->block_nbytes ? (high + UNIT_NBYTES - 1) / UNIT_NBYTES : high / UNIT_NBYTES;
    for (int64_t unit = low / UNIT_NBYTES; unit < end; unit++) usage->units[unit / 64] |= UINT64_C(1) << unit % 64;
}

/* Return the slot with the bytes of a request, pinned, and record the request. NULL if Python has to serve it. */
static struct slot *pin(uint64_t handle, int64_t offset, int64_t size) {
    struct slot *bucket = bucket_of(handle), *found = NULL;
    int64_t time = now();
    pthread_mutex_lock(&mutex);
    for (struct slot *slot = bucket; slot < bucket + WAYS && !found; slot++) {
        const struct range *range = &slot->range;
        if (range->handle == handle && offset >= range->start && offset < range->stop && size <= range->stop - offset)
            found = slot;
    }
    if (found && (time >= found->range.expires || found->usage.run + size > found->range.max_run)) found = NULL;
    if (found) {
        record(found, offset, size, time);
        found->pins++;
        totals.requests++;
        totals.active++;
        totals.nbytes += size;
    }
    pthread_mutex_unlock(&mutex);
    return found;
}

static void unpin(struct slot *slot) {
    pthread_mutex_lock(&mutex);
    totals.active--;
    if (!--slot->pins) pthread_cond_broadcast(&unpinned);
    pthread_mutex_unlock(&mutex);
}

/* Serve a request of libfuse. Return the number of bytes, or a negative error number. */
EXPORT int zarrfs_mount_read(const char *path, char *out, size_t size, off_t offset, void *file) {
    uint64_t handle;
    memcpy(&handle, (const char *)file + handle_offset, sizeof handle);
    struct slot *slot = size ? pin(handle, offset, (int64_t)size) : NULL;
    if (!slot) return python_read(path, out, size, offset, file);
    memcpy(out, slot->range.data + (offset - slot->range.start), size);
    unpin(slot);
    return (int)size;
}

EXPORT void zarrfs_mount_configure(read_callback callback, size_t offset_of_handle) {
    python_read = callback;
    handle_offset = offset_of_handle;
}

/* Publish a range in an empty slot of the bucket of its handle. Calls for one slot are made one after another. */
EXPORT void zarrfs_mount_publish(int index, const struct range *range) {
    pthread_mutex_lock(&mutex);
    slots[index].range = *range;
    pthread_mutex_unlock(&mutex);
}

/* Empty a slot. Afterwards no copy from its memory is in progress. `usage` is what was served and not collected. */
EXPORT void zarrfs_mount_retract(int index, struct usage *usage) {
    struct slot *slot = &slots[index];
    pthread_mutex_lock(&mutex);
    slot->range.stop = 0; /* No request is within the range now. Copies in progress need its start and its data. */
    while (slot->pins) pthread_cond_wait(&unpinned, &mutex);
    *usage = slot->usage;
    memset(slot, 0, sizeof *slot);
    pthread_mutex_unlock(&mutex);
}

/* Return in `usage` what was served from a range since the last call. */
EXPORT void zarrfs_mount_collect(int index, struct usage *usage) {
    struct usage *current = &slots[index].usage;
    pthread_mutex_lock(&mutex);
    *usage = *current;
    current->nbytes = 0;
    memset(current->units, 0, sizeof current->units);
    pthread_mutex_unlock(&mutex);
}

/* Return in `usage` the usage of that range of a handle that was used last; `used_at` is 0 if none was used. */
EXPORT void zarrfs_mount_last_usage(uint64_t handle, struct usage *usage) {
    const struct slot *bucket = bucket_of(handle);
    memset(usage, 0, sizeof *usage);
    pthread_mutex_lock(&mutex);
    for (const struct slot *slot = bucket; slot < bucket + WAYS; slot++)
        if (slot->range.handle == handle && slot->usage.used_at > usage->used_at) *usage = slot->usage;
    pthread_mutex_unlock(&mutex);
}

EXPORT void zarrfs_mount_totals(struct totals *out) {
    pthread_mutex_lock(&mutex);
    *out = totals;
    pthread_mutex_unlock(&mutex);
}

/* The version, and the sizes of the structures and tables, which Python compares with its own. */
EXPORT void zarrfs_mount_describe(int64_t out[6]) {
    const int64_t found[] = {VERSION, sizeof(struct range), sizeof(struct usage), sizeof(struct totals), BUCKETS, WAYS};
    memcpy(out, found, sizeof found);
}

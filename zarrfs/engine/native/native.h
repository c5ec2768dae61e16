/* Native execution of the reads of local, regularly chunked arrays.
 *
 * The caller (structures.py and zarrfs/engine/read/native_reading.py) describes a read in a struct zarrfs_read. The
 * functions here perform it without the Python interpreter. They report each stored value that they cannot read, for
 * whatever reason, in the array `unread`. The caller reads those values with the Python executor, which supports
 * everything and produces the error messages. Nothing here therefore distinguishes "corrupt" from "not supported".
 *
 * All input that comes from files is untrusted. Sizes are checked before memory is allocated or copied.
 */
#ifndef ZARRFS_NATIVE_H
#define ZARRFS_NATIVE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

/* The version of the structures and functions below; structures.py has the same number. */
#ifndef ZARRFS_NATIVE_VERSION
#define ZARRFS_NATIVE_VERSION 10
#endif

#define ZARRFS_EXPORT __attribute__((visibility("default")))

#define MAX_NDIM 16
#define MAX_STEPS 4
#define MAX_THREADS 64
#define MAX_NAME 1024
#define BLOSC_HEADER 16
#define READ_FLAGS (O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW)

/* Bytes->bytes codecs, in the order of decoding. */
enum { STEP_BLOSC = 1, STEP_ZSTD, STEP_LZ4, STEP_GZIP, STEP_ZLIB, STEP_CRC32C };

/* The conversion of elements: 0 copies them; 2, 4 and 8 reverse the bytes of each group of this size. */
enum { ELEMENT_COPY = 0, ELEMENT_BOOL = 1, ELEMENT_SWAP2 = 2, ELEMENT_SWAP4 = 4, ELEMENT_SWAP8 = 8 };

/* Functions of libraries that Python has loaded already. A function is NULL if no step needs it. */
struct zarrfs_functions {
    /* c-blosc 1.21: decodes a whole buffer whose header is valid; returns the decoded size, or a negative number. */
    int (*blosc_decompress_ctx)(const void *src, void *dest, size_t destsize, int numinternalthreads);
    /* The decompressors of the streams of Blosc blocks, as below; NULL: the function above decodes the buffers. */
    int (*blosc_lz4_decompress)(const char *src, char *dst, int size, int capacity);
    void *(*blosc_zstd_create_context)(void);
    size_t (*blosc_zstd_free_context)(void *context);
    size_t (*blosc_zstd_decompress)(void *context, void *dst, size_t capacity, const void *src, size_t size);
    /* zstd 1.x: return the decoded size; errors are values above any size. */
    void *(*zstd_create_context)(void);
    size_t (*zstd_free_context)(void *context);
    size_t (*zstd_decompress)(void *context, void *dst, size_t capacity, const void *src, size_t size);
    /* They decode one block after the other, to contiguous memory; NULL: frames are decoded whole. */
    size_t (*zstd_begin)(void *context);
    size_t (*zstd_next_size)(void *context);
    size_t (*zstd_continue)(void *context, void *dst, size_t capacity, const void *src, size_t size);
    /* lz4 1.9: returns the decoded size, or a negative number. */
    int (*lz4_decompress_safe)(const char *src, char *dst, int size, int capacity);
    /* ISA-L 2: struct inflate_state begins with the fields of struct inflate_head; see codecs.c. */
    void (*isal_inflate_init)(void *state);
    int (*isal_inflate_stateless)(void *state);
    uint32_t (*isal_crc32)(uint32_t crc, const unsigned char *data, uint64_t size);
    uint32_t (*isal_adler32)(uint32_t adler, const unsigned char *data, uint64_t size);
};

/* How one chunk, or one inner chunk of a shard, is encoded. Dimensions are those of the array. */
struct zarrfs_chain {
    int32_t ndim;
    int32_t step_count;
    int32_t steps[MAX_STEPS]; /* in the order of decoding */
    int32_t n5;               /* whether the elements follow an N5 block header */
    int32_t element;          /* ELEMENT_... */
    int64_t itemsize;
    int64_t nbytes;           /* decoded size */
    int64_t max_encoded;      /* the largest encoded size that is accepted */
    int64_t shape[MAX_NDIM];
    int64_t axes[MAX_NDIM];    /* the dimension of the array for each stored dimension, the slowest first */
    int64_t n5_axes[MAX_NDIM]; /* the dimension of the array for each dimension in the N5 header */
};

/* The index of a shard: (offset, size) per inner chunk in C order, little-endian, optionally with a CRC-32C. */
struct zarrfs_shard {
    int32_t present; /* 0: the values are chunks and not shards */
    int32_t index_at_start;
    int32_t index_has_checksum;
    int32_t unused;
    int64_t index_nbytes;
    int64_t grid[MAX_NDIM]; /* inner chunks per shard */
};

/* The thresholds, all in bytes. They are those of read_limits.py: nothing is decided here. */
struct zarrfs_limits {
    int64_t gap;                   /* ranges of a chunk that are closer are read as one */
    int64_t min_partial;           /* smaller uncompressed chunks are read whole */
    int64_t min_partial_compressed; /* smaller compressed chunks are decoded whole */
    int64_t min_rest;              /* a chunk is decoded whole if less than 1 / min_rest of it is not needed */
    int64_t max_piece;             /* uncompressed bytes are read in pieces of about this size */
    int64_t max_small_value;       /* a file of at most this size is read with one request */
    int64_t min_skipped;           /* what has to follow the beginning of a zstd frame that is decoded alone */
    int64_t min_per_range;         /* of chunks with more ranges all elements are unshuffled */
    int64_t inner_gap;             /* inner chunks that are closer are read as one */
    int64_t max_request;           /* as long as they have at most this size together */
};

/* The chunks that a selection intersects in one dimension. The selection is the product of the dimensions.
 *
 * Entry i is the elements start[i], start[i] + step, ... (length[i] of them) of chunk number chunk[i]; they are
 * elements target[i], target[i] + 1, ... of the output. Value number k contains the entries first[k] to first[k+1];
 * it is a chunk, with one entry, or a shard. Numbers of chunks count inner chunks if the array is sharded.
 */
struct zarrfs_dimension {
    int64_t entry_count;
    int64_t value_count;
    int64_t step;
    const int64_t *chunk, *start, *length, *target;
    const int64_t *value; /* the number of each value in the grid of stored values */
    const int64_t *first; /* value_count + 1 entries */
};

struct zarrfs_read {
    const struct zarrfs_functions *functions;
    const struct zarrfs_chain *chain;
    const struct zarrfs_shard *shard;
    const struct zarrfs_limits *limits;
    /* Names are relative to an open directory: head, then the numbers with the separator before each of them, except
     * before the first one if head is empty. */
    const char *head;
    int32_t directory;
    int32_t separator;
    int32_t names_reversed; /* whether the name begins with the number of the last dimension */
    int32_t missing_falls_back; /* whether a missing value, or inner chunk, is reported in `unread` */
    const unsigned char *fill;  /* the fill value, itemsize bytes */
    unsigned char *out;
    int64_t out_shape[MAX_NDIM];
    int64_t out_strides[MAX_NDIM]; /* in bytes */
    struct zarrfs_dimension dimensions[MAX_NDIM];
    /* Decoded chunks that the caller caches: per value the memory for a whole chunk in C order, or NULL. May be NULL. */
    unsigned char *const *kept;
    /* Per task the modification time in nanoseconds, the size and the inode of the file; -1 if it is missing. The
     * caller compares the parts of a value, which must come from one file. May be NULL if `parts` is 1. */
    int64_t *stamps;
    uint8_t *unread;     /* one byte per value in C order; 1: it is not to be read, or could not be read */
    int64_t value_count; /* product of the dimensions' */
    int64_t parts;       /* into how many tasks each value is divided: 1 unless sharded */
    int64_t next;        /* the next task; tasks before it have been taken */
    int64_t budget_ns;   /* return when this time has passed */
    int32_t threads;
    int32_t unused;
};

/* -- exported functions; all are safe to call from several threads at once -------------------------------------- */

/* Return ZARRFS_NATIVE_VERSION. */
ZARRFS_EXPORT int zarrfs_native_version(void);
/* Return the sizes of zarrfs_read, zarrfs_chain, zarrfs_shard, zarrfs_dimension, zarrfs_functions and zarrfs_limits. */
ZARRFS_EXPORT void zarrfs_structure_sizes(int64_t sizes[6]);
/* Check the descriptions against each other: 0, or -1 if a copy could leave a buffer. */
ZARRFS_EXPORT int zarrfs_check(const struct zarrfs_read *read);
/* Execute tasks until none is left (return 0) or the budget is used up (return 1; call again to continue). No thread
 * is left running. `read` must have passed zarrfs_check. */
ZARRFS_EXPORT int zarrfs_execute(struct zarrfs_read *read);
/* Read the documents of the arrays in `count` directories below `directory`, whose names follow each other with a zero
 * byte after each, and count the files in them. Per directory `results` receives ten values: the offset in `buffer` of
 * zarr.json or .zarray and its size, the offset of .zattrs next to .zarray (-1 if there is none, -2 next to zarr.json)
 * and its size, the number of files, their bytes, the latest modification in nanoseconds, and the mode, the user and
 * the group of the first document. The first offset is -1 if there is anything else than directories and files, a
 * group of version 2, documents of two versions, more than `max_entries` entries, a document of more than `limit`
 * bytes or none, or an error. With `is_shallow` directories in the directories are not examined, and files other than
 * documents not counted. Returns how many directories were examined before less than the size of two documents was
 * free in the buffer. */
ZARRFS_EXPORT int64_t zarrfs_scan_members(int directory, const char *names, int64_t count, unsigned char *buffer,
                                          int64_t capacity, int64_t limit, int64_t max_entries, int is_shallow,
                                          int64_t *results);
/* Decode one step to exactly `capacity` bytes; return 0 on success. For the checks at load time and for tests. */
ZARRFS_EXPORT int zarrfs_decode_step(const struct zarrfs_functions *functions, int step, const unsigned char *data,
                                     int64_t size, unsigned char *out, int64_t capacity);
ZARRFS_EXPORT uint32_t zarrfs_crc32c(const unsigned char *data, size_t size);
/* The implementation for processors without the instruction, for tests. */
ZARRFS_EXPORT uint32_t zarrfs_crc32c_tables(const unsigned char *data, size_t size);

/* -- internal ---------------------------------------------------------------------------------------------------- */

struct buffer {
    unsigned char *data;
    size_t capacity;
};

/* What one thread uses. */
struct worker {
    struct zarrfs_read *read;
    int64_t deadline;
    struct buffer encoded, decoded, blocks, shuffled, index, entries;
    void *zstd, *blosc_zstd;
    void *inflate;
};

/* A stored value or a part of it: in memory, or to be read from a file. */
struct source {
    const unsigned char *memory;
    int fd;
    int64_t base;
    int64_t size;
    int64_t *request_count; /* the number of reads of the file is added to it, unless it is NULL */
};

/* The elements of one chunk that are requested: per dimension start, step and length, and the place in the output. */
struct box {
    int64_t start[MAX_NDIM], length[MAX_NDIM], step[MAX_NDIM];
    unsigned char *out;
};

/* The byte ranges of a box in the decoded chunk: `count` dimensions of ranges, each `span` bytes. */
struct ranges {
    int count;
    int64_t first, span, nbytes;
    int64_t lengths[MAX_NDIM], strides[MAX_NDIM];
};

/* One of these ranges. */
struct position {
    int64_t index[MAX_NDIM], start;
};

/* The elements of a box, which are collected block by block. */
struct collection {
    struct ranges ranges;
    struct position position; /* of the next range */
    int64_t start, size;      /* what is left of the present range; size 0: nothing is left */
    unsigned char *out;
};

/* The files in the order of their calls: a file calls functions of the files before it only. All functions that return
 * int return 0 on success. */

/* sources.c */

/* Return at least `size` bytes that stay valid until the next call for this buffer, or NULL. */
unsigned char *reserve(struct buffer *buffer, size_t size);
/* Copy a range of the source to `target`. Fails at the end of the file. */
int fetch(const struct source *source, int64_t offset, int64_t size, unsigned char *target);
/* Whether the file has the modification time and the size that it had before. */
int is_unchanged(int fd, const struct stat *before);

/* paths.c */

/* Write the name of a value relative to the directory to MAX_NAME bytes. Fails if it is too long. */
int format_name(const struct zarrfs_read *read, const int64_t *value, char *name);
/* Open a file or directory below the directory; return a descriptor, or -1 and errno. Symbolic links are not followed.
 * `name` may be changed. */
int open_below(int directory, char *name, int flags);

/* copying.c */

/* Set the strides in bytes, per dimension of the array, of a chunk of `shape` as it is stored. */
void chunk_strides(const struct zarrfs_chain *chain, const int64_t *shape, int64_t *strides);
/* Set the box of the selected elements of one chunk, which is given by its entry in each dimension. */
void entry_box(const struct zarrfs_read *read, const int64_t *entries, struct box *box);
void copy_box(const struct zarrfs_read *read, const struct box *box, const unsigned char *chunk,
              const int64_t *strides);
/* The reverse: copy the elements of `box->out` to a chunk. */
void store_box(const struct zarrfs_read *read, const struct box *box, unsigned char *chunk, const int64_t *strides);
void fill_box(const struct zarrfs_read *read, const struct box *box);
/* Whether the box is a whole chunk that lies in the output as it is stored. */
int is_direct(const struct zarrfs_read *read, const struct box *box);
/* Whether the box lacks elements of the chunk. */
int is_partial(const struct zarrfs_read *read, const struct box *box);

/* ranges.c */

/* Find the ranges of a box. Those that are at most `gap` bytes apart are joined. */
void find_ranges(const struct zarrfs_chain *chain, const struct box *box, const int64_t *strides, int64_t gap,
                 struct ranges *ranges);
struct position first_position(const struct ranges *ranges);
/* Proceed to the next range, in ascending order. Return 0 if there is none. */
int next_position(const struct ranges *ranges, struct position *position);
/* Call `visit` for each range, in ascending order, until it returns another number than 0. */
int for_each_range(const struct ranges *ranges, int (*visit)(void *context, int64_t start, int64_t size),
                   void *context);
/* Fetch ranges of a chunk that begins at `offset` of the source. Byte `first` of the chunk goes to `target`. */
int fetch_ranges(const struct source *source, int64_t offset, const struct ranges *ranges, int64_t first,
                 unsigned char *target);

/* codecs.c */

int check_blosc_header(const unsigned char *header, int64_t available, int64_t nbytes);
int decode_step(struct worker *worker, int step, const unsigned char *data, int64_t size, unsigned char *out,
                int64_t capacity);
/* Decode the beginning of a zstd frame to `worker->decoded`, at least `needed` of its `nbytes` bytes. Return 1 if this is
 * not possible, or would not save much: the whole frame is to be decoded. */
int decode_zstd_begin(struct worker *worker, const unsigned char *data, int64_t size, int64_t nbytes, int64_t needed);
void free_contexts(struct worker *worker);

/* collecting.c */

/* Begin to collect the elements of a box in `worker->decoded`, one after the other in the order in which they are
 * stored. */
int begin_collection(struct worker *worker, const struct box *box, const int64_t *strides,
                     struct collection *collection);
/* Collect the elements in a block of `nbytes` bytes, which is byte `begin` of the chunk. Blocks follow in ascending order
 * and include all that contain elements of the box. If `itemsize` is not 0, the bytes of the block are shuffled, and its
 * begin and its size are multiples of `itemsize`, which is that of the chunk. */
void collect(struct collection *collection, const unsigned char *data, int64_t begin, int64_t nbytes,
             int64_t itemsize);
/* Copy the collected elements to the output. */
void copy_collection(struct worker *worker, const struct box *box);

/* blosc.c */

/* Decode a Blosc buffer in memory and copy the elements of the box, for which a decoded chunk has the given strides.
 * Return 1 if the library is to decode the whole buffer. */
int read_blosc_elements(struct worker *worker, const unsigned char *data, int64_t size, int64_t nbytes,
                        const struct box *box, const int64_t *strides);
/* The same for a value of which only the blocks of `ranges` are read. Return 1 if the whole value is to be decoded: it
 * is in the memory of `whole` if that is not NULL. */
int read_blosc_partially(struct worker *worker, const struct source *source, const struct ranges *ranges,
                         const struct box *box, const int64_t *strides, struct source *whole);

/* chunks.c */

int read_chunk(struct worker *worker, const struct source *source, const struct box *box);
/* Read only a part of the value if that is possible and less work: 0 done, 1 read the whole value, -1 failure. */
int read_chunk_partially(struct worker *worker, const struct source *source, const struct box *box);

/* shards.c */

/* Read part number `part` of the requested inner chunks of an open shard. */
int read_shard(struct worker *worker, int fd, const struct stat *status, const int64_t *value, int64_t part);

/* reading.c, which also has the exported functions of a read; zarrfs_check is in checks.c. */

int64_t now_ns(void);
void free_worker(struct worker *worker);

static inline uint32_t load_le32(const unsigned char *p) {
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static inline uint32_t load_be32(const unsigned char *p) {
    return (uint32_t)p[3] | (uint32_t)p[2] << 8 | (uint32_t)p[1] << 16 | (uint32_t)p[0] << 24;
}

#endif

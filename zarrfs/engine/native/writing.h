/* Native execution of the writes of local, regularly chunked arrays.
 *
 * The caller (write_structures.py and zarrfs/engine/write/native_writing.py) describes a write in a struct zarrfs_write
 * and holds the locks of the chunks while they are written. Each value is written to a temporary file, which is renamed
 * over the target, as in zarrfs/engine/stores/local/store.py. Values that cannot be written, for whatever reason, are
 * reported; their old files are unchanged and no temporary file is left. The caller writes them with the Python
 * executor, which supports everything and produces the error messages. The files have the same bytes as those that the
 * Python executor writes.
 */
#ifndef ZARRFS_WRITING_H
#define ZARRFS_WRITING_H

#include "native.h"

/* Functions of libraries that Python has loaded already. A function is NULL if no step needs it. */
struct zarrfs_encoders {
    /* c-blosc 1.21: returns the encoded size, 0 if it does not fit, or a negative number. */
    int (*blosc_compress_ctx)(int level, int shuffle, size_t typesize, size_t size, const void *src, void *dst,
                              size_t capacity, const char *cname, size_t blocksize, int threads);
    /* zstd 1.x: sizes and parameters; errors are values that zstd_is_error recognizes. */
    void *(*zstd_create_context)(void);
    size_t (*zstd_free_context)(void *context);
    size_t (*zstd_set_parameter)(void *context, int parameter, int value);
    size_t (*zstd_compress)(void *context, void *dst, size_t capacity, const void *src, size_t size);
    size_t (*zstd_bound)(size_t size);
    unsigned (*zstd_is_error)(size_t code);
    /* lz4 1.9: returns the encoded size, or 0. */
    int (*lz4_compress_fast)(const char *src, char *dst, int size, int capacity, int acceleration);
};

/* The parameters of one step. */
struct zarrfs_step_options {
    int32_t level; /* of LZ4 the acceleration */
    int32_t shuffle;
    int32_t typesize;
    int32_t checksum; /* zstd: whether frames have a checksum */
    int64_t blocksize;
    char cname[16];
};

struct zarrfs_write {
    /* The selection. `out` is the memory of the values, which is only read; `unread` has one byte per value (chunk or
     * shard): 1 if it is not to be written, or could not be written. `parts`, `next` and `kept` are not used. */
    struct zarrfs_read read;
    const struct zarrfs_encoders *encoders;
    struct zarrfs_step_options options[MAX_STEPS]; /* in the order of read.chain->steps */
    const unsigned char *stored_fill; /* the fill value as it is stored, itemsize bytes */
    const char *temporary;            /* how the names of temporary files begin; unique for this write */
    int64_t shape[MAX_NDIM];          /* of the array */
    int64_t max_stored;               /* the largest stored shard that is accepted */
    int64_t parts;                    /* into how many tasks each value is divided: 1 unless sharded */
    int64_t next;                     /* the next task; tasks before it are done */
    int64_t limit;                    /* the end of the tasks to do now, a multiple of `parts` */
    int32_t delete_filled;            /* whether chunks that contain only the fill value are deleted */
    int32_t durable;                  /* whether files and directories are synchronized with the disk */
    int32_t failed;                   /* set when a value could not be written: no further value is begun */
    int32_t pruned;                   /* set when an empty directory was removed */
    struct writer *writers;           /* NULL at first; belongs to the library until zarrfs_end_write */
    int64_t writer_count;
};

/* -- exported functions; all are safe to call from several threads at once, for different writes ----------------- */

/* Return the sizes of zarrfs_write, zarrfs_encoders and zarrfs_step_options. */
ZARRFS_EXPORT void zarrfs_write_structure_sizes(int64_t sizes[3]);
/* Check the descriptions against each other: 0, or -1 if a copy could leave a buffer. */
ZARRFS_EXPORT int zarrfs_check_write(const struct zarrfs_write *write);
/* Execute tasks until `limit`, a failure, or the end of the budget. Values that were begun are completed. Return whether
 * tasks before `limit` are left. No thread is left running. `write` must have passed zarrfs_check_write. */
ZARRFS_EXPORT int zarrfs_execute_write(struct zarrfs_write *write);
/* Free what the calls of a write keep. */
ZARRFS_EXPORT void zarrfs_end_write(struct zarrfs_write *write);
/* Encode one step. Return the encoded size, or -1 if it fails or exceeds `capacity`. For the checks at load time. */
ZARRFS_EXPORT int64_t zarrfs_encode_step(const struct zarrfs_encoders *encoders, int step,
                                         const struct zarrfs_step_options *options, const unsigned char *data,
                                         int64_t size, unsigned char *out, int64_t capacity);

/* -- internal ---------------------------------------------------------------------------------------------------- */

/* Bytes of a shard: `size` bytes of the old shard from `old_offset`, or, if that is -1, the next ones of the buffer. */
struct segment {
    int64_t old_offset, size;
};

struct output {
    struct buffer buffer;
    size_t size; /* bytes in the buffer */
    struct segment *segments;
    size_t count, capacity; /* of segments */
};

/* The compression contexts of one thread, per step. */
struct encoder {
    const struct zarrfs_encoders *functions;
    struct buffer stages[2];
    void *zstd[MAX_STEPS];
};

/* The directory of the value that a thread wrote last. */
struct parent {
    int fd; /* -1: none */
    char name[MAX_NAME];
};

/* What one thread uses. `reader` reads the old data of partially written chunks, without converting elements. */
struct writer {
    struct zarrfs_write *write;
    struct jobs *jobs;
    int64_t deadline, first_task;
    struct encoder encoder;
    struct parent parent;
    struct worker reader;
    struct zarrfs_read stored;
    struct zarrfs_chain stored_chain;
    int64_t strides[MAX_NDIM]; /* of the stored chunk, per dimension of the array */
    struct buffer chunk;
    struct output output;
};

/* A temporary file. */
struct value_file {
    int fd;     /* -1: not open */
    int parent; /* the directory, which belongs to the writer */
    const char *base;
    char temporary[256];
};

/* The files in the order of their calls, as in native.h. */

/* encoding.c */

/* Encode `size` bytes with all steps. The result is valid until the next call, or is `data` itself. */
int encode_steps(struct encoder *encoder, const struct zarrfs_write *write, const unsigned char *data, int64_t size,
                 const unsigned char **encoded, int64_t *encoded_size);
void free_encoder(struct encoder *encoder);

/* files.c */

/* Open a stored value, and lock it as zarrfs/engine/stores/locks.py does, but without waiting. `fd` is set to -1 if it is
 * missing. Return -1 if another process holds the lock, or the value cannot be locked. */
int lock_value(struct writer *writer, const char *name, int *fd, struct stat *status);
void unlock_value(int *fd);
/* Create a temporary file for a value in its directory, which is created if needed. `number` is that of the value, and
 * `name` must stay valid. The file is committed or abandoned before another one is begun by the same writer. */
int begin_file(struct writer *writer, char *name, int64_t number, struct value_file *file);
int write_file_range(const struct value_file *file, const unsigned char *data, int64_t size, int64_t offset);
/* Rename the file over the target, or, if `is_new`, to a name that must be free. If that fails, it is abandoned. */
int commit_file(struct writer *writer, struct value_file *file, int is_new);
void abandon_file(struct value_file *file);
/* Delete a value, and its directories if they are empty then. */
int delete_value(struct writer *writer, char *name);
void close_parent(struct writer *writer);

/* chunk_writing.c */

/* Set `data` to the stored form of a chunk before the steps: the elements of the box, and for the rest the old data, or
 * the fill value if `old` is NULL. `covered`: whether the box is the whole chunk. */
int assemble_chunk(struct writer *writer, const struct box *box, int covered, const struct source *old,
                   const unsigned char **data);
/* Whether a chunk in its stored form is to be deleted, because it contains only the fill value. */
int is_deleted(const struct zarrfs_write *write, const unsigned char *data);
int covers_chunk(const struct zarrfs_read *read, const struct box *box);
/* Write value number `number`, which is a chunk. */
int write_chunk(struct writer *writer, int64_t number, const int64_t *value);

/* shard_output.c */

/* Append bytes, or a range of the old shard. */
int add_bytes(struct output *output, const unsigned char *data, int64_t size);
int add_old_bytes(struct output *output, int64_t offset, int64_t size);
/* Write all bytes to the file at `*position`, which is advanced, and empty the output. */
int write_output(struct output *output, int old_fd, const struct value_file *file, int64_t *position);
void free_output(struct output *output);

/* shard_writing.c; write_shard is called by writing.c, which has the exported functions. */

/* The shards that are being written, of values `first` to `first + count`. NULL if memory is exhausted. */
struct jobs *create_jobs(const struct zarrfs_write *write, int64_t first, int64_t count);
void free_jobs(struct jobs *jobs);
/* Write part `part` of a shard. Return -1 if the value failed, in the last one of its parts. */
int write_shard(struct writer *writer, int64_t number, const int64_t *value, int64_t part);

#endif

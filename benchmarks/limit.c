/* The least work of a read: the decoder calls on encoded chunks in memory, and one copy of the output.
 *
 * Compiled together with the decoders of zarrfs/engine/native. limit.py has the same structure. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "native.h"

#define MAX_THREADS 64

struct limit_job {
    const struct zarrfs_functions *functions;
    const unsigned char *const *chunks;
    const int64_t *sizes;
    unsigned char *out;
    int64_t count;
    int64_t nbytes;     /* the decoded size of a chunk */
    int64_t out_nbytes; /* each chunk contributes an equal share of the output */
    int64_t next;
    int32_t step; /* STEP_..., or 0 for uncompressed chunks */
    int32_t threads;
    int32_t failures;
    int32_t unused;
};

static void *run_chunks(void *argument) {
    struct limit_job *job = argument;
    struct zarrfs_read read = {.functions = job->functions};
    struct worker worker = {.read = &read};
    int64_t number;
    unsigned char *scratch = malloc((size_t)job->nbytes);
    while (scratch && (number = __atomic_fetch_add(&job->next, 1, __ATOMIC_RELAXED)) < job->count) {
        int64_t begin = job->out_nbytes * number / job->count, end = job->out_nbytes * (number + 1) / job->count;
        const unsigned char *decoded = job->chunks[number];
        if (job->step) {
            if (decode_step(&worker, job->step, decoded, job->sizes[number], scratch, job->nbytes))
                __atomic_fetch_add(&job->failures, 1, __ATOMIC_RELAXED);
            decoded = scratch;
        }
        memcpy(job->out + begin, decoded, (size_t)(end - begin));
    }
    free_contexts(&worker);
    free(scratch);
    return NULL;
}

/* Return the number of chunks that could not be decoded. A share of the output must not be larger than a chunk. */
ZARRFS_EXPORT int zarrfs_limit(struct limit_job *job) {
    pthread_t threads[MAX_THREADS];
    int started = 0;
    while (started < job->threads - 1 && started < MAX_THREADS &&
           !pthread_create(&threads[started], NULL, run_chunks, job))
        started++;
    run_chunks(job);
    while (started) pthread_join(threads[--started], NULL);
    return job->failures;
}

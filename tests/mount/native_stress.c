/* Threads read a range while another one publishes it, retracts it and overwrites its memory.
 *
 * The memory has the same byte everywhere while it is published: an even number, and an odd one otherwise. A copy of
 * an odd number, or of two numbers, would be one that was made after a retraction, or during the next generation. A
 * handle of another bucket publishes its own range. The program ends with 1 if a copy is wrong.
 */
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

enum { READERS = 3, GENERATIONS = 150, NBYTES = 1 << 16, BLOCK_OFFSET = 1 << 16, WAYS = 8, NO_DATA = -61 };

struct range {
    uint64_t handle;
    int64_t start, stop;
    const uint8_t *data;
    int64_t block_offset, block_nbytes, expires, max_run;
};

struct usage {
    int64_t nbytes;
    uint64_t units[16];
    int64_t used_at, end, run;
};

struct file_info {
    int flags;
    uint64_t handle;
};

typedef int (*read_callback)(const char *, char *, size_t, off_t, void *);
int zarrfs_mount_read(const char *path, char *out, size_t size, off_t offset, void *file);
void zarrfs_mount_configure(read_callback callback, size_t offset_of_handle);
void zarrfs_mount_publish(int index, const struct range *range);
void zarrfs_mount_retract(int index, struct usage *usage);
void zarrfs_mount_collect(int index, struct usage *usage);
void zarrfs_mount_last_usage(uint64_t handle, struct usage *usage);

static int is_ended, wrong;
static int64_t served;

static int refuse(const char *path, char *out, size_t size, off_t offset, void *file) {
    (void)path, (void)out, (void)size, (void)offset, (void)file;
    return NO_DATA;
}

static void *read_range(void *argument) {
    struct file_info file = {0, (uint64_t)(intptr_t)argument};
    char out[NBYTES / 4];
    for (unsigned turn = 0; !__atomic_load_n(&is_ended, __ATOMIC_ACQUIRE); turn++) {
        size_t size = sizeof out - turn % 7, offset = turn % 4 * (NBYTES / 4);
        int count = zarrfs_mount_read(NULL, out, size, (off_t)offset, &file);
        if (count == NO_DATA) continue;
        int is_right = count == (int)size && out[0] % 2 == 0;
        for (size_t i = 1; i < size; i++) is_right &= out[i] == out[0];
        if (!is_right) __atomic_store_n(&wrong, 1, __ATOMIC_RELEASE);
        __atomic_add_fetch(&served, 1, __ATOMIC_ACQ_REL);
    }
    return NULL;
}

int main(void) {
    uint8_t *memory[2] = {malloc(NBYTES), malloc(NBYTES)};
    pthread_t threads[2 * READERS];
    zarrfs_mount_configure(refuse, offsetof(struct file_info, handle));
    for (intptr_t i = 0; i < 2 * READERS; i++) pthread_create(&threads[i], NULL, read_range, (void *)(1 + i % 2));
    int64_t nbytes[2] = {0, 0};
    for (int generation = 0; generation < GENERATIONS; generation++) {
        struct usage usage;
        int64_t before = __atomic_load_n(&served, __ATOMIC_ACQUIRE);
        for (int i = 0; i < 2; i++) {
            memset(memory[i], generation % 60 * 2, NBYTES);
            struct range range = {1 + i, 0, NBYTES, memory[i], BLOCK_OFFSET, BLOCK_OFFSET + NBYTES, INT64_MAX, INT64_MAX};
            zarrfs_mount_publish((1 + i) * WAYS + generation % WAYS, &range);
        }
        while (__atomic_load_n(&served, __ATOMIC_ACQUIRE) == before) sched_yield();
        for (int i = 0; i < 2; i++) {
            int slot = (1 + i) * WAYS + generation % WAYS;
            zarrfs_mount_last_usage(1 + i, &usage);
            zarrfs_mount_collect(slot, &usage);
            nbytes[i] += usage.nbytes;
            zarrfs_mount_retract(slot, &usage);
            nbytes[i] += usage.nbytes;
            /* Only the units of this half of the block were read. */
            if (usage.units[0] & ~UINT64_C(2)) wrong = 1;
            memset(memory[i], 1, NBYTES);
            if (generation % 10 == 0) {
                free(memory[i]);
                memory[i] = malloc(NBYTES);
            }
        }
    }
    __atomic_store_n(&is_ended, 1, __ATOMIC_RELEASE);
    for (int i = 0; i < 2 * READERS; i++) pthread_join(threads[i], NULL);
    free(memory[0]);
    free(memory[1]);
    printf("%lld requests, %lld and %lld bytes\n", (long long)served, (long long)nbytes[0], (long long)nbytes[1]);
    return wrong || nbytes[0] + nbytes[1] == 0;
}

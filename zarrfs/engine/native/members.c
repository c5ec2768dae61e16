/* Reading the metadata documents of many members of a group, with what their files occupy, in one call. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "native.h"

#define DOCUMENT "zarr.json"
#define TEMPORARY_PREFIX ".zarrfs-writing-"
#define MEMBER_FLAGS (O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW)
#define MAX_DEPTH 32
#define ENTRIES_NBYTES 4096
#define RESULTS 5
#define NS_PER_SECOND 1000000000LL

/* The layout of getdents64. */
struct entry {
    uint64_t inode;
    int64_t offset;
    unsigned short length;
    unsigned char type;
    char name[];
};

struct scan {
    unsigned char *buffer; /* where the document goes */
    int64_t limit;         /* the maximum size of the document */
    int64_t document;      /* its size, -1 if there is none */
    int64_t entries;       /* how many entries may still be examined */
    int64_t keys, nbytes, newest;
};

static void count_file(struct scan *scan, const struct stat *status) {
    int64_t modified = status->st_mtim.tv_sec * NS_PER_SECOND + status->st_mtim.tv_nsec;
    scan->keys++;
    scan->nbytes += status->st_size;
    if (modified > scan->newest) scan->newest = modified;
}

static int read_document(struct scan *scan, int directory) {
    int fd = openat(directory, DOCUMENT, READ_FLAGS);
    if (fd < 0) return -1;
    struct stat status;
    int failed = fstat(fd, &status) || !S_ISREG(status.st_mode) || status.st_size > scan->limit;
    int64_t done = 0;
    while (!failed && done < status.st_size) {
        ssize_t count = pread(fd, scan->buffer + done, (size_t)(status.st_size - done), done);
        if (count < 0 && errno == EINTR) continue;
        failed = count <= 0;
        if (!failed) done += count;
    }
    close(fd);
    if (failed) return -1;
    scan->document = done;
    count_file(scan, &status);
    return 0;
}

static int scan_directory(struct scan *scan, int directory, int depth);

static int scan_entry(struct scan *scan, int directory, const struct entry *entry, int depth) {
    const char *name = entry->name;
    if (!strcmp(name, ".") || !strcmp(name, "..")) return 0;
    if (--scan->entries < 0) return -1;
    if (entry->type == DT_LNK || entry->type == DT_UNKNOWN) return -1;
    if (!strncmp(name, TEMPORARY_PREFIX, strlen(TEMPORARY_PREFIX))) return 0;
    if (entry->type == DT_DIR) {
        if (depth == MAX_DEPTH) return -1;
        int below = openat(directory, name, MEMBER_FLAGS);
        if (below < 0) return -1;
        int failed = scan_directory(scan, below, depth + 1);
        close(below);
        return failed;
    }
    if (depth == 0) {
        if (!strcmp(name, DOCUMENT)) return read_document(scan, directory);
        /* The node has documents of another format too, which causes a warning. */
        if (!strcmp(name, ".zarray") || !strcmp(name, ".zgroup")) return -1;
    }
    struct stat status;
    if (fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW)) return errno == ENOENT ? 0 : -1;
    if (S_ISLNK(status.st_mode) || S_ISDIR(status.st_mode)) return -1; /* it was replaced */
    count_file(scan, &status);
    return 0;
}

/* Examine the entries of a directory. Return -1 if there is anything that needs more than this. */
static int scan_directory(struct scan *scan, int directory, int depth) {
    char entries[ENTRIES_NBYTES] __attribute__((aligned(8)));
    for (;;) {
        long count = syscall(SYS_getdents64, directory, entries, sizeof entries);
        if (count < 0) return -1;
        if (count == 0) return 0;
        for (long offset = 0; offset < count;) {
            const struct entry *entry = (const struct entry *)(entries + offset);
            if (scan_entry(scan, directory, entry, depth)) return -1;
            offset += entry->length;
        }
    }
}

int64_t zarrfs_scan_members(int directory, const char *names, int64_t count, unsigned char *buffer, int64_t capacity,
                            int64_t limit, int64_t max_entries, int64_t *results) {
    int64_t used = 0;
    for (int64_t i = 0; i < count; i++, names += strlen(names) + 1) {
        if (capacity - used < limit) return i;
        struct scan scan = {buffer + used, limit, -1, max_entries, 0, 0, 0};
        int64_t *result = results + i * RESULTS;
        result[0] = -1;
        if (!*names || strchr(names, '/') || !strcmp(names, ".") || !strcmp(names, "..")) continue;
        int member = openat(directory, names, MEMBER_FLAGS);
        if (member < 0) continue;
        int failed = scan_directory(&scan, member, 0);
        close(member);
        if (failed || scan.document < 0) continue;
        result[0] = used;
        result[1] = scan.document;
        result[2] = scan.keys;
        result[3] = scan.nbytes;
        result[4] = scan.newest;
        used += scan.document;
    }
    return count;
}

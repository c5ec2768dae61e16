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
#define V2_ARRAY ".zarray"
#define V2_GROUP ".zgroup"
#define V2_ATTRIBUTES ".zattrs"
#define TEMPORARY_PREFIX ".zarrfs-writing-"
#define MEMBER_FLAGS (O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW)
#define MAX_DEPTH 32
#define ENTRIES_NBYTES 4096
#define RESULTS 10
#define MISSING 1
#define MAX_DOCUMENTS 2 /* of a member that is an array; a directory can contain more */
#define NS_PER_SECOND 1000000000LL

/* The layout of getdents64. */
struct entry {
    uint64_t inode;
    int64_t offset;
    unsigned short length;
    unsigned char type;
    char name[];
};

struct document {
    int64_t start; /* in the buffer, -1 if there is no document */
    int64_t nbytes;
};

struct scan {
    unsigned char *buffer;
    int64_t capacity, used; /* the size of the buffer, and how much of it is used */
    int64_t limit;   /* the maximum size of a document */
    int64_t entries; /* how many entries may still be examined */
    struct document v3, v2, attributes;
    struct stat status; /* of the document that describes the array */
    int64_t keys, nbytes, newest;
};

static void count_file(struct scan *scan, const struct stat *status) {
    int64_t modified = status->st_mtim.tv_sec * NS_PER_SECOND + status->st_mtim.tv_nsec;
    scan->keys++;
    scan->nbytes += status->st_size;
    if (modified > scan->newest) scan->newest = modified;
}

static int read_document(struct scan *scan, int directory, const char *name, struct document *document) {
    int fd = openat(directory, name, READ_FLAGS);
    if (fd < 0) return errno == ENOENT ? MISSING : -1;
    struct stat status;
    int failed = document->start >= 0 || fstat(fd, &status) || !S_ISREG(status.st_mode) ||
                 status.st_size > scan->limit || status.st_size > scan->capacity - scan->used;
    int64_t done = 0;
    while (!failed && done < status.st_size) {
        ssize_t count = pread(fd, scan->buffer + scan->used + done, (size_t)(status.st_size - done), done);
        if (count < 0 && errno == EINTR) continue;
        failed = count <= 0;
        if (!failed) done += count;
    }
    close(fd);
    if (failed) return -1;
    *document = (struct document){scan->used, done};
    scan->used += done;
    if (document != &scan->attributes) scan->status = status;
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
    if (depth == 0) {
        if (!strcmp(name, DOCUMENT)) return read_document(scan, directory, name, &scan->v3);
        if (!strcmp(name, V2_ARRAY)) return read_document(scan, directory, name, &scan->v2);
        if (!strcmp(name, V2_ATTRIBUTES)) return read_document(scan, directory, name, &scan->attributes);
        if (!strcmp(name, V2_GROUP)) return -1;
    }
    if (entry->type == DT_DIR) {
        if (depth == MAX_DEPTH) return -1;
        int below = openat(directory, name, MEMBER_FLAGS);
        if (below < 0) return -1;
        int failed = scan_directory(scan, below, depth + 1);
        close(below);
        return failed;
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

/* Read the documents of a member by their names: most time of a listing is otherwise spent on reading the directories
   of the members. Return -1 as scan_directory does. */
static int read_documents(struct scan *scan, int directory) {
    struct stat status;
    if (!fstatat(directory, V2_GROUP, &status, AT_SYMLINK_NOFOLLOW) || errno != ENOENT) return -1;
    int v3 = read_document(scan, directory, DOCUMENT, &scan->v3);
    if (v3 == 0) return !fstatat(directory, V2_ARRAY, &status, AT_SYMLINK_NOFOLLOW) || errno != ENOENT ? -1 : 0;
    if (v3 != MISSING || read_document(scan, directory, V2_ARRAY, &scan->v2)) return -1;
    return read_document(scan, directory, V2_ATTRIBUTES, &scan->attributes) < 0 ? -1 : 0;
}

/* Examine one member. Return -1 if it is not an array that the documents describe completely. */
static int scan_member(struct scan *scan, int directory, const char *name, int is_shallow) {
    if (!*name || strchr(name, '/') || !strcmp(name, ".") || !strcmp(name, "..")) return -1;
    int member = openat(directory, name, is_shallow ? MEMBER_FLAGS | O_PATH : MEMBER_FLAGS);
    if (member < 0) return -1;
    int failed = is_shallow ? read_documents(scan, member) : scan_directory(scan, member, 0);
    close(member);
    /* A node with documents of both formats causes a warning. A .zattrs next to a zarr.json has no meaning. */
    return failed || (scan->v3.start < 0) == (scan->v2.start < 0) ? -1 : 0;
}

/* One thread examines all members: two contend for the table of open files, and need several times the time of one. */
int64_t zarrfs_scan_members(int directory, const char *names, int64_t count, unsigned char *buffer, int64_t capacity,
                            int64_t limit, int64_t max_entries, int is_shallow, int64_t *results) {
    const struct document none = {-1, 0};
    int64_t used = 0;
    for (int64_t i = 0; i < count; i++, names += strlen(names) + 1, results += RESULTS) {
        if (capacity - used < MAX_DOCUMENTS * limit) return i;
        struct scan scan = {.buffer = buffer, .capacity = capacity, .used = used, .limit = limit};
        scan.entries = max_entries;
        scan.v3 = scan.v2 = scan.attributes = none;
        results[0] = -1;
        if (scan_member(&scan, directory, names, is_shallow)) continue;
        struct document document = scan.v3.start >= 0 ? scan.v3 : scan.v2;
        results[0] = document.start;
        results[1] = document.nbytes;
        results[2] = scan.v3.start >= 0 ? -2 : scan.attributes.start;
        results[3] = scan.attributes.nbytes;
        results[4] = scan.keys;
        results[5] = scan.nbytes;
        results[6] = scan.newest;
        results[7] = scan.status.st_mode;
        results[8] = scan.status.st_uid;
        results[9] = scan.status.st_gid;
        used = scan.used;
    }
    return count;
}

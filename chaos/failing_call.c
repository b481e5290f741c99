/* One call on a transaction log fails with EIO, and the next does not: what a disk does that cannot write one sector.
 *
 * The next sync fails while there is a file "$FAILING_CALL.sync", the next write while there is "$FAILING_CALL.write".
 * Whoever removes the file has its call fail, so that it is one, whatever threads there are. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int is_log(int file) {
    char link[64], name[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t size = readlink(link, name, sizeof name - 1);
    name[size > 0 ? size : 0] = 0;
    return strstr(name, "/log.") != NULL;
}

static int fails(int file, const char *what) {
    const char *prefix = getenv("FAILING_CALL");
    char token[4096];
    int before = errno;
    if (prefix) {
        snprintf(token, sizeof token, "%s.%s", prefix, what);
        if (access(token, F_OK) == 0 && is_log(file) && unlink(token) == 0) {
            errno = EIO;
            return 1;
        }
    }
    errno = before;
    return 0;
}

int fsync(int file) {
    return fails(file, "sync") ? -1 : (int)syscall(SYS_fsync, file);
}

int fdatasync(int file) {
    return fails(file, "sync") ? -1 : (int)syscall(SYS_fdatasync, file);
}

ssize_t pwrite64(int file, const void *bytes, size_t size, off64_t at) {
    return fails(file, "write") ? -1 : (ssize_t)syscall(SYS_pwrite64, file, bytes, size, at);
}

ssize_t pwrite(int file, const void *bytes, size_t size, off_t at) {
    return pwrite64(file, bytes, size, at);
}

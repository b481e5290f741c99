/* A bug on purpose: the sync of a transaction log says that it is done and does nothing. */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int fdatasync(int file) {
    char link[64], name[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t size = readlink(link, name, sizeof name - 1);
    name[size > 0 ? size : 0] = 0;
    return strstr(name, "/log.") ? 0 : (int)syscall(SYS_fdatasync, file);
}

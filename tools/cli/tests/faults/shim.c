/* A library to preload: makes the n-th call of one kind fail, or do less than it was asked for.
 *
 * FAULT=CALL:N:HOW with CALL one of read, pread, write, close, sync, cut, or any for all of them; HOW
 * is short, the number of an error, kill, which ends the process in front of the call, or term, which
 * sends it SIGTERM there.
 * Calls on standard error and on what is neither a file nor a pipe do not count. Once it has
 * happened, the file that FAULT_MARK names exists.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { NOTHING = 0, SHORT = -1 };

static atomic_int calls;

/* What happens to this call: NOTHING, SHORT, or the number of an error. */
static int fate(const char *call, int fd) {
    const char *fault = getenv("FAULT");
    struct stat about;
    if (fault && !strncmp(fault, "any:", 4))
        call = "any";
    size_t length = strlen(call);
    if (!fault || fd == 2 || strncmp(fault, call, length) || fault[length] != ':')
        return NOTHING;
    if (syscall(SYS_fstat, fd, &about) || !(S_ISREG(about.st_mode) || S_ISFIFO(about.st_mode) || S_ISDIR(about.st_mode)))
        return NOTHING;
    char *how;
    long number = strtol(fault + length + 1, &how, 10);
    if (atomic_fetch_add(&calls, 1) + 1 != number)
        return NOTHING;
    const char *mark = getenv("FAULT_MARK");
    if (mark)
        syscall(SYS_close, syscall(SYS_openat, AT_FDCWD, mark, O_CREAT | O_WRONLY, 0600));
    if (!strcmp(how, ":kill"))
        kill(getpid(), SIGKILL);
    if (!strcmp(how, ":term")) {
        kill(getpid(), SIGTERM);
        return NOTHING;
    }
    return strcmp(how, ":short") ? atoi(how + 1) : SHORT;
}

static ssize_t failed(int error) {
    errno = error;
    return -1;
}

ssize_t read(int fd, void *bytes, size_t length) {
    int fate_of_call = fate("read", fd);
    if (fate_of_call > 0)
        return failed(fate_of_call);
    return syscall(SYS_read, fd, bytes, fate_of_call == SHORT && length ? 1 : length);
}

ssize_t pread64(int fd, void *bytes, size_t length, off_t offset) {
    int fate_of_call = fate("pread", fd);
    if (fate_of_call > 0)
        return failed(fate_of_call);
    return syscall(SYS_pread64, fd, bytes, fate_of_call == SHORT && length ? 1 : length, offset);
}

ssize_t write(int fd, const void *bytes, size_t length) {
    int fate_of_call = fate("write", fd);
    if (fate_of_call > 0)
        return failed(fate_of_call);
    return syscall(SYS_write, fd, bytes, fate_of_call == SHORT && length ? 1 : length);
}

ssize_t writev(int fd, const struct iovec *slices, int count) {
    int fate_of_call = fate("write", fd);
    if (fate_of_call > 0)
        return failed(fate_of_call);
    for (int i = 0; fate_of_call == SHORT && i < count; i++)
        if (slices[i].iov_len)
            return syscall(SYS_write, fd, slices[i].iov_base, 1);
    return syscall(SYS_writev, fd, slices, count);
}

int close(int fd) {
    int fate_of_call = fate("close", fd);
    int outcome = syscall(SYS_close, fd);
    return fate_of_call > 0 ? (int)failed(fate_of_call) : outcome;
}

int fsync(int fd) {
    int fate_of_call = fate("sync", fd);
    return fate_of_call > 0 ? (int)failed(fate_of_call) : (int)syscall(SYS_fsync, fd);
}

int fdatasync(int fd) {
    int fate_of_call = fate("sync", fd);
    return fate_of_call > 0 ? (int)failed(fate_of_call) : (int)syscall(SYS_fdatasync, fd);
}

int ftruncate64(int fd, off_t length) {
    int fate_of_call = fate("cut", fd);
    return fate_of_call > 0 ? (int)failed(fate_of_call) : (int)syscall(SYS_ftruncate, fd, length);
}

/* output.c - see output.h. The only file of the program that writes, renames or removes files, and the only one with
 * mutable static data: what a signal handler must know. */
#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

/* Name of the temporary file; empty: none. Changed only while the signals below are blocked. */
static char temporary[PATH_MAX];

static const int ending_signals[] = {SIGINT, SIGTERM, SIGHUP};
#define ENDING_SIGNALS (sizeof ending_signals / sizeof ending_signals[0])

/* Remove the temporary file, then end the way the signal ends a program. Only calls that POSIX allows in a handler. */
static void on_signal(int number) {
    if (temporary[0] != '\0') { (void)unlink(temporary); }
    (void)signal(number, SIG_DFL);
    (void)raise(number);
}

static void block_signals(sigset_t *before) {
    sigset_t set;
    (void)sigemptyset(&set);
    for (size_t i = 0; i < ENDING_SIGNALS; i++) {
        (void)sigaddset(&set, ending_signals[i]);
    }
    (void)pthread_sigmask(SIG_BLOCK, &set, before);
}

static void restore_signals(const sigset_t *before) { (void)pthread_sigmask(SIG_SETMASK, before, NULL); }

static void handle_signals(void) {
    for (size_t i = 0; i < ENDING_SIGNALS; i++) {
        struct sigaction action;
        /* What the parent had ignored (nohup) stays ignored. */
        if (sigaction(ending_signals[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN) {
            memset(&action, 0, sizeof action);
            action.sa_handler = on_signal;
            (void)sigaction(ending_signals[i], &action, NULL);
        }
    }
}

/* Create the temporary file beside `name`. -1 and errno on failure. */
static int create_temporary(const char *name) {
    const char *slash = strrchr(name, '/');
    size_t folder = slash == NULL ? 0 : (size_t)(slash - name) + 1;
    char path[PATH_MAX];
    for (unsigned attempt = 0; attempt < 1000; attempt++) {
        int length = folder > INT_MAX ? -1
                                      : snprintf(path, sizeof path, "%.*s.k3huf_host-%ld-%u.tmp", (int)folder, name,
                                                 (long)getpid(), attempt);
        if (length < 0 || (size_t)length >= sizeof path) {
            errno = ENAMETOOLONG;
            return -1;
        }
        int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd >= 0) {
            memcpy(temporary, path, (size_t)length + 1);
            return fd;
        }
        if (errno != EEXIST) { return -1; }
    }
    return -1;
}

static enum k3huf_exit exists(struct k3huf_fault *fault, const char *name) {
    return k3huf_fault_set(fault, K3HUF_EXIT_IO, name, NULL, "exists already (--force replaces it)");
}

enum k3huf_exit k3huf_output_open(struct k3huf_output *output, const char *name, bool force,
                                  struct k3huf_fault *fault) {
    *output = (struct k3huf_output){.name = name, .fd = -1, .force = force};
    if (strcmp(name, "-") == 0) {
        output->name = "(standard output)";
        output->fd = STDOUT_FILENO;
        output->stream = true;
        return K3HUF_EXIT_OK;
    }
    struct stat info;
    if (stat(name, &info) == 0) {
        if (S_ISDIR(info.st_mode)) { return k3huf_fault_set(fault, K3HUF_EXIT_IO, name, NULL, "is a directory"); }
        if (!S_ISREG(info.st_mode)) {
            output->stream = true;
            output->fd = open(name, O_WRONLY | O_CLOEXEC);
            return output->fd >= 0 ? K3HUF_EXIT_OK : k3huf_fault_errno(fault, name, "cannot be opened for writing");
        }
    }
    if (lstat(name, &info) == 0 && !force) { return exists(fault, name); }
    sigset_t before;
    block_signals(&before);
    handle_signals();
    output->fd = create_temporary(name);
    int number = errno;
    restore_signals(&before);
    if (output->fd < 0) {
        errno = number;
        return k3huf_fault_errno(fault, name, "cannot be created");
    }
    struct statfs system;
    output->in_memory = fstatfs(output->fd, &system) == 0 && system.f_type == TMPFS_MAGIC;
    return K3HUF_EXIT_OK;
}

/* The output grows. Where no byte waits, those that do from now on lie behind here. */
static void grow(struct k3huf_output *output, uint64_t size) {
    if (output->waiting == 0) { output->begun = output->written; }
    output->written += size;
}

/* `size` bytes were written somewhere behind `begun`. Have the system begin to bring them to the disk: at the end there
 * is then little left to wait for. In small steps: other threads wait for this one meanwhile. */
static void write_behind(struct k3huf_output *output, uint64_t size) {
    const uint64_t step = (uint64_t)4 << 20;
    output->waiting += size;
    if (!output->stream && output->waiting >= step) {
        (void)sync_file_range(output->fd, (off_t)output->begun, (off_t)(output->written - output->begun),
                              SYNC_FILE_RANGE_WRITE); /* where it cannot, nothing is lost */
        output->waiting = 0;
    }
}

enum k3huf_exit k3huf_output_write(struct k3huf_output *output, const uint8_t *data, size_t size,
                                   struct k3huf_fault *fault) {
    while (size > 0) {
        ssize_t n = write(output->fd, data, size);
        if (n >= 0) {
            data += n;
            size -= (size_t)n;
            grow(output, (uint64_t)n);
            write_behind(output, (uint64_t)n);
        } else if (errno != EINTR) {
            return k3huf_fault_errno(fault, output->name, "cannot be written");
        }
    }
    return K3HUF_EXIT_OK;
}

enum k3huf_exit k3huf_output_zeros(struct k3huf_output *output, uint64_t size, struct k3huf_fault *fault) {
    static const uint8_t zeros[4096];
    if (output->stream) {
        for (; size > 0;) {
            const size_t now = size < sizeof zeros ? (size_t)size : sizeof zeros;
            enum k3huf_exit code = k3huf_output_write(output, zeros, now, fault);
            if (code != K3HUF_EXIT_OK) { return code; }
            size -= now;
        }
        return K3HUF_EXIT_OK;
    }
    grow(output, size);
    /* Both: the file's size in case nothing follows, the position in case something does. */
    if (output->written > INT64_MAX || ftruncate(output->fd, (off_t)output->written) != 0 ||
        lseek(output->fd, (off_t)output->written, SEEK_SET) < 0) {
        return k3huf_fault_errno(fault, output->name, "cannot be written");
    }
    return K3HUF_EXIT_OK;
}

enum k3huf_exit k3huf_output_room(struct k3huf_output *output, uint64_t size, struct k3huf_fault *fault) {
    /* To find the place of all of it now is less work than piece by piece, when the system writes. Where it cannot be
     * done, or there is no such place, writing will tell. */
    if (!output->in_memory) { (void)fallocate(output->fd, 0, (off_t)output->written, (off_t)size); }
    return k3huf_output_zeros(output, size, fault);
}

enum k3huf_exit k3huf_output_patch(struct k3huf_output *output, uint64_t offset, const uint8_t *data, size_t size,
                                   struct k3huf_fault *fault) {
    while (size > 0) {
        ssize_t n = pwrite(output->fd, data, size, (off_t)offset);
        if (n >= 0) {
            data += n;
            size -= (size_t)n;
            offset += (uint64_t)n;
            write_behind(output, (uint64_t)n);
        } else if (errno != EINTR) {
            return k3huf_fault_errno(fault, output->name, "cannot be written");
        }
    }
    return K3HUF_EXIT_OK;
}

/* Give the temporary file its name. Without `force`, not over a file that came into being meanwhile. */
static int give_name(const struct k3huf_output *output) {
    if (output->force) { return rename(temporary, output->name); }
    if (renameat2(AT_FDCWD, temporary, AT_FDCWD, output->name, RENAME_NOREPLACE) == 0) { return 0; }
    if (errno != EINVAL && errno != ENOSYS) { return -1; }
    /* NFS and others cannot do that, but no link replaces a file. (Where the answer got lost on its way, there are
     * two.) */
    struct stat info;
    const int linked = link(temporary, output->name);
    const int number = errno;
    if (linked == 0 || (stat(temporary, &info) == 0 && info.st_nlink == 2)) {
        (void)unlink(temporary);
        return 0;
    }
    if (number == EEXIST) {
        errno = number;
        return -1;
    }
    /* A file system without links either: the next best. */
    if (lstat(output->name, &info) == 0) {
        errno = EEXIST;
        return -1;
    }
    return rename(temporary, output->name);
}

/* Whether what is open is on the disk, as far as its kind knows a disk. 0, or -1 and errno. */
static int sync_open(int fd) {
    return fsync(fd) == 0 || errno == EINVAL || errno == ENOTSUP || errno == EROFS ? 0 : -1;
}

/* Bring the name to the disk: that is a matter of the folder that it is in. 0, or -1 and errno. */
static int sync_folder(const char *name) {
    char path[PATH_MAX];
    size_t length = strlen(name);
    while (length > 0 && name[length - 1] == '/') { /* of a folder */
        length--;
    }
    while (length > 0 && name[length - 1] != '/') {
        length--;
    }
    if (length > sizeof path - 2) { /* no more than the system would take */
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(path, name, length);
    path[length] = '.';
    path[length + 1] = '\0';
    const int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) { return errno == EACCES ? 0 : -1; }
    const int done = sync_open(fd);
    const int number = errno;
    (void)close(fd);
    errno = number;
    return done;
}

enum k3huf_exit k3huf_output_commit(struct k3huf_output *output, struct k3huf_fault *fault) {
    enum k3huf_exit code = K3HUF_EXIT_OK;
    if (output->stream) {
        /* A drive's failed writes, and those of some file systems, are reported only here. */
        const bool bad = sync_open(output->fd) != 0;
        const int number = errno;
        const bool unclosed = close(output->fd) != 0;
        if (bad) { errno = number; }
        if (bad || unclosed) { code = k3huf_fault_errno(fault, output->name, "cannot be written"); }
        output->fd = -1;
        return code;
    }
    if (fsync(output->fd) != 0) {
        code = k3huf_fault_errno(fault, output->name, "cannot be written");
        k3huf_output_discard(output);
        return code;
    }
    int closed = close(output->fd);
    output->fd = -1;
    if (closed != 0) {
        code = k3huf_fault_errno(fault, output->name, "cannot be written");
        k3huf_output_discard(output);
        return code;
    }
    sigset_t before;
    block_signals(&before);
    if (give_name(output) != 0) {
        code =
            errno == EEXIST ? exists(fault, output->name) : k3huf_fault_errno(fault, output->name, "cannot be named");
        (void)unlink(temporary);
    }
    temporary[0] = '\0';
    restore_signals(&before);
    if (code == K3HUF_EXIT_OK && sync_folder(output->name) != 0) {
        code = k3huf_fault_errno(fault, output->name, "is complete, but its folder cannot be written to the disk");
    }
    return code;
}

void k3huf_output_discard(struct k3huf_output *output) {
    sigset_t before;
    block_signals(&before);
    if (!output->stream && temporary[0] != '\0') {
        (void)unlink(temporary);
        temporary[0] = '\0';
    }
    restore_signals(&before);
    if (output->fd >= 0 && !(output->stream && output->fd == STDOUT_FILENO)) { (void)close(output->fd); }
    output->fd = -1;
}

enum k3huf_exit k3huf_output_directory(const char *name, struct k3huf_fault *fault) {
    struct stat info;
    if (mkdir(name, 0777) != 0) {
        return errno == EEXIST && stat(name, &info) == 0 && S_ISDIR(info.st_mode)
                   ? K3HUF_EXIT_OK
                   : k3huf_fault_errno(fault, name, "cannot be made a directory");
    }
    return sync_folder(name) == 0
               ? K3HUF_EXIT_OK
               : k3huf_fault_errno(fault, name, "is made, but its folder cannot be written to the disk");
}

static bool same_file(const struct stat *a, const struct stat *b) {
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

enum k3huf_exit k3huf_output_not_input(const char *name, const struct k3huf_input *input, struct k3huf_fault *fault) {
    struct stat to;
    struct stat from;
    if (strcmp(name, "-") == 0 ? fstat(STDOUT_FILENO, &to) != 0 : stat(name, &to) != 0) { return K3HUF_EXIT_OK; }
    if (fstat(input->fd, &from) != 0) { return k3huf_fault_errno(fault, input->name, "cannot be examined"); }
    const bool same = (S_ISREG(to.st_mode) && same_file(&to, &from)) ||
                      (S_ISBLK(to.st_mode) && S_ISBLK(from.st_mode) && to.st_rdev == from.st_rdev);
    return same ? k3huf_fault_set(fault, K3HUF_EXIT_IO, name, NULL,
                                  "exists already, and is the same file as the input %s", input->name)
                : K3HUF_EXIT_OK;
}

bool k3huf_output_is_stream(const char *name) {
    struct stat info;
    return strcmp(name, "-") == 0 || (stat(name, &info) == 0 && !S_ISREG(info.st_mode));
}

enum k3huf_exit k3huf_output_remove(struct k3huf_input *input, struct k3huf_fault *fault) {
    struct stat named;
    struct stat opened;
    if (fstat(input->fd, &opened) != 0 || lstat(input->name, &named) != 0) {
        return k3huf_fault_errno(fault, input->name, "not removed: cannot be examined");
    }
    if (!S_ISREG(named.st_mode)) {
        return k3huf_fault_set(fault, K3HUF_EXIT_IO, input->name, NULL, "not removed: it is not a regular file");
    }
    if (!same_file(&named, &opened)) {
        return k3huf_fault_set(fault, K3HUF_EXIT_IO, input->name, NULL, "not removed: it is another file by now");
    }
    if (k3huf_input_unchanged(input, fault) != K3HUF_EXIT_OK) {
        return k3huf_fault_set(fault, K3HUF_EXIT_IO, input->name, NULL, "not removed: it changed after it was packed");
    }
    return unlink(input->name) == 0 ? K3HUF_EXIT_OK : k3huf_fault_errno(fault, input->name, "cannot be removed");
}

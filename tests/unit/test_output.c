/* test_output.c - what is removed is what was packed; a name is on the disk before anybody relies on it, that of a
 * folder too, and what went to a stream is; a write that never happened is found before a file gets its name; no file
 * of a directory that cannot be read is left out; places of read errors; times beyond what can be counted.
 *
 * Faults come out of the system's calls, which the linker wraps (CMakeLists.txt). */
#include "unit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "archive_pack.h"
#include "commands.h"
#include "model_dir.h"
#include "output.h"
#include "pack.h"

#define IN "test_output.in"
#define OTHER "test_output.other"
#define OUT "test_output.out"
#define STORED 777

/* ------------------------------------------------------------------------------------------ wrapped calls ---- */

static int folder_errno;         /* fsync() of a folder fails with it; 0: it does not */
static int stream_errno;         /* the same of a FIFO */
static int no_replace_errno;     /* renameat2() fails with it; 0: it does not */
static int link_errno;           /* link() fails with it, LOST once it is done; 0: it does not */
static unsigned renames;         /* how many rename() did */
static bool another_comes;       /* OUT comes into being when renameat2() has failed */
static int names_left = -1;      /* readdir() fails after that many names; -1: it does not */
static unsigned folders;         /* how many were synced since they were counted last */
static bool named_before_folder; /* OUT was there when the last one was */
static off_t unreadable = -1;    /* pread() of that byte fails */
static bool indexes_lost;        /* of block indexes that are written something gets lost */
static bool byte_added;          /* with them a byte is added behind the file's end */
static bool touched;             /* with them IN gets another time */
static bool stored_wrong;        /* of a write of STORED bytes one goes wrong */
static bool in_memory;           /* files are nowhere else */
static int room_errno;           /* fallocate() fails with it; 0: it does not */
static unsigned rooms;           /* how often it was called: */
static off_t room_begin;
static off_t room_size;

int __real_fsync(int fd);
int __wrap_fsync(int fd);
ssize_t __real_pread64(int fd, void *buffer, size_t size, off_t offset);
ssize_t __wrap_pread64(int fd, void *buffer, size_t size, off_t offset);

ssize_t __real_pwrite64(int fd, const void *data, size_t size, off_t offset);
ssize_t __wrap_pwrite64(int fd, const void *data, size_t size, off_t offset);
ssize_t __real_write(int fd, const void *data, size_t size);
ssize_t __wrap_write(int fd, const void *data, size_t size);

int __wrap_fsync(int fd) {
    struct stat info;
    if (fstat(fd, &info) == 0 && S_ISDIR(info.st_mode)) {
        folders++;
        named_before_folder = access(OUT, F_OK) == 0;
        if (folder_errno != 0) {
            errno = folder_errno;
            return -1;
        }
    }
    if (stream_errno != 0 && fstat(fd, &info) == 0 && S_ISFIFO(info.st_mode)) {
        errno = stream_errno;
        return -1;
    }
    return __real_fsync(fd);
}

enum { LOST = 100000 };

int __real_link(const char *from, const char *to);
int __wrap_link(const char *from, const char *to);
int __real_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to);
int __real_renameat2(int from_folder, const char *from, int to_folder, const char *to, unsigned flags);
int __wrap_renameat2(int from_folder, const char *from, int to_folder, const char *to, unsigned flags);
static void put(const char *name, const char *text);

int __wrap_link(const char *from, const char *to) {
    const int done = link_errno == 0 || link_errno == LOST ? __real_link(from, to) : -1;
    if (done == 0 && link_errno == 0) { return done; }
    if (link_errno != 0) { errno = link_errno == LOST ? EEXIST : link_errno; }
    return -1;
}

int __wrap_rename(const char *from, const char *to) {
    renames++;
    return __real_rename(from, to);
}

int __wrap_renameat2(int from_folder, const char *from, int to_folder, const char *to, unsigned flags) {
    if (no_replace_errno == 0) { return __real_renameat2(from_folder, from, to_folder, to, flags); }
    if (another_comes) { put(OUT, "another's"); }
    errno = no_replace_errno;
    return -1;
}

struct dirent *__real_readdir64(DIR *dir);
struct dirent *__wrap_readdir64(DIR *dir);

struct dirent *__wrap_readdir64(DIR *dir) {
    if (names_left == 0) {
        errno = EIO;
        return NULL;
    }
    names_left -= names_left > 0;
    return __real_readdir64(dir);
}

ssize_t __wrap_pread64(int fd, void *buffer, size_t size, off_t offset) {
    if (unreadable >= 0 && offset <= unreadable) {
        if (offset == unreadable) {
            errno = EIO;
            return -1;
        }
        if (size > (size_t)(unreadable - offset)) { size = (size_t)(unreadable - offset); }
    }
    return __real_pread64(fd, buffer, size, offset);
}

/* Of an index that is to be written, its first bytes get lost. */
ssize_t __wrap_pwrite64(int fd, const void *data, size_t size, off_t offset) {
    if (touched && size >= 4 && memcmp(data, "K3IX", 4) == 0) {
        const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = 1000000}};
        assert_int_equal(utimensat(AT_FDCWD, IN, times, 0), 0);
    }
    if (byte_added && size >= 4 && memcmp(data, "K3IX", 4) == 0) {
        struct stat info;
        assert_int_equal(fstat(fd, &info), 0);
        assert_int_equal(__real_pwrite64(fd, "x", 1, info.st_size), 1); /* the next stripe, if any, writes it over */
    }
    return indexes_lost && size >= 4 && memcmp(data, "K3IX", 4) == 0 ? (ssize_t)size
                                                                     : __real_pwrite64(fd, data, size, offset);
}

ssize_t __wrap_write(int fd, const void *data, size_t size) {
    uint8_t *const index = indexes_lost ? memmem(data, size, "K3IX", 4) : NULL;
    const ssize_t done = __real_write(fd, data, size);
    if (stored_wrong && done == STORED) {
        assert_int_equal(__real_pwrite64(fd, "!", 1, lseek(fd, 0, SEEK_CUR) - STORED / 2), 1);
    }
    if (index != NULL && done > index - (const uint8_t *)data + 4) {
        const off_t at = lseek(fd, 0, SEEK_CUR) - done + (index - (const uint8_t *)data);
        assert_int_equal(__real_pwrite64(fd, "\0\0\0", 4, at), 4);
    }
    return done;
}

int __wrap_fstatfs64(int fd, struct statfs *system);
int __real_fstatfs64(int fd, struct statfs *system);
int __wrap_fallocate64(int fd, int mode, off_t offset, off_t size);
int __real_fallocate64(int fd, int mode, off_t offset, off_t size);

int __wrap_fstatfs64(int fd, struct statfs *system) {
    const int done = __real_fstatfs64(fd, system);
    if (done == 0) { system->f_type = in_memory ? TMPFS_MAGIC : EXT4_SUPER_MAGIC; }
    return done;
}

int __wrap_fallocate64(int fd, int mode, off_t offset, off_t size) {
    assert_int_equal(mode, 0);
    rooms++;
    room_begin = offset;
    room_size = size;
    if (room_errno == 0) { return __real_fallocate64(fd, mode, offset, size); }
    errno = room_errno;
    return -1;
}

static void put(const char *name, const char *text) {
    const int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    assert_int_equal(close(fd), 0);
}

static int clean(void **state) {
    (void)state;
    (void)unlink(IN);
    (void)unlink(OTHER);
    (void)unlink(OUT);
    folder_errno = 0;
    stream_errno = 0;
    no_replace_errno = 0;
    link_errno = 0;
    renames = 0;
    another_comes = false;
    names_left = -1;
    folders = 0;
    unreadable = -1;
    indexes_lost = false;
    byte_added = false;
    touched = false;
    stored_wrong = false;
    in_memory = false;
    room_errno = 0;
    rooms = 0;
    return 0;
}

/* Tests run side by side: each has a folder of its own. */
static char folder[] = "test_output-XXXXXX";

static int enter(void **state) {
    (void)state;
    return mkdtemp(folder) == NULL ? -1 : chdir(folder);
}

static int leave(void **state) {
    (void)state;
    return chdir("..") != 0 ? -1 : rmdir(folder);
}

/* -------------------------------------------------------------------------------------------------- tests ---- */

static void nothing(void) {}
static void another_by_that_name(void) { assert_int_equal(rename(OTHER, IN), 0); }
static void gone(void) { assert_int_equal(unlink(IN), 0); }
static void longer(void) { assert_int_equal(truncate(IN, 7), 0); }
static void link_to_it(void) {
    assert_int_equal(rename(IN, OUT), 0);
    assert_int_equal(symlink(OUT, IN), 0);
}
static void other_bytes(void) { put(IN, "abcxef"); }

/* Other bytes, and the times of reading and writing set back. */
static void other_bytes_in_secret(void) {
    struct stat info;
    assert_int_equal(stat(IN, &info), 0);
    put(IN, "abcxef");
    const struct timespec times[2] = {info.st_atim, info.st_mtim};
    assert_int_equal(utimensat(AT_FDCWD, IN, times, 0), 0);
}

/* Let the clock that files get their times from go on. */
static void wait_for_a_tick(void) {
    struct stat before;
    struct stat after;
    put(OTHER, "ghijkl");
    assert_int_equal(stat(OTHER, &before), 0);
    do {
        put(OTHER, "ghijkl");
        assert_int_equal(stat(OTHER, &after), 0);
    } while (before.st_ctim.tv_sec == after.st_ctim.tv_sec && before.st_ctim.tv_nsec == after.st_ctim.tv_nsec);
}

static void only_what_was_packed_is_removed(void **state) {
    (void)state;
    static const struct {
        void (*happens)(void);
        const char *text; /* NULL: it is removed */
    } cases[] = {{nothing, NULL},
                 {another_by_that_name, "another file by now"},
                 {gone, "cannot be examined"},
                 {longer, "changed after it was packed"},
                 {link_to_it, "not a regular file"},
                 {other_bytes, "changed after it was packed"},
                 {other_bytes_in_secret, "changed after it was packed"}};
    for (size_t i = 0; i < UNIT_COUNT(cases); i++) {
        struct k3huf_input input;
        struct k3huf_fault fault = {.code = K3HUF_EXIT_OK};
        struct stat info;
        (void)clean(NULL);
        put(IN, "abcdef");
        wait_for_a_tick();
        assert_int_equal(k3huf_input_open(&input, IN, &fault), K3HUF_EXIT_OK);
        cases[i].happens();
        const bool there = lstat(IN, &info) == 0;
        const enum k3huf_exit code = k3huf_output_remove(&input, &fault);
        k3huf_input_close(&input);
        if (cases[i].text == NULL) {
            assert_int_equal(code, K3HUF_EXIT_OK);
            assert_int_equal(access(IN, F_OK), -1);
        } else {
            assert_int_equal(code, K3HUF_EXIT_IO);
            assert_non_null(strstr(fault.text, IN ": not removed: "));
            assert_non_null(strstr(fault.text, cases[i].text));
            assert_int_equal(lstat(IN, &info) == 0, there);
        }
    }
}

/* The folder is synced once the file has its name; what that says is passed on, unless it says that there is no such
 * thing. The file has its name in any case. */
static void a_name_is_on_the_disk(void **state) {
    (void)state;
    static const int numbers[] = {0, EINVAL, ENOTSUP, EIO, ENOSPC};
    static const char *const names[] = {OUT, "./" OUT};
    for (size_t i = 0; i < UNIT_COUNT(numbers) * UNIT_COUNT(names) * 2; i++) {
        struct k3huf_output output;
        struct k3huf_fault fault = {.code = K3HUF_EXIT_OK};
        const int number = numbers[i / 4];
        const bool force = i % 2 == 1;
        (void)clean(NULL);
        if (force) { put(OUT, "old"); }
        assert_int_equal(k3huf_output_open(&output, names[i / 2 % 2], force, &fault), K3HUF_EXIT_OK);
        assert_int_equal(k3huf_output_write(&output, (const uint8_t *)"new!", 4, &fault), K3HUF_EXIT_OK);
        folders = 0;
        folder_errno = number;
        const bool bad = number == EIO || number == ENOSPC;
        assert_int_equal(k3huf_output_commit(&output, &fault), bad ? K3HUF_EXIT_IO : K3HUF_EXIT_OK);
        assert_int_equal(folders, 1);
        assert_true(named_before_folder);
        if (bad) {
            assert_non_null(strstr(fault.text, OUT ": is complete, but its folder cannot be written to the disk"));
        }
        k3huf_output_discard(&output);
        struct stat info;
        assert_int_equal(stat(OUT, &info), 0);
        assert_int_equal(info.st_size, 4);
    }
}

/* Names in this folder. */
static unsigned names_here(void) {
    DIR *const dir = opendir(".");
    unsigned n = 0;
    assert_non_null(dir);
    while (readdir(dir) != NULL) {
        n++;
    }
    assert_int_equal(closedir(dir), 0);
    return n - 2;
}

/* Without force, a file that comes into being at the last moment stays, on any kind of file system; and rename(), which
 * would replace it, is only for those that know nothing better. */
static void no_file_is_replaced(void **state) {
    (void)state;
    static const struct {
        int no_replace;
        int link;
        unsigned renames; /* where nobody comes between */
    } cases[] = {{0, 0, 0},          {EINVAL, 0, 0},       {ENOSYS, 0, 0}, {EINVAL, LOST, 0},
                 {EINVAL, EPERM, 1}, {ENOSYS, ENOTSUP, 1}, {ENOSPC, 0, 0}};
    for (size_t i = 0; i < UNIT_COUNT(cases) * 2; i++) {
        struct k3huf_output output;
        struct k3huf_fault fault = {.code = K3HUF_EXIT_OK};
        (void)clean(NULL);
        assert_int_equal(k3huf_output_open(&output, OUT, false, &fault), K3HUF_EXIT_OK);
        assert_int_equal(k3huf_output_write(&output, (const uint8_t *)"new!", 4, &fault), K3HUF_EXIT_OK);
        no_replace_errno = cases[i / 2].no_replace;
        link_errno = cases[i / 2].link;
        another_comes = i % 2 == 1 && no_replace_errno != 0;
        const bool bad = another_comes || no_replace_errno == ENOSPC;
        assert_int_equal(k3huf_output_commit(&output, &fault), bad ? K3HUF_EXIT_IO : K3HUF_EXIT_OK);
        assert_int_equal(renames, another_comes ? 0 : cases[i / 2].renames);
        struct stat info;
        if (no_replace_errno == ENOSPC) {
            assert_non_null(strstr(fault.text, OUT ": cannot be named"));
        } else if (bad) {
            assert_non_null(strstr(fault.text, OUT ": exists already"));
        }
        if (another_comes || !bad) {
            assert_int_equal(stat(OUT, &info), 0);
            assert_int_equal(info.st_size, another_comes ? 9 : 4);
            assert_int_equal(info.st_nlink, 1);
        }
        assert_int_equal(names_here(), another_comes || !bad ? 1 : 0);
    }
}

/* So is that of a folder that is made, by whatever way it is written; one that is there is nobody's to sync. */
static void a_folder_is_on_the_disk(void **state) {
    (void)state;
    static const int numbers[] = {0, EINVAL, ENOTSUP, EROFS, EIO, ENOSPC};
    static const char *const names[] = {OUT, "./" OUT, OUT "/", "./" OUT "//"};
    for (size_t i = 0; i < UNIT_COUNT(numbers) * UNIT_COUNT(names); i++) {
        struct k3huf_fault fault = {.code = K3HUF_EXIT_OK};
        const char *const name = names[i % UNIT_COUNT(names)];
        const int number = numbers[i / UNIT_COUNT(names)];
        const bool bad = number == EIO || number == ENOSPC;
        (void)clean(NULL);
        folder_errno = number;
        assert_int_equal(k3huf_output_directory(name, &fault), bad ? K3HUF_EXIT_IO : K3HUF_EXIT_OK);
        if (bad) { assert_non_null(strstr(fault.text, ": is made, but its folder cannot be written to the disk")); }
        assert_int_equal(folders, 1);
        assert_true(named_before_folder);
        assert_int_equal(k3huf_output_directory(name, &fault), K3HUF_EXIT_OK);
        assert_int_equal(folders, 1);
        assert_int_equal(rmdir(OUT), 0);
    }
}

/* What a drive says only when it is asked to have all: the writes before went to memory. */
static void a_stream_is_on_the_disk(void **state) {
    (void)state;
    static const int numbers[] = {0, EINVAL, ENOTSUP, EROFS, EIO, ENOSPC};
    for (size_t i = 0; i < UNIT_COUNT(numbers); i++) {
        struct k3huf_output output;
        struct k3huf_fault fault = {.code = K3HUF_EXIT_OK};
        const bool bad = numbers[i] == EIO || numbers[i] == ENOSPC;
        (void)clean(NULL);
        assert_int_equal(mkfifo(OUT, 0666), 0);
        const int reader = open(OUT, O_RDONLY | O_NONBLOCK);
        assert_true(reader >= 0);
        assert_int_equal(k3huf_output_open(&output, OUT, false, &fault), K3HUF_EXIT_OK);
        assert_true(output.stream);
        assert_int_equal(k3huf_output_write(&output, (const uint8_t *)"new!", 4, &fault), K3HUF_EXIT_OK);
        stream_errno = numbers[i];
        assert_int_equal(k3huf_output_commit(&output, &fault), bad ? K3HUF_EXIT_IO : K3HUF_EXIT_OK);
        if (bad) {
            char wanted[128];
            (void)snprintf(wanted, sizeof wanted, OUT ": cannot be written: %s", strerror(numbers[i]));
            assert_string_equal(fault.text, wanted);
        }
        assert_int_equal(output.fd, -1);
        k3huf_output_discard(&output);
        assert_int_equal(close(reader), 0);
    }
}

/* Wherever a directory's names end with an error instead of the last one. */
static void a_directory_is_read_whole(void **state) {
    (void)state;
    static const char *const names[] = {OUT "/a.safetensors", OUT "/b.safetensors", OUT "/other"};
    assert_int_equal(mkdir(OUT, 0777), 0);
    for (size_t i = 0; i < UNIT_COUNT(names); i++) {
        put(names[i], "x");
    }
    int least = 0;
    for (bool good = false; !good; least++) {
        struct k3huf_model model;
        struct k3huf_fault fault = {.code = K3HUF_EXIT_OK};
        names_left = least;
        const enum k3huf_exit code = k3huf_model_read(OUT, &model, &fault);
        names_left = -1;
        good = code == K3HUF_EXIT_OK;
        if (good) {
            assert_int_equal(model.n, 2);
            assert_int_equal(model.others, 1);
        } else {
            char wanted[128];
            (void)snprintf(wanted, sizeof wanted, OUT ": cannot be read: %s", strerror(EIO));
            assert_int_equal(code, K3HUF_EXIT_IO);
            assert_string_equal(fault.text, wanted);
        }
        k3huf_model_free(&model);
    }
    assert_int_equal(least, 2 * (3 + 2 + 1) + 1); /* twice: three names, ".", "..", and the end */
    for (size_t i = 0; i < UNIT_COUNT(names); i++) {
        assert_int_equal(unlink(names[i]), 0);
    }
    assert_int_equal(rmdir(OUT), 0);
}

static void a_read_error_has_its_place(void **state) {
    (void)state;
    struct k3huf_input input;
    struct k3huf_input view;
    struct k3huf_fault fault = {.code = K3HUF_EXIT_OK};
    uint8_t bytes[8];
    size_t got = 0;
    put(IN, "abcdefgh");
    assert_int_equal(k3huf_input_open(&input, IN, &fault), K3HUF_EXIT_OK);
    k3huf_input_view(&view, &input, 2, 6, "part");
    unreadable = 5;
    assert_int_equal(k3huf_input_read_at(&input, 1, bytes, 4, &got, &fault), K3HUF_EXIT_OK);
    assert_int_equal(k3huf_input_read_at(&input, 1, bytes, 5, &got, &fault), K3HUF_EXIT_IO);
    char wanted[128];
    (void)snprintf(wanted, sizeof wanted, IN ": cannot be read at offset 5 of the file: %s", strerror(EIO));
    assert_string_equal(fault.text, wanted);
    assert_int_equal(k3huf_input_read_at(&view, 0, bytes, 4, &got, &fault), K3HUF_EXIT_IO);
    (void)snprintf(wanted, sizeof wanted, "part: cannot be read at offset 5 of the file: %s", strerror(EIO));
    assert_string_equal(fault.text, wanted);
    assert_int_equal(k3huf_input_changed(&view, 3, &fault), K3HUF_EXIT_IO);
    assert_string_equal(fault.text, "part: changed while it was read: found at offset 5 of the file");
    k3huf_input_close(&input);
}

static void times_that_cannot_be_counted(void **state) {
    (void)state;
    static const struct {
        int64_t seconds;
        long nanoseconds;
        int64_t wanted;
    } cases[] = {{0, 0, 0},
                 {1, 2, 1000000002},
                 {-1, 5, -999999995},
                 {9223372035, 999999999, INT64_C(9223372035999999999)},
                 {-9223372035, 0, INT64_C(-9223372035000000000)},
                 {9223372037, 0, INT64_MAX},
                 {INT64_MAX, 999999999, INT64_MAX},
                 {-9223372037, 0, INT64_MIN},
                 {INT64_MIN, 0, INT64_MIN}};
    for (size_t i = 0; i < UNIT_COUNT(cases); i++) {
        const struct timespec time = {.tv_sec = (time_t)cases[i].seconds, .tv_nsec = cases[i].nanoseconds};
        if ((int64_t)time.tv_sec == cases[i].seconds) { assert_true(k3huf_nanoseconds(time) == cases[i].wanted); }
    }
}

/* A text that is cut ends with a whole character. */
static void texts_are_cut_between_characters(void **state) {
    (void)state;
    static const struct {
        const char *text;
        size_t size;
        size_t whole;
    } cases[] = {{"abc", 3, 3},
                 {"ab\xc3\xa4", 4, 4},
                 {"ab\xc3\xa4", 3, 2},
                 {"a\xe2\x82\xac", 4, 4},
                 {"a\xe2\x82\xac", 3, 1},
                 {"a\xe2\x82\xac", 2, 1},
                 {"\xf0\x9f\x8e\x88", 4, 4},
                 {"\xf0\x9f\x8e\x88", 3, 0},
                 {"\xf0\x9f\x8e\x88", 1, 0},
                 {"", 0, 0},
                 {"\x80\x80\x80\x80", 4, 4}};
    for (size_t i = 0; i < UNIT_COUNT(cases); i++) {
        assert_int_equal(k3huf_text_whole(cases[i].text, cases[i].size), cases[i].whole);
    }
    struct k3huf_fault fault;
    char name[sizeof fault.text + 8];
    for (size_t before = 0; before < 4; before++) {
        memset(name, 'x', before);
        for (size_t i = before; i + 3 < sizeof name; i += 3) {
            memcpy(name + i, "\xe2\x82\xac", 4);
        }
        (void)k3huf_fault_set(&fault, K3HUF_EXIT_IO, name, NULL, "x");
        assert_true(strlen(fault.text) >= sizeof fault.text - 3);
        assert_int_equal((strlen(fault.text) - before) % 3, 0);
    }
}

/* Pack what is in IN as a file of that kind. */
static enum k3huf_exit pack_in(bool archive, uint32_t stripe_bytes, uint32_t block_log2, struct k3huf_fault *fault) {
    const struct k3huf_encode_options options = {
        .stripe_bytes = stripe_bytes, .max_code_length = K3HUF_CODE_LENGTH_MAX, .block_log2 = block_log2, .threads = 2};
    struct k3huf_input input;
    assert_int_equal(k3huf_input_open(&input, IN, fault), K3HUF_EXIT_OK);
    enum k3huf_exit code;
    if (archive) {
        struct k3huf_archive_result result;
        uint64_t dim = input.size / 2;
        char name[] = "w";
        struct k3huf_tensor tensor = {
            .name = name, .name_bytes = 1, .dtype = "BF16", .rank = 1, .offset = 0, .bytes = input.size};
        const struct k3huf_tensors tensors = {
            .kind = K3HUF_SOURCE_BYTES, .tensor = &tensor, .n = 1, .dims = &dim, .ndims = 1};
        code = k3huf_archive_pack(&input, &tensors, OUT, false, &options, &result, fault);
        if (code == K3HUF_EXIT_OK) { assert_int_equal(result.runs, 1); }
    } else {
        struct k3huf_pack_result result;
        code = k3huf_pack_run(&input, OUT, false, &options, &result, fault);
    }
    k3huf_input_close(&input);
    return code;
}

/* What is stored is checked as what is coded is. */
static void stored_bytes_that_go_wrong_are_found(void **state) {
    (void)state;
    const struct k3huf_encode_options options = {
        .stripe_bytes = 1u << 20, .max_code_length = K3HUF_CODE_LENGTH_MAX, .block_log2 = 14, .threads = 1};
    const struct k3huf_tensors none = {.kind = K3HUF_SOURCE_BYTES};
    char content[STORED + 1];
    memset(content, 'a', STORED);
    content[STORED] = '\0';
    put(IN, content);
    for (unsigned i = 0; i < 2; i++) {
        struct k3huf_input input;
        struct k3huf_fault fault = {.code = K3HUF_EXIT_OK};
        struct k3huf_archive_result result;
        stored_wrong = i == 1;
        assert_int_equal(k3huf_input_open(&input, IN, &fault), K3HUF_EXIT_OK);
        const enum k3huf_exit code = k3huf_archive_pack(&input, &none, OUT, true, &options, &result, &fault);
        k3huf_input_close(&input);
        assert_int_equal(code, i == 0 ? K3HUF_EXIT_OK : K3HUF_EXIT_MISMATCH);
        assert_int_equal(result.nentries, 1);
    }
}

/* Room for what is to come has its place on the disk at once. Where that cannot be had, it is zeros all the same. */
static void room_is_made(void **state) {
    (void)state;
    static const int numbers[] = {0, ENOTSUP, ENOSPC, EINTR};
    for (size_t i = 0; i < UNIT_COUNT(numbers) * 2; i++) {
        struct k3huf_output output;
        struct k3huf_fault fault = {.code = K3HUF_EXIT_OK};
        char bytes[9] = "";
        (void)clean(NULL);
        in_memory = i % 2 == 1;
        room_errno = numbers[i / 2];
        assert_int_equal(k3huf_output_open(&output, OUT, false, &fault), K3HUF_EXIT_OK);
        assert_int_equal(k3huf_output_write(&output, (const uint8_t *)"abc", 3, &fault), K3HUF_EXIT_OK);
        assert_int_equal(k3huf_output_room(&output, 5, &fault), K3HUF_EXIT_OK);
        assert_int_equal(k3huf_output_patch(&output, 4, (const uint8_t *)"de", 2, &fault), K3HUF_EXIT_OK);
        assert_int_equal(k3huf_output_write(&output, (const uint8_t *)"f", 1, &fault), K3HUF_EXIT_OK);
        assert_int_equal(rooms, in_memory ? 0 : 1);
        if (!in_memory) {
            assert_int_equal(room_begin, 3);
            assert_int_equal(room_size, 5);
        }
        assert_int_equal(output.written, 9);
        assert_int_equal(pread(output.fd, bytes, sizeof bytes, 0), 9);
        assert_memory_equal(bytes, "abc\0de\0\0f", 9);
        k3huf_output_discard(&output);
    }
}

/* Runs and archives, stripes that go to the file in parts and at once, and runs that get an index later: where an index
 * is written and does not arrive, nothing gets a name. */
static void an_index_that_is_lost_is_missed(void **state) {
    (void)state;
    static const uint32_t stripes[] = {1u << 20, 100000u};
    static char content[3u << 20];
    for (size_t i = 0; i + 1 < sizeof content; i++) {
        content[i] = (char)('a' + (i / 2 * 7 + i % 2 * (i / 999)) % 13);
    }
    content[sizeof content - 1] = '\0';
    for (size_t i = 0; i < UNIT_COUNT(stripes) * 2; i++) {
        struct k3huf_fault fault = {.code = K3HUF_EXIT_OK};
        const bool archive = i % 2 == 1;
        (void)clean(NULL);
        content[sizeof content - 2] = archive ? '\0' : 'x'; /* an even number of bytes */
        put(IN, content);
        indexes_lost = true;
        assert_int_equal(pack_in(archive, stripes[i / 2], 14, &fault), K3HUF_EXIT_CORRUPT);
        assert_non_null(strstr(fault.text, i / 2 == 0 ? "read back, it is not what was written"
                                                      : k3huf_status_text(K3HUF_E_INDEX_ABSENT)));
        assert_int_equal(access(OUT, F_OK), -1);
        indexes_lost = false;
        if (!archive && i / 2 == 0) { /* nor where something follows */
            byte_added = true;
            assert_int_equal(pack_in(archive, stripes[i / 2], 14, &fault), K3HUF_EXIT_CORRUPT);
            byte_added = false;
            assert_non_null(strstr(fault.text, " were written"));
            assert_int_equal(access(OUT, F_OK), -1);
        }
        if (i / 2 == 0) { /* nor where the source is not what it was */
            touched = true;
            assert_int_equal(pack_in(archive, stripes[i / 2], 14, &fault), K3HUF_EXIT_IO);
            touched = false;
            assert_string_equal(fault.text, IN ": changed while it was read");
            assert_int_equal(access(OUT, F_OK), -1);
        }
        indexes_lost = true;
        assert_int_equal(pack_in(archive, stripes[i / 2], 0, &fault), K3HUF_EXIT_OK);
        char command[] = "index";
        char in[] = OUT;
        char out[] = OTHER;
        char *words[] = {command, in, out, NULL};
        bool help = false;
        if (!archive) {
            optind = 1;
            assert_int_equal(k3huf_command_index.run(3, words, &help, &fault), K3HUF_EXIT_CORRUPT);
            assert_non_null(strstr(fault.text, k3huf_status_text(K3HUF_E_INDEX_ABSENT)));
            assert_int_equal(access(OTHER, F_OK), -1);
        }
        indexes_lost = false;
        assert_int_equal(unlink(OUT), 0);
        assert_int_equal(pack_in(archive, stripes[i / 2], 14, &fault), K3HUF_EXIT_OK);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(only_what_was_packed_is_removed, clean, clean),
        cmocka_unit_test_setup_teardown(a_name_is_on_the_disk, clean, clean),
        cmocka_unit_test_setup_teardown(no_file_is_replaced, clean, clean),
        cmocka_unit_test_setup_teardown(a_folder_is_on_the_disk, clean, clean),
        cmocka_unit_test_setup_teardown(a_stream_is_on_the_disk, clean, clean),
        cmocka_unit_test_setup_teardown(a_directory_is_read_whole, clean, clean),
        cmocka_unit_test_setup_teardown(a_read_error_has_its_place, clean, clean),
        cmocka_unit_test_setup_teardown(stored_bytes_that_go_wrong_are_found, clean, clean),
        cmocka_unit_test_setup_teardown(room_is_made, clean, clean),
        cmocka_unit_test_setup_teardown(an_index_that_is_lost_is_missed, clean, clean),
        cmocka_unit_test(times_that_cannot_be_counted),
        cmocka_unit_test(texts_are_cut_between_characters),
    };
    return cmocka_run_group_tests_name("output", tests, enter, leave);
}

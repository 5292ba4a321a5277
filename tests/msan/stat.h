/* stat.h - tells the memory sanitizer of clang 14 what it does not know of Debian 12's C library: that these
 * functions write their result. Without it every look at a file's status is reported. Included in front of every source
 * of that build (CMakeLists.txt), and of no other; may not hold anything else. */
#ifndef K3HUF_MSAN_STAT_H
#define K3HUF_MSAN_STAT_H

#define _DEFAULT_SOURCE 1 /* for the sources that ask for it after this */

#include <sanitizer/msan_interface.h>
#include <sys/stat.h>

#define K3HUF_MSAN_STAT(NAME, TYPE)                                                                                    \
    static inline int k3huf_msan_##NAME(TYPE what, struct stat *info) {                                                \
        const int result = NAME(what, info);                                                                           \
        if (result == 0) { __msan_unpoison(info, sizeof *info); }                                                      \
        return result;                                                                                                 \
    }
K3HUF_MSAN_STAT(stat, const char *)
K3HUF_MSAN_STAT(lstat, const char *)
K3HUF_MSAN_STAT(fstat, int)

static inline int k3huf_msan_fstatat(int folder, const char *name, struct stat *info, int flags) {
    const int result = fstatat(folder, name, info, flags);
    if (result == 0) { __msan_unpoison(info, sizeof *info); }
    return result;
}

#define stat(WHAT, INFO) k3huf_msan_stat(WHAT, INFO)
#define lstat(WHAT, INFO) k3huf_msan_lstat(WHAT, INFO)
#define fstat(WHAT, INFO) k3huf_msan_fstat(WHAT, INFO)
#define fstatat(FOLDER, NAME, INFO, FLAGS) k3huf_msan_fstatat(FOLDER, NAME, INFO, FLAGS)

#endif

/* version.h - what a program says of itself. May not tell where or when it was built. */
#ifndef K3HUF_PORT_VERSION_H
#define K3HUF_PORT_VERSION_H

/* The version, and the commit where the source was a git work tree: "0.1.0 (commit 0123456789ab)", with "-dirty" behind
 * the commit where files that git knows differed from it; else "0.1.0". */
extern const char k3huf_version[];

#endif

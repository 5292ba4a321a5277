/* version.c - see version.h. */
#include "version.h"

#include "k3huf.h"
#include "k3huf_commit.h" /* commit.cmake writes it */

const char k3huf_version[] = K3HUF_VERSION K3HUF_COMMIT;

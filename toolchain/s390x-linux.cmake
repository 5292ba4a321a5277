# Cross-compile for s390x Linux, a big-endian machine, with Debian's compiler. Only the C library is at hand for it: no
# host tool, and CMocka from its source.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR s390x)
set(CMAKE_C_COMPILER s390x-linux-gnu-gcc)
set(K3HUF_HOST_TOOL OFF CACHE BOOL "")
set(K3HUF_BUILD_CMOCKA ON CACHE BOOL "")

# Runs the programs that a test starts by their target's name, and the unit tests, on these models of processors.
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-s390x -L /usr/s390x-linux-gnu)
set(K3HUF_CPUS max)

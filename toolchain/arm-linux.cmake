# Cross-compile for 32-bit Arm Linux with Debian's compiler. Only the C library is at hand for it: no host tool, and
# CMocka from its source.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR arm)
set(CMAKE_C_COMPILER arm-linux-gnueabihf-gcc)
set(K3HUF_HOST_TOOL OFF CACHE BOOL "")
set(K3HUF_BUILD_CMOCKA ON CACHE BOOL "")

# Runs the programs that a test starts by their target's name, and the unit tests, on these models of processors.
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-arm -L /usr/arm-linux-gnueabihf)
set(K3HUF_CPUS max)

# Cross-compile for AArch64 Linux with Debian's compiler; libraries come from Debian's arm64 packages (multiarch).
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)

# Every core this is for (Cortex-A72, Neoverse) has the CRC instructions.
set(CMAKE_C_FLAGS_INIT "-march=armv8-a+crc")

# Runs the programs that a test starts by their target's name, and the unit tests, on these models of processors.
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -cpu cortex-a72)
set(K3HUF_CPUS cortex-a72 neoverse-n1 max)

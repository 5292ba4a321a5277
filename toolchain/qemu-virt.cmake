# Cross-compile for bare-metal AArch64: Debian's Linux cross compiler, with picolibc in glibc's place. Start-up code
# and linker script are the port's own (port/qemu-virt, linker/qemu-virt.ld).
set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)

# Outline atomics would ask Linux what the core can do; position independence would need relocating at start-up.
set(CMAKE_C_FLAGS_INIT
    "--specs=picolibc.specs -mcpu=cortex-a72 -mno-outline-atomics -fno-pie -ffunction-sections -fdata-sections")
set(CMAKE_ASM_FLAGS_INIT "-mcpu=cortex-a72")

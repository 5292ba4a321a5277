# jansson as JANSSON_INCLUDE_DIR and JANSSON_LIBRARY: Debian's library, or, with K3HUF_BUILD_JANSSON, built here from
# Debian's source package, which toolchain/setup fetches: a sanitizer may have to see all of a program.
if(NOT K3HUF_BUILD_JANSSON)
    find_path(JANSSON_INCLUDE_DIR jansson.h REQUIRED)
    find_library(JANSSON_LIBRARY jansson REQUIRED)
    return()
endif()

set(K3HUF_JANSSON_SOURCE ${PROJECT_SOURCE_DIR}/build/jansson CACHE PATH "jansson's source tree")
file(GLOB jansson_sources ${K3HUF_JANSSON_SOURCE}/src/*.c)
if(NOT jansson_sources)
    message(FATAL_ERROR "${K3HUF_JANSSON_SOURCE} does not hold jansson's source; toolchain/setup fetches it")
endif()
# What jansson's own build would have found out; for its public header the source has a ready answer.
set(config_dir ${CMAKE_CURRENT_BINARY_DIR}/jansson)
file(CONFIGURE OUTPUT ${config_dir}/jansson_private_config.h CONTENT "#define HAVE_STDINT_H 1\n")
add_library(k3huf_jansson STATIC ${jansson_sources})
set(JANSSON_LIBRARY k3huf_jansson)
set(JANSSON_INCLUDE_DIR ${K3HUF_JANSSON_SOURCE}/src ${K3HUF_JANSSON_SOURCE}/android)
target_include_directories(k3huf_jansson PRIVATE ${config_dir} ${JANSSON_INCLUDE_DIR})
target_compile_definitions(k3huf_jansson PRIVATE HAVE_CONFIG_H)
set_source_files_properties(${jansson_sources} PROPERTIES COMPILE_OPTIONS "-w;-std=gnu11") # not our code

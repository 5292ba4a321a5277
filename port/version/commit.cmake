# commit.cmake - write HEADER with the commit that SOURCE is at, if that is not what it holds already. Run at every
# build. An unpacked archive has no commit; a git repository around it is not asked for its own.
set(commit "")
find_program(GIT git)
if(GIT AND EXISTS "${SOURCE}/.git")
    # No locks: several builds may look at once.
    set(git ${GIT} --no-optional-locks -C "${SOURCE}")
    execute_process(COMMAND ${git} rev-parse HEAD OUTPUT_VARIABLE hash RESULT_VARIABLE failed ERROR_QUIET)
    if(NOT failed)
        string(SUBSTRING "${hash}" 0 12 hash) # not --short, whose length depends on what else the clone holds
        execute_process(COMMAND ${git} diff --quiet HEAD -- RESULT_VARIABLE changed OUTPUT_QUIET ERROR_QUIET)
        if(changed)
            string(APPEND hash "-dirty")
        endif()
        set(commit " (commit ${hash})")
    endif()
endif()
file(CONFIGURE OUTPUT "${HEADER}" CONTENT "#define K3HUF_COMMIT \"${commit}\"\n" @ONLY)

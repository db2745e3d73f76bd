# Flags for Reef's own code: an interface target that is linked privately and never exported.
add_library(reef_flags INTERFACE)
target_compile_options(reef_flags INTERFACE
    -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Wcast-qual
    # REEF_TRY is a statement expression, which clang reports under its own name.
    $<$<CXX_COMPILER_ID:Clang>:-Wno-gnu-statement-expression>
    # It warns of names in other files of a room, too, that are compiled together; g++ keeps to one.
    $<$<CXX_COMPILER_ID:Clang>:-Wno-shadow>
    # std::stable_sort of libstdc++ 12 calls the deprecated std::get_temporary_buffer.
    $<$<CXX_COMPILER_ID:Clang>:-Wno-deprecated-declarations>
    # g++ 12 takes the value of a std::expected that holds an error for a read of nothing.
    $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>
    # g++ 14 takes what is put behind a vector's last element for bytes in no memory.
    $<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_GREATER_EQUAL:$<CXX_COMPILER_VERSION>,13>>:-Wno-stringop-overflow>
    # Bit-exactness: a * b + c must not become a fused multiply-add where the oracle had none.
    -ffp-contract=off
    $<$<BOOL:${REEF_WERROR}>:-Werror>)

if(REEF_SANITIZE)
    add_compile_options(-fsanitize=${REEF_SANITIZE} -fno-sanitize-recover=all
                        -fno-omit-frame-pointer)
    add_link_options(-fsanitize=${REEF_SANITIZE})
    if(CMAKE_CXX_COMPILER_ID MATCHES "Clang" AND REEF_SANITIZE MATCHES "undefined")
        # A sixth of the time to compile. AddressSanitizer sees what the first would; what the second
        # alone would see, a cast to the wrong class, goes unseen.
        add_compile_options(-fno-sanitize=object-size,vptr)
    endif()
    # Half the time to compile vector kernels: those of AVX-512 where nothing could run them.
    if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64" AND EXISTS /proc/cpuinfo)
        file(STRINGS /proc/cpuinfo flags LIMIT_COUNT 1 REGEX "^flags")
        if(NOT flags MATCHES " avx512bw")
            add_compile_definitions("REEF_TARGETS_LEFT_OUT=(HWY_AVX3|HWY_AVX3_DL)")
        endif()
    endif()
endif()

if(REEF_FUZZ)
    # Coverage feedback from the library; only the targets in fuzz/ link libFuzzer's main.
    add_compile_options(-fsanitize=fuzzer-no-link)
    add_link_options(-fsanitize=fuzzer-no-link)
    # For code that no fuzz target runs.
    set(REEF_NO_COVERAGE -fno-sanitize=fuzzer-no-link)
endif()

# Precompiled headers that ccache takes for the same when they were made of the same.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>)
elseif(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:SHELL:-Xclang -fno-pch-timestamp>")
endif()

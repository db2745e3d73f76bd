# Rooms of the library: a folder below src/ whose files see only the headers of the rooms they use.
#
#   reef_room(NAME [BUSY] [USES ROOM|TARGET...] [HEADERS FILE...] [SOURCES FILE...] [ONCE FILE...]
#             [VECTOR FILE...] [ALONE FILE...] [LINKS LIBRARY...])
#
# NAME     the folder below src/, e.g. cpu/fast
# BUSY     tests do the work of its ONCE and ALONE files thousands of times: optimised under sanitizers, too
# USES     rooms whose headers may be included, with those that they use in turn; also targets with
#          headers of their own that this room's headers include (reef_spec)
# HEADERS  the room's public headers, named from include/reef on
# SOURCES  files compiled for speed
# ONCE     files whose work is done once for a file or a model, never for an inference: compiled for
#          size, a third of the code, because from a cold disk a verb waits for every byte
# VECTOR   files that Highway compiles once per instruction set; each is compiled alone
# ALONE    as ONCE, each compiled alone: a program that does not call it does not get it out of the
#          archive, nor the libraries that it needs
# LINKS    libraries that the room's files use
#
# The doors: build/.../doors/NAME holds links to the room's own headers and nothing else, and a room is
# compiled with the doors of the rooms it uses in place of src/ and include/. An include of any other
# room's header is "no such file".

option(REEF_UNITY "Compile files of a room together: half the time for a clean build, more for one file"
       ON)

# g++ writes arrays of 33 bytes to 8 KB by `rep stos`, which takes 20 ns to begin on Zen 4. Vectors
# write most in one or two.
set(REEF_SPEED_OPTIONS)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    list(APPEND REEF_SPEED_OPTIONS -mmemset-strategy=vector_loop:512:noalign,libcall:-1:noalign)
endif()

# The door of a room: links to its headers, public ones (reef/...) and its own.
function(reef_room_door name)
    set(door ${PROJECT_BINARY_DIR}/doors/${name}/door)
    file(REMOVE_RECURSE ${door})
    file(GLOB own RELATIVE ${PROJECT_SOURCE_DIR}/src CONFIGURE_DEPENDS
         ${PROJECT_SOURCE_DIR}/src/${name}/*.h)
    foreach(file IN LISTS own ARGN)
        set(root src)
        if(file MATCHES "^reef/")
            set(root include)
        endif()
        get_filename_component(place ${door}/${file} DIRECTORY)
        file(MAKE_DIRECTORY ${place})
        file(CREATE_LINK ${PROJECT_SOURCE_DIR}/${root}/${file} ${door}/${file} SYMBOLIC)
    endforeach()
endfunction()

# What nearly every file includes takes a second to read: once for all files with these options.
function(reef_precompiled_headers target)
    if(NOT REEF_UNITY)
        return()
    endif()
    string(MAKE_C_IDENTIFIER "reef_headers${ARGN}" headers)
    if(NOT TARGET ${headers})
        file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/no_code.cpp CONTENT "")
        add_library(${headers} OBJECT ${PROJECT_BINARY_DIR}/no_code.cpp)
        target_link_libraries(${headers} PRIVATE reef_flags fmt::fmt)
        target_compile_features(${headers} PRIVATE cxx_std_23)
        target_compile_options(${headers} PRIVATE ${ARGN})
        target_precompile_headers(${headers} PRIVATE
            <algorithm> <array> <bit> <cmath> <cstdint> <cstring> <expected> <functional> <limits> <map>
            <memory> <numeric> <optional> <set> <span> <string> <string_view> <variant> <vector>
            <fmt/format.h>)
    endif()
    target_precompile_headers(${target} REUSE_FROM ${headers})
endfunction()

# The object library TARGET of a room's files, compiled with OPTIONS (a list).
function(reef_room_objects target room options)
    add_library(${target} OBJECT ${ARGN})
    target_link_libraries(${target} PRIVATE ${room} reef_flags fmt::fmt)
    target_compile_features(${target} PRIVATE cxx_std_23)
    target_compile_options(${target} PRIVATE ${options})
    reef_precompiled_headers(${target} ${options})
    if(REEF_UNITY AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
        # A class of its own file's anonymous namespace, in a file that includes that one.
        target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
    endif()
    set_target_properties(${target} PROPERTIES UNITY_BUILD ${REEF_UNITY} UNITY_BUILD_BATCH_SIZE 8)
    target_sources(reef PRIVATE $<TARGET_OBJECTS:${target}>)
endfunction()

function(reef_room name)
    cmake_parse_arguments(arg "BUSY" "" "USES;HEADERS;SOURCES;ONCE;VECTOR;ALONE;LINKS" ${ARGN})
    if(arg_UNPARSED_ARGUMENTS)
        message(FATAL_ERROR "room ${name}: ${arg_UNPARSED_ARGUMENTS} stands behind no keyword")
    endif()
    string(REPLACE "/" "_" id ${name})
    list(TRANSFORM arg_HEADERS PREPEND reef/)
    # Highway includes a vector file again for each instruction set, by its path.
    list(TRANSFORM arg_VECTOR PREPEND ${name}/ OUTPUT_VARIABLE again)
    reef_room_door(${name} ${arg_HEADERS} ${again})

    add_library(reef_room_${id} INTERFACE)
    target_include_directories(reef_room_${id} INTERFACE ${PROJECT_BINARY_DIR}/doors/${name}/door)
    foreach(used IN LISTS arg_USES)
        string(REPLACE "/" "_" used_id ${used})
        if(TARGET reef_room_${used_id})
            target_link_libraries(reef_room_${id} INTERFACE reef_room_${used_id})
        elseif(TARGET ${used})
            target_link_libraries(reef_room_${id} INTERFACE ${used})
        else()
            message(FATAL_ERROR "room ${name} uses ${used}, which is no room below it")
        endif()
    endforeach()

    set(objects)
    if(arg_SOURCES OR arg_VECTOR)
        reef_room_objects(reef_room_${id}_speed reef_room_${id} "${REEF_SPEED_OPTIONS}"
                          ${arg_SOURCES} ${arg_VECTOR})
        set_source_files_properties(${arg_VECTOR} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
        list(APPEND objects reef_room_${id}_speed)
    endif()
    if(arg_ONCE OR arg_ALONE)
        set(options)
        if(REEF_SANITIZE AND NOT arg_BUSY)
            list(APPEND options -O0)  # half the time to compile
        elseif(NOT REEF_SANITIZE)
            list(APPEND options $<$<CONFIG:Release>:-Os>)
        endif()
        reef_room_objects(reef_room_${id}_once reef_room_${id} "${options}" ${arg_ONCE} ${arg_ALONE})
        set_source_files_properties(${arg_ALONE} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
        list(APPEND objects reef_room_${id}_once)
    endif()
    if(arg_LINKS)
        foreach(target IN LISTS objects)
            target_link_libraries(${target} PRIVATE ${arg_LINKS})
        endforeach()
        # Headers that are generated here are nobody else's business.
        list(FILTER arg_LINKS EXCLUDE REGEX "^reef_")
        get_target_property(linked reef LINK_LIBRARIES)
        list(REMOVE_ITEM arg_LINKS ${linked})
        target_link_libraries(reef PRIVATE ${arg_LINKS})
    endif()
endfunction()

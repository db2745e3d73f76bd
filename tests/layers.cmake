# cmake -DROOT=... -P layers.cmake: every floor includes only itself and the floors below it.
cmake_policy(VERSION 3.25)
set(floors base model graph cpu edgetpu runtime apps usb_abi)
# edgetpu stands beside cpu: neither uses the other.
set(forbidden_edgetpu cpu)
# The library in libusb's place is around the simulated stick and nothing else.
set(forbidden_usb_abi cpu runtime apps)

set(allowed "")
foreach(floor IN LISTS floors)
    list(APPEND allowed ${floor})
    file(GLOB_RECURSE files ${ROOT}/src/${floor}/*.cpp ${ROOT}/src/${floor}/*.h
         ${ROOT}/include/reef/${floor}/*.h)
    if(NOT files)
        message(SEND_ERROR "floor ${floor} has no files: is ROOT right? (${ROOT})")
    endif()
    foreach(file IN LISTS files)
        file(STRINGS ${file} includes REGEX "^#include \"")
        foreach(line IN LISTS includes)
            string(REGEX REPLACE "^#include \"(reef/)?([^/\"]*)/.*$" "\\2" used "${line}")
            if(used IN_LIST floors AND (NOT used IN_LIST allowed OR used IN_LIST forbidden_${floor}))
                message(SEND_ERROR "${file}: ${floor} may not use ${used}: ${line}")
            endif()
        endforeach()
    endforeach()
endforeach()

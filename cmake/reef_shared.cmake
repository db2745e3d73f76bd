# libreef.so: the archive's rooms with the symbols of the promised headers and no others. Made for
# -DBUILD_SHARED_LIBS=ON, and by the tests, which link the examples of the promised headers to it.
# Reef's own programs use the archive: they go through doors that the library does not promise.
file(WRITE ${PROJECT_BINARY_DIR}/shared_library.cpp "// The archive holds everything.\n")
set(REEF_EXPORTS_OF_CHIPS "")
foreach(chip IN LISTS REEF_CHIPS)
    set(own ${PROJECT_SOURCE_DIR}/src/${chip}/exports.map)
    if(EXISTS ${own})
        file(READ ${own} symbols)
        string(APPEND REEF_EXPORTS_OF_CHIPS "${symbols}")
        set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${own})
    endif()
endforeach()
set(reef_exports ${PROJECT_BINARY_DIR}/exports.map)
configure_file(${CMAKE_CURRENT_LIST_DIR}/exports.map.in ${reef_exports} @ONLY)
add_library(reef_shared SHARED ${PROJECT_BINARY_DIR}/shared_library.cpp)
target_include_directories(reef_shared INTERFACE
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_compile_features(reef_shared INTERFACE cxx_std_23)
set_target_properties(reef_shared PROPERTIES
    OUTPUT_NAME reef
    EXPORT_NAME reef
    VERSION ${PROJECT_VERSION}
    SOVERSION 0
    LINK_DEPENDS ${reef_exports})
target_link_libraries(reef_shared PRIVATE
    # Debian's static one is not made for shared libraries; this one, first, stands in for it.
    -Wl,--no-as-needed flatbuffers::flatbuffers_shared -Wl,--as-needed
    -Wl,--whole-archive $<TARGET_FILE:reef> -Wl,--no-whole-archive $<LINK_ONLY:reef::reef>)
target_link_options(reef_shared PRIVATE
    -Wl,--version-script=${reef_exports})
add_dependencies(reef_shared reef)

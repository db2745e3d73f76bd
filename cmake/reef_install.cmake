# cmake --install: library, promised headers, CMake package, pkg-config file; tools/reef installs the
# command itself.
include(CMakePackageConfigHelpers)

set(reef_product reef)
if(BUILD_SHARED_LIBS)
    set(reef_product reef_shared)
endif()
install(TARGETS ${reef_product} EXPORT reefTargets
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
        RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
include(promised_headers)
foreach(header IN LISTS REEF_PROMISED_HEADERS)
    get_filename_component(room ${header} DIRECTORY)
    install(FILES include/reef/${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/reef/${room})
endforeach()
install(EXPORT reefTargets NAMESPACE reef:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/reef)

if(BUILD_SHARED_LIBS)
    set(reef_is_shared TRUE)
    set(reef_pc_libraries "")
else()
    set(reef_is_shared FALSE)
    # An archive needs its libraries named by whoever links it: of packages here, of rooms (LINKS) by themselves.
    set(reef_pc_libraries " -lfmt -lz -lhwy -lflatbuffers")
    get_target_property(linked reef LINK_LIBRARIES)
    # Others are targets, and files or flags that CMake wrote.
    list(FILTER linked INCLUDE REGEX "^[A-Za-z0-9._+-]+$")
    list(REMOVE_DUPLICATES linked)
    foreach(library IN LISTS linked)
        if(TARGET ${library})
            continue()
        endif()
        string(APPEND reef_pc_libraries " -l${library}")
    endforeach()
endif()
configure_package_config_file(
    ${CMAKE_CURRENT_LIST_DIR}/reefConfig.cmake.in
    ${CMAKE_CURRENT_BINARY_DIR}/reefConfig.cmake
    INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/reef)
write_basic_package_version_file(
    ${CMAKE_CURRENT_BINARY_DIR}/reefConfigVersion.cmake COMPATIBILITY SameMinorVersion)
# From lib/pkgconfig (or lib/x86_64-linux-gnu/pkgconfig) up to the prefix.
file(RELATIVE_PATH reef_pc_up /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(${CMAKE_CURRENT_LIST_DIR}/reef.pc.in ${CMAKE_CURRENT_BINARY_DIR}/reef.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/reefConfig.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/reefConfigVersion.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/reef)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/reef.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
install(FILES LICENSE README.md DESTINATION ${CMAKE_INSTALL_DOCDIR})

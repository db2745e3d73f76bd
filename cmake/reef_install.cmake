# cmake --install: library, public headers, CMake package, pkg-config file; tools/reef installs the
# command itself.
include(CMakePackageConfigHelpers)

install(TARGETS reef EXPORT reefTargets
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
        RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY include/reef DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT reefTargets NAMESPACE reef:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/reef)

get_target_property(reef_type reef TYPE)
if(reef_type STREQUAL "SHARED_LIBRARY")
    set(reef_is_shared TRUE)
    set(reef_pc_libraries "")
else()
    set(reef_is_shared FALSE)
    # An archive needs its libraries named by whoever links it.
    set(reef_pc_libraries " -lfmt -lz -ltbb -lhwy -lflatbuffers -lusb-1.0")
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
install(FILES udev/60-reef.rules DESTINATION ${CMAKE_INSTALL_DATADIR}/reef)

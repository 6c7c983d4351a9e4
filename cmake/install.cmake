# SPDX-License-Identifier: MIT
include(CMakePackageConfigHelpers)

install(TARGETS ax_core ax_sqlite ax_ax EXPORT axTargets FILE_SET HEADERS)
install(EXPORT axTargets NAMESPACE ax:: DESTINATION "${CMAKE_INSTALL_LIBDIR}/cmake/ax")

configure_package_config_file(cmake/axConfig.cmake.in "${PROJECT_BINARY_DIR}/axConfig.cmake"
  INSTALL_DESTINATION "${CMAKE_INSTALL_LIBDIR}/cmake/ax")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/axConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
install(FILES "${PROJECT_BINARY_DIR}/axConfig.cmake" "${PROJECT_BINARY_DIR}/axConfigVersion.cmake"
  cmake/Findcctz.cmake DESTINATION "${CMAKE_INSTALL_LIBDIR}/cmake/ax")

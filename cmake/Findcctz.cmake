# SPDX-License-Identifier: MIT
# Finds cctz: its own CMake package where there is one, else the header and the library.
# Defines the target cctz::cctz.
if(NOT TARGET cctz::cctz)
  find_package(cctz CONFIG QUIET)
endif()
if(NOT TARGET cctz::cctz)
  find_path(cctz_INCLUDE_DIR cctz/time_zone.h)
  find_library(cctz_LIBRARY cctz)
  mark_as_advanced(cctz_INCLUDE_DIR cctz_LIBRARY)
endif()

include(FindPackageHandleStandardArgs)
if(TARGET cctz::cctz)
  set(cctz_FOUND TRUE)
else()
  find_package_handle_standard_args(cctz REQUIRED_VARS cctz_LIBRARY cctz_INCLUDE_DIR
    REASON_FAILURE_MESSAGE "install libcctz-dev (Debian, Ubuntu), cctz (vcpkg, Conan) or set cctz_ROOT")
  if(cctz_FOUND)
    add_library(cctz::cctz UNKNOWN IMPORTED)
    set_target_properties(cctz::cctz PROPERTIES IMPORTED_LOCATION "${cctz_LIBRARY}"
      INTERFACE_INCLUDE_DIRECTORIES "${cctz_INCLUDE_DIR}")
  endif()
endif()

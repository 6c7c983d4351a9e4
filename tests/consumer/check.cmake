# SPDX-License-Identifier: MIT
# Builds and runs the project beside this file, either against ax as installed from `build_tree` or with `source_tree`
# as a subdirectory (`way`), everything below `scratch`.
cmake_minimum_required(VERSION 3.25)
file(REMOVE_RECURSE "${scratch}")

function(run)
  execute_process(COMMAND ${ARGV} COMMAND_ECHO STDOUT COMMAND_ERROR_IS_FATAL ANY)
endfunction()

if(way STREQUAL "installed")
  run("${CMAKE_COMMAND}" --install "${build_tree}" --prefix "${scratch}/prefix")
  set(where "-DCMAKE_PREFIX_PATH=${scratch}/prefix")
else()
  set(where "-DAX_SOURCE=${source_tree}")
endif()
run("${CMAKE_COMMAND}" -S "${CMAKE_CURRENT_LIST_DIR}/project" -B "${scratch}/build" -G "${generator}" "${where}"
  -DCMAKE_BUILD_TYPE=Debug "-DCMAKE_CXX_COMPILER=${compiler}" "-DCMAKE_CXX_COMPILER_LAUNCHER=${launcher}")
run("${CMAKE_COMMAND}" --build "${scratch}/build")
run("${scratch}/build/uses_all")
run("${scratch}/build/uses_core")

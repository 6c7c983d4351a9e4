# SPDX-License-Identifier: MIT
# cmake -Dcompiler_file= -Dsource= -P check.cmake
# Compiles `source` as it stands, which has to work, and with AX_REJECT, which has to fail with the words the file names.
cmake_minimum_required(VERSION 3.25)
include("${compiler_file}")

function(fail reason)
  message(NOTICE "${output}")
  message(FATAL_ERROR "${reason}: ${source}")
endfunction()

set(output "")
file(STRINGS "${source}" lines REGEX "^// reject: ")
if(NOT lines)
  fail("says no words to expect")
endif()

cmake_path(GET source STEM name)
file(MAKE_DIRECTORY "${scratch}")
set(ENV{LC_ALL} C) # else the words come translated, and between quotes of several bytes
separate_arguments(flags UNIX_COMMAND "${flags}")
list(TRANSFORM includes PREPEND "-I")
list(TRANSFORM definitions PREPEND "-D")
# An -I folder that is a system folder anyway (/usr/include) is ignored by the compilers, so order is kept.
set(call "${compiler}" ${flags} ${definitions} ${includes} -c "${source}" -o "${scratch}/${name}.o")

execute_process(COMMAND ${call} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
if(NOT result EQUAL 0)
  fail("does not compile as it stands")
endif()

execute_process(COMMAND ${call} -DAX_REJECT RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
if(result EQUAL 0)
  fail("compiles under AX_REJECT")
endif()
foreach(line IN LISTS lines)
  string(REGEX REPLACE "^// reject: " "" words "${line}")
  if(NOT output MATCHES "${words}")
    fail("refused, but not with the words '${words}'")
  endif()
endforeach()

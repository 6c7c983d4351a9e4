# SPDX-License-Identifier: MIT
# Asks a Catch2 program for its test cases and writes them down for ctest:
#   cmake -Dprogram= -Dlist_arguments= -Drun_arguments= -Dlabel= -Dmodule= -Doutput= -P list_tests.cmake
execute_process(COMMAND "${program}" ${list_arguments} OUTPUT_VARIABLE names ERROR_VARIABLE errors RESULT_VARIABLE result)
# Version 2 ends with the number of tests, version 3 with 0; what a crash leaves is a text.
if(NOT result MATCHES "^[0-9]+$")
  message(FATAL_ERROR "${program} cannot list its tests: ${result}\n${errors}")
endif()

# The text is taken apart by hand: names are sentences, and a CMake list breaks at semicolons and brackets.
set(script "")
while(NOT names STREQUAL "")
  string(FIND "${names}" "\n" end)
  string(SUBSTRING "${names}" 0 ${end} name)
  if(end EQUAL -1)
    set(names "")
  else()
    math(EXPR end "${end} + 1")
    string(SUBSTRING "${names}" ${end} -1 names)
  endif()
  if(name STREQUAL "")
    continue()
  endif()
  # Characters with a meaning in a test specification.
  string(REGEX REPLACE "([][\\,\"]|^~)" "\\\\\\1" pattern "${name}")
  string(APPEND script
    "add_test([=====[${label}/${module}: ${name}]=====] [=====[${program}]=====] [=====[${pattern}]=====] ${run_arguments})\n"
    "set_tests_properties([=====[${label}/${module}: ${name}]=====] PROPERTIES"
    " LABELS [=====[${label};${module}]=====] TIMEOUT 300 SKIP_RETURN_CODE 77)\n")
endwhile()
if(script STREQUAL "")
  message(FATAL_ERROR "${program} has no tests")
endif()
file(WRITE "${output}" "${script}")

# Writes HEADER with what a result file says about its program. Runs at every build, but touches the file only when the text changed.
# cmake -D SOURCE=<source tree> -D HEADER=<file> -D VERSION=<version> -D FLAGS=<compiler flags> -P git.cmake
cmake_minimum_required(VERSION 3.24)
set(sha unknown)
set(dirty unknown)
find_package(Git QUIET)
if(GIT_FOUND)
  execute_process(COMMAND ${GIT_EXECUTABLE} -C ${SOURCE} rev-parse --short=12 HEAD
                  OUTPUT_VARIABLE head OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed ERROR_QUIET)
  if(NOT failed)
    set(sha ${head})
    # Untracked files count: a new kernel is in the program before git knows it. Results and their analysis are not.
    execute_process(COMMAND ${GIT_EXECUTABLE} -C ${SOURCE} status --porcelain -- . ":!results" ":!analysis" ":!*.md"
                    OUTPUT_VARIABLE changes RESULT_VARIABLE failed ERROR_QUIET)
    if(NOT failed)
      string(COMPARE NOTEQUAL "${changes}" "" dirty)
      string(REPLACE 1 true dirty ${dirty})
      string(REPLACE 0 false dirty ${dirty})
    endif()
  endif()
endif()
string(REPLACE "\\" "\\\\" FLAGS "${FLAGS}")
string(REPLACE "\"" "\\\"" FLAGS "${FLAGS}")
file(CONFIGURE OUTPUT ${HEADER} @ONLY CONTENT "#pragma once
#define SOFTMAX_VERSION \"@VERSION@\"
#define SOFTMAX_GIT_SHA \"@sha@\"
#define SOFTMAX_GIT_DIRTY \"@dirty@\"
#define SOFTMAX_FLAGS \"@FLAGS@\"
")

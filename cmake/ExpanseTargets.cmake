# How components, tests and fuzz targets are declared. Every folder's CMakeLists.txt uses these functions alone.

# Where the build contract wants things: DIR/bin and DIR/lib.
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")

add_library(expanse_flags INTERFACE)
target_include_directories(expanse_flags INTERFACE "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>")
target_compile_options(expanse_flags INTERFACE -Wall -Wextra -Wno-unknown-warning-option
  $<$<BOOL:${EXPANSE_WERROR}>:-Werror>
  $<$<COMPILE_LANG_AND_ID:CXX,Clang>:-Wthread-safety>)
if(EXPANSE_SANITIZE)
  target_compile_options(expanse_flags INTERFACE -fsanitize=${EXPANSE_SANITIZE} -fno-omit-frame-pointer
    -fno-sanitize-recover=all -g1)
  target_link_options(expanse_flags INTERFACE -fsanitize=${EXPANSE_SANITIZE})
endif()
if(EXPANSE_FUZZ)
  target_compile_options(expanse_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

# expanse_component(NAME SOURCES ... [DEPS ...]): a static library of one layer's sources.
function(expanse_component name)
  cmake_parse_arguments(arg "" "" "SOURCES;DEPS" ${ARGN})
  add_library(${name} STATIC ${arg_SOURCES})
  target_link_libraries(${name} PUBLIC $<BUILD_INTERFACE:expanse_flags> ${arg_DEPS})
endfunction()

# What CI builds for the thread sanitizer and for fuzzing, without the rest.
add_custom_target(threads_tests)
add_custom_target(fuzzers)

# expanse_test(NAME SOURCES ... [DEPS ...] [LABELS ...] [TIMEOUT seconds] [SHARDS count]): a GoogleTest binary and its
# ctest entry, or `count` entries with a part of its tests each. A test that runs threads carries the label `threads`:
# those run under the thread sanitizer in CI.
function(expanse_test name)
  if(NOT EXPANSE_BUILD_TESTS)
    return()
  endif()
  cmake_parse_arguments(arg "" "TIMEOUT;SHARDS" "SOURCES;DEPS;LABELS" ${ARGN})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 900)
  endif()
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE expanse_flags ${arg_DEPS} GTest::gmock GTest::gtest GTest::gtest_main)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests")
  if(arg_SHARDS)
    math(EXPR last "${arg_SHARDS} - 1")
    foreach(shard RANGE ${last})
      add_test(NAME ${name}_${shard} COMMAND ${name})
      set_tests_properties(${name}_${shard} PROPERTIES LABELS "${arg_LABELS}" TIMEOUT ${arg_TIMEOUT}
        ENVIRONMENT "GTEST_TOTAL_SHARDS=${arg_SHARDS};GTEST_SHARD_INDEX=${shard}")
    endforeach()
  else()
    add_test(NAME ${name} COMMAND ${name})
    set_tests_properties(${name} PROPERTIES LABELS "${arg_LABELS}" TIMEOUT ${arg_TIMEOUT})
  endif()
  if("threads" IN_LIST arg_LABELS)
    add_dependencies(threads_tests ${name})
  endif()
endfunction()

# expanse_fuzzer(NAME SOURCE file [DEPS ...]): a libFuzzer target with EXPANSE_FUZZ, and otherwise a test that runs it
# over the corpus in tests/corpus/NAME and over truncated and bit-flipped copies of each file there.
function(expanse_fuzzer name)
  if(NOT EXPANSE_BUILD_TESTS)
    return()
  endif()
  cmake_parse_arguments(arg "" "SOURCE" "DEPS" ${ARGN})
  if(EXPANSE_FUZZ)
    add_executable(${name} ${arg_SOURCE})
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  else()
    add_executable(${name} ${arg_SOURCE} "${PROJECT_SOURCE_DIR}/tests/fuzz/replay_corpus_main.cc")
    add_test(NAME ${name}_corpus COMMAND ${name} "${PROJECT_SOURCE_DIR}/tests/corpus/${name}")
    set_tests_properties(${name}_corpus PROPERTIES LABELS "fuzz" TIMEOUT 600)
  endif()
  target_link_libraries(${name} PRIVATE expanse_flags ${arg_DEPS})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/fuzz")
  add_dependencies(fuzzers ${name})
endfunction()

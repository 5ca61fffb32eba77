# Run by ctest; see CMakeLists.txt beside it. BUILD_DIR is the finished build.

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "failed with ${result}: ${ARGN}\n${output}")
  endif()
endfunction()

set(prefix "${WORK_DIR}/prefix")
file(REMOVE_RECURSE "${WORK_DIR}")
run(${CMAKE_COMMAND} --install "${BUILD_DIR}" --prefix "${prefix}")

# Programs run on the simulated libcuda.so.1, which keeps its books alone here: no real memory is touched.
set(run_on_simulator ${CMAKE_COMMAND} -E env "LD_LIBRARY_PATH=${prefix}/${LIBDIR}/expanse/sim:${prefix}/${LIBDIR}")

# What README.md shows is a program that builds without a warning and runs.
file(READ "${PROJECT_DIR}/README.md" readme)
foreach(language cmake cpp)
  string(FIND "${readme}" "```${language}\n" begin)
  if(begin EQUAL -1)
    message(FATAL_ERROR "README.md shows no ${language}")
  endif()
  string(LENGTH "```${language}\n" fence)
  math(EXPR begin "${begin} + ${fence}")
  string(SUBSTRING "${readme}" ${begin} -1 shown)
  string(FIND "${shown}" "```" end)
  string(SUBSTRING "${shown}" 0 ${end} shown_${language})
endforeach()
set(dir "${WORK_DIR}/readme")
file(WRITE "${dir}/CMakeLists.txt" "${shown_cmake}")
file(WRITE "${dir}/app.cc" "${shown_cpp}")
run(${CMAKE_COMMAND} -S "${dir}" -B "${dir}/build" -G Ninja "-DCMAKE_PREFIX_PATH=${prefix}" "-DCMAKE_CXX_COMPILER=${CXX}"
  "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Werror")
run(${CMAKE_COMMAND} --build "${dir}/build")
run(${run_on_simulator} "${dir}/build/app")

foreach(standard 17 20)
  set(dir "${WORK_DIR}/find_package_${standard}")
  run(${CMAKE_COMMAND} -S "${SOURCE_DIR}" -B "${dir}" -G Ninja "-DCMAKE_PREFIX_PATH=${prefix}"
    "-DCMAKE_CXX_COMPILER=${CXX}" -DCMAKE_CXX_STANDARD=${standard})
  run(${CMAKE_COMMAND} --build "${dir}")
  run(${run_on_simulator} "${dir}/consumer_static")
  run(${run_on_simulator} "${dir}/consumer_shared")
endforeach()

find_program(pkg_config pkg-config)
if(NOT pkg_config)
  message(STATUS "pkg-config is not installed: that way of linking was not tried")
  return()
endif()
execute_process(
  COMMAND ${CMAKE_COMMAND} -E env "PKG_CONFIG_PATH=${prefix}/${LIBDIR}/pkgconfig" ${pkg_config} --cflags --libs expanse
  OUTPUT_VARIABLE flags OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE result)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "pkg-config does not find expanse")
endif()
separate_arguments(flags UNIX_COMMAND "${flags}")
run(${CXX} -std=c++17 "${SOURCE_DIR}/main.cc" -o "${WORK_DIR}/consumer_pkg_config" ${flags})
run(${run_on_simulator} "${WORK_DIR}/consumer_pkg_config")

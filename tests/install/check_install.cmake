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

# The program runs on the simulated libcuda.so.1, which keeps its books alone here: no real memory is touched.
set(run_on_simulator ${CMAKE_COMMAND} -E env "LD_LIBRARY_PATH=${BUILD_DIR}/lib/sim:${prefix}/${LIBDIR}")

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

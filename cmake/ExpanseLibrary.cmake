# The library that programs link, libexpanse.a and libexpanse.so, and what `cmake --install` puts where.

include(CMakePackageConfigHelpers)

# Headers that programs include, by the folder they keep under include/expanse.
set(EXPANSE_PUBLIC_VMM_HEADERS vmm/abi.h vmm/counting_driver.h vmm/driver.h vmm/driver_entry_points.inc
  vmm/driver_function.h vmm/units.h)
set(EXPANSE_PUBLIC_CORE_HEADERS core/allocator.h core/handle_span.h core/mapping_callbacks.h core/options.h
  core/pool.h core/process_budgets.h core/shortage.h core/snapshot.h core/stats.h core/stats_page.h)

# In the build tree, <expanse/core/allocator.h> is found through a link to the source folder.
file(MAKE_DIRECTORY "${PROJECT_BINARY_DIR}/include")
file(CREATE_LINK "${PROJECT_SOURCE_DIR}" "${PROJECT_BINARY_DIR}/include/expanse" SYMBOLIC)

foreach(kind STATIC SHARED)
  if(kind STREQUAL "STATIC")
    set(target expanse)
  else()
    set(target expanse_shared)
  endif()
  # The tool's binary has the name expanse, so the library's target has a suffix and its file has not.
  add_library(${target}_lib ${kind} $<TARGET_OBJECTS:expanse_vmm> $<TARGET_OBJECTS:expanse_core>)
  set_target_properties(${target}_lib PROPERTIES OUTPUT_NAME expanse EXPORT_NAME ${target} LINKER_LANGUAGE CXX)
  target_compile_features(${target}_lib PUBLIC cxx_std_17)
  target_include_directories(${target}_lib INTERFACE
    "$<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include>" "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>"
    "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>" "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/expanse>")
  target_link_libraries(${target}_lib PUBLIC absl::status absl::statusor PRIVATE ${EXPANSE_PRIVATE_DEPS})
  if(EXPANSE_SANITIZE)
    target_link_options(${target}_lib PUBLIC -fsanitize=${EXPANSE_SANITIZE})
  endif()
  add_library(expanse::${target} ALIAS ${target}_lib)
endforeach()
set_target_properties(expanse_shared_lib PROPERTIES VERSION ${PROJECT_VERSION}
  SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})

install(TARGETS expanse_lib expanse_shared_lib EXPORT expanse_targets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(FILES ${EXPANSE_PUBLIC_VMM_HEADERS} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/expanse/vmm)
install(FILES ${EXPANSE_PUBLIC_CORE_HEADERS} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/expanse/core)
install(EXPORT expanse_targets NAMESPACE expanse:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/expanse)

configure_package_config_file(cmake/expanseConfig.cmake.in expanseConfig.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/expanse)
write_basic_package_version_file(expanseConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/expanseConfig.cmake" "${PROJECT_BINARY_DIR}/expanseConfigVersion.cmake"
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/expanse)

file(RELATIVE_PATH EXPANSE_PC_TO_PREFIX "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
configure_file(cmake/expanse.pc.in expanse.pc @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/expanse.pc" DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
install(FILES LICENSE README.md DESTINATION ${CMAKE_INSTALL_DOCDIR})

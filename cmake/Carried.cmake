# Libraries on a machine where none can be installed, from what tools/gpu_measure/bundle.sh packed on another: headers
# alone where that is all a library needs, GoogleTest's and Boost.JSON's sources, and two small shared libraries that
# need nothing but the C++ library.
set(include ${QUIRE_CARRIED}/include)
set(QUIRE_PRECOMPILE OFF)  # it would take longer, with a processor for every unit

function(quire_carried name)  # ARGN: definitions
  add_library(${name} INTERFACE IMPORTED)
  target_include_directories(${name} SYSTEM INTERFACE ${include})
  target_compile_definitions(${name} INTERFACE ${ARGN})
endfunction()
quire_carried(fmt::fmt FMT_HEADER_ONLY)
quire_carried(spdlog::spdlog SPDLOG_FMT_EXTERNAL SPDLOG_HEADER_ONLY)
target_link_libraries(spdlog::spdlog INTERFACE fmt::fmt)

file(WRITE ${CMAKE_BINARY_DIR}/boost_json.cc "#include <boost/json/src.hpp>\n")
add_library(quire_carried_json STATIC ${CMAKE_BINARY_DIR}/boost_json.cc)
target_include_directories(quire_carried_json SYSTEM PUBLIC ${include})
add_library(Boost::json ALIAS quire_carried_json)

foreach(name context prometheus-cpp-core)
  file(GLOB library ${QUIRE_CARRIED}/lib/lib*${name}.so*)
  add_library(quire_carried_${name} SHARED IMPORTED)
  set_target_properties(quire_carried_${name} PROPERTIES IMPORTED_LOCATION ${library}
                        INTERFACE_SYSTEM_INCLUDE_DIRECTORIES ${include})
endforeach()
add_library(Boost::context ALIAS quire_carried_context)
add_library(prometheus-cpp::core ALIAS quire_carried_prometheus-cpp-core)

set(INSTALL_GTEST OFF)
add_subdirectory(${QUIRE_CARRIED}/googletest ${CMAKE_BINARY_DIR}/googletest EXCLUDE_FROM_ALL)

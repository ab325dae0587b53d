# The simulator, and the simulator with bugs planted in what it runs.
file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/sim/*.cc)
list(FILTER sources EXCLUDE REGEX "/(main|[a-z_]*_test)\\.cc$")
add_library(quire_sim STATIC ${sources})
quire_join_units(quire_sim ${sources})
target_include_directories(quire_sim PUBLIC ${CMAKE_SOURCE_DIR})
target_link_libraries(quire_sim PUBLIC quire_all_core)
# A hundred thousand schedules are its own work.
target_compile_options(quire_sim PRIVATE $<IF:$<CONFIG:Release>,-O2,-O1>)

quire_test(sim_test SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/sim/main.cc ${CMAKE_CURRENT_SOURCE_DIR}/sim/sim_test.cc LINK quire_sim)
# A hundred thousand schedules where that takes less than a minute; sanitizers and debug builds are thirty times slower.
if(QUIRE_SANITIZE OR NOT CMAKE_BUILD_TYPE STREQUAL Release)
  target_compile_definitions(sim_test PRIVATE QUIRE_SIM_SCHEDULES=2500)
else()
  target_compile_definitions(sim_test PRIVATE QUIRE_SIM_SCHEDULES=100000)
endif()

# sim_mutant_NAME for each mutations/NAME.mutation: one changed source, everything else as it is. Its object stands before the
# library that has the unchanged one, so the linker never takes that. The unchanged one is not joined with others.
if(QUIRE_SANITIZE)
  return()  # the simulator finds planted bugs without a sanitizer
endif()
file(GLOB mutations CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/sim/mutations/*.mutation)
add_library(quire_sim_mutant_main OBJECT ${CMAKE_CURRENT_SOURCE_DIR}/sim/mutations/main.cc)
target_include_directories(quire_sim_mutant_main PRIVATE ${CMAKE_SOURCE_DIR})
set(mutants "")
foreach(mutation IN LISTS mutations)
  get_filename_component(name ${mutation} NAME_WE)
  file(STRINGS ${mutation} file REGEX "^FILE ")
  string(REPLACE "FILE " "" file "${file}")
  set_source_files_properties(
    ${CMAKE_SOURCE_DIR}/${file} DIRECTORY ${CMAKE_SOURCE_DIR} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  set(mutated ${CMAKE_CURRENT_BINARY_DIR}/mutants/${name}.cc)
  set(mutate ${CMAKE_CURRENT_SOURCE_DIR}/sim/mutations/mutate.cmake)
  add_custom_command(
    OUTPUT ${mutated}
    COMMAND ${CMAKE_COMMAND} -DMUTATION=${mutation} -DSOURCE_DIR=${CMAKE_SOURCE_DIR} -DOUTPUT=${mutated} -P ${mutate}
    DEPENDS ${mutation} ${CMAKE_SOURCE_DIR}/${file} ${mutate}
    VERBATIM)
  add_executable(sim_mutant_${name} $<TARGET_OBJECTS:quire_sim_mutant_main> ${mutated})
  target_link_libraries(sim_mutant_${name} PRIVATE quire_sim GTest::gmock)
  quire_use_precompiled(sim_mutant_${name} test)
  target_compile_options(sim_mutant_${name} PRIVATE -w)  # what a bug leaves unused is no news
  list(APPEND mutants ${name})
endforeach()
quire_test(sim_mutation_test SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/sim/mutations/sim_mutation_test.cc LINK quire_sim)
list(JOIN mutants " " names)
target_compile_definitions(
  sim_mutation_test PRIVATE QUIRE_SIM_MUTANT_DIR="${CMAKE_CURRENT_BINARY_DIR}" QUIRE_SIM_MUTANTS="${names}")
list(TRANSFORM mutants PREPEND sim_mutant_)
add_dependencies(sim_mutation_test ${mutants})

# The tests of gpu_test on a device instead: cuda_for_simulated.cc stands before the library's simulated one. Not
# those whose kernels are code of the host, nor warpgroups', whose bits a device has yet to prove (gpu/measure.sh
# strict).
file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*_test.cc)
list(FILTER sources EXCLUDE REGEX "/(dependent_launch|linear_warpgroups)_test\\.cc$")
if(NOT TARGET fake_nccl)
  add_library(fake_nccl MODULE ${CMAKE_CURRENT_LIST_DIR}/parallel/fake_nccl.cc)
endif()
add_executable(gpu_device_test EXCLUDE_FROM_ALL ${sources} ${CMAKE_CURRENT_LIST_DIR}/cuda_for_simulated.cc)
target_link_libraries(gpu_device_test PRIVATE quire_gpu_cuda quire_gpu_simulated quire_core_engine quire_core_cpu
                      GTest::gmock GTest::gtest_main)
target_include_directories(gpu_device_test PRIVATE ${CMAKE_SOURCE_DIR})
add_dependencies(gpu_device_test fake_nccl)
target_compile_definitions(gpu_device_test PRIVATE QUIRE_FAKE_NCCL="$<TARGET_FILE_NAME:fake_nccl>")
target_compile_options(gpu_device_test PRIVATE -Wno-conversion -O0)  # as all tests
# fake_nccl lies beside the test, in whatever directory that is.
set_target_properties(gpu_device_test PROPERTIES BUILD_RPATH "$ORIGIN;$ORIGIN/lib")

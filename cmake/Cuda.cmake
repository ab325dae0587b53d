# The kernels of gpu/ as device code: quire_gpu_cuda. The runtime library is linked in, so that a program with it starts where there is
# no driver. CMake 3.25 does not know CUDA's C++20.
set(CMAKE_CUDA_FLAGS "-std=c++20 -fmad=false --expt-relaxed-constexpr")  # a product and a sum round twice, as on the host
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES "80-real;89-real;90a-real;100")
endif()
enable_language(CUDA)
find_package(CUDAToolkit 13.0 REQUIRED)

add_library(quire_gpu_cuda STATIC gpu/cuda/cuda_device.cc gpu/cuda/kernels.cu)
set_property(SOURCE gpu/cuda/kernels.cu PROPERTY COMPILE_OPTIONS "")
target_include_directories(quire_gpu_cuda PUBLIC ${CMAKE_SOURCE_DIR})
target_link_libraries(quire_gpu_cuda PUBLIC quire_gpu CUDA::cudart_static)

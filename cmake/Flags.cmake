# Warnings are errors; products and sums round as written (no contraction, no reassociation) on every target.
add_compile_options(
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Wnon-virtual-dtor
  -ffp-contract=off -fno-math-errno)

if(NOT QUIRE_CARRIED)  # nobody knows which compiler is on that machine
  add_compile_options(-Werror)
endif()

if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
  add_compile_options(-Wthread-safety -Wno-deprecated-declarations)
else()
  # g++ 12 reports these wrongly in std::variant, std::optional, std::string + and coroutine frames.
  add_compile_options(-Wno-maybe-uninitialized -Wno-restrict)
endif()

if(QUIRE_SANITIZE)
  add_compile_options(-fsanitize=${QUIRE_SANITIZE} -g1 -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${QUIRE_SANITIZE})
  if(QUIRE_SANITIZE MATCHES undefined)
    add_compile_options(-fno-sanitize-recover=all -fno-sanitize=vptr)
  endif()
  if(QUIRE_SANITIZE MATCHES address)
    add_compile_definitions(QUIRE_ADDRESS_SANITIZER)
    if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
      # Locals that outlive their frame are not watched: each would lie on the heap, which tests pay for.
      add_compile_options(-fsanitize-address-use-after-return=never)
    endif()
  endif()
  if(QUIRE_SANITIZE MATCHES thread)
    add_compile_definitions(QUIRE_THREAD_SANITIZER BOOST_ASIO_DISABLE_FENCED_BLOCK)
    if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
      add_compile_options(-Wno-tsan)
    endif()
  endif()
endif()

if(QUIRE_FUZZ)
  # The libraries are watched too; the targets add the fuzzer's own main.
  add_compile_options(-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all -fno-sanitize=vptr -g1 -O1)
  add_link_options(-fsanitize=address,undefined)
endif()

# Beast and Asio: what we use of them, and nothing deprecated.
add_compile_definitions(BOOST_ASIO_NO_DEPRECATED)

# No precompiled headers: an inline function of the standard library must not be compiled for more than every machine has.
macro(quire_isa_flags file)
  set_source_files_properties(${file} PROPERTIES SKIP_PRECOMPILE_HEADERS ON SKIP_UNITY_BUILD_INCLUSION ON)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    set_source_files_properties(${file} PROPERTIES COMPILE_OPTIONS "${ARGN}")
  endif()
endmacro()

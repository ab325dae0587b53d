# Headers that most units of a kind include, parsed once for all of them. A unit still includes what it uses: clang-tidy and
# the thread-role check compile without.
#   standard  the C++ library                 json  and Boost.JSON             http  and Asio, Beast, simdjson, fmt
# tests/CMakeLists.txt adds the same with GoogleTest.
option(QUIRE_PRECOMPILE "parse the headers that most units include once" ON)

set(QUIRE_STANDARD_HEADERS
    <algorithm> <array> <bit> <charconv> <chrono> <cmath> <cstddef> <cstdint> <cstdio> <cstring> <deque> <functional> <iterator>
    <limits> <map> <memory> <numeric> <optional> <set> <span> <string> <string_view> <unordered_map> <utility> <variant> <vector>)
set(QUIRE_JSON_HEADERS
    ${QUIRE_STANDARD_HEADERS} <boost/json/array.hpp> <boost/json/object.hpp> <boost/json/parse.hpp> <boost/json/serialize.hpp>
    <boost/json/value.hpp>)
set(QUIRE_HTTP_HEADERS
    ${QUIRE_JSON_HEADERS} <atomic> <condition_variable> <mutex> <thread> <boost/asio/as_tuple.hpp> <boost/asio/awaitable.hpp>
    <boost/asio/buffer.hpp> <boost/asio/co_spawn.hpp> <boost/asio/generic/stream_protocol.hpp> <boost/asio/io_context.hpp>
    <boost/asio/ip/tcp.hpp> <boost/asio/local/stream_protocol.hpp> <boost/asio/post.hpp> <boost/asio/steady_timer.hpp>
    <boost/asio/use_awaitable.hpp> <boost/asio/write.hpp> <boost/beast/core/flat_buffer.hpp> <boost/beast/http/parser.hpp>
    <boost/beast/http/string_body.hpp> <fmt/format.h> <simdjson.h>)

# quire_precompiled(NAME HEADERS HEADER… LINK LIBRARY…): to be used with the same compile options.
function(quire_precompiled name)
  cmake_parse_arguments(ARG "" "" "HEADERS;LINK" ${ARGN})
  if(QUIRE_PRECOMPILE)
    add_library(quire_precompiled_${name} OBJECT EXCLUDE_FROM_ALL ${CMAKE_SOURCE_DIR}/cmake/precompiled.cc)
    target_link_libraries(quire_precompiled_${name} PRIVATE ${ARG_LINK})
    target_precompile_headers(quire_precompiled_${name} PRIVATE ${ARG_HEADERS})
  endif()
endfunction()

function(quire_use_precompiled target name)
  get_target_property(type ${target} TYPE)
  if(QUIRE_PRECOMPILE AND NOT type STREQUAL INTERFACE_LIBRARY)
    target_precompile_headers(${target} REUSE_FROM quire_precompiled_${name})
    if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
      # g++ 12 takes code inlined from a precompiled std::string for ours, and warns of lengths that cannot be.
      target_compile_options(${target} PRIVATE -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread)
    endif()
  endif()
endfunction()

# The sources of one folder are compiled as one unit, twelve at most: templates of their headers are instantiated once.
# So no two files of a folder have a file-local name in common. Editors want a command for each file: the preset "dev".
option(QUIRE_UNITY "compile the sources of a folder as one unit" ON)

function(quire_join_units target)
  if(NOT QUIRE_UNITY)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  foreach(source IN LISTS ARGN)
    cmake_path(GET source PARENT_PATH folder)
    cmake_path(RELATIVE_PATH folder BASE_DIRECTORY ${CMAKE_SOURCE_DIR})
    string(MAKE_C_IDENTIFIER ${folder} name)
    math(EXPR count "${count_${name}}+1")
    set(count_${name} ${count})
    math(EXPR part "(${count}-1)/12")
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${name}_${part})
  endforeach()
endfunction()

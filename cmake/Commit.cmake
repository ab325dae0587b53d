# QUIRE_COMMIT: the commit of this checkout, empty if it is none. Another commit configures again.
set(QUIRE_COMMIT "")
find_program(GIT git)
if(GIT AND EXISTS ${CMAKE_SOURCE_DIR}/.git)
  execute_process(COMMAND ${GIT} -C ${CMAKE_SOURCE_DIR} rev-parse --short=8 HEAD OUTPUT_VARIABLE QUIRE_COMMIT
                  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(EXISTS ${CMAKE_SOURCE_DIR}/.git/logs/HEAD)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/.git/logs/HEAD)
  endif()
endif()

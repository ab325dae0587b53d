# The embedded model and its draft head: files linked into the binary by .incbin and named in two tables
# (app/model/embedded_model.h).
# A symbol is the file's name, of the head with draft_ before it.
set(QUIRE_EMBEDDED_FILES
    stories/config.json stories/generation_config.json stories/model.safetensors stories/tokenizer.json
    stories/tokenizer_config.json stories_draft/config.json stories_draft/model.safetensors)
set(QUIRE_EMBEDDED_ASM ${CMAKE_BINARY_DIR}/embedded_model.S)

set(assembly "  .section .rodata\n")
set(depends "")
foreach(file IN LISTS QUIRE_EMBEDDED_FILES)
  string(REGEX REPLACE "^stories/" "" symbol ${file})
  string(REGEX REPLACE "^stories_draft/" "draft_" symbol ${symbol})
  string(MAKE_C_IDENTIFIER ${symbol} symbol)
  string(APPEND assembly
    "  .balign 64\n  .globl quire_embedded_${symbol}\nquire_embedded_${symbol}:\n"
    "  .incbin \"${CMAKE_SOURCE_DIR}/models/${file}\"\n"
    "  .globl quire_embedded_${symbol}_end\nquire_embedded_${symbol}_end:\n  .byte 0\n")
  list(APPEND depends ${CMAKE_SOURCE_DIR}/models/${file})
endforeach()
string(APPEND assembly "  .section .note.GNU-stack,\"\",@progbits\n")
file(CONFIGURE OUTPUT ${QUIRE_EMBEDDED_ASM} CONTENT "${assembly}" @ONLY)
set_source_files_properties(${QUIRE_EMBEDDED_ASM} PROPERTIES OBJECT_DEPENDS "${depends}" LANGUAGE ASM)

add_library(quire_embedded STATIC ${QUIRE_EMBEDDED_ASM})

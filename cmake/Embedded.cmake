# The embedded model: models/stories/* linked into the binary by .incbin and named in one table (app/embedded_model.h).
set(QUIRE_EMBEDDED_DIR ${CMAKE_SOURCE_DIR}/models/stories)
set(QUIRE_EMBEDDED_FILES config.json generation_config.json model.safetensors tokenizer.json tokenizer_config.json)
set(QUIRE_EMBEDDED_ASM ${CMAKE_BINARY_DIR}/embedded_model.S)

set(assembly "  .section .rodata\n")
set(depends "")
foreach(file IN LISTS QUIRE_EMBEDDED_FILES)
  string(MAKE_C_IDENTIFIER ${file} symbol)
  string(APPEND assembly
    "  .balign 64\n  .globl quire_embedded_${symbol}\nquire_embedded_${symbol}:\n"
    "  .incbin \"${QUIRE_EMBEDDED_DIR}/${file}\"\n"
    "  .globl quire_embedded_${symbol}_end\nquire_embedded_${symbol}_end:\n  .byte 0\n")
  list(APPEND depends ${QUIRE_EMBEDDED_DIR}/${file})
endforeach()
string(APPEND assembly "  .section .note.GNU-stack,\"\",@progbits\n")
file(CONFIGURE OUTPUT ${QUIRE_EMBEDDED_ASM} CONTENT "${assembly}" @ONLY)
set_source_files_properties(${QUIRE_EMBEDDED_ASM} PROPERTIES OBJECT_DEPENDS "${depends}" LANGUAGE ASM)

add_library(quire_embedded STATIC ${QUIRE_EMBEDDED_ASM})

// The model inside the binary and its draft head: the files of models/stories and models/stories_draft, linked in by
// cmake/Embedded.cmake.
// Owner   the program's read-only data: valid as long as the process.
// Thread  any.
#pragma once

#include <memory>

#include "core/model/source/model_files.h"

namespace quire::app {

inline constexpr const char* kEmbeddedModel = "stories";

std::unique_ptr<model::ModelFiles> embedded_model();
// Its EAGLE-3 head: the files of models/stories_draft.
std::unique_ptr<model::ModelFiles> embedded_head();

}  // namespace quire::app

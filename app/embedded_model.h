// The model inside the binary: the files of models/stories, linked in by cmake/Embedded.cmake.
// Owner   the program's read-only data: valid as long as the process.
// Thread  any.
#pragma once

#include <memory>

#include "core/model/model_files.h"

namespace quire::app {

inline constexpr const char* kEmbeddedModel = "stories";

std::unique_ptr<model::ModelFiles> embedded_model();

}  // namespace quire::app

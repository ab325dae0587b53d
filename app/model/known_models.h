// The families of models that quire serves as texts: `quire models`, and the tables of docs/models.md.
// Thread  any.
#pragma once

#include <string>

namespace quire::app {

std::string models_text();       // for a terminal
std::string models_markdown();   // the table of docs/models.md
std::string formats_markdown();  // the tables of formats there

}  // namespace quire::app

// Writes bucket bounds of histograms with a decimal point, as Python clients do: le="1" → le="1.0".
// Thread  any; a pure function, linear in the size of the text.
// Source  vLLM's dashboards match the label exactly; Prometheus 3 stores this form even if it receives the other.
#pragma once

#include <string>

namespace quire::observe {

std::string with_points(const std::string& text);

}  // namespace quire::observe

// Writes bucket bounds of histograms with a decimal point, as Python programs do: le="1" → le="1.0".
// Thread  any; a pure function. Time is linear in the text.
// Source  dashboards of vLLM match the label to the letter, and Prometheus 3 stores this form whatever is sent.
#pragma once

#include <string>

namespace quire::observe {

std::string with_points(const std::string& text);

}  // namespace quire::observe

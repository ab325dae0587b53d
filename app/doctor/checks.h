// Verdicts on the facts of a machine, each with a sentence on what is there and, unless it is well, one on what to do.
// Shape   slow: quire runs, and would be faster otherwise. wrong: something will fail.
// Thread  any; pure.
#pragma once

#include <boost/json.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/doctor/facts.h"

namespace quire::app::doctor {

enum class Verdict : std::uint8_t { kOk, kSlow, kWrong };
const char* name_of(Verdict verdict);  // "ok", "slow", "wrong"

struct Check {
  std::string name;
  Verdict verdict = Verdict::kOk;
  std::string text;
  std::string advice{};         // empty if the verdict is kOk
  boost::json::object facts{};  // the same for programs: counts and bytes are numbers, unknown ones are null
};

// A model on this machine's CPU.
struct ModelFacts {
  std::string name{};
  std::string problem{};           // why it cannot be read; empty: it can
  std::uint64_t weight_bytes = 0;  // in memory
  std::uint64_t stream_bytes = 0;  // of the KV cache of one stream of the longest context
  std::uint32_t longest = 0;       // tokens
  std::optional<std::uint64_t> free_bytes{};
  double tokens_per_s = 0;  // estimate for one stream with a short context
};

std::vector<Check> checks_of(const Facts& facts, const std::optional<ModelFacts>& model);
Verdict worst_of(const std::vector<Check>& checks);

}  // namespace quire::app::doctor

// quire_gpu_measure STAGE [--device cuda|cuda:N|simulated|null] [--tiny | --middle] [--model 1b|8b]
//                   [--quantize none|int8|…] [--kv bf16|…] [--overlap on|off] [--carveout PERCENT]
//                   [--linear-warpgroups on|off] [--sequences S] [--context C] [--kernel linear|attend|…]
//                   [--bytes-per-s R] [--flops-per-s F] [--launch-s L] [--seconds S]
// STAGE: a stage of stages.h; `predictions`: prints gpu/predictions.csv; `types`: the types that this program has
// kernels for. The last line of output is JSON.
#include <fmt/format.h>

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string_view>

#include "core/base/log.h"
#include "core/base/start_error.h"
#include "gpu/cuda/cuda_device.h"
#include "gpu/runtime/null_device.h"
#include "gpu/runtime/simulated_device.h"
#include "tools/gpu_measure/kernel_shapes.h"
#include "tools/gpu_measure/stages.h"

namespace quire::gpu::measure {
namespace {

template <typename Type, std::size_t count>
Type named(std::string_view flag, std::string_view name, const Type (&all)[count]) {
  for (const Type type : all) {
    if (name == backend::name_of(type)) return type;
  }
  throw StartError(fmt::format("{} {}: unknown type", flag, name));
}

std::optional<backend::Format> quantize_of(std::string_view name) {
  for (const backend::Format one : backend::kQuantizedFormats) {
    if (name == backend::name_of(one)) return one;
  }
  if (name != "none") throw StartError(fmt::format("--quantize {}: unknown quantisation", name));
  return std::nullopt;
}

double number(std::string_view flag, const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !(value >= 0))
    throw StartError(fmt::format("{} {}: expected a number", flag, text));
  return value;
}

std::uint32_t whole(std::string_view flag, const std::string& text) {
  return static_cast<std::uint32_t>(number(flag, text));
}

bool is_on(std::string_view flag, std::string_view text) {
  if (text != "on" && text != "off") throw StartError(fmt::format("{} {}: expected on or off", flag, text));
  return text == "on";
}

std::function<std::unique_ptr<Device>()> device_of(const std::string& name) {
  if (name == "simulated") return [] { return make_simulated_device(); };
  if (name == "null") return [] { return make_null_device(); };
  if (!name.starts_with("cuda"))
    throw StartError(fmt::format("--device {}: expected cuda, cuda:N, simulated or null", name));
  const int which = name == "cuda" ? 0 : static_cast<int>(number("--device cuda:", name.substr(5)));
  return [which] { return make_cuda_device(which); };
}

Setup setup_of(std::span<char*> args) {
  Setup setup;
  setup.make_device = device_of("cuda");
  const std::map<std::string_view, std::function<void(const std::string&)>> flags = {
      {"--device", [&](const std::string& text) { setup.make_device = device_of(text); }},
      {"--model", [&](const std::string& text) { setup.model = text; }},
      {"--quantize", [&](const std::string& text) { setup.quantize = quantize_of(text); }},
      {"--kv", [&](const std::string& text) { setup.kv = named("--kv", text, backend::kAllKvTypes); }},
      {"--overlap", [&](const std::string& text) { setup.overlap = is_on("--overlap", text); }},
      {"--carveout", [&](const std::string& text) { setup.carveout = static_cast<int>(number("--carveout", text)); }},
      {"--linear-warpgroups",
       [&](const std::string& text) { setup.linear_warpgroups = is_on("--linear-warpgroups", text); }},
      {"--kernel", [&](const std::string& text) { setup.kernel = text; }},
      {"--sequences", [&](const std::string& text) { setup.sequences = whole("--sequences", text); }},
      {"--context", [&](const std::string& text) { setup.context = whole("--context", text); }},
      {"--bytes-per-s", [&](const std::string& text) { setup.rates.bytes_per_s = number("--bytes-per-s", text); }},
      {"--flops-per-s", [&](const std::string& text) { setup.rates.flops_per_s = number("--flops-per-s", text); }},
      {"--launch-s", [&](const std::string& text) { setup.rates.launch_s = number("--launch-s", text); }},
      {"--seconds", [&](const std::string& text) { setup.seconds = number("--seconds", text); }}};
  for (std::size_t i = 0; i < args.size(); ++i) {
    const std::string_view flag = args[i];
    if (flag == "--tiny" || flag == "--middle") {
      (flag == "--tiny" ? setup.tiny : setup.middle) = true;
      continue;
    }
    const auto found = flags.find(flag);
    if (found == flags.end() || i + 1 == args.size())
      throw StartError(fmt::format("{}: unknown flag, or its value is missing", flag));
    found->second(args[++i]);
  }
  return setup;
}

// The result of `types`, which measure.py reads before it plans its stages.
boost::json::object types() {
  boost::json::array weights;
  boost::json::array caches;
  for (const backend::Format type : backend::kNamedFormats) weights.emplace_back(backend::name_of(type));
  for (const backend::KvType type : backend::kAllKvTypes) caches.emplace_back(backend::name_of(type));
  return {{"weights", std::move(weights)}, {"kv", std::move(caches)}};
}

int run(std::span<char*> args) {
  if (args.empty())
    throw StartError("expected a stage: ceilings, kernels, roofline, decode, strict, gaps, types or predictions");
  const std::string_view stage = args[0];
  if (stage == "predictions") {
    std::fputs(predictions_csv().c_str(), stdout);
    return 0;
  }
  const Setup setup = setup_of(args.subspan(1));
  const RoleScope role(engine_role);
  boost::json::object out;
  if (stage == "types")
    out = types();
  else if (stage == "ceilings")
    out = ceilings(setup);
  else if (stage == "kernels")
    out = kernels(setup);
  else if (stage == "roofline")
    out = roofline(setup);
  else if (stage == "decode")
    out = decode(setup);
  else if (stage == "strict")
    out = strict(setup);
  else if (stage == "gaps")
    out = gaps(setup);
  else
    throw StartError(fmt::format("{}: unknown stage", stage));
  fmt::print("{}\n", boost::json::serialize(out));
  const boost::json::value* failed = out.if_contains("failed");
  return failed != nullptr && failed->to_number<std::uint32_t>() != 0 ? 1 : 0;
}

}  // namespace
}  // namespace quire::gpu::measure

int main(int argc, char** argv) {
  try {
    return quire::gpu::measure::run({argv + 1, static_cast<std::size_t>(argc - 1)});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "quire_gpu_measure: %s\n", error.what());
  }
  return 2;
}

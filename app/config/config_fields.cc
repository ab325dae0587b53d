#include "app/config/config_fields.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "app/config/units.h"

namespace quire::app {
namespace {

// name, member, default, range, commands, group, help
// clang-format off
constexpr Field kFields[] = {
    {"model", &Config::model, "stories", "", kNaming, Group::kModel, "Model: a directory in Hugging Face format, a GGUF file, or a name of the Hugging Face hub (ORG/NAME, ORG/NAME@REVISION, ORG/NAME:QUANT of GGUF files), which is downloaded at first use. `stories` is the model inside the binary"},
    {"revision", &Config::revision, "main", "", kNaming, Group::kModel, "Branch, tag or commit of a MODEL given by name"},
    {"download-dir", &Config::download_dir, "", "", kAll, Group::kModel, "Cache directory of models given by name, in the layout that Hugging Face's programs share. Empty: HF_HUB_CACHE, HF_HOME or ~/.cache/huggingface decide. See docs/hub.md"},
    {"allow-http-hub", &Config::allow_http_hub, "off", kSwitch, kReading | kPull, Group::kModel, "Allow an HF_ENDPOINT with plain HTTP on another machine"},
    {"config", &Config::config, "", "", kAll, Group::kModel, "TOML file that sets any of these settings by name"},
    {"host", &Config::host, "127.0.0.1", "", kServe | kDoctor, Group::kServer, "Address to listen on. 0.0.0.0: every IPv4 interface; :: every interface"},
    {"port", &Config::port, "8000", "0..65535", kServe | kDoctor, Group::kServer, "TCP port. 0: any free port"},
    {"uds", &Config::uds, "", "", kServe, Group::kServer, "Path of a Unix socket (mode 0660) to listen on instead of --host and --port. The admin port stays TCP"},
    {"tls-cert", &Config::tls_cert, "", "", kServe, Group::kSecurity, "PEM file with the server certificate, followed by its intermediate certificates. Enables TLS 1.2 and 1.3. Read again on SIGHUP. See docs/tls.md"},
    {"tls-key", &Config::tls_key, "", "", kServe, Group::kSecurity, "PEM file with the certificate's private key, without a passphrase. Empty: the key is in the --tls-cert file"},
    {"allowed-origins", &Config::allowed_origins, "", "", kServe, Group::kSecurity, "CORS: origins whose web pages may read responses, comma-separated or a JSON list. *: any; empty: none. Never applies to /admin/. See docs/security.md"},
    {"allowed-credentials", &Config::allowed_credentials, "off", "off|on", kServe, Group::kSecurity, "CORS: let these pages send cookies and other credentials"},
    {"allowed-methods", &Config::allowed_methods, "*", "", kServe, Group::kSecurity, "CORS: methods that these pages may use, comma-separated. *: any"},
    {"allowed-headers", &Config::allowed_headers, "*", "", kServe, Group::kSecurity, "CORS: request headers that these pages may send, comma-separated. *: any"},
    {"admin-host", &Config::admin_host, "127.0.0.1", "", kServe, Group::kServer, "Address of the admin port"},
    {"admin-port", &Config::admin_port, "auto", "0..65535", kServe, Group::kServer, "Separate TCP port, with a thread of its own, for /admin/, probes and /metrics; the main port then refuses /admin/. 0: any free port; auto: no admin port, the main port serves everything"},
    {"served-model-name", &Config::served_model_name, "", "", kServe, Group::kApi, "Model names that the API accepts and lists, comma-separated. Empty: the directory's or file's name, and, unlisted, the path as given"},
    {"api-key-file", &Config::api_key_file, "", "", kServe, Group::kSecurity, "File with hashed API keys, their roles and limits (docs/security.md, quire key). Read again on SIGHUP. Empty: no key is required"},
    {"api-key", &Config::api_key, "", "", kServe | kInspect | kPs | kStop, Group::kSecurity, "Comma-separated user API keys, in addition to --api-key-file. With inspect --url, ps and stop: the key to send. Prefer QUIRE_API_KEY or the configuration file: other users can see command lines"},
    {"generation-config", &Config::generation_config, "auto", "auto|none=vllm", kServe | kGenerate, Group::kApi, "Source of sampling defaults. auto: the model's generation_config.json; none: the API's own defaults"},
    {"chat-template", &Config::chat_template, "", "", kServe | kGenerate, Group::kApi, "Jinja chat template file. Empty: the model's own, from chat_template.jinja or tokenizer_config.json"},
    {"tokenizer-info", &Config::tokenizer_info, "off", "off|on", kServe, Group::kApi, "Serve GET /tokenizer_info, the tokenizer's settings and the chat template, which evaluation programs read"},
    {"tool-call-parser", &Config::tool_call_parser, "auto", "auto|none|generic|hermes|hermes=granite4|hermes=ernie45|llama3_json|llama3_json=llama4_json|pythonic|pythonic=llama4_pythonic|mistral|mistral_args|granite|phi4_mini|phi4_mini_json|hunyuan_a13b|hunyuan_a13b=jamba|hunyuan_a13b=minimax|hunyuan|nemotron_json|internlm|cohere_command|command_r|apertus|deepseek_v3|deepseek_v31|deepseek_v32|deepseek_v4|kimi_k2|solar_open|function_tag|functionary_v3|glm4|glm45|glm47|hy_v3_preview|hy_v3|qwen3_coder|qwen3_coder=qwen3_xml|qwen3_coder=step3p5|qwen3_coder=nemotron_v3|seed_oss|minimax_m2|mirothinker|lfm2|olmo3|functiongemma|gemma4|openai", kServe, Group::kApi, "Tool-call format of the model. auto: the format that the chat template shows, else generic, which the server describes in the prompt; none: requests with tools are refused"},
    {"reasoning-parser", &Config::reasoning_parser, "auto", "auto|none|think=qwen3|think=deepseek_r1|think=deepseek_v3|think=glm45|think=kimi_k2|think=minimax_m2|think=step3|think=olmo3|think=ernie45|think=hunyuan_a13b|think=nemotron_v3|mistral|seed_oss|cohere_command|granite|gemma4|apertus|exaone_deep|hy_v3|solar_open|openai_gptoss", kServe, Group::kApi, "Marks around reasoning, which is returned separately from the answer. auto: the marks in the chat template"},
    {"max-queue", &Config::max_queue, "4096", "1..1048576", kServe, Group::kScheduling, "Maximum number of queued sequences. Beyond it requests get HTTP 429"},
    {"max-queue-tokens", &Config::max_queue_tokens, "4194304", "1..4294967295", kServe, Group::kScheduling, "Maximum number of prompt tokens in all queued sequences. Beyond it requests get HTTP 429"},
    {"stall-timeout", &Config::stall_timeout, "30s", "1ms..1h", kServe, Group::kServer, "A stream whose client reads nothing for this long is cancelled"},
    {"drain-timeout", &Config::drain_timeout, "30s", "0..1h", kServe, Group::kServer, "Time for open streams to finish after SIGTERM"},
    {"io-threads", &Config::io_threads, "1", "1..64", kServe, Group::kServer, "Number of threads that serve connections"},
    {"max-connections", &Config::max_connections, "16384", "1..1048576", kServe | kDoctor, Group::kServer, "Maximum number of open connections. Beyond it a connection gets HTTP 503 and is closed"},
    {"max-explained-requests", &Config::max_explained_requests, "256", "0..65536", kServe, Group::kLogs, "Number of finished requests that GET /v1/requests/{id}/explain can describe; fewer if they had many sequences. 0: none"},
    {"body-limit", &Config::body_limit, "8MiB", "1KiB..1GiB", kServe, Group::kServer, "Maximum size of a request body. A longer body gets HTTP 413"},
    {"header-timeout", &Config::header_timeout, "10s", "1ms..1h", kServe, Group::kServer, "Time allowed for a request's header to arrive"},
    {"body-timeout", &Config::body_timeout, "60s", "1ms..1h", kServe, Group::kServer, "Time allowed for a request's body to arrive"},
    {"idle-timeout", &Config::idle_timeout, "75s", "1ms..1h", kServe, Group::kServer, "A keep-alive connection without a request is closed after this time"},
    {"otlp-traces-endpoint", &Config::otlp_traces_endpoint, "", "", kServe, Group::kLogs, "OTLP/HTTP URL to send a trace of every request to, for example http://collector:4318. Empty: OTEL_EXPORTER_OTLP_ENDPOINT if set, else no traces. See docs/tracing.md"},
    {"dtype", &Config::dtype, "auto", "auto|bf16=bfloat16|f16=float16|f16=half|f32=float32|f32=float", kRunning, Group::kCompute, "Expected type of the checkpoint; any other type is refused. Weights are used as stored, or quantised from that"},
    {"quantize", &Config::quantize, "none", "none|int8|int4|fp8|w8a8|w4a8|w16a16", kLooking, Group::kCompute, "Quantise the matrices while loading. a8: multiply in integers; w16a16: in bf16, with activations rounded to bf16. docs/quantization.md has the cost and the savings"},
    {"activations", &Config::activations, "auto", "auto|int8|f32", kRunning, Group::kCompute, "Form in which the matrices of a quantised model (a GGUF file's blocks, GPTQ, AWQ, ...) take their input. int8: quantised in groups of 32 or 256 numbers of a row and multiplied in integers, as llama.cpp does; f32: as it is, several times slower; auto: int8, with one scale for a row where a W8A8 checkpoint declares it. docs/quantization.md"},
    {"packed-cache", &Config::packed_cache, "", "", kRunning, Group::kCompute, "Cache directory for packed weights (the model's own, for example): later starts map the file instead of packing again. Empty: every start packs"},
    {"max-model-len", &Config::max_model_len, "auto", "2..16777216", kServe | kGenerate | kInspect | kDoctor, Group::kMemory, "Maximum sequence length, prompt and answer together. auto: the model's own, or what fits the KV cache"},
    {"max-num-seqs", &Config::asked_num_seqs, "auto", "1..16384", kServe, Group::kScheduling, "Maximum number of sequences that run at the same time. auto: 64, on a GPU 256"},
    {"max-num-batched-tokens", &Config::asked_num_batched_tokens, "auto", "1..65536", kServe, Group::kScheduling, "Maximum number of rows (tokens) in a step. auto: 512, on a GPU 2048. A value below max-num-seqs, at least 16, serves sequences round-robin"},
    {"min-step-time", &Config::min_step_time, "0", "0..1s", kServe, Group::kScheduling, "Minimum duration of a step, for load tests with the small built-in model. See docs/load-testing.md"},
    {"block-size", &Config::block_size, "16", "16..256", kLooking, Group::kMemory, "Tokens in a KV block, a multiple of 16. Does not change the tokens of an answer"},
    {"kv-cache-dtype", &Config::kv_cache_dtype, "auto", "auto|f32=float32|bf16=bfloat16|fp8=fp8_e4m3|int8|int4", kRunning, Group::kMemory, "Type in which K and V are stored. auto: fp8 where a quantised checkpoint declares it, bf16 for a bf16 checkpoint and for one of blocks, else f32. docs/kv-cache.md has the cost of fewer bits"},
    {"kv-cache-memory", &Config::kv_cache_memory, "auto", "1KiB..1024TiB", kServe | kGenerate | kInspect | kDoctor, Group::kMemory, "Memory of the KV cache, drafts' caches included. auto: half of the memory that is free after loading the weights, on a GPU nearly all of it, but no more than max-num-seqs can use"},
    {"prefix-caching", &Config::prefix_caching, "on", "on|off", kServe, Group::kMemory, "Reuse the KV blocks of earlier prompts that begin alike. Does not change the tokens of an answer"},
    {"pin-prefix", &Config::pin_prefix, "", "", kServe, Group::kMemory, "Comma-separated text files. Each one is computed at start, as a prompt that begins with exactly these bytes, and stays in the KV cache"},
    {"cache-dir", &Config::cache_dir, "", "", kServe, Group::kMemory, "Directory in which POST /admin/cache/save and /load keep the prefix cache. Empty: these endpoints do not exist"},
    {"kv-events-config", &Config::kv_events_config, "", "", kServe, Group::kMemory, "Publish prefix-cache events to routers over ZeroMQ, as JSON: {\"enable_kv_cache_events\": true, \"endpoint\": \"tcp://*:5557\"}. Every subscriber can read the token ids of prompts. Empty: off. See docs/kv-events.md"},
    {"kv-debug", &Config::kv_debug, "off", "off|check|poison|log", kServe, Group::kMemory, "Comma-separated checks. check: the block pool's invariants in every step; poison: fill free blocks with NaN; log: one line with the blocks of every sequence that ends"},
    {"scheduling-policy", &Config::scheduling_policy, "fcfs", "fcfs|priority|deadline|fair|cache", kServe, Group::kScheduling, "Order in which sequences run. fcfs: by arrival; priority, deadline: by the values of the requests; fair: the tenant with the least service for its weight first; cache: the longest cached prefix first"},
    {"preemption-victim", &Config::preemption_victim, "newest", "newest|longest|lowest-priority", kServe, Group::kScheduling, "Running sequence to preempt when no KV block is free"},
    {"max-overtakes", &Config::max_overtakes, "64", "0..1048576", kServe, Group::kScheduling, "Number of later arrivals that may run before a queued sequence, whatever the policy; after that it is next"},
    {"swap-space", &Config::swap_space, "0", "0..1024TiB", kServe, Group::kMemory, "Main memory for the KV blocks of preempted sequences, on a GPU. 0: preempted sequences are recomputed, as always on the CPU, where other values are refused"},
    {"speculative-config", &Config::speculative_config, "", "", kRunning, Group::kSpeculation, "Speculative decoding, as JSON: {\"method\": \"ngram\", \"num_speculative_tokens\": 4}. Does not change the tokens of an answer. Empty: off, except that the built-in model is served with its built-in draft head. docs/speculation.md lists the methods"},
    {"device", &Config::device, "auto", "", kRunning, Group::kCompute, "Device that runs the model: cpu; cuda or cuda:N, the GPU of that number, in a program built with CUDA; auto: the first GPU if there is one, else the CPU. See docs/gpu.md"},
    {"tensor-parallel-size", &Config::tensor_parallel_size, "1", "1..8", kRunning, Group::kCompute, "Number of GPUs that run the model together, from --device's number on. Must divide the model's number of kv heads, or be a multiple of it that divides the number of heads. Does not change the tokens of an answer. See docs/gpu.md"},
    {"threads", &Config::threads, "auto", "1..1024", kRunning | kDoctor, Group::kCompute, "Number of compute threads. auto: all that the process may use, by its affinity and its control group's CPU quota"},
    {"isa", &Config::isa, "auto", "auto|scalar|avx2|avx512|avx512vnni|avx512bf16", kRunning | kDoctor, Group::kCompute, "Instruction set of the CPU kernels. Does not change results"},
    {"log-level", &Config::log_level, "info", "debug|info=notset|warning=warn|error=critical|off", kAll, Group::kLogs, "Least severe event that is logged"},
    {"log-format", &Config::log_format, "text", "text|json", kAll, Group::kLogs, "Format of the log on standard error: text, or one JSON object a line"},
    {"log-requests", &Config::log_requests, "all", "off|errors|all|content", kServe, Group::kLogs, "Requests that get a line in the log when they end. errors: those answered with an error; all: each, without prompts and answers; content: each, with the first 4 KiB of its body"},
    {"log-stats-interval", &Config::log_stats_interval, "10s", "0..1h", kServe, Group::kLogs, "Time between two log lines with throughput, queue and cache, while there are requests. 0: there are none"},
};
// clang-format on

constexpr GroupName kGroups[] = {{Group::kModel, "model", "Model"},
                                 {Group::kApi, "api", "API"},
                                 {Group::kServer, "server", "Server"},
                                 {Group::kSecurity, "security", "Security"},
                                 {Group::kCompute, "compute", "Compute and precision"},
                                 {Group::kMemory, "memory", "Memory and cache"},
                                 {Group::kScheduling, "scheduling", "Scheduling and limits"},
                                 {Group::kSpeculation, "speculation", "Speculation"},
                                 {Group::kLogs, "logs", "Logs and traces"}};

struct Choice {
  std::string_view value;
  std::string_view other;  // an alternative word for it, or empty
};

std::vector<Choice> choices_of(std::string_view range) {
  std::vector<Choice> out;
  while (!range.empty()) {
    const std::string_view one = range.substr(0, range.find('|'));
    range.remove_prefix(std::min(range.size(), one.size() + 1));
    const std::size_t equals = one.find('=');
    out.push_back(equals == one.npos ? Choice{one, ""} : Choice{one.substr(0, equals), one.substr(equals + 1)});
  }
  return out;
}

bool same_word(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](char x, char y) { return lower(x) == lower(y); });
}

// Any numeric value as a 64-bit number, so that ranges of all units are checked in the same way.
Result<std::uint64_t> number_of(const Field& field, std::string_view text) {
  const bool is_bytes = std::holds_alternative<Bytes Config::*>(field.member) ||
                        std::holds_alternative<std::optional<Bytes> Config::*>(field.member);
  if (is_bytes) return parse_bytes(text);
  if (!std::holds_alternative<Duration Config::*>(field.member)) return parse_count(text);
  const Result<Duration> duration = parse_duration(text);
  if (!duration) return duration.error();
  return static_cast<std::uint64_t>(duration->count());
}

Result<std::uint64_t> number_in_range(const Field& field, std::string_view text) {
  const std::size_t dots = field.range.find("..");
  const std::uint64_t low = number_of(field, field.range.substr(0, dots)).value();
  const std::uint64_t high = number_of(field, field.range.substr(dots + 2)).value();
  const Result<std::uint64_t> number = number_of(field, text);
  if (!number) return invalid("", number.error().message + (field.is_optional() ? " or auto" : ""));
  if (*number < low || *number > high) return invalid("", "expected " + range_text(field));
  return *number;
}

Result<std::string> choice_in_range(const Field& field, std::string_view text) {
  if (field.range.empty()) return std::string(text);
  for (const Choice& choice : choices_of(field.range)) {
    if (same_word(choice.value, text) || (!choice.other.empty() && same_word(choice.other, text))) {
      return std::string(choice.value);
    }
  }
  return invalid("", "expected one of " + range_text(field));
}

Result<std::vector<std::string>> list_of(const Field& field, std::span<const std::string> values) {
  std::vector<std::string> out;
  for (std::string_view rest : values) {
    while (!rest.empty()) {
      const std::string_view one = rest.substr(0, rest.find(','));
      rest.remove_prefix(std::min(rest.size(), one.size() + 1));
      if (one.empty()) return invalid("", "expected a comma-separated list");
      Result<std::string> name = choice_in_range(field, one);
      if (!name) return name.error();
      if (std::find(out.begin(), out.end(), *name) == out.end()) out.push_back(std::move(*name));
    }
  }
  return out;
}

// Stores values in a member: one overload per type of member.
struct Store {
  const Field& field;
  std::span<const std::string> values;
  Config& config;

  const std::string& text() const { return values.back(); }

  Result<Done> operator()(std::string Config::*member) const {
    Result<std::string> value = choice_in_range(field, text());
    if (!value) return value.error();
    config.*member = std::move(*value);
    return Done{};
  }
  Result<Done> operator()(std::vector<std::string> Config::*member) const {
    Result<std::vector<std::string>> value = list_of(field, values);
    if (!value) return value.error();
    config.*member = std::move(*value);
    return Done{};
  }
  template <typename T>
  Result<Done> operator()(T Config::*member) const {
    const Result<std::uint64_t> number = number_in_range(field, text());
    if (!number) return number.error();
    put(config.*member, *number);
    return Done{};
  }
  template <typename T>
  Result<Done> operator()(std::optional<T> Config::*member) const {
    config.*member = std::nullopt;
    // vLLM writes -1 for auto.
    if (same_word(text(), "auto") || text() == "-1") return Done{};
    const Result<std::uint64_t> number = number_in_range(field, text());
    if (!number) return number.error();
    put((config.*member).emplace(), *number);
    return Done{};
  }

  static void put(std::uint32_t& out, std::uint64_t number) { out = static_cast<std::uint32_t>(number); }
  static void put(Bytes& out, std::uint64_t number) { out.value = number; }
  static void put(Duration& out, std::uint64_t number) { out = Duration(static_cast<std::int64_t>(number)); }
};

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, change});
    }
  }
  return row.back();
}

}  // namespace

std::span<const Field> fields() { return kFields; }
std::span<const GroupName> groups() { return kGroups; }

const Field* find_field(std::string_view name) {
  const auto at = std::find_if(std::begin(kFields), std::end(kFields), [&](const Field& f) { return f.name == name; });
  return at == std::end(kFields) ? nullptr : &*at;
}

std::string flag_of(const Field& field) { return fmt::format("--{}", field.name); }

std::string environment_of(const Field& field) {
  std::string out = "QUIRE_";
  for (const char c : field.name) out += c == '-' ? '_' : static_cast<char>(c - (c >= 'a' && c <= 'z' ? 32 : 0));
  return out;
}

std::string kind_of(const Field& field) {
  struct Kind {
    const Field& field;
    std::string operator()(std::string Config::*) const {
      return field.is_switch() ? "switch" : field.range.empty() ? "text" : "choice";
    }
    std::string operator()(std::vector<std::string> Config::*) const { return "list"; }
    std::string operator()(std::uint32_t Config::*) const { return "count"; }
    std::string operator()(std::optional<std::uint32_t> Config::*) const { return "count"; }
    std::string operator()(Bytes Config::*) const { return "size"; }
    std::string operator()(std::optional<Bytes> Config::*) const { return "size"; }
    std::string operator()(Duration Config::*) const { return "time"; }
  };
  return std::visit(Kind{field}, field.member);
}

std::string range_text(const Field& field) {
  const std::vector<std::string_view> words = choices(field);
  return words.empty() ? fmt::format("{}{}", field.is_optional() ? "auto or " : "", field.range)
                       : fmt::format("{}", fmt::join(words, "|"));
}

std::vector<std::string_view> choices(const Field& field) {
  const std::vector<Choice> all = choices_of(field.range);
  std::vector<std::string_view> out;
  if (all.size() < 2) return out;
  for (const Choice& choice : all) {
    if (out.empty() || choice.value != out.back()) out.push_back(choice.value);
  }
  return out;
}

std::string commands_text(const Field& field) {
  constexpr std::pair<unsigned, std::string_view> kNames[] = {
      {kServe, "serve"}, {kGenerate, "generate"}, {kBench, "bench"},   {kInspect, "inspect"},
      {kPs, "ps"},       {kStop, "stop"},         {kDoctor, "doctor"}, {kBuildDatastore, "build-datastore"},
      {kPull, "pull"},   {kList, "list"},         {kRemove, "rm"},     {kQuantize, "quantize"}};
  std::string out;
  for (const auto& [bit, name] : kNames) {
    if (field.commands & bit) out += fmt::format("{}{}", out.empty() ? "" : ", ", name);
  }
  return out;
}

Result<Done> store(const Field& field, std::span<const std::string> values, Config& config) {
  if (values.empty()) return invalid("", "expected a value");
  return std::visit(Store{field, values, config}, field.member);
}

std::string nearest(std::string_view given, std::span<const std::string_view> names) {
  std::string_view best;
  std::size_t best_distance = std::max<std::size_t>(2, given.size() / 3) + 1;
  for (const std::string_view name : names) {
    const std::size_t distance = edit_distance(given, name);
    if (distance < best_distance && distance < name.size()) {
      best = name;
      best_distance = distance;
    }
  }
  return std::string(best);
}

std::string nearest_or_longer(std::string_view given, std::span<const std::string_view> names) {
  std::string out = nearest(given, names);
  const auto is_longer = [&](std::string_view name) { return name.starts_with(given); };
  if (!out.empty() || given.size() < 3 || std::ranges::count_if(names, is_longer) != 1) return out;
  return std::string(*std::ranges::find_if(names, is_longer));
}

namespace {

std::string markdown_row(const Field& field) {
  std::string range;
  for (const char c : range_text(field)) range += c == '|' ? "\\|" : std::string(1, c);
  return fmt::format("| `{}` | `{}` | {} | {} | {} | {} | {} |\n", flag_of(field), environment_of(field),
                     kind_of(field), field.fallback.empty() ? "" : fmt::format("`{}`", field.fallback), range,
                     field.commands == kAll ? "all" : commands_text(field), field.help);
}

}  // namespace

std::string flags_markdown() {
  std::string out =
      "# Settings\n\nEvery setting can be given as a flag, in the environment, or as a key of the TOML file that "
      "`--config` names. The first of these that sets it is used, then the default.\nSizes have units (`4MiB`, `2GiB`; "
      "plain numbers are bytes), times too (`30s`, `500ms`, `2m`); counts may end in `k` or `K` (1000 and 1024). "
      "Unknown flags and keys are errors.\nThis page is the output of `quire serve --print-flags-markdown`.\n";
  for (const GroupName& group : groups()) {
    out += fmt::format(
        "\n## {}\n\n| flag | environment | kind | default | range | commands | what it does |\n| --- | --- | --- | --- "
        "| --- | --- | --- |\n",
        group.title);
    for (const Field& field : fields()) {
      if (field.group == group.group) out += markdown_row(field);
    }
  }
  return out;
}

}  // namespace quire::app

#include "app/config_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "app/units.h"

namespace quire::app {
namespace {

// name, member, default, range, commands, help
// clang-format off
constexpr Field kFields[] = {
    {"model", &Config::model, "stories", "", kAll, "directory of a Hugging Face model; `stories` is the model inside the binary"},
    {"config", &Config::config, "", "", kAll, "TOML file with any of these settings as keys"},
    {"host", &Config::host, "127.0.0.1", "", kServe, "address to listen on; 0.0.0.0 for every IPv4 interface, :: for all"},
    {"port", &Config::port, "8000", "0..65535", kServe, "TCP port; 0 takes any free one"},
    {"uds", &Config::uds, "", "", kServe, "path of a unix socket (mode 0660) to listen on, instead of --host and --port; the admin port stays one of TCP"},
    {"tls-cert", &Config::tls_cert, "", "", kServe, "PEM file with the certificate, and those that signed it behind it: the port then speaks TLS 1.2 and 1.3; read again on SIGHUP; docs/tls.md"},
    {"tls-key", &Config::tls_key, "", "", kServe, "PEM file with the certificate's key, without a passphrase; empty: it is in --tls-cert's file"},
    {"allowed-origins", &Config::allowed_origins, "", "", kServe, "origins whose web pages a browser lets read the answers, comma separated or a list in JSON; *: any; empty: none. Never for /admin/…; docs/security.md"},
    {"allowed-credentials", &Config::allowed_credentials, "off", "off|on", kServe, "let these pages send cookies and the like"},
    {"allowed-methods", &Config::allowed_methods, "*", "", kServe, "methods that these pages may use, comma separated; *: any"},
    {"allowed-headers", &Config::allowed_headers, "*", "", kServe, "headers that these pages may send, comma separated; *: any"},
    {"admin-host", &Config::admin_host, "127.0.0.1", "", kServe, "address of the admin port"},
    {"admin-port", &Config::admin_port, "auto", "0..65535", kServe, "TCP port with a thread of its own, which also has the probes and /metrics, and alone takes /admin/…; 0 takes any free one; auto: none, the main port has everything"},
    {"served-model-name", &Config::served_model_name, "", "", kServe, "names the API knows the model by, comma separated; empty: the directory's name, and the path as given"},
    {"api-key-file", &Config::api_key_file, "", "", kServe, "file with the hashes of API keys, their roles and limits (docs/security.md, quire key); read again on SIGHUP; empty: nobody needs a key"},
    {"api-key", &Config::api_key, "", "", kServe | kInspect, "API keys of users, comma separated, beside those of the file; of inspect --url, the key it shows; in QUIRE_API_KEY or the configuration file, for a command line can be seen by others"},
    {"generation-config", &Config::generation_config, "auto", "auto|none=vllm", kServe | kGenerate, "take sampling defaults from the model's generation_config.json"},
    {"chat-template", &Config::chat_template, "", "", kServe, "file with the Jinja template that makes a prompt of a conversation; empty: the model's own, from chat_template.jinja or tokenizer_config.json"},
    {"tokenizer-info", &Config::tokenizer_info, "off", "off|on", kServe, "answer GET /tokenizer_info with the tokenizer's settings and the chat template, which evaluation programs read"},
    {"tool-call-parser", &Config::tool_call_parser, "auto", "auto|none|generic|hermes|llama3_json|mistral", kServe, "the form in which the model writes calls of tools; auto: the one that its chat template shows it, or else generic, which the server teaches it in the prompt; none: requests with tools are refused"},
    {"reasoning-parser", &Config::reasoning_parser, "auto", "auto|none|think=qwen3|think=deepseek_r1|mistral", kServe, "the marks around reasoning, which is told apart from the answer: <think> or [THINK]; auto: those of the chat template"},
    {"max-queue", &Config::max_queue, "4096", "1..1048576", kServe, "waiting sequences; one more is answered 429"},
    {"max-queue-tokens", &Config::max_queue_tokens, "4194304", "1..4294967295", kServe, "prompt tokens of all waiting sequences; more is answered 429"},
    {"stall-timeout", &Config::stall_timeout, "30s", "1ms..1h", kServe, "a stream whose client does not read for this long is cancelled"},
    {"drain-timeout", &Config::drain_timeout, "30s", "0..1h", kServe, "after SIGTERM, how long open streams may take to finish"},
    {"io-threads", &Config::io_threads, "1", "1..64", kServe, "threads that serve connections"},
    {"max-connections", &Config::max_connections, "16384", "1..1048576", kServe, "open connections; one more is answered 503 and closed"},
    {"max-explained-requests", &Config::max_explained_requests, "256", "0..65536", kServe, "finished requests that GET /v1/requests/{id}/explain can still tell about, fewer where they had many sequences; 0: none"},
    {"body-limit", &Config::body_limit, "8MiB", "1KiB..1GiB", kServe, "longest request body; a longer one is answered 413"},
    {"header-timeout", &Config::header_timeout, "10s", "1ms..1h", kServe, "time for a request's header to arrive"},
    {"body-timeout", &Config::body_timeout, "60s", "1ms..1h", kServe, "time for a request's body to arrive"},
    {"idle-timeout", &Config::idle_timeout, "75s", "1ms..1h", kServe, "a kept-alive connection without a request is closed after this"},
    {"otlp-traces-endpoint", &Config::otlp_traces_endpoint, "", "", kServe, "URL that a trace of every request is sent to as OTLP/HTTP, http://collector:4318 for example; empty: OTEL_EXPORTER_OTLP_ENDPOINT, or nobody; docs/tracing.md"},
    {"dtype", &Config::dtype, "auto", "auto|bf16=bfloat16|f16=float16|f16=half|f32=float32|f32=float", kRunning, "the checkpoint's type: another is refused, since weights are used as they are stored, or quantised from that"},
    {"quantize", &Config::quantize, "none", "none|int8|int4|fp8|w8a8|w4a8|w16a16", kLooking, "store the matrices of a plain checkpoint in fewer bits, as they are loaded; with a8, multiply by them in integers; w16a16: in bf16, rows of activations rounded too; docs/quantization.md says what that costs and saves"},
    {"packed-cache", &Config::packed_cache, "", "", kRunning, "directory, the model's own for example, that keeps the weights as they are packed: the next start maps that file instead of packing them again; empty: every start packs"},
    {"max-model-len", &Config::max_model_len, "auto", "2..16777216", kServe | kGenerate | kInspect, "longest sequence, prompt and answer; auto: the model's own, or what the KV cache holds"},
    {"max-num-seqs", &Config::asked_num_seqs, "auto", "1..16384", kServe, "sequences that run at the same time; auto: 64, on a GPU 256"},
    {"max-num-batched-tokens", &Config::asked_num_batched_tokens, "auto", "1..65536", kServe, "rows of one step; auto: 512, on a GPU 2048; fewer than max-num-seqs, but 16 at least: sequences are served round-robin"},
    {"min-step-time", &Config::min_step_time, "0", "0..1s", kServe, "for load tests with a toy model, which would say too much too soon: a step takes so long at least; docs/load-testing.md"},
    {"block-size", &Config::block_size, "16", "16..256", kLooking, "tokens in a KV block, a multiple of 16; the tokens of an answer never depend on it"},
    {"kv-cache-dtype", &Config::kv_cache_dtype, "auto", "auto|f32=float32|bf16=bfloat16|fp8=fp8_e4m3|int8|int4", kRunning, "how K and V are stored; auto: bf16 for a bf16 checkpoint, else f32; docs/kv-cache.md says what fewer bits cost"},
    {"kv-cache-memory", &Config::kv_cache_memory, "auto", "1KiB..1024TiB", kServe | kGenerate | kInspect, "memory of the KV cache, drafts' included; auto: half of what is free after the weights, on a GPU nearly all of it, and no more than max-num-seqs can use"},
    {"prefix-caching", &Config::prefix_caching, "on", "on|off", kServe, "keep the KV blocks of what was computed for prompts that begin alike; the tokens of an answer never depend on it"},
    {"pin-prefix", &Config::pin_prefix, "", "", kServe, "text files, comma separated: each one's tokens are computed at start, as a prompt that begins with exactly these bytes, and stay in the KV cache"},
    {"cache-dir", &Config::cache_dir, "", "", kServe, "directory that POST /admin/cache/save and load keep the prefix cache in; empty: there are no such endpoints"},
    {"kv-events-config", &Config::kv_events_config, "", "", kServe, "tell routers over ZeroMQ what becomes of the prefix cache, as JSON: {\"enable_kv_cache_events\": true, \"endpoint\": \"tcp://*:5557\"}; whoever can connect there reads the token ids of prompts; docs/kv-events.md; empty: nobody is told"},
    {"kv-debug", &Config::kv_debug, "off", "off|check|poison|log", kServe, "comma separated. check: the block pool's invariants every step; poison: blocks nobody holds or keeps are filled with NaN; log: a line with the blocks of every sequence that ends"},
    {"scheduling-policy", &Config::scheduling_policy, "fcfs", "fcfs|priority|deadline|fair|cache", kServe, "who runs next. fcfs: by arrival; priority, deadline: as the requests say; fair: the tenant that has been served least for its weight; cache: the longest cached prefix first"},
    {"preemption-victim", &Config::preemption_victim, "newest", "newest|longest|lowest-priority", kServe, "which running sequence goes back to wait when no KV block is free"},
    {"max-overtakes", &Config::max_overtakes, "64", "0..1048576", kServe, "so many later arrivals may go before a waiting sequence, whatever the policy; then it is next"},
    {"swap-space", &Config::swap_space, "0", "0..1024TiB", kServe, "main memory that the KV blocks of preempted sequences move to, on a GPU; 0: they are recomputed, as they are on the CPU, where this is refused"},
    {"speculative-config", &Config::speculative_config, "", "", kRunning, "how tokens are guessed ahead, as JSON: {\"method\": \"ngram\", \"num_speculative_tokens\": 4}; the answers are the same with each method; empty: by the head inside the binary for its own model when serving, else by nothing; docs/speculation.md says what there is"},
    {"device", &Config::device, "auto", "", kRunning, "what runs the model: cpu; cuda, or cuda:N, a GPU by its number, in a program built with CUDA; auto: the first GPU where there is one, else the CPU; docs/gpu.md"},
    {"tensor-parallel-size", &Config::tensor_parallel_size, "1", "1..8", kRunning, "GPUs that run the model together, from --device's number on, each with its share of the weights and of the KV cache; it divides the model's kv heads; the tokens of an answer never depend on it; docs/gpu.md"},
    {"threads", &Config::threads, "auto", "1..1024", kRunning, "compute threads; auto: as many as the process may run on, by its affinity and its control groups' CPU quota"},
    {"isa", &Config::isa, "auto", "auto|scalar|avx2|avx512|avx512vnni|avx512bf16", kRunning, "instruction set of the CPU kernels; the results are the same with each"},
    {"log-level", &Config::log_level, "info", "debug|info=notset|warning=warn|error=critical|off", kAll, "least severe event that is logged"},
    {"log-format", &Config::log_format, "text", "text|json", kAll, "one line an event on standard error, as text or as a JSON object"},
};
// clang-format on

struct Choice {
  std::string_view value;
  std::string_view other;  // another word for it, or empty
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

// Everything numeric as one 64-bit number, so that a range is checked the same way whatever its unit.
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
      if (one.empty()) return invalid("", "expected names with commas between them");
      Result<std::string> name = choice_in_range(field, one);
      if (!name) return name.error();
      if (std::find(out.begin(), out.end(), *name) == out.end()) out.push_back(std::move(*name));
    }
  }
  return out;
}

// One overload a kind of member.
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
    // -1 is vLLM's word for auto.
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
    std::string operator()(std::string Config::*) const { return field.range.empty() ? "text" : "choice"; }
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
  if (choices_of(field.range).size() < 2)
    return fmt::format("{}{}", field.is_optional() ? "auto or " : "", field.range);
  std::string out;
  std::string_view last;
  for (const Choice& choice : choices_of(field.range)) {
    if (choice.value != last) out += fmt::format("{}{}", out.empty() ? "" : "|", choice.value);
    last = choice.value;
  }
  return out;
}

std::string commands_text(const Field& field) {
  constexpr std::pair<unsigned, std::string_view> kNames[] = {{kServe, "serve"},
                                                              {kGenerate, "generate"},
                                                              {kBench, "bench"},
                                                              {kInspect, "inspect"},
                                                              {kBuildDatastore, "build-datastore"}};
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

std::string flags_markdown() {
  std::string out =
      "# Settings\n\n"
      "Every setting can be given as a flag, in the environment, or as a key of the TOML file that `--config` names; "
      "the "
      "first of these that names it wins, then the default.\n"
      "Sizes take units (`4MiB`, `2GiB`, plain bytes), times too (`30s`, `500ms`, `2m`), counts `k` and `K` (1000 and "
      "1024). Unknown flags and keys are errors.\n"
      "This page is the output of `quire serve --print-flags-markdown`.\n\n"
      "| flag | environment | kind | default | range | commands | what it does |\n"
      "| --- | --- | --- | --- | --- | --- | --- |\n";
  for (const Field& field : fields()) {
    std::string range;
    for (const char c : range_text(field)) range += c == '|' ? "\\|" : std::string(1, c);
    out += fmt::format("| `{}` | `{}` | {} | {} | {} | {} | {} |\n", flag_of(field), environment_of(field),
                       kind_of(field), field.fallback.empty() ? "" : fmt::format("`{}`", field.fallback), range,
                       field.commands == kAll ? "all" : commands_text(field), field.help);
  }
  return out;
}

}  // namespace quire::app

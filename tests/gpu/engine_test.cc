// The engine on the GPU's ops, on the simulated device: one step at a time or two in flight, steps captured or not,
// what is said is what the CPU says.
#include <gtest/gtest.h>

#include <cstring>

#include "core/cpu/cpu_ops.h"
#include "core/model/run/decoder_runner.h"
#include "core/speculate/models/model_drafter.h"
#include "gpu/gpu_ops.h"
#include "gpu/runtime/simulated_device.h"
#include "tests/core/model/tiny_checkpoint.h"
#include "tests/core/speculate/draft_rig.h"
#include "tests/support/cases.h"
#include "tests/support/engine_rig.h"

namespace quire::gpu::engine_test {
namespace {

using quire::testing::Ask;
using quire::testing::Client;
using quire::testing::EngineRig;

constexpr const char* kConfig = R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"],
  "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1,
  "vocab_size": 61, "max_position_embeddings": 64, "rms_norm_eps": 1e-5, "tie_word_embeddings": false})";
constexpr std::uint32_t kVocab = 61;

struct Received {
  std::vector<TokenId> tokens;
  std::vector<float> logprobs;
  flow::Finish finish;
  bool operator==(const Received&) const = default;
};

struct Asked {
  std::uint64_t repeated = 0;                   // to run what was captured
  std::uint64_t launches = 0;                   // kernels, one by one
  std::uint64_t works_for = ~std::uint64_t{0};  // launches; then the device fails
  bool has_no_room = false;                     // for captured steps
  std::uint64_t downloaded = 0;                 // what waits for all that is queued
  std::uint64_t uploaded = 0;  // from memory that the driver copies first, and may wait for the device with
  std::uint64_t uploaded_pinned = 0;
};

// Another device, and how often it was asked.
class CountingDevice final : public Device {
 public:
  CountingDevice(std::unique_ptr<Device> inner, Asked& asked) : inner_(std::move(inner)), asked_(asked) {}
  std::string name() const override { return inner_->name(); }
  std::string architecture() const override { return inner_->architecture(); }
  const KernelTable& kernels() const override { return inner_->kernels(); }
  std::uint64_t free_bytes() override { return inner_->free_bytes(); }
  void* allocate(std::size_t bytes, const char* what) override { return inner_->allocate(bytes, what); }
  void* allocate_constant(std::size_t bytes, const char* what) override {
    return inner_->allocate_constant(bytes, what);
  }
  void free(void* memory) noexcept override { inner_->free(memory); }
  void upload(void* to, const void* from, std::size_t bytes) override {
    ++asked_.uploaded;
    inner_->upload(to, from, bytes);
  }
  void download(void* to, const void* from, std::size_t bytes) override {
    ++asked_.downloaded;
    inner_->download(to, from, bytes);
  }
  void copy(void* to, const void* from, std::size_t bytes) override { inner_->copy(to, from, bytes); }
  void fill(void* memory, std::byte value, std::size_t bytes) override { inner_->fill(memory, value, bytes); }
  void* allocate_pinned(std::size_t bytes, const char* what) override { return inner_->allocate_pinned(bytes, what); }
  void free_pinned(void* memory) noexcept override { inner_->free_pinned(memory); }
  void upload_pinned(void* to, const void* pinned, std::size_t bytes) override {
    ++asked_.uploaded_pinned;
    inner_->upload_pinned(to, pinned, bytes);
  }
  void download_pinned(void* pinned, const void* from, std::size_t bytes) override {
    inner_->download_pinned(pinned, from, bytes);
  }
  std::unique_ptr<Event> make_event() override { return inner_->make_event(); }
  void begin_capture() override { inner_->begin_capture(); }
  std::unique_ptr<CapturedStep> end_capture() override {
    auto step = inner_->end_capture();
    return asked_.has_no_room ? nullptr : std::move(step);
  }
  using Device::start;
  void start(CapturedStep& step) override {
    ++asked_.repeated;
    inner_->start(step);
  }
  void let_kernels_overlap(bool on) override { inner_->let_kernels_overlap(on); }
  void mark(unsigned number) override { inner_->mark(number); }
  double seconds_between(unsigned first, unsigned second) override { return inner_->seconds_between(first, second); }

 protected:
  void run(const Launch& launch) override {
    if (++asked_.launches > asked_.works_for) throw DeviceError("cudaLaunchKernelExC: an illegal memory access");
    inner_->start(launch);
  }

 private:
  const std::unique_ptr<Device> inner_;
  Asked& asked_;
};

std::vector<TokenId> prompt_of(std::uint32_t length, std::uint32_t seed) {
  std::vector<TokenId> prompt = quire::testing::toy_prompt(length, seed);
  for (TokenId& token : prompt) token %= static_cast<TokenId>(kVocab);
  return prompt;
}

// Greedy and drawn, with rules and without, of several lengths and ends; in a pool that runs dry.
// A model of one layer on these ops, and an engine over it.
class Served {
 public:
  explicit Served(backend::Ops& ops, backend::KvType kv = backend::KvType::kF32) REQUIRES(engine_role)
      : config_(model::parse_config(kConfig, "config.json")),
        checkpoint_(model::testing::safetensors_file(model::testing::fitting_tensors(config_, "F32"))),
        named_{{"config.json", std::as_bytes(std::span(kConfig, std::strlen(kConfig)))},
               {"model.safetensors", std::as_bytes(std::span(checkpoint_.data(), checkpoint_.size()))}},
        files_(model::ModelFiles::memory(named_)),
        decoder_(ops, model::load_config(*files_), *files_, 64),
        runner_(ops, decoder_, limits(kv)),
        rig({.num_blocks = 7,
             .max_num_seqs = 4,
             .max_num_batched_tokens = 24,
             .max_model_len = 64,
             .vocab = kVocab,
             .cut_by_time = false},
            runner_) {}
  Client ask(std::uint32_t length, std::uint32_t max_tokens, const Ask& how) REQUIRES(engine_role) {
    return rig.submit_many(prompt_of(length, length), max_tokens, how)[0];
  }

 private:
  static model::RunnerLimits limits(backend::KvType kv) {
    model::RunnerLimits limits;
    limits.kv_dtype = kv;
    limits.max_rows = 24;
    limits.max_sequences = 4;
    limits.num_blocks = 7;
    return limits;
  }
  const model::ModelSpec config_;
  const std::string checkpoint_;
  const std::vector<std::pair<std::string_view, model::FileBytes>> named_;
  const std::unique_ptr<model::ModelFiles> files_;
  const model::Decoder decoder_;
  model::DecoderRunner runner_;

 public:
  EngineRig rig;
};

std::vector<Received> heard(backend::Ops& ops) REQUIRES(engine_role) {
  Served served(ops);
  EngineRig& rig = served.rig;
  std::vector<Client> clients;
  const auto ask = [&](std::uint32_t length, std::uint32_t max_tokens, const Ask& how) {
    clients.push_back(served.ask(length, max_tokens, how));
  };
  ask(9, 12, {.params = {.temperature = 0.0f, .logprob = true}});
  ask(14, 9, {.params = {.temperature = 0.9f, .top_p = 0.9f, .seed = 4, .logprob = true}});
  rig.iterate();
  rig.iterate();
  ask(30, 20, {.params = {.temperature = 1.0f, .seed = 5}, .stop_tokens = {1, 2, 3, 4, 5, 6, 7}});
  ask(12, 7,
      {.params = {.temperature = 1.0f, .seed = 6},
       .rules = std::make_shared<const sample::Rules>(sample::Rules{.repetition_penalty = 1.3f})});
  ask(3, 1, {});
  rig.run(clients);
  while (!rig.engine.idle()) rig.iterate();
  EXPECT_EQ(rig.pool.num_held(), 0u);
  std::vector<Received> all;
  for (const Client& client : clients) all.push_back({client.tokens, client.logprobs, client.finish});
  return all;
}

TEST(EngineOnGpu, SaysTheSameWithStepsInFlightCapturedAndOfKernelsThatBeginEarly) {
  const RoleScope role(engine_role);
  const std::vector<Received> expected = heard(*cpu::make_cpu_ops({.num_threads = 1, .isa = "auto", .max_rows = 24}));
  for (const std::uint32_t depth : {1u, 2u}) {
    for (const std::uint32_t capture : quire::testing::sampled({0u, 3u, 4u})) {
      SCOPED_TRACE("depth " + std::to_string(depth) + ", captured up to " + std::to_string(capture));
      Asked asked;
      const Pace pace = depth == 2 && capture == 4 ? Pace::kEarly : Pace::kLate;
      auto device = std::make_unique<CountingDevice>(make_simulated_device(depth + capture, pace), asked);
      const auto ops = make_gpu_ops(std::move(device), {.max_rows = 24, .depth = depth, .capture = capture});
      EXPECT_EQ(ops->depth(), depth);
      const std::vector<Received> all = heard(*ops);
      ASSERT_EQ(all.size(), expected.size());
      for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i], expected[i]) << "request " << i;
      if (kClearsPadding) {
        EXPECT_EQ(asked.repeated > 0, capture > 0);
      }
      EXPECT_EQ(asked.downloaded, 0u);  // who waits for a step does not wait for the one behind it
    }
  }
}

TEST(EngineOnGpu, RunsKernelByKernelWhereThereIsNoMemoryForCapturedSteps) {
  const RoleScope role(engine_role);
  std::vector<std::vector<Received>> all;
  for (const bool has_no_room : {false, true}) {
    Asked asked;
    asked.has_no_room = has_no_room;
    const auto ops = make_gpu_ops(std::make_unique<CountingDevice>(make_simulated_device(), asked),
                                  {.max_rows = 24, .depth = 2, .capture = 4});
    all.push_back(heard(*ops));
    if (has_no_room) {
      EXPECT_EQ(asked.repeated, 0u);
    }
  }
  EXPECT_EQ(all[0], all[1]);
}

// What a step brings, its plan of attention, what its rows are chosen by, and the groups of int4 that it ends.
TEST(EngineOnGpu, SendsAStepInFourCopiesFromPinnedMemoryAndNothingElse) {
  const RoleScope role(engine_role);
  for (const backend::KvType kv : {backend::KvType::kBF16, backend::KvType::kInt4}) {
    Asked asked;
    const auto ops =
        make_gpu_ops(std::make_unique<CountingDevice>(make_simulated_device(), asked), {.max_rows = 24, .depth = 2});
    Served served(*ops, kv);
    std::vector<Client> clients = {served.ask(9, 12, {}), served.ask(12, 12, {}), served.ask(30, 12, {})};
    const std::uint64_t before = asked.uploaded;
    asked.uploaded_pinned = 0;
    std::uint64_t waits = 0;
    for (; !served.rig.engine.idle() || waits == 0; ++waits) served.rig.iterate();
    for (Client& client : clients) client.read_all();
    EXPECT_EQ(clients[2].tokens.size(), 12u);
    EXPECT_EQ(asked.uploaded, before) << backend::name_of(kv);
    EXPECT_LE(asked.uploaded_pinned, waits * (kv == backend::KvType::kInt4 ? 4 : 3)) << backend::name_of(kv);
  }
}

TEST(EngineOnGpu, EndsEveryStreamWithAFaultWhereTheDeviceFails) {
  const RoleScope role(engine_role);
  Asked asked;
  const auto ops =
      make_gpu_ops(std::make_unique<CountingDevice>(make_simulated_device(), asked), {.max_rows = 24, .depth = 2});
  Served served(*ops);
  std::vector<Client> clients = {served.ask(9, 40, {}), served.ask(12, 40, {}), served.ask(3, 40, {})};
  for (int i = 0; i < 6; ++i) served.rig.iterate();
  asked.works_for = asked.launches + 5;
  EXPECT_THROW(
      {
        for (int i = 0; i < 50; ++i) served.rig.iterate();
      },
      DeviceError);
  served.rig.engine.abandon();  // as the engine's thread does
  for (Client& client : clients) {
    client.read_all();
    EXPECT_EQ(client.finish, flow::Finish::kFailed);
  }
}

struct Drafted {
  std::vector<Received> all;
  std::uint64_t num_taken = 0;  // guesses
};

// By a target alone, or with its own first layer, on the same ops, guessing chains.
Drafted drafted(backend::Ops& ops, bool drafts) REQUIRES(engine_role) {
  constexpr std::uint32_t kSequences = 3;
  constexpr std::uint32_t kBlocks = 9;
  constexpr std::uint32_t kNodes = 3;
  const speculate::testing::TinyModel target(ops, speculate::testing::tiny_config(2));
  const speculate::testing::TinyModel first_layer(ops, speculate::testing::tiny_config(1));
  std::unique_ptr<speculate::ModelDrafter> drafter;
  if (drafts) {
    speculate::ModelDraftLimits size;
    size.max_sequences = kSequences;
    size.max_rows = 24;
    size.max_depth = kNodes;
    size.num_blocks = kBlocks;
    size.kv_type = backend::KvType::kF32;
    drafter = std::make_unique<speculate::ModelDrafter>(ops, *first_layer.decoder, kVocab, size,
                                                        speculate::ModelDraftOptions{});
  }
  model::RunnerLimits limits;
  limits.max_rows = 24;
  limits.max_sequences = kSequences;
  limits.max_logits_rows = kSequences * (1 + kNodes);
  limits.num_blocks = kBlocks;
  limits.kv_dtype = backend::KvType::kF32;
  model::DecoderRunner runner(ops, *target.decoder, limits);
  EngineRig rig({.num_blocks = kBlocks,
                 .max_num_seqs = kSequences,
                 .max_num_batched_tokens = 24,
                 .max_logits_rows = kSequences * (1 + kNodes),
                 .max_model_len = 64,
                 .vocab = kVocab,
                 .cut_by_time = false,
                 .drafter = drafter.get(),
                 .max_draft_nodes = kNodes},
                runner);
  std::vector<Client> clients;
  clients.push_back(rig.submit_many(prompt_of(5, 1), 9, {.params = {.temperature = 0.0f, .logprob = true}})[0]);
  rig.iterate();
  clients.push_back(
      rig.submit_many(prompt_of(14, 2), 8, {.params = {.temperature = 0.7f, .seed = 4, .logprob = true}})[0]);
  clients.push_back(rig.submit_many(prompt_of(3, 3), 6, {.params = {.temperature = 0.7f, .seed = 5}})[0]);
  rig.run(clients);
  while (!rig.engine.idle()) rig.iterate();
  Drafted out;
  for (const Client& client : clients) out.all.push_back({client.tokens, client.logprobs, client.finish});
  out.num_taken = rig.metrics.spec_accepted_tokens.value();
  return out;
}

TEST(EngineOnGpu, SaysTheSameWithDraftsWhoseStepsAreCapturedAndRoomForTwoInFlight) {
  const RoleScope role(engine_role);
  const Drafted expected = drafted(*make_gpu_ops(make_simulated_device(), {.max_rows = 24}), /*drafts=*/false);
  struct Case {
    std::uint32_t depth;
    std::uint32_t capture;
    bool drafts;
  };
  for (const Case& one : {Case{1, 0, true}, Case{2, 0, true}, Case{2, 4, true}, Case{2, 4, false}}) {
    SCOPED_TRACE("depth " + std::to_string(one.depth) + ", captured up to " + std::to_string(one.capture) +
                 (one.drafts ? ", with drafts" : ""));
    Asked asked;
    auto device = std::make_unique<CountingDevice>(make_simulated_device(7, Pace::kLate), asked);
    const auto ops = make_gpu_ops(std::move(device), {.max_rows = 24, .depth = one.depth, .capture = one.capture});
    const Drafted said = drafted(*ops, one.drafts);
    ASSERT_EQ(said.all.size(), expected.all.size());
    for (std::size_t i = 0; i < said.all.size(); ++i) EXPECT_EQ(said.all[i], expected.all[i]) << "request " << i;
    EXPECT_EQ(said.num_taken > 0, one.drafts);
    if (kClearsPadding) {
      EXPECT_EQ(asked.repeated > 0, one.capture > 0);
    }
  }
}

}  // namespace
}  // namespace quire::gpu::engine_test

// linear() with every kind of neighbour as cases: by itself, and composed of plain ops. The two read back the same bits.
// Shape   weights [N, K] side by side, their outputs in one buffer; T rows.
// Source  ours.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "tests/core/cpu/op_kinds.h"

namespace quire::cpu::test {

struct WeightKind {
  Format dtype = Format::kF32;
  std::optional<Format> quantize = std::nullopt;
};
inline constexpr WeightKind kF32{Format::kF32};
inline constexpr WeightKind kF16{Format::kF16};
inline constexpr WeightKind kBf16{Format::kBF16};
inline constexpr WeightKind kInt8{Format::kBF16, Format::kInt8};

enum class Then { kNothing, kAdd, kActivate, kChoose, kRopeStore };
inline std::string name_of(Then then) {
  constexpr const char* kNames[] = {"nothing", "add", "activate", "choose", "rope_store"};
  return kNames[static_cast<int>(then)];
}
enum class How { kFused, kComposed };

struct LinearCase {
  std::vector<WeightKind> weights;
  std::vector<std::uint32_t> outputs;  // of each weight; kRopeStore: those of q, k and v, or of all of them
  std::uint32_t inputs = 48;
  std::uint32_t rows = 5;
  NormChoice before = NormChoice::kNone;
  Then then = Then::kNothing;
  float scale = 1.0f;                       // kAdd, kChoose
  NormChoice add_norm = NormChoice::kNone;  // kAdd
  backend::Activation activation = backend::Activation::kSilu;
  bool gated = true;
  float softcap = 0.0f;  // kChoose
  AttentionCase attention{};
  bool stores = true;  // kRopeStore: false: the output is q alone, and K and V are another layer's
  bool biased = true;

  std::uint32_t width() const {
    std::uint32_t sum = 0;
    for (const std::uint32_t n : outputs) sum += n;
    return sum;
  }
  std::string text() const {
    std::string out = std::to_string(rows) + " rows of " + std::to_string(inputs) + ", " + name_of(before) + ", then " +
                      name_of(then) + " scale " + std::to_string(scale) + " cap " + std::to_string(softcap) + " " +
                      name_of(add_norm) + " activation " + std::to_string(static_cast<int>(activation)) +
                      (gated ? " gated" : "") + ", weights";
    for (std::size_t i = 0; i < weights.size(); ++i) {
      out += " " + std::to_string(outputs[i]) + " " + backend::name_of(weights[i].quantize.value_or(weights[i].dtype));
    }
    return out;
  }
};

// Everything that a case's step needs on a device.
class LinearStep {
 public:
  LinearStep(backend::Ops& ops, const LinearCase& c) : ops_(ops), c_(c) {
    Random random(c.width() + c.inputs);
    for (std::size_t i = 0; i < c.weights.size(); ++i) {
      const Matrix matrix = random_matrix(random, c.outputs[i], c.inputs, c.weights[i].dtype, 0.3f);
      const backend::HostMatrix view = matrix.view();
      const std::vector<float> bias = random.floats(c.outputs[i]);
      const std::span<const float> biases[] = {bias};
      const auto given = std::span(biases).first(c.biased ? 1 : 0);
      packed_.push_back(ops.pack({&view, 1}, given, c.weights[i].quantize));
      weights_.push_back(packed_.back().get());
    }
    x_ = buffer_of(ops, random.floats(std::size_t{c.rows} * c.inputs, 2.0f), c.rows);
    normed_ = ops.make_buffer(c.rows, c.inputs);
    out_ = ops.make_buffer(c.rows, c.width());
    sum_ = buffer_of(ops, random.floats(std::size_t{c.rows} * c.width()), c.rows);
    activated_ = ops.make_buffer(c.rows, c.width() / (c.gated ? 2 : 1));
  }

  std::vector<float> run(How how) {
    const OwnedNorm before(ops_, {c_.before, c_.inputs, 41});
    const OwnedNorm add_norm(ops_, {c_.add_norm, c_.width(), 42});
    const OwnedSpec owned(ops_, c_.attention, AttentionNumbers(c_.attention));
    backend::AttentionSpec spec = owned.get();
    const auto cache = c_.then == Then::kRopeStore ? cache_of(ops_, c_.attention.shape, c_.rows) : nullptr;
    const auto others = c_.stores ? nullptr : buffer_of(ops_, random_qkv(c_.attention), c_.rows);
    OwnedBatch batch = whole_sequence(c_.rows);
    for (std::uint32_t r = 0; r < c_.rows && c_.then == Then::kChoose; ++r) {
      batch.logits_rows.push_back({r, r + 1, {.temperature = r % 2 == 0 ? 0.0f : 0.9f, .seed = 9, .logprob = true}});
    }
    std::vector<backend::Choice> choices(batch.logits_rows.size());
    ops_.begin(batch.view());
    if (others != nullptr) ops_.rope_store(spec, *others, *cache);
    spec.stores = c_.stores;
    how == How::kFused ? fused(before, add_norm, spec, cache.get()) : composed(before, add_norm, spec, cache.get());
    std::vector<float> result = results(spec, cache.get());
    ops_.collect(choices);
    for (const backend::Choice& choice : choices) {
      result.push_back(static_cast<float>(choice.token));
      result.push_back(choice.logprob);
    }
    return result;
  }

 private:
  std::uint32_t vocab() const { return c_.width() - 1; }  // the last column is padding

  void fused(const OwnedNorm& before, const OwnedNorm& add_norm, const backend::AttentionSpec& spec,
             backend::KvCache* cache) {
    backend::After after;
    if (c_.then == Then::kAdd) after = backend::ThenAdd{sum_.get(), c_.scale, add_norm.get()};
    if (c_.then == Then::kActivate) after = backend::ThenActivate{activated_.get(), c_.activation, c_.gated};
    if (c_.then == Then::kChoose) after = backend::ThenChoose{vocab(), c_.scale, c_.softcap};
    if (c_.then == Then::kRopeStore) after = backend::ThenRopeStore{&spec, cache};
    ops_.linear(*x_, backend::WeightList(weights_), c_.rows, *out_, {before.get(), normed_.get()}, after);
  }

  void composed(const OwnedNorm& before, const OwnedNorm& add_norm, const backend::AttentionSpec& spec,
                backend::KvCache* cache) {
    if (before.get()) ops_.norm(*x_, before.get(), c_.rows, *normed_);
    std::uint32_t column = 0;
    for (const backend::Weight* weight : weights_) {
      ops_.multiply(before.get() ? *normed_ : *x_, *weight, c_.rows, column, *out_);
      column += weight->n();
    }
    switch (c_.then) {
      case Then::kNothing:
        return;
      case Then::kAdd:
        if (add_norm.get()) ops_.norm(*out_, add_norm.get(), c_.rows, *out_);
        return ops_.add(*sum_, *out_, c_.scale, c_.rows);
      case Then::kActivate:
        return ops_.activate(*out_, c_.activation, c_.gated, c_.rows, *activated_);
      case Then::kChoose:
        ops_.rescale(*out_, c_.scale, c_.softcap, c_.rows);
        return ops_.choose(*out_, vocab());
      case Then::kRopeStore:
        return ops_.rope_store(spec, *out_, *cache);
    }
  }

  std::vector<float> results(const backend::AttentionSpec& spec, backend::KvCache* cache) {
    if (c_.then == Then::kAdd) return read(ops_, *sum_, c_.rows);
    if (c_.then == Then::kActivate) return read(ops_, *activated_, c_.rows);
    if (c_.then == Then::kNothing) return read(ops_, *out_, c_.rows);
    if (c_.then == Then::kChoose) {
      const auto logits = ops_.make_buffer(c_.rows, vocab());
      ops_.cut(*out_, c_.rows, 0, *logits);
      return read(ops_, *logits, c_.rows);
    }
    const auto attended = ops_.make_buffer(c_.rows, spec.q_width());
    ops_.attend(spec, *out_, *cache, *attended);
    std::vector<float> result = read(ops_, *out_, c_.rows);
    const std::vector<float> more = read(ops_, *attended, c_.rows);
    result.insert(result.end(), more.begin(), more.end());
    return result;
  }

  backend::Ops& ops_;
  const LinearCase& c_;
  std::vector<std::unique_ptr<backend::Weight>> packed_;
  std::vector<const backend::Weight*> weights_;
  std::unique_ptr<backend::Buffer> x_, normed_, out_, sum_, activated_;
};

inline std::vector<float> run_case(backend::Ops& ops, const LinearCase& c, How how) {
  return LinearStep(ops, c).run(how);
}

// Every neighbour of one weight: sizes that are whole panels and tiles, and sizes that are not.
inline std::vector<LinearCase> neighbour_cases(WeightKind kind, std::uint32_t rows) {
  using backend::Activation;
  std::vector<LinearCase> out;
  for (const std::uint32_t n : {64u, 38u}) {
    const LinearCase plain{.weights = {kind}, .outputs = {n}, .inputs = n == 64 ? 48u : 37u, .rows = rows};
    const auto add = [&](auto&& change) { change(out.emplace_back(plain)); };
    for (const NormChoice norm : kNorms) {
      add([&](LinearCase& c) { c.before = norm; });
      add([&](LinearCase& c) { c.before = norm, c.then = Then::kAdd, c.scale = -0.3f; });
      add([&](LinearCase& c) {
        c.then = Then::kAdd, c.add_norm = norm, c.scale = norm == NormChoice::kRms ? 1 : 0.7f;
      });
      add([&](LinearCase& c) { c.before = norm, c.then = Then::kChoose, c.softcap = 2.0f; });
    }
    add([&](LinearCase& c) { c.then = Then::kAdd, c.scale = 0.22f; });
    for (const Activation kind_of_gate : kActivations) {
      for (const bool gated : {true, false}) {
        for (const NormChoice norm : {NormChoice::kNone, NormChoice::kRms, NormChoice::kLayerWithBias}) {
          add([&](LinearCase& c) {
            c.before = norm, c.then = Then::kActivate, c.activation = kind_of_gate, c.gated = gated;
          });
        }
      }
    }
    add([&](LinearCase& c) { c.then = Then::kChoose, c.scale = 0.25f; });
    add([&](LinearCase& c) { c.then = Then::kChoose, c.softcap = 1.5f; });
    add([&](LinearCase& c) { c.then = Then::kChoose, c.scale = 3.0f, c.softcap = 2.0f; });
  }
  return out;
}

// q, k and v, or gates and factors, as weights of different types side by side, and as one weight.
inline std::vector<LinearCase> list_cases(WeightKind a, WeightKind b, WeightKind c, std::uint32_t rows) {
  std::vector<LinearCase> out;
  for (const std::uint32_t n : {32u, 19u}) {
    const LinearCase gates{.weights = {a, b}, .outputs = {n, n}, .rows = rows, .then = Then::kActivate};
    out.push_back(gates);
    out.back().activation = backend::Activation::kGeluTanh;
    out.push_back(gates);
    out.back().before = NormChoice::kLayer, out.back().activation = backend::Activation::kRelu2;
    out.push_back({.weights = {a, b, c}, .outputs = {n, 16, n + 1}, .inputs = 33, .rows = rows});
    out.push_back(out.back());
    out.back().then = Then::kAdd, out.back().scale = 0.5f, out.back().before = NormChoice::kRms;
  }
  for (AttentionCase attention : attention_cases(KvType::kF32)) {
    attention.rows = rows;
    const LabShape& s = attention.shape;
    const LinearCase one{.weights = {a},
                         .outputs = {s.width()},
                         .rows = rows,
                         .before = NormChoice::kRms,
                         .then = Then::kRopeStore,
                         .attention = attention};
    out.push_back(one);
    out.push_back(one);
    out.back().before = NormChoice::kLayerWithBias;
    out.push_back(one);
    out.back().outputs = {s.q_width()}, out.back().stores = false;
    out.push_back(one);
    out.back().weights = {a, b, c};
    out.back().outputs = {s.q_width(), s.kv_width(), s.kv_width()};
  }
  return out;
}

}  // namespace quire::cpu::test

// The tensors of a draft head's file, asked for by name: once to find what does not fit, then once more to pack them.
// Shape   a weight of several matrices [n_i, K], each with its bias or none of them with one.
// Owner   HeadFile the mapped checkpoint; HeadTensors borrows it, and what it packs is the caller's.
// Thread  one, while starting.
// Fails   where the file itself cannot be read: StartError. What does not fit goes to `problems`, and null comes back.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/backend/ops.h"
#include "core/base/ids.h"
#include "core/model/model_files.h"
#include "core/model/safetensors.h"
#include "core/speculate/problems.h"

namespace quire::speculate {

// Its tensors by the names that HeadTensors knows.
class HeadFile {
 public:
  explicit HeadFile(const model::ModelFiles& files);
  const model::Tensor* find(std::string_view name) const;
  const std::map<std::string, const model::Tensor*, std::less<>>& tensors() const { return by_name_; }
  const std::string& name() const { return checkpoint_.file(); }

 private:
  model::Checkpoint checkpoint_;
  std::map<std::string, const model::Tensor*, std::less<>> by_name_;
};

enum class Biased : std::uint8_t { kMaybe, kAlways, kNever };

struct Matrices {
  std::vector<std::string> names{};  // without ".weight"
  std::uint64_t k = 0;
  std::vector<std::uint64_t> n{};  // of each
  Biased biased = Biased::kMaybe;
  bool as_stored = false;  // never quantised: an embedding
};

class HeadTensors {
 public:
  // Without `ops` it only checks.
  HeadTensors(const HeadFile& file, Problems& problems, backend::Ops* ops = nullptr,
              backend::Quantize quantize = backend::Quantize::kNone);

  bool has(std::string_view name) const { return file_.find(name) != nullptr; }
  std::unique_ptr<backend::Weight> weight(const Matrices& wanted);
  std::unique_ptr<backend::Vector> vector(const std::string& name, std::uint64_t size, float scale = 1.0f);
  // d2t, which says how far each draft id is from the target's; t2d, which says the same again, must agree with it.
  std::vector<TokenId> token_ids(std::uint32_t draft_vocab, std::uint32_t vocab, bool required);
  // Whether weight and bias of `name` are those of `first` once more, number by number; then they are taken.
  bool repeats(const std::string& name, const std::string& first);
  // A tensor that may be there, of this shape, and that the head does not read.
  void leave_out(const std::string& name, const std::vector<std::uint64_t>& shape);
  // A tensor that nobody asked for is a part of the head that would be left out.
  void refuse_unused();

 private:
  const model::Tensor* take(const std::string& name, const std::vector<std::uint64_t>& shape);
  const model::Tensor* take_number(const std::string& name, const std::vector<std::uint64_t>& shape);
  bool takes_bias(const Matrices& wanted) const;
  void check_membership(const std::vector<TokenId>& tokens, std::uint32_t vocab);

  const HeadFile& file_;
  Problems& problems_;
  backend::Ops* ops_;
  backend::Quantize quantize_;
  std::set<std::string, std::less<>> taken_;
};

}  // namespace quire::speculate

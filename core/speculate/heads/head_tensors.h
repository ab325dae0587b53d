// Tensors of a draft head's file, requested by name: in a first pass to find what does not fit, in a second to pack
// them.
// Shape   a weight of several matrices [n_i, K], all with a bias or all without.
// Owner   HeadFile owns the mapped checkpoint; HeadTensors borrows it. Packed weights are the caller's.
// Thread  one, at startup.
// Fails   StartError if the file itself cannot be read. Tensors that do not fit are added to `problems`; a loader packs
//         only after a pass without problems.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/backend/ops.h"
#include "core/base/ids.h"
#include "core/model/source/model_files.h"
#include "core/model/source/safetensors.h"
#include "core/speculate/problems.h"

namespace quire::speculate {

// The file's tensors by canonical name: without "model." in front, and "layers.0." for "midlayer.". Of a whole model
// with Medusa heads only those, without "medusa_head.". The file: medusa_lm_head.safetensors or
// hydra_lm_head.safetensors, as the authors' programs write them, else model.safetensors or its shards.
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
  // Without `ops` it only checks, and returns null.
  HeadTensors(const HeadFile& file, Problems& problems, backend::Ops* ops = nullptr,
              std::optional<backend::Format> quantize = std::nullopt);

  bool has(std::string_view name) const { return file_.find(name) != nullptr; }
  std::unique_ptr<backend::Weight> weight(const Matrices& wanted);
  std::unique_ptr<backend::Vector> vector(const std::string& name, std::uint64_t size, float scale = 1.0f);
  // Token ids of the target by draft id, from d2t, the offset between them. If there is a t2d, it must agree.
  std::vector<TokenId> token_ids(std::uint32_t draft_vocab, std::uint32_t vocab, bool required);
  // The same from token_map, the ids themselves.
  std::vector<TokenId> token_map(std::uint32_t draft_vocab, std::uint32_t vocab);
  // True if weight and bias of `name` equal those of `first` byte by byte; then `name` counts as used.
  bool repeats(const std::string& name, const std::string& first);
  // Accepts an optional tensor of this shape that the head does not read.
  void leave_out(const std::string& name, const std::vector<std::uint64_t>& shape);
  // Adds a problem for every tensor that was not requested: it would be a part of the head that is left out.
  void refuse_unused();

 private:
  const model::Tensor* take(const std::string& name, const std::vector<std::uint64_t>& shape);
  const model::Tensor* take_number(const std::string& name, const std::vector<std::uint64_t>& shape);
  bool takes_bias(const Matrices& wanted) const;
  std::vector<std::int64_t> whole_numbers(const std::string& name, std::uint32_t count);
  std::vector<TokenId> checked_ids(const std::string& name, std::span<const std::int64_t> ids, std::uint32_t vocab);
  void check_membership(const std::vector<TokenId>& tokens, std::uint32_t vocab);

  const HeadFile& file_;
  Problems& problems_;
  backend::Ops* ops_;
  std::optional<backend::Format> quantize_;
  std::set<std::string, std::less<>> taken_;
};

}  // namespace quire::speculate

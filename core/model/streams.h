// AltUp: n residual streams. A layer runs on the first of n streams that it predicts from those before, and corrects
// all of them by what it changed; LAUREL is a branch of low rank beside its attention.
//   m = tanh(Wr·norm(s_0) / E);  predicted s_i += sum over j of (Wp·m)[i·n+j] s_j
//   z = the layer's output;  m = tanh(Wr·norm(z) / E);  s_i += (z - s_0)((Wc·m)[i] + 1)
//   laurel = n + norm(Wright·Wleft·n), n = norm(s_0)
//   The streams begin as the embedding x and projections of it as long as x; they end as a mean of s_0 and of
//   projections of the others as long as s_0.
// Owner   the workspace of a step owns the buffers; the functions queue ops.
// Thread  engine.
// Source  AltUp (Baykal et al. 2023); LAUREL (Menghani et al. 2024); Gemma 3n in transformers 5.24.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/backend/ops.h"
#include "core/model/layer.h"
#include "core/model/spec.h"
#include "core/model/weights.h"

namespace quire::model {

class StreamBuffers {
 public:
  StreamBuffers() = default;
  StreamBuffers(backend::Factory& factory, const AltUpSpec& spec, std::uint32_t max_rows, std::uint32_t hidden);

  backend::Streams all() const { return now_; }
  backend::Buffer& first() const { return *now_.front(); }
  backend::Buffer& laurel() const { return *laurel_; }

 private:
  friend void predict_streams(backend::Ops& ops, const Layer& layer, std::uint32_t rows, backend::Buffer& normed,
                              StreamBuffers& streams);
  friend void add_laurel(backend::Ops& ops, const Layer& layer, std::uint32_t rows, const backend::Buffer& normed,
                         StreamBuffers& streams);
  friend void correct_streams(backend::Ops& ops, const Layer& layer, std::uint32_t rows, backend::Buffer& z,
                              backend::Buffer& normed, StreamBuffers& streams);
  void route(backend::Ops& ops, const Layer& layer, std::uint32_t rows, const backend::Buffer& x,
             backend::Buffer& normed);

  std::vector<std::unique_ptr<backend::Buffer>> buffers_;
  std::vector<backend::Buffer*> now_;             // [n] of [T, E]
  std::vector<backend::Buffer*> next_;            // likewise; they change places when streams are predicted
  std::unique_ptr<backend::Buffer> routed_;       // [T, n]
  std::unique_ptr<backend::Buffer> predictions_;  // [T, n·n]
  std::unique_ptr<backend::Buffer> corrections_;  // [T, n]
  std::unique_ptr<backend::Buffer> laurel_low_;   // [T, rank]
  std::unique_ptr<backend::Buffer> laurel_;       // [T, E]
};

void begin_streams(backend::Ops& ops, const Weights& weights, std::uint32_t rows, const backend::Buffer& x,
                   StreamBuffers& streams);
// `normed` is overwritten.
void predict_streams(backend::Ops& ops, const Layer& layer, std::uint32_t rows, backend::Buffer& normed,
                     StreamBuffers& streams);
// normed: the rows that attention takes.
void add_laurel(backend::Ops& ops, const Layer& layer, std::uint32_t rows, const backend::Buffer& normed,
                StreamBuffers& streams);
// z: the layer's output; it and `normed` are overwritten.
void correct_streams(backend::Ops& ops, const Layer& layer, std::uint32_t rows, backend::Buffer& z,
                     backend::Buffer& normed, StreamBuffers& streams);
// x = the mean; `product` is overwritten.
void merge_streams(backend::Ops& ops, const Weights& weights, std::uint32_t rows, const StreamBuffers& streams,
                   backend::Buffer& x, backend::Buffer& product);

}  // namespace quire::model

#include "core/model/streams.h"

#include <utility>

namespace quire::model {
namespace {

constexpr float kLeastSquare = 1e-5f;  // a projection of smaller values is not made as long as the others

}  // namespace

StreamBuffers::StreamBuffers(backend::Factory& factory, const AltUpSpec& spec, std::uint32_t max_rows,
                             std::uint32_t hidden)
    : routed_(factory.make_buffer(max_rows, spec.streams)),
      predictions_(factory.make_buffer(max_rows, spec.streams * spec.streams)),
      corrections_(factory.make_buffer(max_rows, spec.streams)),
      laurel_low_(factory.make_buffer(max_rows, spec.laurel_rank)),
      laurel_(factory.make_buffer(max_rows, hidden)) {
  for (std::vector<backend::Buffer*>* place : {&now_, &next_}) {
    for (std::uint32_t i = 0; i < spec.streams; ++i) {
      buffers_.push_back(factory.make_buffer(max_rows, hidden));
      place->push_back(buffers_.back().get());
    }
  }
}

void StreamBuffers::route(backend::Ops& ops, const Layer& layer, std::uint32_t rows, const backend::Buffer& x,
                          backend::Buffer& normed) {
  ops.norm(x, layer.router_norm, rows, normed);
  ops.linear(normed, layer.router, rows, *routed_);
  ops.rescale(*routed_, 1.0f / static_cast<float>(x.width()), /*cap=*/1.0f, rows);
}

void begin_streams(backend::Ops& ops, const Weights& weights, std::uint32_t rows, const backend::Buffer& x,
                   StreamBuffers& streams) {
  ops.cut(x, rows, 0, streams.first());
  for (std::uint32_t i = 1; i < streams.all().size(); ++i) {
    ops.linear(x, weights.list(Role::kStreamIn, i), rows, *streams.all()[i]);
    ops.match_length(*streams.all()[i], x, kLeastSquare, rows);
  }
}

void predict_streams(backend::Ops& ops, const Layer& layer, std::uint32_t rows, backend::Buffer& normed,
                     StreamBuffers& streams) {
  streams.route(ops, layer, rows, streams.first(), normed);
  ops.linear(*streams.routed_, layer.prediction, rows, *streams.predictions_);
  ops.mix(streams.now_, *streams.predictions_, rows, streams.next_);
  std::swap(streams.now_, streams.next_);
}

void add_laurel(backend::Ops& ops, const Layer& layer, std::uint32_t rows, const backend::Buffer& normed,
                StreamBuffers& streams) {
  ops.linear(normed, layer.laurel_left, rows, *streams.laurel_low_);
  ops.linear(*streams.laurel_low_, layer.laurel_right, rows, *streams.laurel_);
  ops.norm(*streams.laurel_, layer.laurel_norm, rows, *streams.laurel_);
  ops.add(*streams.laurel_, normed, 1.0f, rows);
}

void correct_streams(backend::Ops& ops, const Layer& layer, std::uint32_t rows, backend::Buffer& z,
                     backend::Buffer& normed, StreamBuffers& streams) {
  streams.route(ops, layer, rows, z, normed);
  ops.linear(*streams.routed_, layer.correction, rows, *streams.corrections_);
  ops.correct(streams.now_, z, *streams.corrections_, rows);
}

void merge_streams(backend::Ops& ops, const Weights& weights, std::uint32_t rows, const StreamBuffers& streams,
                   backend::Buffer& x, backend::Buffer& product) {
  ops.cut(streams.first(), rows, 0, x);
  for (std::uint32_t i = 1; i < streams.all().size(); ++i) {
    ops.linear(*streams.all()[i], weights.list(Role::kStreamOut, i), rows, product);
    ops.match_length(product, streams.first(), kLeastSquare, rows);
    ops.add(x, product, 1.0f, rows);
  }
  ops.rescale(x, 1.0f / static_cast<float>(streams.all().size()), 0.0f, rows);
}

}  // namespace quire::model

#include "gpu/plain_ops.h"

#include "core/backend/device_cast.h"
#include "core/backend/expect.h"
#include "core/base/check.h"
#include "gpu/kernels/table.h"
#include "gpu/tensors.h"

namespace quire::gpu {

using namespace backend;

namespace {

float* data_of(Buffer& x) { return device_cast<DeviceBuffer>(x).data(); }
const float* data_of(const Vector& x) { return device_cast<const DeviceVector>(x).data(); }
const float* data_of(const Buffer& x) { return device_cast<const DeviceBuffer>(x).data(); }

}  // namespace

void PlainOps::activate(const Buffer& x, Activation kind, bool gated, std::uint32_t rows, Buffer& out,
                        const Xielu& xielu) {
  expect_activate(x, kind, gated, rows, out);
  start(kernels().activate, columns_of(out, rows, gpu::Activate::kThreads),
        {data_of(x), out.width(), data_of(out), kind, gated, xielu});
}

void PlainOps::add(Buffer& x, const Buffer& y, float scale, std::uint32_t rows) {
  expect_add(x, y, rows);
  start(kernels().add, columns_of(x, rows, Add::kThreads), {data_of(x), data_of(y), x.width(), scale});
}

void PlainOps::multiply_by(Buffer& x, const Buffer& y, std::uint32_t column, std::uint32_t rows) {
  expect_multiply_by(x, y, column, rows);
  start(kernels().rescale, columns_of(x, rows, Rescale::kThreads),
        {data_of(x), x.width(), 1.0f, 0.0f, data_of(y), y.width(), column});
}

void PlainOps::multiply_columns(Buffer& x, const Vector& factors, std::uint32_t rows) {
  expect_multiply_columns(x, factors, rows);
  start(kernels().rescale, columns_of(x, rows, Rescale::kThreads),
        {data_of(x), x.width(), 1.0f, 0.0f, data_of(factors), /*y_width=*/0, 0});
}

void PlainOps::rescale(Buffer& x, float scale, float cap, std::uint32_t rows) {
  CHECK_LE(rows, x.max_rows());
  start(kernels().rescale, columns_of(x, rows, Rescale::kThreads), {data_of(x), x.width(), scale, cap, nullptr, 0, 0});
}

void PlainOps::clip(Buffer& x, float limit, std::uint32_t rows) {
  CHECK_LE(rows, x.max_rows());
  start(kernels().clip, columns_of(x, rows, Clip::kThreads), {data_of(x), x.width(), limit});
}

void PlainOps::match_length(Buffer& x, const Buffer& y, float least, std::uint32_t rows) {
  expect_match_length(x, y, rows);
  start(kernels().match_length, {padded(rows), 1}, {data_of(x), data_of(y), x.width(), least});
}

void PlainOps::cut_below(Buffer& x, std::uint32_t width, float c, std::uint32_t rows) {
  expect_cut_below(x, width, rows);
  start(kernels().cut_below, {padded(rows), 1}, {data_of(x), x.width(), width, c});
}

void PlainOps::mix(Streams x, const Buffer& coefs, std::uint32_t rows, Streams out) {
  expect_mix(x, coefs, rows, out);
  MixStreams::Args args;
  for (std::size_t i = 0; i < x.size(); ++i) {
    args.x[i] = data_of(*x[i]);
    args.out[i] = data_of(*out[i]);
  }
  args.coefs = data_of(coefs);
  args.width = x.front()->width();
  args.count = static_cast<std::uint32_t>(x.size());
  start(kernels().mix_streams, columns_of(*x.front(), rows, MixStreams::kThreads), args);
}

void PlainOps::correct(Streams x, Buffer& y, const Buffer& coefs, std::uint32_t rows) {
  expect_correct(x, y, coefs, rows);
  CorrectStreams::Args args;
  for (std::size_t i = 0; i < x.size(); ++i) args.x[i] = data_of(*x[i]);
  args.y = data_of(y);
  args.coefs = data_of(coefs);
  args.width = y.width();
  args.count = static_cast<std::uint32_t>(x.size());
  start(kernels().correct_streams, columns_of(y, rows, CorrectStreams::kThreads), args);
}

void PlainOps::route(Buffer& logits, const RouteRule& rule, const RouteVectors& vectors, std::uint32_t rows,
                     Routes& routes) {
  expect_route(logits, rule, vectors, rows, routes);
  CHECK_LE(rule.num_groups, kMostExpertGroups);
  const auto& chosen = device_cast<DeviceRoutes>(routes);
  const auto values_of = [](const Vector* vector) { return vector == nullptr ? nullptr : data_of(*vector); };
  const std::uint32_t all = padded(rows);
  start(
      kernels().route_rows, {all, 1},
      {data_of(logits), rule, values_of(vectors.bias), values_of(vectors.scales), chosen.experts(), chosen.weights()});
  start(kernels().index_routes, {1, 1},
        {chosen.experts(), all * rule.top_k, rule.num_experts, rule.top_k, chosen.places(), chosen.rows(),
         chosen.slots(), chosen.tiles(), chosen.num_tiles(all)});
}

void PlainOps::gather_by_expert(const Buffer& x, const Routes& routes, std::uint32_t rows, Buffer& out) {
  expect_gather_by_expert(x, routes, rows, out);
  const auto& chosen = device_cast<const DeviceRoutes>(routes);
  start(kernels().copy_rows, {padded(rows) * chosen.top_k(), pieces(x.width(), CopyRows::kThreads)},
        {data_of(x), x.width(), 0, chosen.rows(), x.width(), data_of(out), out.width(), 0});
}

void PlainOps::combine_experts(const Buffer& y, const Routes& routes, const SharedExpert& shared, std::uint32_t rows,
                               Buffer& out) {
  expect_combine_experts(y, routes, shared, rows, out);
  const auto& chosen = device_cast<const DeviceRoutes>(routes);
  const auto rows_of = [](const Buffer* buffer) { return buffer == nullptr ? nullptr : data_of(*buffer); };
  start(kernels().combine_experts, columns_of(out, rows, CombineExperts::kThreads),
        {data_of(y), chosen.places(), chosen.weights(), chosen.top_k(), rows_of(shared.rows), rows_of(shared.gate),
         out.width(), data_of(out)});
}

void PlainOps::activate_by_expert(const Buffer& x, const ThenActivate& then, std::uint32_t num_places) {
  Buffer& out = *then.out;
  const Index grid{num_places, pieces(out.width(), gpu::Activate::kThreads)};
  if (then.clamp) {
    start(kernels().activate_clamped, grid, {data_of(x), out.width(), data_of(out), *then.clamp});
  } else {
    start(kernels().activate, grid, {data_of(x), out.width(), data_of(out), then.kind, then.gated, then.xielu});
  }
}

}  // namespace quire::gpu

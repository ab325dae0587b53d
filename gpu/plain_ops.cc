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

}  // namespace quire::gpu

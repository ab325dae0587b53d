#include "app/quantizing/tensor_file.h"

#include <fmt/format.h>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <ostream>

#include "core/base/check.h"
#include "core/base/start_error.h"

namespace quire::app {
namespace {

namespace fs = std::filesystem;

std::uint64_t data_bytes(const std::vector<TensorToWrite>& tensors) {
  std::uint64_t bytes = 0;
  for (const TensorToWrite& tensor : tensors) bytes += tensor.bytes;
  return bytes;
}

void put(std::ostream& out, model::FileBytes bytes) {
  out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

}  // namespace

std::string safetensors_header(const std::vector<TensorToWrite>& tensors) {
  boost::json::object header;
  header["__metadata__"] = boost::json::object{{"format", "pt"}};
  std::uint64_t at = 0;
  for (const TensorToWrite& tensor : tensors) {
    header[tensor.name] = boost::json::object{{"dtype", tensor.dtype},
                                              {"shape", boost::json::array(tensor.shape.begin(), tensor.shape.end())},
                                              {"data_offsets", boost::json::array{at, at + tensor.bytes}}};
    at += tensor.bytes;
  }
  std::string text = boost::json::serialize(header);
  text.append((8 - text.size() % 8) % 8, ' ');
  const std::uint64_t size = text.size();
  std::string out(sizeof(size), '\0');
  std::memcpy(out.data(), &size, sizeof(size));
  return out + text;
}

bool is_written(const std::string& path, const std::vector<TensorToWrite>& tensors) {
  const std::string header = safetensors_header(tensors);
  std::error_code error;
  if (fs::file_size(path, error) != header.size() + data_bytes(tensors) || error) return false;
  std::string found(header.size(), '\0');
  std::ifstream file(path, std::ios::binary);
  return file.read(found.data(), static_cast<std::streamsize>(found.size())) && found == header;
}

void write_safetensors(const std::string& path, const std::vector<TensorToWrite>& tensors,
                       const std::function<void(std::uint64_t)>& on_written) {
  write_file(path, [&](std::ostream& out) {
    const std::string header = safetensors_header(tensors);
    out.write(header.data(), static_cast<std::streamsize>(header.size()));
    for (const TensorToWrite& tensor : tensors) {
      if (tensor.made) {
        const std::vector<std::byte> bytes = tensor.made();
        CHECK_EQ(bytes.size(), tensor.bytes);
        put(out, bytes);
      } else {
        put(out, tensor.data);
      }
      on_written(tensor.bytes);
    }
  });
}

void write_file(const std::string& path, const std::function<void(std::ostream&)>& write) {
  const std::string part = path + ".part";
  std::ofstream out(part, std::ios::binary | std::ios::trunc);
  if (out) write(out);
  out.close();
  std::error_code error;
  if (out) fs::rename(part, path, error);
  if (out && !error) return;
  fs::remove(part, error);
  throw StartError(fmt::format("{}: cannot be written: {}; is there room and permission?", path, std::strerror(errno)));
}

}  // namespace quire::app

// The kernels of every instruction set read and write nothing beside their operands. The address sanitizer does not
// watch the vector tables (CMakeLists.txt). So each operand ends where a page begins that may not be touched, and then
// begins where such a page ends. Other tests check what the kernels compute.
// Shape   every row, panel and group of K or V lies alone between two such pages. Sizes are those of isa/kernels.h and,
//         where it says nothing, of the callers in core/cpu. An operand is aligned as its elements are. Prefetches do
//         not fault.
// Fails   an access outside ends the process (SIGSEGV), after a line on stderr that names the kernel and its sizes.
// Source  Electric Fence (Perens 1987).
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <iterator>
#include <string>

#include "core/backend/tensors.h"
#include "core/base/check.h"
#include "core/cpu/cpu_ops.h"
#include "core/cpu/isa/kernels.h"
#include "core/cpu/isa/select.h"
#include "core/cpu/kv_codec.h"
#include "core/cpu/tensors.h"

namespace quire::cpu::kernel_bounds_test {
namespace {

using backend::Format;
using backend::KvType;

// Kernels has a name, two numbers and 65 kernels. A kernel that is added wants a case here.
static_assert(sizeof(Kernels) == 67 * sizeof(void*));
static_assert(std::size(Kernels{}.gemm) == std::size(backend::kNamedFormats) + 18);  // and those of blocks
static_assert(std::size(Kernels{}.score) == std::size(backend::kAllKvTypes));
static_assert(std::size(Kernels{}.weigh) == std::size(backend::kAllKvTypes));

constexpr std::uint32_t kMostRows = 13;                                              // more than the highest tile has
constexpr std::uint32_t kInputs[] = {1, 2, 3, 4, 5, 7, 8, 9, 33, 64, 71, 256, 257};  // steps of 2, 4, 8; 32, 64, 256
constexpr std::uint32_t kOutputs[] = {1, 15, 16, 17, 33, 64, 65};                    // one panel to five
constexpr std::uint32_t kHeadDims[] = {2, 4, 6, 8, 10, 18, 48, 64, 80, 98, 200};     // even
constexpr std::uint32_t kWidths[] = {1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 200, 255, 256, 257, 513};

// The end of an operand that lies beside the page that may not be touched.
enum class End { kFirst, kLast };
enum class Access { kRead, kWrite };

// Rows of memory, each alone between two pages that may not be touched.
// Shape   kStride bytes apart: such a page, then kRoom bytes; behind the last row one more such page.
class FencedRows {
 public:
  static constexpr std::size_t kPage = 4096;
  static constexpr std::size_t kRoom = 9 * kPage;
  static constexpr std::size_t kStride = kPage + kRoom;

  // Rows that may only be read hold small numbers, whatever type they are read as; the others zeros.
  FencedRows(std::size_t num_rows, Access access) : bytes_(num_rows * kStride + kPage) {
    CHECK_EQ(sysconf(_SC_PAGESIZE), static_cast<long>(kPage));
    void* memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    memory_ = static_cast<std::byte*>(memory);
    for (std::size_t r = 0; access == Access::kRead && r < num_rows; ++r) std::memset(first_of(r), 0x3c, kRoom);
    CHECK_EQ(mprotect(memory_, bytes_, PROT_NONE), 0);
    const int allowed = access == Access::kRead ? PROT_READ : PROT_READ | PROT_WRITE;
    for (std::size_t r = 0; r < num_rows; ++r) CHECK_EQ(mprotect(first_of(r), kRoom, allowed), 0);
  }
  ~FencedRows() { munmap(memory_, bytes_); }
  FencedRows(const FencedRows&) = delete;
  FencedRows& operator=(const FencedRows&) = delete;

  // The first of the rows, where all are `count` elements long. The others follow stride<T>() elements apart.
  template <typename T>
  T* place(std::size_t count, End end) const {
    CHECK_LE(count * sizeof(T), kRoom);
    return reinterpret_cast<T*>(first_of(0) + (end == End::kFirst ? 0 : kRoom - count * sizeof(T)));
  }
  template <typename T>
  static constexpr std::size_t stride() {
    static_assert(kStride % sizeof(T) == 0);
    return kStride / sizeof(T);
  }
  // An address that may only be prefetched.
  const void* forbidden() const { return memory_; }

 private:
  std::byte* first_of(std::size_t r) const { return memory_ + r * kStride + kPage; }

  std::size_t bytes_;
  std::byte* memory_ = nullptr;
};

constexpr std::size_t kFloats = FencedRows::stride<float>();

// The line that a fault writes to stderr: which kernel runs. One thread writes it, runs the kernels and faults.
char g_line[160];

// Of SIGSEGV, once. Then the kernel goes on with the same access, which now ends the process.
void write_line(int) { [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, g_line, std::strlen(g_line)); }

void announce(const Kernels& table, End end, const std::string& kernel, std::initializer_list<std::size_t> sizes) {
  std::string line = std::string("access outside of an operand: ") + table.name + " " + kernel + ", sizes";
  for (const std::size_t size : sizes) line += " " + std::to_string(size);
  line += end == End::kFirst ? ", a page before each operand\n" : ", a page behind each operand\n";
  g_line[line.copy(g_line, sizeof g_line - 1)] = '\0';
}

bool wants_codes(Format type) { return type.activation != Format::Activation::kF32; }

class KernelBounds : public ::testing::Test {
 protected:
  KernelBounds() {
    struct sigaction action {};
    action.sa_handler = write_line;
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    CHECK_EQ(sigaction(SIGSEGV, &action, &before_), 0);
  }
  ~KernelBounds() override { sigaction(SIGSEGV, &before_, nullptr); }

  // body(table, end) for every instruction set of this machine and both ends of the operands.
  template <typename Body>
  void for_tables(const Body& body) {
    for (const std::string& isa : supported_isas()) {
      const Kernels& table = select_kernels(isa);
      CHECK_LT(table.tile_rows, kMostRows);
      for (const End end : {End::kFirst, End::kLast}) body(table, end);
    }
  }

  // body(table, end, n) for every width of a row, too.
  template <typename Body>
  void for_widths(const char* kernel, const Body& body) {
    for_tables([&](const Kernels& table, End end) {
      for (const std::uint32_t n : kWidths) {
        announce(table, end, kernel, {n});
        body(table, end, n);
      }
    });
  }

  // How many of the 4 * (n + 1) bytes of a row round_row() writes: gemm may read no others.
  std::size_t rounded_bytes(const Kernels& table, std::uint32_t n, End end) {
    announce(table, end, "round_row", {n});
    constexpr auto kUntouched = std::int8_t{0x55};  // no byte of what x holds, rounded
    const std::size_t room = 4 * (std::size_t{n} + 1);
    std::int8_t* codes = codes_.place<std::int8_t>(room, end);
    std::fill_n(codes, room, kUntouched);
    table.round_row(x_.place<float>(n, end), n, codes);
    std::size_t bytes = room;
    while (bytes > 0 && codes[bytes - 1] == kUntouched) --bytes;
    return bytes;
  }

  // kMostRows rows of k inputs, coded by the table that multiplies them.
  CodedRows code_rows(const Kernels& table, Format type, std::uint32_t k, End end) {
    const float* x = x_.place<float>(k, end);
    CodedRows coded;
    coded.code_stride = FencedRows::kStride;
    if (type == Format::kW16A16) {
      std::int8_t* codes = codes_.place<std::int8_t>(rounded_bytes(table, k, end), end);
      coded.codes = codes;
      for (std::uint32_t r = 0; r < kMostRows; ++r) table.round_row(x + r * kFloats, k, codes + r * coded.code_stride);
      return coded;
    }
    if (type.is_blocks()) {
      announce(table, end, "quantize_runs", {k});
      std::int8_t* codes = codes_.place<std::int8_t>(k, end);
      CodedRun* runs = groups_.place<CodedRun>(k / 32, end);
      coded.codes = codes;
      coded.runs = runs;
      coded.run_stride = FencedRows::stride<CodedRun>();
      for (std::uint32_t r = 0; r < kMostRows; ++r) {
        table.quantize_runs(x + r * kFloats, k, *kernels_of(type).blocks, codes + r * coded.code_stride,
                            runs + r * coded.run_stride);
      }
      return coded;
    }
    announce(table, end, "quantize_row", {k});
    const std::size_t num_groups = (k + kCodedGroup - 1) / kCodedGroup;
    std::int8_t* codes = codes_.place<std::int8_t>(num_groups * kCodedGroup, end);
    CodedGroup* groups = groups_.place<CodedGroup>(num_groups, end);
    coded.codes = codes;
    coded.groups = groups;
    coded.group_stride = FencedRows::stride<CodedGroup>();
    for (std::uint32_t r = 0; r < kMostRows; ++r) {
      table.quantize_row(x + r * kFloats, k, r % 2 == 0, codes + r * coded.code_stride,
                         groups + r * coded.group_stride);
    }
    return coded;
  }

  // For group i of a list, which the kernel does not read: null, or an address that may only be prefetched.
  const void* unread(std::size_t i) const { return i % 2 == 0 ? nullptr : panels_.forbidden(); }

  FencedRows x_{kMostRows, Access::kRead};
  FencedRows codes_{kMostRows, Access::kWrite};
  FencedRows groups_{kMostRows, Access::kWrite};
  FencedRows panels_{kSpanGroups, Access::kRead};  // of weights, or groups of K or V
  FencedRows list_{1, Access::kWrite};
  FencedRows scales_{1, Access::kRead};
  FencedRows bias_{1, Access::kRead};
  FencedRows out_{kMostRows, Access::kWrite};
  FencedRows max_{1, Access::kWrite};
  FencedRows sum_{1, Access::kWrite};

 private:
  struct sigaction before_ {};
};

TEST_F(KernelBounds, AnAccessBesideAFencedRowEndsTheProcess) {
  announce(select_kernels("scalar"), End::kLast, "none", {});
  const FencedRows rows(2, Access::kWrite);
  const FencedRows constants(1, Access::kRead);
  constexpr std::size_t kCount = 100;
  for (std::size_t r = 0; r < 2; ++r) {
    volatile char* last = rows.place<char>(kCount, End::kLast) + r * FencedRows::stride<char>();
    volatile char* first = rows.place<char>(kCount, End::kFirst) + r * FencedRows::stride<char>();
    for (std::size_t i = 0; i < kCount; ++i) {
      first[i] = 1;
      last[i] = first[i];
    }
    EXPECT_DEATH(static_cast<void>(last[kCount]), "outside of an operand: scalar none");
    EXPECT_DEATH(last[kCount] = 1, "outside of an operand: scalar none");
    EXPECT_DEATH(static_cast<void>(first[-1]), "outside of an operand: scalar none");
    EXPECT_DEATH(first[-1] = 1, "outside of an operand: scalar none");
  }
  volatile char* constant = constants.place<char>(1, End::kLast);
  EXPECT_EQ(*constant, 0x3c);
  EXPECT_DEATH(*constant = 1, "outside of an operand: scalar none");
}

TEST_F(KernelBounds, GemmTouchesNothingBesideItsOperandsOnAnyInstructionSet) {
  const auto multiply = [&](const Kernels& table, End end, Format type, std::uint32_t k) {
    const CodedRows coded = wants_codes(type) ? code_rows(table, type, k, end) : CodedRows{};
    const std::size_t panel_bytes = PackedWeight({kLanes, k, type, false}).panel_bytes();
    // Tiles of every height, and several of them one below the other.
    for (std::uint32_t rows = 1; rows <= std::min(kMostRows, 2 * table.tile_rows + 1); ++rows) {
      for (const std::uint32_t n : kOutputs) {
        announce(table, end, std::string("gemm ") + backend::name_of(type), {rows, k, n});
        const std::uint32_t padded = (n + kLanes - 1) / kLanes * kLanes;
        GemmArgs args;
        if (wants_codes(type)) {
          args.coded = coded;
        } else {
          args.x = x_.place<float>(k, end);
          args.x_stride = kFloats;
        }
        args.rows = rows;
        args.k = k;
        args.panels = panels_.place<std::byte>(panel_bytes, end);
        args.panel_bytes = FencedRows::kStride;
        args.blocks = kernels_of(type).blocks;
        args.n = n;
        if (backend::has_output_scales(type)) args.scales = scales_.place<float>(padded, end);
        args.bias = bias_.place<float>(padded, end);
        args.out = out_.place<float>(n, end);
        args.out_stride = kFloats;
        table.gemm[kernels_of(type).gemm](args);
      }
    }
  };
  for_tables([&](const Kernels& table, End end) {
    for (const Format type : backend::kNamedFormats) {
      for (const std::uint32_t k : kInputs) multiply(table, end, type, k);
    }
    for (const FormatKernels& kernels : format_kernels()) {
      if (!kernels.format.is_blocks()) continue;
      const std::uint32_t elements = backend::layout_of(kernels.format.blocks).elements;
      for (const std::uint32_t k : {elements, 256u, 256u + elements}) multiply(table, end, kernels.format, k);
    }
  });
}

TEST_F(KernelBounds, ScoreTouchesNothingBesideQAndTheListedGroupsOfK) {
  const auto score = [&](const Kernels& table, End end, KvType type, std::uint32_t size) {
    const std::size_t k_bytes = GroupCodec(type, size).v_offset();
    for (const std::uint32_t num_groups : {1u, 2u, 3u, 4u, 5u, kSpanGroups}) {
      const std::byte* groups = panels_.place<std::byte>(k_bytes, end);
      const void** list = list_.place<const void*>(num_groups + kGroupsAhead, end);
      for (std::size_t g = 0; g < num_groups; ++g) list[g] = groups + g * FencedRows::kStride;
      for (std::size_t g = num_groups; g < num_groups + kGroupsAhead; ++g) list[g] = unread(g);
      for (std::uint32_t rows = 1; rows <= table.tile_rows; ++rows) {
        announce(table, end, std::string("score ") + backend::name_of(type), {rows, size, num_groups});
        GemmArgs args;
        args.x = x_.place<float>(size, end);
        args.x_stride = kFloats;
        args.rows = rows;
        args.k = size;
        args.panel_list = list;
        args.n = num_groups * kLanes;
        args.out = out_.place<float>(args.n, end);
        args.out_stride = kFloats;
        table.score[static_cast<int>(type)](args);
      }
    }
  };
  for_tables([&](const Kernels& table, End end) {
    for (const KvType type : backend::kAllKvTypes) {
      for (const std::uint32_t size : kHeadDims) score(table, end, type, size);
    }
  });
}

TEST_F(KernelBounds, WeighTouchesNothingBesideItsSumsAndTheListedGroupsOfV) {
  struct Tokens {
    std::uint32_t first;
    std::uint32_t last;
  };
  const auto weigh = [&](const Kernels& table, End end, KvType type, std::uint32_t size, Tokens tokens) {
    const GroupCodec codec(type, size);
    const std::byte* groups = panels_.place<std::byte>(codec.bytes() - codec.v_offset(), end);
    const void** list = list_.place<const void*>(kSpanGroups + kGroupsAhead, end);
    for (std::size_t g = 0; g < kSpanGroups + kGroupsAhead; ++g) {
      const bool is_read = g >= tokens.first / kLanes && g * kLanes < tokens.last;
      list[g] = is_read ? groups + g * FencedRows::kStride : unread(g);
    }
    for (std::uint32_t rows = 1; rows <= table.tile_rows; ++rows) {
      announce(table, end, std::string("weigh ") + backend::name_of(type), {rows, size, tokens.first, tokens.last});
      WeighArgs args;
      args.e = x_.place<float>(kSpan, end);
      args.e_stride = kFloats;
      args.rows = rows;
      args.first = tokens.first;
      args.last = tokens.last;
      args.groups = list;
      args.row_bytes = codec.v_row_bytes();
      args.width = (size + kLanes - 1) / kLanes * kLanes;
      args.o = out_.place<float>(args.width, end);
      args.o_stride = kFloats;
      table.weigh[static_cast<int>(type)](args);
    }
  };
  for_tables([&](const Kernels& table, End end) {
    for (const KvType type : backend::kAllKvTypes) {
      for (const std::uint32_t size : kHeadDims) {
        for (const Tokens tokens : {Tokens{0, 1}, {0, 16}, {15, 33}, {239, 256}, {255, 256}}) {
          weigh(table, end, type, size, tokens);
        }
      }
    }
  });
}

TEST_F(KernelBounds, TurnTouchesNothingBesideItsOperandsOnAnyInstructionSet) {
  constexpr KvType kTypes[] = {KvType::kF32, KvType::kBF16, KvType::kFp8, KvType::kInt8};
  constexpr std::size_t kBytes[] = {4, 2, 1, 1};
  static_assert(std::size(Kernels{}.turn) == std::size(kTypes));
  for_tables([&](const Kernels& table, End end) {
    for (std::size_t type = 0; type < std::size(kTypes); ++type) {
      for (const std::uint32_t count : kHeadDims) {
        announce(table, end, std::string("turn ") + backend::name_of(kTypes[type]), {count});
        const std::size_t padded = (count + kLanes - 1) / kLanes * kLanes;
        TurnArgs args;
        args.rows = panels_.place<std::byte>(padded * kBytes[type], end);
        args.row_bytes = FencedRows::kStride;
        args.count = count;
        args.scales = scales_.place<float>(kLanes, end);
        args.panel = out_.place<float>(count * kLanes / (kTypes[type] == KvType::kBF16 ? 2 : 1), end);
        table.turn[type](args);
      }
    }
  });
}

TEST_F(KernelBounds, SoftmaxAndMergeTouchNothingBesideASpanAndItsSums) {
  for_tables([&](const Kernels& table, End end) {
    float* max = max_.place<float>(1, end);
    float* sum = sum_.place<float>(1, end);
    for (const std::uint32_t first : {0u, 1u, 15u, 16u, 17u, 240u, 255u}) {
      for (const std::uint32_t last : {1u, 2u, 16u, 17u, 100u, 255u, 256u}) {
        if (last <= first) continue;
        announce(table, end, "softmax", {first, last});
        table.softmax(out_.place<float>(kSpan, end), first, last, 0.5f, max, sum);
      }
    }
    for (const std::size_t width : {16u, 32u, 48u, 208u}) {
      announce(table, end, "merge", {width});
      table.merge(max, sum, out_.place<float>(width, end), 1.0f, 2.0f, x_.place<float>(width, end), width);
    }
  });
}

TEST_F(KernelBounds, CodersOfARowTouchNothingBesideItAndWholeGroupsOfCodes) {
  for_widths("quantize_row",
             [&](const Kernels& table, End end, std::uint32_t n) { code_rows(table, Format::kW8A8, n, end); });
  for_widths("round_row", [&](const Kernels& table, End end, std::uint32_t n) {
    EXPECT_GE(rounded_bytes(table, n, end), 2 * n) << table.name;  // as many as the bf16 of each input
    code_rows(table, Format::kW16A16, n, end);
  });
}

TEST_F(KernelBounds, RowKernelsTouchNothingBesideTheirRows) {
  for_widths("divide", [&](const Kernels& table, End end, std::uint32_t n) {
    table.divide(x_.place<float>(n, end), 2.0f, n, out_.place<float>(n, end));
  });
  for_widths("norm", [&](const Kernels& table, End end, std::uint32_t n) {
    float* out = out_.place<float>(n, end);
    table.norm(x_.place<float>(n, end), scales_.place<float>(n, end), 1e-5f, n, out);
    table.norm(out, scales_.place<float>(n, end), 1e-5f, n, out);
  });
  for_widths("rotate", [&](const Kernels& table, End end, std::uint32_t half) {
    float* head = out_.place<float>(2 * half, end);
    table.rotate(head, scales_.place<float>(half, end), bias_.place<float>(half, end), half);
  });
  for_widths("layer_norm", [&](const Kernels& table, End end, std::uint32_t n) {
    float* out = out_.place<float>(n, end);
    table.layer_norm(x_.place<float>(n, end), scales_.place<float>(n, end), bias_.place<float>(n, end), 1e-5f, n, out);
    table.layer_norm(out, scales_.place<float>(n, end), nullptr, 1e-5f, n, out);
  });
  for_widths("activate", [&](const Kernels& table, End end, std::uint32_t n) {
    for (const auto activate : table.activate) {
      activate(x_.place<float>(n, end), bias_.place<float>(n, end), n, out_.place<float>(n, end));
      activate(x_.place<float>(n, end), nullptr, n, out_.place<float>(n, end));
    }
  });
  for_widths("multiply", [&](const Kernels& table, End end, std::uint32_t n) {
    table.multiply(out_.place<float>(n, end), x_.place<float>(n, end), n);
  });
  for_widths("rescale", [&](const Kernels& table, End end, std::uint32_t n) {
    table.rescale(out_.place<float>(n, end), 2.0f, 0.0f, n);
    table.rescale(out_.place<float>(n, end), 2.0f, 30.0f, n);
  });
  for_widths("xielu", [&](const Kernels& table, End end, std::uint32_t n) {
    const float numbers[] = {0.8f, 0.7f, 0.5f, -1e-6f};
    table.xielu(x_.place<float>(n, end), numbers, n, out_.place<float>(n, end));
  });
  for_widths("clamped", [&](const Kernels& table, End end, std::uint32_t n) {
    const float numbers[] = {1.702f, 7.0f};
    table.clamped(x_.place<float>(n, end), bias_.place<float>(n, end), numbers, n, out_.place<float>(n, end));
  });
  for_widths("cut_below", [&](const Kernels& table, End end, std::uint32_t n) {
    table.cut_below(out_.place<float>(n, end), 0.5f, n);
  });
  for_widths("sum", [&](const Kernels& table, End end, std::uint32_t n) {
    EXPECT_GT(table.sum(x_.place<float>(n, end), 0.25f, true, n), 0.0f);
    EXPECT_TRUE(std::isfinite(table.sum(x_.place<float>(n, end), 0.0f, false, n)));
  });
  for_widths("clip",
             [&](const Kernels& table, End end, std::uint32_t n) { table.clip(out_.place<float>(n, end), 0.5f, n); });
  for_widths("add", [&](const Kernels& table, End end, std::uint32_t n) {
    table.add(out_.place<float>(n, end), x_.place<float>(n, end), 0.5f, n);
  });
  for_widths("highest", [&](const Kernels& table, End end, std::uint32_t n) {
    EXPECT_GT(table.highest(x_.place<float>(n, end), n), 0.0f);
    table.highest(x_.place<float>(0, end), 0);
  });
  for_widths("exp_each",
             [&](const Kernels& table, End end, std::uint32_t n) { table.exp_each(out_.place<float>(n, end), n); });
}

}  // namespace
}  // namespace quire::cpu::kernel_bounds_test

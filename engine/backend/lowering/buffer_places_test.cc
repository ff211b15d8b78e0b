#include "engine/backend/lowering/buffer_places.h"

#include <cstring>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Source = Buffer::Source;

template <typename T>
T NumberAt(const std::byte* memory, int64_t i) {
  T number;
  std::memcpy(&number, memory + i * sizeof(T), sizeof(T));
  return number;
}

TEST(BufferPlacesTest, EachSourceHasItsOwnPiece) {
  std::byte variable{};
  const std::vector<Buffer> buffers = {
      {.source = Source::kInput, .bytes = 65, .input = 1},
      {.source = Source::kConstant, .bytes = 4},
      {.source = Source::kInput, .bytes = 8, .input = 0},
      {.bytes = 128},
      {.source = Source::kVariable, .bytes = 16, .memory = &variable},
      {.source = Source::kConstant, .bytes = 8},
      {.bytes = 128},
  };
  const ArenaPlan arena = {.offsets = {-1, -1, -1, 256, -1, -1, -1}, .bytes = 384};
  const BufferPlaces places = PlaceBuffers(buffers, arena, 64);
  EXPECT_THAT(places.offsets, ElementsAre(0, 0, 128, 256, -1, 64, -1));
  EXPECT_THAT(places.input_buffers, ElementsAre(2, 0));
  EXPECT_EQ(places.arena_bytes, 384);
  EXPECT_EQ(places.constant_bytes, 128);
  EXPECT_EQ(places.input_bytes, 192);

  std::vector<std::byte> memory(1024);
  std::byte* const arena_at = memory.data();
  std::byte* const constants = arena_at + 400;
  std::byte* const inputs = arena_at + 600;
  std::vector<std::byte*> addresses = {nullptr,   constants,      nullptr, arena_at + 256,
                                       &variable, constants + 64, nullptr};
  EXPECT_EQ(AddressesOf(buffers, places, arena_at, constants, nullptr), addresses);
  addresses[0] = inputs;
  addresses[2] = inputs + 128;
  EXPECT_EQ(AddressesOf(buffers, places, arena_at, constants, inputs), addresses);
}

TEST(BufferPlacesTest, ConstantsHaveTheirNumbers) {
  const auto constant = [](DType dtype, double number) {
    return Buffer{
        .source = Source::kConstant, .bytes = 3 * SizeOf(dtype), .constant = number, .dtype = dtype};
  };
  const std::vector<Buffer> buffers = {constant(DType::kFloat32, 0.5), constant(DType::kFloat64, -2.25),
                                       constant(DType::kInt32, 7), constant(DType::kInt64, -9),
                                       constant(DType::kUInt8, 200)};
  const BufferPlaces places = PlaceBuffers(buffers, {.offsets = std::vector<int64_t>(5, -1)}, 64);
  ASSERT_EQ(places.constant_bytes, 5 * 64);
  alignas(64) std::byte memory[5 * 64];
  ASSERT_TRUE(FillConstants(buffers, places, memory).ok());
  for (int64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(NumberAt<float>(memory, i), 0.5f);
    EXPECT_EQ(NumberAt<double>(memory + 64, i), -2.25);
    EXPECT_EQ(NumberAt<int32_t>(memory + 128, i), 7);
    EXPECT_EQ(NumberAt<int64_t>(memory + 192, i), -9);
    EXPECT_EQ(NumberAt<uint8_t>(memory + 256, i), 200);
  }
  const std::vector<Buffer> narrow = {constant(DType::kBFloat16, 1)};
  const absl::Status status = FillConstants(narrow, PlaceBuffers(narrow, {.offsets = {-1}}, 64), memory);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(status.message()), HasSubstr("a constant of bfloat16"));
}

}  // namespace
}  // namespace tandem

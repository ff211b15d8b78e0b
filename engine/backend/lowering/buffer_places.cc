#include "engine/backend/lowering/buffer_places.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"

namespace tandem {
namespace {

template <typename T>
absl::Status Fill(const Buffer& buffer, std::byte* memory) {
  std::fill_n(reinterpret_cast<T*>(memory), buffer.bytes / sizeof(T), static_cast<T>(buffer.constant));
  return absl::OkStatus();
}

absl::Status FillConstant(const Buffer& buffer, std::byte* memory) {
  switch (buffer.dtype) {
    case DType::kFloat32:
      return Fill<float>(buffer, memory);
    case DType::kFloat64:
      return Fill<double>(buffer, memory);
    case DType::kInt32:
      return Fill<int32_t>(buffer, memory);
    case DType::kInt64:
      return Fill<int64_t>(buffer, memory);
    case DType::kUInt8:
      return Fill<uint8_t>(buffer, memory);
    case DType::kBFloat16:
    case DType::kFloat16:
      break;
  }
  return absl::UnimplementedError(absl::StrCat("cannot make a constant of ", ToString(buffer.dtype),
                                               ": backends have none of this type; use float32"));
}

}  // namespace

BufferPlaces PlaceBuffers(absl::Span<const Buffer> buffers, const ArenaPlan& arena, int64_t alignment) {
  BufferPlaces places;
  places.arena_bytes = arena.bytes;
  places.offsets.assign(buffers.size(), -1);
  const auto append = [&](int64_t* piece, int64_t bytes) {
    const int64_t offset = *piece;
    *piece += AlignTo(alignment, bytes);
    return offset;
  };
  for (size_t i = 0; i < buffers.size(); ++i) {
    const Buffer& buffer = buffers[i];
    switch (buffer.source) {
      case Buffer::Source::kArena:
        places.offsets[i] = arena.offsets[i];
        break;
      case Buffer::Source::kInput:
        places.offsets[i] = append(&places.input_bytes, buffer.bytes);
        if (places.input_buffers.size() <= static_cast<size_t>(buffer.input)) {
          places.input_buffers.resize(buffer.input + 1, -1);
        }
        places.input_buffers[buffer.input] = static_cast<int>(i);
        break;
      case Buffer::Source::kVariable:
        break;
      case Buffer::Source::kConstant:
        places.offsets[i] = append(&places.constant_bytes, buffer.bytes);
        break;
    }
  }
  return places;
}

absl::Status FillConstants(absl::Span<const Buffer> buffers, const BufferPlaces& places, std::byte* memory) {
  for (size_t i = 0; i < buffers.size(); ++i) {
    if (buffers[i].source != Buffer::Source::kConstant) continue;
    TANDEM_RETURN_IF_ERROR(FillConstant(buffers[i], memory + places.offsets[i]));
  }
  return absl::OkStatus();
}

std::vector<std::byte*> AddressesOf(absl::Span<const Buffer> buffers, const BufferPlaces& places,
                                    std::byte* arena, std::byte* constants, std::byte* inputs) {
  std::vector<std::byte*> addresses(buffers.size(), nullptr);
  for (size_t i = 0; i < buffers.size(); ++i) {
    std::byte* piece = nullptr;
    switch (buffers[i].source) {
      case Buffer::Source::kArena:
        piece = arena;
        break;
      case Buffer::Source::kInput:
        piece = inputs;
        break;
      case Buffer::Source::kVariable:
        addresses[i] = buffers[i].memory;
        break;
      case Buffer::Source::kConstant:
        piece = constants;
        break;
    }
    if (piece != nullptr && places.offsets[i] >= 0) addresses[i] = piece + places.offsets[i];
  }
  return addresses;
}

}  // namespace tandem

#ifndef TANDEM_ENGINE_BACKEND_LOWERING_BUFFER_PLACES_H_
#define TANDEM_ENGINE_BACKEND_LOWERING_BUFFER_PLACES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "engine/backend/lowering/arena_plan.h"
#include "engine/backend/lowering/buffer.h"

namespace tandem {

// Returns `bytes`, rounded up to a multiple of `alignment`.
constexpr int64_t AlignTo(int64_t alignment, int64_t bytes) {
  return (bytes + alignment - 1) / alignment * alignment;
}

// The places of an executable's buffers in three pieces of memory: arena, constants, inputs.
struct BufferPlaces {
  // By buffer: the offset in its piece of memory, in bytes. -1 for a variable, and for a buffer of the arena
  // without a writer.
  std::vector<int64_t> offsets;
  std::vector<int> input_buffers;  // By input.
  // The sizes of the pieces.
  int64_t arena_bytes = 0;
  int64_t constant_bytes = 0;
  int64_t input_bytes = 0;
};

// Places the buffers of the arena as in `arena`, and the others one after the other, at multiples of
// `alignment`.
BufferPlaces PlaceBuffers(absl::Span<const Buffer> buffers, const ArenaPlan& arena, int64_t alignment);

// Writes the numbers of all constants. `memory` is the host's, of `places.constant_bytes`, aligned for every
// type. UNIMPLEMENTED for a constant of bfloat16 or float16.
absl::Status FillConstants(absl::Span<const Buffer> buffers, const BufferPlaces& places, std::byte* memory);

// Returns the address of each buffer, or null for a buffer of the arena without a writer. If `inputs` is
// null, the addresses of inputs are null.
std::vector<std::byte*> AddressesOf(absl::Span<const Buffer> buffers, const BufferPlaces& places,
                                    std::byte* arena, std::byte* constants, std::byte* inputs);

}  // namespace tandem

#endif  // TANDEM_ENGINE_BACKEND_LOWERING_BUFFER_PLACES_H_

#ifndef TANDEM_ENGINE_BACKEND_LOWERING_BUFFER_H_
#define TANDEM_ENGINE_BACKEND_LOWERING_BUFFER_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/tensor/dtype.h"

namespace tandem {

// A place in an executable's memory: a buffer and an offset in bytes.
struct Region {
  int buffer = -1;  // The position among the executable's buffers. Negative: no place.
  int64_t offset = 0;
};

// A piece of an executable's memory, and the source of the memory.
struct Buffer {
  enum class Source : uint8_t { kArena, kInput, kVariable, kConstant };
  Source source = Source::kArena;
  int64_t bytes = 0;
  int input = -1;               // Of kInput: the input's position.
  std::byte* memory = nullptr;  // Of kVariable.
  // Of kConstant.
  double constant = 0;
  DType dtype = DType::kFloat32;
  // Of kArena: a part without a writer in a buffer that a step reads as a whole. Zero before the first run.
  struct Gap {
    int64_t offset = 0;
    int64_t bytes = 0;
  };
  std::vector<Gap> gaps = {};
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_BACKEND_LOWERING_BUFFER_H_

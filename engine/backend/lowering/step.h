#ifndef TANDEM_ENGINE_BACKEND_LOWERING_STEP_H_
#define TANDEM_ENGINE_BACKEND_LOWERING_STEP_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "engine/backend/begun_reductions.h"
#include "engine/backend/communicator.h"
#include "engine/backend/lowering/buffer.h"

namespace tandem {

// The memory of a run, and the communicator of its replica. A backend's RunContext adds the objects that the
// backend's steps compute with.
struct RunMemory {
  std::byte* const* buffers = nullptr;  // By buffer. The same in all runs, except for inputs.
  // On a GPU, only steps on the host use it. Its calls wait for all earlier work of the stream.
  Communicator* communicator = nullptr;
  BegunReductions* reductions = nullptr;  // Of this run.

  template <typename T = void>
  T* At(Region region) const {
    return reinterpret_cast<T*>(buffers[region.buffer] + region.offset);
  }
};

// A step of an executable. Steps run in order. `RunContext` is derived from RunMemory.
template <typename RunContext>
struct StepOf {
  std::string name = {};  // For profiles: the op's kind and its implementation.
  double flops = 0;       // For profiles: OpCost::flops of the op.
  // Whole buffers. A step that writes a part of a buffer lists the buffer in both vectors, so that the rest
  // stays.
  std::vector<Region> reads = {};
  std::vector<Region> writes = {};
  // Pairs (write, read) of positions: the write may reuse the memory of the read.
  std::vector<std::pair<int, int>> in_place = {};
  // Does the step's work. On a GPU, it only puts work into the stream: a recorded run repeats this work
  // without another call of `run`.
  std::function<absl::Status(const RunContext&)> run = {};
  // Called once, after all buffers except inputs have their memory. On a GPU, inputs have their memory too,
  // and `bind` may put work into the stream. `run` and `bind` share state through a pointer.
  std::function<absl::Status(const RunContext&)> bind = {};
  // The regions whose addresses `bind` keeps. `run` asks for all other addresses in every run, because a
  // graph's inputs may move.
  std::vector<Region> bound = {};
  // The step of a GPU works on the host in every run, and may wait for the stream there.
  bool on_host = false;
  // For a step that only sums `reduced_elements` float32 elements over the replicas: their place, at the
  // beginning of a buffer. The step has no `run` before SettleReductions.
  Region reduced = {};
  int64_t reduced_elements = 0;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_BACKEND_LOWERING_STEP_H_

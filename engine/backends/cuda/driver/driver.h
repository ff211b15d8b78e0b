#ifndef TANDEM_ENGINE_BACKENDS_CUDA_DRIVER_DRIVER_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_DRIVER_DRIVER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/backends/cuda/driver/stream.h"

// CUDA's own types. So this header needs no header of the toolkit.
struct CUevent_st;
struct CUgraphExec_st;
struct CUgraph_st;

namespace tandem::cuda {

// The functions of a GPU's driver. A program links one of two implementations. `driver_nvidia` uses the CUDA
// runtime. `driver_emulated` uses the host's memory as device memory. Its streams do everything at once, or
// record it, and kernels run thread after thread. It is slow but runs the kernels' own code on any machine.
// UNAVAILABLE without a driver or device, RESOURCE_EXHAUSTED without memory, else INTERNAL. The message
// begins with "cuda: " if CUDA no longer works in the process.

// Returns whether kernels run on the host instead of a GPU.
bool IsEmulated();

struct DeviceProperties {
  std::string name;
  std::string uuid;  // "GPU-xxxxxxxx-...".
  int major = 0;     // Compute capability.
  int minor = 0;
  int multiprocessors = 0;
  int64_t memory_bytes = 0;
};

// Returns the number of GPUs that the process sees. UNAVAILABLE if it sees none, with the reason and how to
// mend it.
absl::StatusOr<int> CountDevices();
absl::StatusOr<DeviceProperties> GetProperties(int device);
// Makes `device` the calling thread's device.
absl::Status UseDevice(int device);
// Returns the free bytes of the thread's device.
absl::StatusOr<int64_t> FreeBytes();
// Lets kernels of `device` use the memory of `peer`, and returns whether they can. The thread's device stays.
absl::StatusOr<bool> ReachPeer(int device, int peer);

// Returns the first error of the thread's launches since the last call.
absl::Status CheckLaunches();
// Returns the fault of the thread's device if there is one, else `status`, a library's error. Waits for the
// device.
absl::Status WithFault(absl::Status status);

// Memory of the thread's device, 256-byte aligned and not initialised. A value that owns it.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  ~DeviceMemory();
  DeviceMemory(DeviceMemory&& other) noexcept { *this = std::move(other); }
  DeviceMemory& operator=(DeviceMemory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  // RESOURCE_EXHAUSTED with the requested and the free bytes.
  static absl::StatusOr<DeviceMemory> Allocate(int64_t bytes);
  std::byte* data() const { return data_; }
  int64_t bytes() const { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  int64_t bytes_ = 0;
};

// Host memory from which the device copies asynchronously.
class PinnedMemory {
 public:
  PinnedMemory() = default;
  ~PinnedMemory();
  PinnedMemory(PinnedMemory&& other) noexcept { *this = std::move(other); }
  PinnedMemory& operator=(PinnedMemory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  static absl::StatusOr<PinnedMemory> Allocate(int64_t bytes);
  std::byte* data() const { return data_; }
  int64_t bytes() const { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  int64_t bytes_ = 0;
};

// Copy or clear in the stream's order, between any two of host and device memory. Copy returns after it has
// read host memory that is not pinned.
absl::Status Copy(void* target, const void* source, int64_t bytes, Stream stream);
absl::Status Zero(void* target, int64_t bytes, Stream stream);

// A stream of the thread's device.
class OwnedStream {
 public:
  // The work of an urgent stream has priority on the device.
  static absl::StatusOr<std::unique_ptr<OwnedStream>> Create(bool urgent = false);
  ~OwnedStream();
  OwnedStream(const OwnedStream&) = delete;
  OwnedStream& operator=(const OwnedStream&) = delete;
  Stream get() const { return stream_; }
  // Waits for all work in the stream. Returns any earlier error of the device.
  absl::Status Synchronize() const;

 private:
  explicit OwnedStream(Stream stream) : stream_(stream) {}
  const Stream stream_;
};

// A point in a stream.
class Event {
 public:
  // `timed` allows SecondsBetween.
  static absl::StatusOr<std::unique_ptr<Event>> Create(bool timed = false);
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  absl::Status Record(Stream stream);
  // Makes later work in `stream` wait for this point.
  absl::Status Hold(Stream stream) const;
  // Waits until the point is reached. Returns at once if it was never recorded.
  absl::Status Synchronize() const;
  // Returns whether the point has been reached.
  absl::StatusOr<bool> Reached() const;
  // Returns the seconds between two reached points.
  static absl::StatusOr<double> SecondsBetween(const Event& from, const Event& to);

 private:
  explicit Event(CUevent_st* event) : event_(event) {}
  CUevent_st* const event_;
};

// Memory from `begin` to before `end`.
struct MemoryRange {
  const std::byte* begin = nullptr;
  const std::byte* end = nullptr;
};

// Recorded work of a stream, as a part of RecordedWork.
class RecordedPart {
 public:
  RecordedPart() = default;
  ~RecordedPart();
  RecordedPart(RecordedPart&& other) noexcept { *this = std::move(other); }
  RecordedPart& operator=(RecordedPart&& other) noexcept {
    std::swap(graph_, other.graph_);
    return *this;
  }
  // Removes from the part the clears of at most `most_bytes` bytes with which it begins, and returns their
  // ranges. The caller must clear these ranges before the part runs. Leaves at least a single piece of work
  // in the part.
  absl::StatusOr<std::vector<MemoryRange>> TakeClears(int64_t most_bytes);

 private:
  friend class RecordedWork;
  explicit RecordedPart(CUgraph_st* graph) : graph_(graph) {}
  CUgraph_st* graph_ = nullptr;
};

// Recorded work of a stream that can be launched again as a whole: a CUDA graph.
class RecordedWork {
 public:
  // Starts to record the work of `stream` instead of doing it. Until End the thread must not allocate memory
  // or wait: both are errors.
  static absl::Status Begin(Stream stream);
  // Ends the record. A failed record is an error.
  static absl::StatusOr<std::unique_ptr<RecordedWork>> End(Stream stream);
  // As End, for a record that becomes a part.
  static absl::StatusOr<RecordedPart> EndPart(Stream stream);
  // Joins parts. Part i waits for the parts `after[i]`, all smaller than i. Parts that do not wait for each
  // other may run at the same time. Uploads the work in `stream`, so that Launch needs no more memory of the
  // device.
  static absl::StatusOr<std::unique_ptr<RecordedWork>> Join(absl::Span<const RecordedPart> parts,
                                                            absl::Span<const std::vector<int>> after,
                                                            Stream stream);
  ~RecordedWork();
  RecordedWork(const RecordedWork&) = delete;
  RecordedWork& operator=(const RecordedWork&) = delete;
  absl::Status Launch(Stream stream) const;

 private:
  explicit RecordedWork(CUgraphExec_st* graph) : graph_(graph) {}
  CUgraphExec_st* const graph_;
};

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_DRIVER_DRIVER_H_

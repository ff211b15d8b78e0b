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

// CUDA's own, so that this header needs none of the toolkit's.
struct CUevent_st;
struct CUgraphExec_st;
struct CUgraph_st;

namespace tandem::cuda {

// What the backend needs of a GPU's driver. There are two of them, and a program links one: `driver_nvidia`,
// over the CUDA runtime, and `driver_emulated`, where device memory is the host's, streams do everything at
// once, or record it, and kernels run thread after thread: slow, but it runs the kernels' own code wherever
// C++ compiles. No driver or no device is UNAVAILABLE, no memory RESOURCE_EXHAUSTED, all else INTERNAL:
// "cuda: ..." where nothing works any more in the process.

// Whether kernels run on a GPU.
bool IsEmulated();

struct DeviceProperties {
  std::string name;
  std::string uuid;  // "GPU-xxxxxxxx-...".
  int major = 0;     // Compute capability.
  int minor = 0;
  int multiprocessors = 0;
  int64_t memory_bytes = 0;
};

// How many GPUs the process sees. UNAVAILABLE where it sees none: why, and what mends it.
absl::StatusOr<int> CountDevices();
absl::StatusOr<DeviceProperties> GetProperties(int device);
// Makes `device` the one that the calling thread's calls mean.
absl::Status UseDevice(int device);
// Bytes of the thread's device that are free.
absl::StatusOr<int64_t> FreeBytes();
// Lets kernels of `device` work on memory of `peer`, where they can: says whether. The thread's device stays.
absl::StatusOr<bool> ReachPeer(int device, int peer);

// Of launches of the thread since the last call: the first error.
absl::Status CheckLaunches();
// What a library failed with, or the fault of the thread's device that it came from, where there is one.
// Waits for the device.
absl::Status WithFault(absl::Status status);

// Memory of the thread's device, 256-byte aligned, not initialised. A value that owns it.
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
  // RESOURCE_EXHAUSTED with what was asked for and what is free.
  static absl::StatusOr<DeviceMemory> Allocate(int64_t bytes);
  std::byte* data() const { return data_; }
  int64_t bytes() const { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  int64_t bytes_ = 0;
};

// Memory of the host that the device copies from without a stop.
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

// In the stream's order; between any two of host and device memory. A copy from host memory that is not
// pinned has read it when the call returns.
absl::Status Copy(void* target, const void* source, int64_t bytes, Stream stream);
absl::Status Zero(void* target, int64_t bytes, Stream stream);

// A stream of the thread's device.
class OwnedStream {
 public:
  // What is in an urgent one goes first, where the device has both to do.
  static absl::StatusOr<std::unique_ptr<OwnedStream>> Create(bool urgent = false);
  ~OwnedStream();
  OwnedStream(const OwnedStream&) = delete;
  OwnedStream& operator=(const OwnedStream&) = delete;
  Stream get() const { return stream_; }
  // Waits for all that was put into it. Any earlier error of the device comes out here.
  absl::Status Synchronize() const;

 private:
  explicit OwnedStream(Stream stream) : stream_(stream) {}
  const Stream stream_;
};

// A point in a stream.
class Event {
 public:
  // With `timed`, SecondsBetween may be asked.
  static absl::StatusOr<std::unique_ptr<Event>> Create(bool timed = false);
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  absl::Status Record(Stream stream);
  // Makes what comes in `stream` from now on wait for it.
  absl::Status Hold(Stream stream) const;
  // Waits until it has been reached; at once where it was never recorded.
  absl::Status Synchronize() const;
  // Whether it has been reached.
  absl::StatusOr<bool> Reached() const;
  // Between two points that have been reached.
  static absl::StatusOr<double> SecondsBetween(const Event& from, const Event& to);

 private:
  explicit Event(CUevent_st* event) : event_(event) {}
  CUevent_st* const event_;
};

// What a stream was given between two points, as a part of RecordedWork.
class RecordedPart {
 public:
  RecordedPart() = default;
  ~RecordedPart();
  RecordedPart(RecordedPart&& other) noexcept { *this = std::move(other); }
  RecordedPart& operator=(RecordedPart&& other) noexcept {
    std::swap(graph_, other.graph_);
    return *this;
  }

 private:
  friend class RecordedWork;
  explicit RecordedPart(CUgraph_st* graph) : graph_(graph) {}
  CUgraph_st* graph_ = nullptr;
};

// What a stream was given between two points, to be given again as a whole: a CUDA graph.
class RecordedWork {
 public:
  // Puts what `stream` is given from here on into a record, and does none of it. Until its end the thread
  // gets no memory, and waits for nothing: both are errors.
  static absl::Status Begin(Stream stream);
  // Ends the record, also a failed one, which is an error.
  static absl::StatusOr<std::unique_ptr<RecordedWork>> End(Stream stream);
  // The same, where the record is a part of more.
  static absl::StatusOr<RecordedPart> EndPart(Stream stream);
  // The parts as a whole. Part i waits for the parts `after[i]`, all of them smaller than i; parts that do
  // not wait for each other may run at the same time.
  static absl::StatusOr<std::unique_ptr<RecordedWork>> Join(absl::Span<const RecordedPart> parts,
                                                            absl::Span<const std::vector<int>> after);
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

#include <chrono>
#include <cstdlib>
#include <cstring>

#include "engine/backends/cuda/driver/driver.h"
#include "engine/backends/cuda/driver/emulated_stream.h"

// The host in a GPU's place: see driver.h.

// What an event is here: when it was recorded, and what its stream waited for then.
struct CUevent_st {
  double time = 0;
  std::shared_ptr<const tandem::cuda::PendingWork> pending;
};

namespace tandem::cuda {

namespace {

constexpr size_t kAlignment = 256;

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::byte* AllocateHost(int64_t bytes) {
  const size_t rounded = (static_cast<size_t>(bytes) + kAlignment - 1) / kAlignment * kAlignment;
  void* data = std::aligned_alloc(kAlignment, rounded == 0 ? kAlignment : rounded);
  // As a device's, it holds what was there before: here what is surely wrong.
  if (data != nullptr) std::memset(data, 0xff, rounded);
  return static_cast<std::byte*>(data);
}

absl::Status NoMemory(int64_t bytes) {
  return absl::ResourceExhaustedError("no memory for " + std::to_string(bytes) + " bytes");
}

}  // namespace

bool IsEmulated() { return true; }

absl::StatusOr<int> CountDevices() { return 1; }

absl::StatusOr<DeviceProperties> GetProperties(int /*device*/) {
  return DeviceProperties{.name = "emulated GPU",
                          .uuid = "GPU-emulated",
                          .major = 9,
                          .minor = 0,
                          .multiprocessors = 2,
                          .memory_bytes = int64_t{1} << 33};
}

absl::Status UseDevice(int /*device*/) { return absl::OkStatus(); }
absl::StatusOr<int64_t> FreeBytes() { return int64_t{1} << 33; }
absl::StatusOr<bool> ReachPeer(int /*device*/, int /*peer*/) { return true; }
absl::Status CheckLaunches() { return absl::OkStatus(); }
absl::Status WithFault(absl::Status status) { return status; }

DeviceMemory::~DeviceMemory() { std::free(data_); }

absl::StatusOr<DeviceMemory> DeviceMemory::Allocate(int64_t bytes) {
  DeviceMemory memory;
  memory.data_ = AllocateHost(bytes);
  if (memory.data_ == nullptr) return NoMemory(bytes);
  memory.bytes_ = bytes;
  return memory;
}

PinnedMemory::~PinnedMemory() { std::free(data_); }

absl::StatusOr<PinnedMemory> PinnedMemory::Allocate(int64_t bytes) {
  PinnedMemory memory;
  memory.data_ = AllocateHost(bytes);
  if (memory.data_ == nullptr) return NoMemory(bytes);
  memory.bytes_ = bytes;
  return memory;
}

absl::Status Copy(void* target, const void* source, int64_t bytes, Stream stream) {
  if (stream != nullptr) stream->Await();
  if (bytes > 0) std::memcpy(target, source, static_cast<size_t>(bytes));
  return absl::OkStatus();
}

absl::Status Zero(void* target, int64_t bytes, Stream stream) {
  if (stream != nullptr) stream->Await();
  if (bytes > 0) std::memset(target, 0, static_cast<size_t>(bytes));
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<OwnedStream>> OwnedStream::Create() {
  return std::unique_ptr<OwnedStream>(new OwnedStream(new CUstream_st));
}
OwnedStream::~OwnedStream() { delete stream_; }
absl::Status OwnedStream::Synchronize() const {
  stream_->Await();
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Event>> Event::Create(bool /*timed*/) {
  return std::unique_ptr<Event>(new Event(new CUevent_st));
}
Event::~Event() { delete event_; }
absl::Status Event::Record(Stream stream) {
  event_->time = Now();
  event_->pending = stream == nullptr ? nullptr : stream->pending;
  return absl::OkStatus();
}
absl::Status Event::Hold(Stream /*stream*/) const { return Synchronize(); }
absl::Status Event::Synchronize() const {
  if (event_->pending != nullptr) event_->pending->Await();
  return absl::OkStatus();
}
absl::StatusOr<bool> Event::Reached() const { return event_->pending == nullptr || event_->pending->ended(); }
absl::StatusOr<double> Event::SecondsBetween(const Event& from, const Event& to) {
  return to.event_->time - from.event_->time;
}

absl::Status RecordedWork::Begin(Stream /*stream*/) {
  return absl::FailedPreconditionError("the emulation records no work");
}
absl::StatusOr<std::unique_ptr<RecordedWork>> RecordedWork::End(Stream /*stream*/) {
  return absl::FailedPreconditionError("the emulation records no work");
}
RecordedWork::~RecordedWork() = default;
absl::Status RecordedWork::Launch(Stream /*stream*/) const {
  return absl::FailedPreconditionError("the emulation records no work");
}

}  // namespace tandem::cuda

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "engine/backends/cuda/driver/driver.h"
#include "engine/backends/cuda/driver/emulated_stream.h"
#include "engine/base/mutex.h"
#include "engine/base/status_macros.h"

// The host in place of a GPU. See driver.h.

// An event of the emulation: the time of its record, and the state of its stream's work at this time.
struct CUevent_st {
  double time = 0;
  CUstream_st::Point point;
  std::shared_ptr<const tandem::cuda::PendingWork> pending;
};

// Recorded work: a part, and a whole.
struct CUgraph_st {
  std::vector<CUstream_st::Work> work;
};
struct CUgraphExec_st {
  std::vector<CUstream_st::Work> work;
};

namespace tandem::cuda {

namespace {

constexpr size_t kAlignment = 256;
constexpr int64_t kMemoryBytes = int64_t{1} << 33;

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Memory for asynchronous copies: device memory and pinned memory. Maps its beginning to its end.
// Thread-safe.
class DirectMemory {
 public:
  static DirectMemory& OfProcess() {
    static DirectMemory* const memory = new DirectMemory;
    return *memory;
  }
  void Add(const std::byte* begin, size_t bytes) {
    MutexLock lock(&mutex_);
    ends_[begin] = begin + bytes;
  }
  void Remove(const std::byte* begin) {
    MutexLock lock(&mutex_);
    ends_.erase(begin);
  }
  bool Has(const void* address) const {
    const auto* byte = static_cast<const std::byte*>(address);
    MutexLock lock(&mutex_);
    const auto next = ends_.upper_bound(byte);
    return next != ends_.begin() && byte < std::prev(next)->second;
  }

 private:
  mutable Mutex mutex_;
  std::map<const std::byte*, const std::byte*> ends_ ABSL_GUARDED_BY(mutex_);
};

std::byte* AllocateHost(int64_t bytes) {
  if (bytes > kMemoryBytes) return nullptr;
  const size_t rounded = (static_cast<size_t>(bytes) + kAlignment - 1) / kAlignment * kAlignment;
  void* data = std::aligned_alloc(kAlignment, rounded == 0 ? kAlignment : rounded);
  // Device memory holds old data. Here it holds data that are surely wrong.
  if (data != nullptr) std::memset(data, 0xff, rounded);
  if (data != nullptr) DirectMemory::OfProcess().Add(static_cast<std::byte*>(data), rounded);
  return static_cast<std::byte*>(data);
}

// Frees the memory when no work uses it any more.
void FreeHost(std::byte* data) {
  if (data == nullptr) return;
  CUstream_st::AwaitAll();
  DirectMemory::OfProcess().Remove(data);
  std::free(data);
}

// Whether the thread is recording. As on a GPU, many calls are then forbidden.
thread_local bool is_recording = false;

// The work of Zero.
struct Clear {
  void operator()() const { std::memset(target, 0, static_cast<size_t>(bytes)); }
  void* target;
  int64_t bytes;
};

// The error that CheckLaunches returns next.
thread_local absl::Status refused_launch;

absl::Status WhileRecording(absl::string_view call) {
  return absl::InternalError(absl::StrCat(call, " while work is recorded"));
}

absl::Status NoMemory(int64_t bytes) {
  return absl::ResourceExhaustedError("no memory for " + std::to_string(bytes) + " bytes");
}

}  // namespace

bool IsEmulated() { return true; }
void RefuseLaunch(absl::Status error) { refused_launch = std::move(error); }

absl::StatusOr<int> CountDevices() { return 1; }

absl::StatusOr<DeviceProperties> GetProperties(int /*device*/) {
  return DeviceProperties{.name = "emulated GPU",
                          .uuid = "GPU-emulated",
                          .major = 9,
                          .minor = 0,
                          .multiprocessors = 2,
                          .memory_bytes = kMemoryBytes};
}

absl::Status UseDevice(int /*device*/) { return absl::OkStatus(); }
absl::StatusOr<int64_t> FreeBytes() { return kMemoryBytes; }
absl::StatusOr<bool> ReachPeer(int /*device*/, int /*peer*/) { return true; }
absl::Status CheckLaunches() { return std::exchange(refused_launch, absl::OkStatus()); }
absl::Status WithFault(absl::Status status) { return status; }

DeviceMemory::~DeviceMemory() { FreeHost(data_); }

absl::StatusOr<DeviceMemory> DeviceMemory::Allocate(int64_t bytes) {
  if (is_recording) return WhileRecording("an allocation");
  DeviceMemory memory;
  memory.data_ = AllocateHost(bytes);
  if (memory.data_ == nullptr) return NoMemory(bytes);
  memory.bytes_ = bytes;
  return memory;
}

PinnedMemory::~PinnedMemory() { FreeHost(data_); }

absl::StatusOr<PinnedMemory> PinnedMemory::Allocate(int64_t bytes) {
  if (is_recording) return WhileRecording("an allocation");
  PinnedMemory memory;
  memory.data_ = AllocateHost(bytes);
  if (memory.data_ == nullptr) return NoMemory(bytes);
  memory.bytes_ = bytes;
  return memory;
}

absl::Status Copy(void* target, const void* source, int64_t bytes, Stream stream) {
  if (bytes <= 0) return absl::OkStatus();
  Give(stream, [=] { std::memcpy(target, source, static_cast<size_t>(bytes)); });
  if (stream != nullptr && stream->record == nullptr && stream->defers()) {
    const DirectMemory& direct = DirectMemory::OfProcess();
    if (!direct.Has(target) || !direct.Has(source)) stream->Await();
  }
  return absl::OkStatus();
}

absl::Status Zero(void* target, int64_t bytes, Stream stream) {
  if (bytes <= 0) return absl::OkStatus();
  Give(stream, Clear{target, bytes});
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<OwnedStream>> OwnedStream::Create(bool /*urgent*/) {
  return std::unique_ptr<OwnedStream>(new OwnedStream(new CUstream_st));
}
OwnedStream::~OwnedStream() { delete stream_; }
absl::Status OwnedStream::Synchronize() const {
  if (stream_->record != nullptr) return WhileRecording("a wait for the stream");
  stream_->Await();
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Event>> Event::Create(bool /*timed*/) {
  return std::unique_ptr<Event>(new Event(new CUevent_st));
}
Event::~Event() { delete event_; }
absl::Status Event::Record(Stream stream) {
  if (stream != nullptr && stream->record != nullptr) return WhileRecording("an event");
  event_->time = Now();
  event_->pending = stream == nullptr ? nullptr : stream->pending;
  event_->point = nullptr;
  if (stream == nullptr || !stream->defers()) return absl::OkStatus();
  event_->point = std::make_shared<EmulatedPoint>();
  event_->point->stream = stream;
  stream->Defer([point = event_->point] { point->reached = true; });
  return absl::OkStatus();
}
absl::Status Event::Hold(Stream stream) const {
  if (event_->point == nullptr || event_->point->reached) return Synchronize();
  stream->DeferUntil(event_->point);
  return absl::OkStatus();
}
absl::Status Event::Synchronize() const {
  if (event_->point != nullptr && !event_->point->reached) event_->point->stream->Await(event_->point.get());
  if (event_->pending != nullptr) event_->pending->Await();
  return absl::OkStatus();
}
absl::StatusOr<bool> Event::Reached() const {
  if (event_->point != nullptr && !event_->point->reached) return false;
  return event_->pending == nullptr || event_->pending->ended();
}
absl::StatusOr<double> Event::SecondsBetween(const Event& from, const Event& to) {
  return to.event_->time - from.event_->time;
}

absl::Status RecordedWork::Begin(Stream stream) {
  if (is_recording) return WhileRecording("another record is begun");
  stream->record = std::make_unique<std::vector<CUstream_st::Work>>();
  is_recording = true;
  return absl::OkStatus();
}
RecordedPart::~RecordedPart() { delete graph_; }

absl::StatusOr<std::vector<MemoryRange>> RecordedPart::TakeClears(int64_t most_bytes) {
  std::vector<CUstream_st::Work>& work = graph_->work;
  std::vector<MemoryRange> clears;
  while (work.size() > 1) {
    const Clear* clear = work.front().target<Clear>();
    if (clear == nullptr || clear->bytes > most_bytes) break;
    const auto* begin = static_cast<const std::byte*>(clear->target);
    clears.push_back({begin, begin + clear->bytes});
    work.erase(work.begin());
  }
  return clears;
}

absl::StatusOr<RecordedPart> RecordedWork::EndPart(Stream stream) {
  if (stream->record == nullptr) return absl::InternalError("no record was begun");
  is_recording = false;
  const auto record = std::exchange(stream->record, nullptr);
  return RecordedPart(new CUgraph_st{std::move(*record)});
}

absl::StatusOr<std::unique_ptr<RecordedWork>> RecordedWork::End(Stream stream) {
  TANDEM_ASSIGN_OR_RETURN(const RecordedPart part, EndPart(stream));
  return std::unique_ptr<RecordedWork>(new RecordedWork(new CUgraphExec_st{part.graph_->work}));
}

// Parts that wait for no other part run in reverse order, so that a missing wait gives a wrong result.
absl::StatusOr<std::unique_ptr<RecordedWork>> RecordedWork::Join(absl::Span<const RecordedPart> parts,
                                                                 absl::Span<const std::vector<int>> after,
                                                                 Stream /*stream*/) {
  std::vector<size_t> waits(parts.size());
  std::vector<std::vector<int>> then(parts.size());
  std::set<int, std::greater<>> ready;
  for (size_t i = 0; i < parts.size(); ++i) {
    waits[i] = after[i].size();
    for (const int earlier : after[i]) then[earlier].push_back(static_cast<int>(i));
    if (waits[i] == 0) ready.insert(static_cast<int>(i));
  }
  auto whole = std::make_unique<CUgraphExec_st>();
  while (!ready.empty()) {
    const int part = *ready.begin();
    ready.erase(ready.begin());
    const std::vector<CUstream_st::Work>& work = parts[part].graph_->work;
    whole->work.insert(whole->work.end(), work.begin(), work.end());
    for (const int next : then[part]) {
      if (--waits[next] == 0) ready.insert(next);
    }
  }
  return std::unique_ptr<RecordedWork>(new RecordedWork(whole.release()));
}
RecordedWork::~RecordedWork() { delete graph_; }
absl::Status RecordedWork::Launch(Stream stream) const {
  for (const CUstream_st::Work& work : graph_->work) Give(stream, work);
  return absl::OkStatus();
}

}  // namespace tandem::cuda

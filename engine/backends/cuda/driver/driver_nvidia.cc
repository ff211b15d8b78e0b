#include <cuda_runtime_api.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "engine/backends/cuda/driver/cuda_errors.h"
#include "engine/backends/cuda/driver/driver.h"
#include "engine/base/status_macros.h"

namespace tandem::cuda {

namespace {

CudaFailure FailureOf(cudaError_t error, absl::string_view call) {
  return {error, cudaGetErrorName(error), cudaGetErrorString(error), call};
}

// Clears the error of a call that returns it. CUDA also keeps it for CheckLaunches, which would return it
// again.
cudaError_t Forgotten(cudaError_t error) {
  if (error != cudaSuccess) (void)cudaGetLastError();
  return error;
}

absl::Status ToStatus(cudaError_t error, absl::string_view call) {
  return Forgotten(error) == cudaSuccess ? absl::OkStatus() : StatusOf(FailureOf(error, call));
}

#define TANDEM_CUDA(call) TANDEM_RETURN_IF_ERROR(ToStatus(call, #call))

}  // namespace

bool IsEmulated() { return false; }

absl::StatusOr<int> CountDevices() {
  int count = 0;
  const cudaError_t error = Forgotten(cudaGetDeviceCount(&count));
  if (error == cudaSuccess && count > 0) return count;
  CudaSystem system;
  cudaDriverGetVersion(&system.driver_version);
  cudaRuntimeGetVersion(&system.runtime_version);
  if (const char* visible = std::getenv("CUDA_VISIBLE_DEVICES"); visible != nullptr) {
    system.visible_devices = visible;
  }
  return WhyNoGpu(FailureOf(error, "cudaGetDeviceCount"), system);
}

absl::StatusOr<DeviceProperties> GetProperties(int device) {
  cudaDeviceProp found;
  TANDEM_CUDA(cudaGetDeviceProperties(&found, device));
  DeviceProperties properties;
  properties.name = found.name;
  properties.major = found.major;
  properties.minor = found.minor;
  properties.multiprocessors = found.multiProcessorCount;
  properties.memory_bytes = static_cast<int64_t>(found.totalGlobalMem);
  properties.uuid = "GPU-";
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) properties.uuid += '-';
    absl::StrAppendFormat(&properties.uuid, "%02x", static_cast<unsigned char>(found.uuid.bytes[i]));
  }
  return properties;
}

absl::Status UseDevice(int device) {
  TANDEM_CUDA(cudaSetDevice(device));
  return absl::OkStatus();
}

absl::StatusOr<int64_t> FreeBytes() {
  size_t free = 0;
  size_t total = 0;
  TANDEM_CUDA(cudaMemGetInfo(&free, &total));
  return static_cast<int64_t>(free);
}

absl::StatusOr<bool> ReachPeer(int device, int peer) {
  if (device == peer) return true;
  int can = 0;
  TANDEM_CUDA(cudaDeviceCanAccessPeer(&can, device, peer));
  if (can == 0) return false;
  int current = 0;
  TANDEM_CUDA(cudaGetDevice(&current));
  TANDEM_CUDA(cudaSetDevice(device));
  const cudaError_t enabled = Forgotten(cudaDeviceEnablePeerAccess(peer, 0));
  TANDEM_CUDA(cudaSetDevice(current));
  return IsPeerReached(FailureOf(enabled, "cudaDeviceEnablePeerAccess"));
}

absl::Status CheckLaunches() { return ToStatus(cudaGetLastError(), "a kernel's launch"); }

absl::Status WithFault(absl::Status status) {
  const cudaError_t fault = cudaDeviceSynchronize();
  if (!LeavesProcessUnusable(fault)) return status;
  const absl::Status found = ToStatus(fault, "cudaDeviceSynchronize");
  return absl::Status(found.code(), absl::StrCat(found.message(), " (seen as ", status.message(), ")"));
}

DeviceMemory::~DeviceMemory() {
  if (data_ != nullptr) cudaFree(data_);
}

absl::StatusOr<DeviceMemory> DeviceMemory::Allocate(int64_t bytes) {
  DeviceMemory memory;
  if (bytes <= 0) return memory;
  void* data = nullptr;
  const cudaError_t error = Forgotten(cudaMalloc(&data, static_cast<size_t>(bytes)));
  if (error == cudaErrorMemoryAllocation) {
    size_t free = 0;
    size_t total = 0;
    cudaMemGetInfo(&free, &total);
    return absl::ResourceExhaustedError(
        absl::StrCat("the GPU has no memory for ", bytes, " bytes: ", free, " of its ", total, " are free"));
  }
  TANDEM_RETURN_IF_ERROR(ToStatus(error, "cudaMalloc"));
  memory.data_ = static_cast<std::byte*>(data);
  memory.bytes_ = bytes;
  return memory;
}

PinnedMemory::~PinnedMemory() {
  if (data_ != nullptr) cudaFreeHost(data_);
}

absl::StatusOr<PinnedMemory> PinnedMemory::Allocate(int64_t bytes) {
  PinnedMemory memory;
  if (bytes <= 0) return memory;
  void* data = nullptr;
  TANDEM_CUDA(cudaHostAlloc(&data, static_cast<size_t>(bytes), cudaHostAllocDefault));
  memory.data_ = static_cast<std::byte*>(data);
  memory.bytes_ = bytes;
  return memory;
}

absl::Status Copy(void* target, const void* source, int64_t bytes, Stream stream) {
  if (bytes <= 0) return absl::OkStatus();
  TANDEM_CUDA(cudaMemcpyAsync(target, source, static_cast<size_t>(bytes), cudaMemcpyDefault, stream));
  return absl::OkStatus();
}

absl::Status Zero(void* target, int64_t bytes, Stream stream) {
  if (bytes <= 0) return absl::OkStatus();
  TANDEM_CUDA(cudaMemsetAsync(target, 0, static_cast<size_t>(bytes), stream));
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<OwnedStream>> OwnedStream::Create(bool urgent) {
  cudaStream_t stream = nullptr;
  int least = 0;
  int greatest = 0;
  TANDEM_CUDA(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  TANDEM_CUDA(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, urgent ? greatest : least));
  return std::unique_ptr<OwnedStream>(new OwnedStream(stream));
}

OwnedStream::~OwnedStream() { cudaStreamDestroy(stream_); }

absl::Status OwnedStream::Synchronize() const {
  TANDEM_CUDA(cudaStreamSynchronize(stream_));
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Event>> Event::Create(bool timed) {
  cudaEvent_t event = nullptr;
  TANDEM_CUDA(cudaEventCreateWithFlags(&event, timed ? cudaEventDefault : cudaEventDisableTiming));
  return std::unique_ptr<Event>(new Event(event));
}

Event::~Event() { cudaEventDestroy(event_); }

absl::Status Event::Record(Stream stream) {
  TANDEM_CUDA(cudaEventRecord(event_, stream));
  return absl::OkStatus();
}

absl::Status Event::Hold(Stream stream) const {
  TANDEM_CUDA(cudaStreamWaitEvent(stream, event_, 0));
  return absl::OkStatus();
}

absl::Status Event::Synchronize() const {
  TANDEM_CUDA(cudaEventSynchronize(event_));
  return absl::OkStatus();
}

absl::StatusOr<bool> Event::Reached() const {
  const cudaError_t error = Forgotten(cudaEventQuery(event_));
  if (error == cudaErrorNotReady) return false;
  TANDEM_RETURN_IF_ERROR(ToStatus(error, "cudaEventQuery"));
  return true;
}

absl::StatusOr<double> Event::SecondsBetween(const Event& from, const Event& to) {
  float milliseconds = 0;
  TANDEM_CUDA(cudaEventElapsedTime(&milliseconds, from.event_, to.event_));
  return milliseconds * 1e-3;
}

absl::Status RecordedWork::Begin(Stream stream) {
  TANDEM_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  return absl::OkStatus();
}

RecordedPart::~RecordedPart() {
  if (graph_ != nullptr) cudaGraphDestroy(graph_);
}

absl::StatusOr<std::vector<MemoryRange>> RecordedPart::TakeClears(int64_t most_bytes) {
  std::vector<MemoryRange> clears;
  while (true) {
    size_t nodes = 0;
    TANDEM_CUDA(cudaGraphGetNodes(graph_, nullptr, &nodes));
    size_t root_count = 0;
    TANDEM_CUDA(cudaGraphGetRootNodes(graph_, nullptr, &root_count));
    // The record of a stream is a line.
    if (nodes < 2 || root_count != 1) return clears;
    cudaGraphNode_t root = nullptr;
    TANDEM_CUDA(cudaGraphGetRootNodes(graph_, &root, &root_count));
    cudaGraphNodeType type = cudaGraphNodeTypeEmpty;
    TANDEM_CUDA(cudaGraphNodeGetType(root, &type));
    if (type != cudaGraphNodeTypeMemset) return clears;
    cudaMemsetParams memset = {};
    TANDEM_CUDA(cudaGraphMemsetNodeGetParams(root, &memset));
    const auto bytes = static_cast<int64_t>(memset.width * memset.elementSize);
    if (memset.value != 0 || memset.height != 1 || bytes > most_bytes) return clears;
    const auto* begin = static_cast<const std::byte*>(memset.dst);
    clears.push_back({begin, begin + bytes});
    TANDEM_CUDA(cudaGraphDestroyNode(root));
  }
}

absl::StatusOr<RecordedPart> RecordedWork::EndPart(Stream stream) {
  cudaGraph_t graph = nullptr;
  TANDEM_CUDA(cudaStreamEndCapture(stream, &graph));
  return RecordedPart(graph);
}

absl::StatusOr<std::unique_ptr<RecordedWork>> RecordedWork::End(Stream stream) {
  TANDEM_ASSIGN_OR_RETURN(const RecordedPart part, EndPart(stream));
  cudaGraphExec_t executable = nullptr;
  TANDEM_CUDA(cudaGraphInstantiate(&executable, part.graph_, 0));
  return std::unique_ptr<RecordedWork>(new RecordedWork(executable));
}

absl::StatusOr<std::unique_ptr<RecordedWork>> RecordedWork::Join(absl::Span<const RecordedPart> parts,
                                                                 absl::Span<const std::vector<int>> after,
                                                                 Stream stream) {
  RecordedPart whole;
  TANDEM_CUDA(cudaGraphCreate(&whole.graph_, 0));
  std::vector<cudaGraphNode_t> nodes(parts.size(), nullptr);
  for (size_t i = 0; i < parts.size(); ++i) {
    std::vector<cudaGraphNode_t> waits_for;
    for (const int earlier : after[i]) waits_for.push_back(nodes[earlier]);
    TANDEM_CUDA(cudaGraphAddChildGraphNode(&nodes[i], whole.graph_, waits_for.data(), waits_for.size(),
                                           parts[i].graph_));
  }
  cudaGraphExec_t executable = nullptr;
  TANDEM_CUDA(cudaGraphInstantiate(&executable, whole.graph_, 0));
  std::unique_ptr<RecordedWork> work(new RecordedWork(executable));
  TANDEM_CUDA(cudaGraphUpload(executable, stream));
  return work;
}

RecordedWork::~RecordedWork() { cudaGraphExecDestroy(graph_); }

absl::Status RecordedWork::Launch(Stream stream) const {
  TANDEM_CUDA(cudaGraphLaunch(graph_, stream));
  return absl::OkStatus();
}

}  // namespace tandem::cuda

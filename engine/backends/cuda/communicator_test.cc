// Runs the conformance tests of communicators for memory of GPUs. Elements are copied to a GPU and back.

#include <cstdint>
#include <cstdio>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/backend/communicator_conformance.h"
#include "engine/backend/thread_communicator.h"
#include "engine/backends/cuda/device_communicator.h"
#include "engine/backends/cuda/staged_communicator.h"
#include "engine/base/status_macros.h"

namespace tandem {
namespace {

// A rank for host memory, on top of a communicator for memory of its GPU.
template <typename Wrapped>
class CopyingRank final : public Communicator {
 public:
  CopyingRank(std::shared_ptr<cuda::DeviceContext> device, std::unique_ptr<Communicator> host)
      : device_(std::move(device)), host_(std::move(host)), wrapped_(device_, host_.get()) {}
  ~CopyingRank() override { (void)device_->stream->Synchronize(); }

  int rank() const override { return wrapped_.rank(); }
  int world_size() const override { return wrapped_.world_size(); }
  absl::Status AllReduce(BufferView buffer, ReduceOp op) override {
    TANDEM_ASSIGN_OR_RETURN(const Lent lent, Lend(buffer));
    TANDEM_RETURN_IF_ERROR(wrapped_.AllReduce(lent.view(), op));
    return Return(lent);
  }
  absl::StatusOr<int64_t> BeginAllReduce(BufferView buffer, ReduceOp op) override {
    TANDEM_ASSIGN_OR_RETURN(Lent lent, Lend(buffer));
    TANDEM_ASSIGN_OR_RETURN(const int64_t number, wrapped_.BeginAllReduce(lent.view(), op));
    begun_.emplace_back(number, std::move(lent));
    return number;
  }
  absl::Status Await(int64_t begun) override {
    absl::Status status = wrapped_.Await(begun);
    while (!begun_.empty() && begun_.front().first <= begun) {
      if (status.ok()) status = Return(begun_.front().second);
      begun_.pop_front();
    }
    return status;
  }
  absl::Status Broadcast(BufferView buffer, int root) override {
    TANDEM_ASSIGN_OR_RETURN(const Lent lent, Lend(buffer));
    TANDEM_RETURN_IF_ERROR(wrapped_.Broadcast(lent.view(), root));
    return Return(lent);
  }
  absl::Status Barrier() override { return wrapped_.Barrier(); }
  void Abort(absl::Status status) override { wrapped_.Abort(std::move(status)); }
  absl::Status status() const override { return wrapped_.status(); }

 private:
  // The host's elements in the device's memory.
  struct Lent {
    BufferView host;
    cuda::DeviceMemory memory;
    BufferView view() const { return {memory.data(), host.elements, host.dtype}; }
    int64_t bytes() const { return host.elements * SizeOf(host.dtype); }
  };

  absl::StatusOr<Lent> Lend(BufferView buffer) {
    TANDEM_RETURN_IF_ERROR(cuda::UseDevice(device_->ordinal));
    Lent lent;
    lent.host = buffer;
    TANDEM_ASSIGN_OR_RETURN(lent.memory, cuda::DeviceMemory::Allocate(lent.bytes()));
    TANDEM_RETURN_IF_ERROR(cuda::Copy(lent.memory.data(), buffer.data, lent.bytes(), device_->stream->get()));
    return lent;
  }
  absl::Status Return(const Lent& lent) {
    TANDEM_RETURN_IF_ERROR(
        cuda::Copy(lent.host.data, lent.memory.data(), lent.bytes(), device_->stream->get()));
    return device_->stream->Synchronize();
  }

  const std::shared_ptr<cuda::DeviceContext> device_;
  const std::unique_ptr<Communicator> host_;
  Wrapped wrapped_;
  std::deque<std::pair<int64_t, Lent>> begun_;
};

// Ranks on all GPUs in turn.
template <typename Wrapped>
std::vector<std::unique_ptr<Communicator>> Make(int world_size) {
  const int devices = *cuda::CountDevices();
  std::vector<std::unique_ptr<Communicator>> ranks;
  for (std::unique_ptr<Communicator>& host : CreateThreadCommunicators(world_size)) {
    auto device = std::make_shared<cuda::DeviceContext>();
    device->ordinal = static_cast<int>(ranks.size()) % devices;
    EXPECT_TRUE(cuda::UseDevice(device->ordinal).ok());
    device->stream = *cuda::OwnedStream::Create();
    ranks.push_back(std::make_unique<CopyingRank<Wrapped>>(std::move(device), std::move(host)));
  }
  return ranks;
}

// Empty on a machine without a GPU, with a message.
std::vector<CommunicatorMaker> Makers() {
  const absl::StatusOr<int> devices = cuda::CountDevices();
  if (devices.ok() && *devices > 0) {
    return {{"staged", Make<cuda::StagedCommunicator>}, {"device", Make<cuda::DeviceCommunicator>}};
  }
  std::printf("SKIPPED: CommunicatorConformance on GPUs: %s\n",
              devices.ok() ? "there is none" : std::string(devices.status().message()).c_str());
  return {};
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(CommunicatorConformance);
INSTANTIATE_TEST_SUITE_P(Gpu, CommunicatorConformance, testing::ValuesIn(Makers()),
                         [](const auto& maker) { return maker.param.name; });

}  // namespace
}  // namespace tandem

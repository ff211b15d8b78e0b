#include <algorithm>
#include <functional>
#include <iterator>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "engine/backend/communicator_conformance.h"
#include "engine/backend/thread_communicator.h"
#include "engine/backends/cuda/collective_communicator.h"
#include "engine/backends/cuda/device_communicator.h"
#include "engine/backends/cuda/staged_communicator.h"

namespace tandem {
namespace {

// A communicator for a device of its own, whose memory is the host's.
template <typename Wrapped>
class Rank final : public Communicator {
 public:
  Rank(std::shared_ptr<cuda::DeviceContext> device, std::unique_ptr<Communicator> host)
      : host_(std::move(host)), wrapped_(std::move(device), host_.get()) {}

  int rank() const override { return wrapped_.rank(); }
  int world_size() const override { return wrapped_.world_size(); }
  absl::Status AllReduce(BufferView buffer, ReduceOp op) override { return wrapped_.AllReduce(buffer, op); }
  absl::Status Broadcast(BufferView buffer, int root) override { return wrapped_.Broadcast(buffer, root); }
  absl::Status Barrier() override { return wrapped_.Barrier(); }
  void Abort(absl::Status status) override { wrapped_.Abort(std::move(status)); }
  absl::Status status() const override { return wrapped_.status(); }

 private:
  const std::unique_ptr<Communicator> host_;
  Wrapped wrapped_;
};

template <typename Wrapped>
std::vector<std::unique_ptr<Communicator>> Make(int world_size) {
  std::vector<std::unique_ptr<Communicator>> ranks;
  for (std::unique_ptr<Communicator>& host : CreateThreadCommunicators(world_size)) {
    auto device = std::make_shared<cuda::DeviceContext>();
    device->stream = *cuda::OwnedStream::Create();
    ranks.push_back(std::make_unique<Rank<Wrapped>>(std::move(device), std::move(host)));
  }
  return ranks;
}

INSTANTIATE_TEST_SUITE_P(Staged, CommunicatorConformance,
                         testing::Values(CommunicatorMaker{"staged", Make<cuda::StagedCommunicator>}));
// As ranks of several processes.
class Collected final : public Communicator {
 public:
  Collected(std::shared_ptr<cuda::DeviceContext> device, Communicator* host)
      : wrapped_(std::move(device), host) {}

  int rank() const override { return wrapped_.rank(); }
  int world_size() const override { return wrapped_.world_size(); }
  absl::Status AllReduce(BufferView buffer, ReduceOp op) override {
    return Joined([&] { return wrapped_.AllReduce(buffer, op); });
  }
  absl::Status Broadcast(BufferView buffer, int root) override {
    return Joined([&] { return wrapped_.Broadcast(buffer, root); });
  }
  absl::Status Barrier() override { return wrapped_.Barrier(); }
  void Abort(absl::Status status) override { wrapped_.Abort(std::move(status)); }
  absl::Status status() const override { return wrapped_.status(); }

 private:
  absl::Status Joined(const std::function<absl::Status()>& call) {
    if (!has_joined_) {
      const absl::StatusOr<bool> joined = wrapped_.Join();
      if (!joined.ok()) return joined.status();
      EXPECT_TRUE(*joined);
      has_joined_ = true;
    }
    return call();
  }

  cuda::CollectiveCommunicator wrapped_;
  bool has_joined_ = false;
};

// A rank that fails outside the call that the others are in: only the host's group hears of it.
TEST(CollectiveTest, ARankThatFailsElsewhereEndsTheOthersWaits) {
  std::vector<std::unique_ptr<Communicator>> hosts = CreateThreadCommunicators(3);
  std::vector<std::shared_ptr<cuda::DeviceContext>> devices;
  std::vector<std::unique_ptr<cuda::CollectiveCommunicator>> ranks;
  for (const std::unique_ptr<Communicator>& host : hosts) {
    devices.push_back(std::make_shared<cuda::DeviceContext>());
    devices.back()->stream = *cuda::OwnedStream::Create();
    ranks.push_back(std::make_unique<cuda::CollectiveCommunicator>(devices.back(), host.get()));
  }
  const absl::Status reason = absl::DataLossError("rank 2 cannot read its data");
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 3; ++rank) {
    threads.emplace_back([&, rank] {
      const absl::StatusOr<bool> joined = ranks[rank]->Join();
      ASSERT_TRUE(joined.ok() && *joined);
      std::vector<float> elements(100, 1.0f);
      const BufferView view = {elements.data(), 100, DType::kFloat32};
      ASSERT_TRUE(ranks[rank]->AllReduce(view, ReduceOp::kSum).ok());
      EXPECT_EQ(elements[99], 3.0f);
      if (rank < 2) {
        EXPECT_EQ(ranks[rank]->AllReduce(view, ReduceOp::kSum), reason);
        EXPECT_EQ(ranks[rank]->status(), reason);
        EXPECT_EQ(ranks[rank]->Broadcast(view, 0), reason);
        return;
      }
      // The others agree with it on a call, to which it does not come.
      std::vector<int64_t> agreed(3 * 5, 0);
      const int64_t card[] = {0, 0, 100, static_cast<int64_t>(DType::kFloat32), 1};
      std::copy(std::begin(card), std::end(card), agreed.begin() + 2 * 5);
      ASSERT_TRUE(hosts[2]->AllReduce({agreed.data(), 15, DType::kInt64}, ReduceOp::kSum).ok());
      EXPECT_EQ(agreed,
                std::vector<int64_t>({0, 0, 100, card[3], 1, 0, 0, 100, card[3], 1, 0, 0, 100, card[3], 1}));
      hosts[2]->Abort(reason);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

INSTANTIATE_TEST_SUITE_P(Collective, CommunicatorConformance,
                         testing::Values(CommunicatorMaker{"collective", Make<Collected>}));
INSTANTIATE_TEST_SUITE_P(Device, CommunicatorConformance,
                         testing::Values(CommunicatorMaker{"device", Make<cuda::DeviceCommunicator>}));

}  // namespace
}  // namespace tandem

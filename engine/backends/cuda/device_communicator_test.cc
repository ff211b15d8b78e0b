#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <deque>
#include <functional>
#include <iterator>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "engine/backend/communicator_conformance.h"
#include "engine/backend/forwarding_communicator.h"
#include "engine/backend/thread_communicator.h"
#include "engine/backends/cuda/collective_communicator.h"
#include "engine/backends/cuda/device_communicator.h"
#include "engine/backends/cuda/driver/emulated_stream.h"
#include "engine/backends/cuda/staged_communicator.h"

namespace tandem {
namespace {

// A communicator for a separate device, whose memory is the host's.
template <typename Wrapped>
class Rank final : public Communicator {
 public:
  Rank(std::shared_ptr<cuda::DeviceContext> device, std::unique_ptr<Communicator> host)
      : host_(std::move(host)), wrapped_(std::move(device), host_.get()) {}

  int rank() const override { return wrapped_.rank(); }
  int world_size() const override { return wrapped_.world_size(); }
  absl::Status AllReduce(BufferView buffer, ReduceOp op) override { return wrapped_.AllReduce(buffer, op); }
  absl::StatusOr<int64_t> BeginAllReduce(BufferView buffer, ReduceOp op) override {
    return wrapped_.BeginAllReduce(buffer, op);
  }
  absl::Status Await(int64_t begun) override { return wrapped_.Await(begun); }
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
// Behaves like ranks of several processes.
class Collected final : public Communicator {
 public:
  Collected(std::shared_ptr<cuda::DeviceContext> device, Communicator* host)
      : wrapped_(std::move(device), host) {}

  int rank() const override { return wrapped_.rank(); }
  int world_size() const override { return wrapped_.world_size(); }
  absl::Status AllReduce(BufferView buffer, ReduceOp op) override {
    return Joined([&] { return wrapped_.AllReduce(buffer, op); });
  }
  absl::StatusOr<int64_t> BeginAllReduce(BufferView buffer, ReduceOp op) override {
    return Joined([&] { return wrapped_.BeginAllReduce(buffer, op); });
  }
  absl::Status Await(int64_t begun) override { return wrapped_.Await(begun); }
  absl::Status Broadcast(BufferView buffer, int root) override {
    return Joined([&] { return wrapped_.Broadcast(buffer, root); });
  }
  absl::Status Barrier() override { return wrapped_.Barrier(); }
  void Abort(absl::Status status) override { wrapped_.Abort(std::move(status)); }
  absl::Status status() const override { return wrapped_.status(); }

 private:
  template <typename Call>
  auto Joined(const Call& call) -> decltype(call()) {
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

// A host's communicator whose rank 0 fails after the ranks have exchanged their data, and leaves. The others
// continue.
class Leaving final : public ForwardingCommunicator {
 public:
  Leaving(std::unique_ptr<Communicator> host, absl::Notification* left)
      : ForwardingCommunicator(std::move(host)), left_(left) {}

  absl::Status AllReduce(BufferView buffer, ReduceOp op) override {
    const absl::Status status = inner().AllReduce(buffer, op);
    if (++calls_ < 2 || !status.ok()) return status;
    if (rank() == 0) return absl::DataLossError("rank 0 has failed");
    left_->WaitForNotification();
    return status;
  }

 private:
  absl::Notification* const left_;
  int calls_ = 0;
};

TEST(DeviceTest, RankZeroMayLeaveWhileTheyMeet) {
  constexpr int kRanks = 3;
  absl::Notification left;
  std::vector<std::unique_ptr<Communicator>> hosts;
  for (std::unique_ptr<Communicator>& host : CreateThreadCommunicators(kRanks)) {
    hosts.push_back(std::make_unique<Leaving>(std::move(host), &left));
  }
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&, rank] {
      auto device = std::make_shared<cuda::DeviceContext>();
      device->stream = *cuda::OwnedStream::Create();
      std::vector<float> elements(100, 1.0f);
      absl::Status status;
      {
        cuda::DeviceCommunicator communicator(std::move(device), hosts[rank].get());
        status = communicator.AllReduce({elements.data(), 100, DType::kFloat32}, ReduceOp::kSum);
      }
      EXPECT_EQ(status.code(), rank == 0 ? absl::StatusCode::kDataLoss : absl::StatusCode::kAborted);
      if (rank == 0) left.Notify();
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// A rank that fails outside of the others' call: only the host's group learns of it.
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
      // The others agree with it on a call that it never makes.
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

// Counts the meetings of the hosts.
class Counting final : public ForwardingCommunicator {
 public:
  explicit Counting(std::unique_ptr<Communicator> host) : ForwardingCommunicator(std::move(host)) {}

  absl::Status AllReduce(BufferView buffer, ReduceOp op) override {
    ++meetings_;
    return inner().AllReduce(buffer, op);
  }
  absl::Status Broadcast(BufferView buffer, int root) override {
    ++meetings_;
    return inner().Broadcast(buffer, root);
  }
  absl::Status Barrier() override {
    ++meetings_;
    return inner().Barrier();
  }

  int meetings() const { return meetings_; }

 private:
  std::atomic<int> meetings_{0};
};

// Ranks over NCCL, each with its own device, stream and buffer.
class BegunTest : public testing::Test {
 protected:
  static constexpr int64_t kElements = 100;

  struct End {
    std::unique_ptr<Counting> host;
    std::shared_ptr<cuda::DeviceContext> device = std::make_shared<cuda::DeviceContext>();
    std::unique_ptr<cuda::CollectiveCommunicator> communicator;
    std::vector<float> elements = std::vector<float>(kElements, 1.0f);

    BufferView view() { return {elements.data(), kElements, DType::kFloat32}; }
    absl::StatusOr<int64_t> Begin() { return communicator->BeginAllReduce(view(), ReduceOp::kSum); }
  };

  BegunTest() {
    for (std::unique_ptr<Communicator>& host : CreateThreadCommunicators(2)) {
      End& end = ends_.emplace_back();
      end.host = std::make_unique<Counting>(std::move(host));
      end.device->stream = *cuda::OwnedStream::Create();
      end.communicator = std::make_unique<cuda::CollectiveCommunicator>(end.device, end.host.get());
    }
    OnEach([](End& end) {
      const absl::StatusOr<bool> joined = end.communicator->Join();
      ASSERT_TRUE(joined.ok() && *joined);
      // The ranks agree on the first reduction.
      const absl::StatusOr<int64_t> begun = end.Begin();
      ASSERT_TRUE(begun.ok()) << begun.status();
      ASSERT_TRUE(end.communicator->Await(*begun).ok());
      EXPECT_EQ(end.elements[kElements - 1], 2.0f);
    });
  }

  void OnEach(const std::function<void(End&)>& body) {
    std::vector<std::thread> threads;
    for (End& end : ends_) threads.emplace_back([&] { body(end); });
    for (std::thread& thread : threads) thread.join();
  }

  std::deque<End> ends_;
};

TEST_F(BegunTest, HostsMeetForTheFirstOfASizeAlone) {
  const int before = ends_[0].host->meetings();
  OnEach([](End& end) {
    for (int step = 0; step < 5; ++step) {
      const absl::StatusOr<int64_t> begun = end.Begin();
      ASSERT_TRUE(begun.ok()) << begun.status();
      ASSERT_TRUE(end.communicator->Await(*begun).ok());
    }
    EXPECT_EQ(end.elements[0], 64.0f);
  });
  EXPECT_EQ(ends_[0].host->meetings(), before);
}

// On a single thread, any wait for the other rank would last forever.
TEST_F(BegunTest, TheHostDoesNotWait) {
  const absl::StatusOr<int64_t> first = ends_[0].Begin();
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(ends_[0].elements[0], 2.0f);
  const absl::StatusOr<int64_t> second = ends_[1].Begin();
  ASSERT_TRUE(second.ok()) << second.status();
  ASSERT_TRUE(ends_[0].communicator->Await(*first).ok());
  ASSERT_TRUE(ends_[1].communicator->Await(*second).ok());
  EXPECT_EQ(ends_[0].elements[0], 4.0f);
  EXPECT_EQ(ends_[1].elements[0], 4.0f);
}

// A stream of the emulation blocks its caller behind unfinished work, such as the computation of the elements
// here.
TEST_F(BegunTest, AReductionWaitsForWhatTheDeviceComputesBefore) {
  const auto computing = std::make_shared<cuda::PendingWork>();
  ends_[0].device->stream->get()->pending = computing;
  std::atomic<bool> computed{false};
  OnEach([&](End& end) {
    if (&end == &ends_[1]) {
      absl::SleepFor(absl::Milliseconds(30));
      computed = true;
      ends_[0].elements.assign(kElements, 7.0f);
      computing->End();
    }
    const absl::StatusOr<int64_t> begun = end.Begin();
    EXPECT_TRUE(computed);
    ASSERT_TRUE(begun.ok()) << begun.status();
    ASSERT_TRUE(end.communicator->Await(*begun).ok());
    EXPECT_EQ(end.elements[0], 9.0f);
  });
}

TEST_F(BegunTest, WhatIsComputedAfterAnAwaitWaitsForTheReduction) {
  const absl::StatusOr<int64_t> begun = ends_[0].Begin();
  ASSERT_TRUE(begun.ok()) << begun.status();
  std::atomic<bool> other_came{false};
  std::thread other([&] {
    absl::SleepFor(absl::Milliseconds(30));
    other_came = true;
    const absl::StatusOr<int64_t> its = ends_[1].Begin();
    ASSERT_TRUE(its.ok()) << its.status();
    EXPECT_TRUE(ends_[1].communicator->Await(*its).ok());
  });
  // The stream does not wait without an await.
  float before = 0;
  ASSERT_TRUE(
      cuda::Copy(&before, ends_[0].elements.data(), sizeof(float), ends_[0].device->stream->get()).ok());
  EXPECT_EQ(before, 2.0f);
  ASSERT_TRUE(ends_[0].communicator->Await(*begun).ok());
  float after = 0;
  ASSERT_TRUE(
      cuda::Copy(&after, ends_[0].elements.data(), sizeof(float), ends_[0].device->stream->get()).ok());
  EXPECT_TRUE(other_came);
  EXPECT_EQ(after, 4.0f);
  other.join();
}

// Nobody on the host awaits the reduction. An abort still reaches the GPU's work.
TEST_F(BegunTest, ARankThatIsLostEndsWhatOthersBegan) {
  const absl::StatusOr<int64_t> begun = ends_[0].Begin();
  ASSERT_TRUE(begun.ok()) << begun.status();
  const absl::Status reason = absl::UnavailableError("rank 1 was lost");
  // As the host's group detects it.
  ends_[1].host->Abort(reason);
  EXPECT_EQ(ends_[0].communicator->Await(*begun), reason);
  EXPECT_TRUE(ends_[0].device->stream->Synchronize().ok());
  EXPECT_EQ(ends_[0].Begin().status(), reason);
}

// Set before the communicators, which read it when they are created. It is longer than the ranks' delays.
struct ShortTimeLimit {
  ShortTimeLimit() { setenv("TANDEM_COLLECTIVE_TIME_LIMIT", "10s", /*overwrite=*/1); }
  ~ShortTimeLimit() { unsetenv("TANDEM_COLLECTIVE_TIME_LIMIT"); }
};
class ShortTimeTest : private ShortTimeLimit, public BegunTest {};

TEST_F(ShortTimeTest, ARankThatHangsEndsWhatOthersBegan) {
  const absl::StatusOr<int64_t> begun = ends_[0].Begin();
  ASSERT_TRUE(begun.ok()) << begun.status();
  // Rank 1 is alive and makes no call.
  EXPECT_EQ(ends_[0].communicator->Await(*begun),
            absl::DeadlineExceededError("rank 0's GPU has not come through a reduction for 10s"));
  EXPECT_EQ(ends_[1].communicator->status().code(), absl::StatusCode::kDeadlineExceeded);
}

// Otherwise they would wait for half an hour that nobody requested.
TEST(TimeLimitTest, RanksWithoutATimeThatCanBeReadDoNotJoin) {
  setenv("TANDEM_COLLECTIVE_TIME_LIMIT", "90", /*overwrite=*/1);
  std::vector<std::unique_ptr<Communicator>> hosts = CreateThreadCommunicators(2);
  const auto device = std::make_shared<cuda::DeviceContext>();
  device->stream = *cuda::OwnedStream::Create();
  cuda::CollectiveCommunicator communicator(device, hosts[0].get());
  unsetenv("TANDEM_COLLECTIVE_TIME_LIMIT");
  const absl::Status refused = communicator.Join().status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(refused.message().find("TANDEM_COLLECTIVE_TIME_LIMIT is '90'"), absl::string_view::npos)
      << refused;
  // The other rank does not wait for it either.
  EXPECT_EQ(hosts[1]->Barrier(), refused);
}

INSTANTIATE_TEST_SUITE_P(Collective, CommunicatorConformance,
                         testing::Values(CommunicatorMaker{"collective", Make<Collected>}));
INSTANTIATE_TEST_SUITE_P(Device, CommunicatorConformance,
                         testing::Values(CommunicatorMaker{"device", Make<cuda::DeviceCommunicator>}));

}  // namespace
}  // namespace tandem

#include "engine/collectives/gloo/gloo_group.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "engine/backend/communicator_conformance.h"
#include "engine/base/mutex.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

// A rendezvous in the memory of a process.
class MemoryRendezvous final : public Rendezvous {
 public:
  absl::Status Publish(const std::string& key, const std::string& value) override {
    MutexLock lock(&mutex_);
    values_[key] = value;
    return absl::OkStatus();
  }
  absl::StatusOr<std::string> Await(const std::string& key, absl::Duration timeout) override {
    MutexLock lock(&mutex_);
    const auto known = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return values_.count(key) > 0; };
    if (!mutex_.AwaitWithTimeout(absl::Condition(&known), timeout)) {
      return absl::DeadlineExceededError(absl::StrCat(key, " is not known"));
    }
    return values_[key];
  }

 private:
  Mutex mutex_;
  std::map<std::string, std::string> values_ ABSL_GUARDED_BY(mutex_);
};

std::vector<std::unique_ptr<Communicator>> Connect(int world_size, const GlooOptions& common = {}) {
  MemoryRendezvous rendezvous;
  std::vector<std::unique_ptr<Communicator>> ends(world_size);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < world_size; ++rank) {
    threads.emplace_back([&, rank] {
      GlooOptions options = common;
      options.rank = rank;
      options.world_size = world_size;
      absl::StatusOr<std::unique_ptr<Communicator>> end = ConnectGlooGroup(options, rendezvous);
      ASSERT_TRUE(end.ok()) << end.status();
      ends[rank] = *std::move(end);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return ends;
}

INSTANTIATE_TEST_SUITE_P(Gloo, CommunicatorConformance,
                         testing::Values(CommunicatorMaker{
                             "gloo", [](int world_size) { return Connect(world_size); }}),
                         [](const auto& info) { return info.param.name; });

TEST(GlooGroupTest, ReducesWhatIsLargerThanIsHeldAtATime) {
  const auto ends = Connect(2);
  constexpr int64_t kElements = 5'000'001;  // 20 MB.
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      std::vector<float> elements(kElements);
      for (int64_t i = 0; i < kElements; ++i) elements[i] = static_cast<float>(i % 1000 + rank);
      ASSERT_TRUE(ends[rank]->AllReduce({elements.data(), kElements, DType::kFloat32}, ReduceOp::kSum).ok());
      for (int64_t i = 0; i < kElements; ++i)
        ASSERT_EQ(elements[i], static_cast<float>(2 * (i % 1000) + 1)) << i;
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(GlooGroupTest, ARankMayDropABroadcast) { TestDroppedBroadcasts(Connect(3)); }

TEST(GlooGroupTest, ARankThatLeftIsNamedToThoseWhoWaitForIt) {
  auto ends = Connect(3);
  ends[1].reset();
  std::thread other([&] {
    const absl::Status status = ends[2]->Barrier();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  });
  const absl::Status status = ends[0]->Barrier();
  other.join();
  EXPECT_EQ(status, absl::UnavailableError("rank 1 of 3 has left the group"));
}

TEST(GlooGroupTest, ARankThatDoesNotComeToACallIsNamed) {
  GlooOptions options;
  options.call_limit = absl::Milliseconds(300);
  options.silence_limit = absl::Seconds(20);
  const auto ends = Connect(3, options);
  absl::Status statuses[3];
  std::thread other([&] { statuses[2] = ends[2]->Barrier(); });
  statuses[0] = ends[0]->Barrier();
  other.join();
  statuses[1] = ends[1]->Barrier();
  for (const absl::Status& status : statuses) {
    EXPECT_EQ(status, absl::DeadlineExceededError("rank 1 of 3 has not come to a call within 300ms"));
  }
}

// The message goes to the daemon as a string of Protocol Buffers, which must be UTF-8.
TEST(GlooGroupTest, ALongAbortIsCutAtTheEndOfACharacter) {
  const auto ends = Connect(2);
  std::string message = "x";
  while (message.size() < 1000) message += "\xC3\xB6";
  ends[1]->Abort(absl::DataLossError(message));
  const absl::Status status = ends[0]->Barrier();
  EXPECT_EQ(status, absl::DataLossError(message.substr(0, 499)));
}

TEST(GlooGroupTest, ARankThatIsNoneOfTheWorldIsRefused) {
  MemoryRendezvous rendezvous;
  for (const int rank : {-1, 2}) {
    GlooOptions options;
    options.rank = rank;
    options.world_size = 2;
    EXPECT_EQ(ConnectGlooGroup(options, rendezvous).status().code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST(GlooGroupTest, ARankThatNeverComesIsAnError) {
  MemoryRendezvous rendezvous;
  GlooOptions options;
  options.world_size = 2;
  options.connect_timeout = absl::Milliseconds(200);
  const absl::Status status = ConnectGlooGroup(options, rendezvous).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
  EXPECT_NE(status.message().find("data-1"), std::string::npos) << status;
}

}  // namespace
}  // namespace tandem

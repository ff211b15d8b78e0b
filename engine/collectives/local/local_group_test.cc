#include "engine/collectives/local/local_group.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "engine/backend/communicator_conformance.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {

INSTANTIATE_TEST_SUITE_P(Local, CommunicatorConformance,
                         testing::Values(CommunicatorMaker{
                             "local", [](int world_size) { return CreateLocalGroup(world_size); },
                             CreateLocalGroup}));

namespace {

// Ranks run at their own pace while a rank ends the group. No rank uses memory that its owner has taken back.
// The address and thread sanitizers would detect it.
TEST(LocalGroupTest, AbortWhileOthersReduceIsSafe) {
  for (int round = 0; round < 50; ++round) {
    std::vector<std::unique_ptr<Communicator>> ends = CreateLocalGroup(3);
    std::vector<std::thread> threads;
    for (int rank = 0; rank < 3; ++rank) {
      threads.emplace_back([&, rank] {
        for (int call = 0;; ++call) {
          std::vector<float> values(1000, 1.0F);
          const absl::Status status =
              ends[rank]->AllReduce({values.data(), 1000, DType::kFloat32}, ReduceOp::kSum);
          if (!status.ok()) {
            EXPECT_EQ(status, absl::CancelledError("enough"));
            return;
          }
          EXPECT_EQ(values[999], 3.0F);
          if (rank == round % 3 && call == round) ends[rank]->Abort(absl::CancelledError("enough"));
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
}

// As above with more ranks than cores, which do not spin, and several begun calls. No rank sleeps after the
// group's end.
TEST(LocalGroupTest, AnAbortWakesAll) {
  const int world_size = 2 * static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  for (int round = 0; round < 300; ++round) {
    std::vector<std::unique_ptr<Communicator>> ends = CreateLocalGroup(world_size);
    std::vector<std::thread> threads;
    for (int rank = 0; rank < world_size; ++rank) {
      threads.emplace_back([&, rank] {
        std::vector<float> values(4, 1.0F);
        for (int step = 0;; ++step) {
          if (rank == round % world_size && step == round % 7)
            ends[rank]->Abort(absl::CancelledError("enough"));
          int64_t begun = 0;
          for (float& value : values) {
            begun =
                ends[rank]->BeginAllReduce({&value, 1, DType::kFloat32}, ReduceOp::kAverage).value_or(begun);
          }
          const absl::Status status = ends[rank]->Await(begun);
          if (step < round % 7 && rank == round % world_size) {
            EXPECT_TRUE(status.ok()) << status;
          }
          if (ends[rank]->status().ok()) continue;
          EXPECT_EQ(ends[rank]->status(), absl::CancelledError("enough"));
          return;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
}

TEST(LocalGroupTest, ARankMayDropABroadcast) { TestDroppedBroadcasts(CreateLocalGroup(3)); }

TEST(LocalGroupTest, RanksShareAWord) {
  std::vector<std::unique_ptr<Communicator>> ends = CreateLocalGroup(2);
  std::atomic<int64_t>* const word = SharedWordOf(ends[0].get());
  ASSERT_NE(word, nullptr);
  EXPECT_EQ(*word, 0);
  EXPECT_EQ(SharedWordOf(ends[1].get()), word);
  EXPECT_NE(SharedWordOf(CreateLocalGroup(1)[0].get()), word);
}

// A group has a fixed number of slots for calls. After an abort, neither a free slot nor an unused slot
// accepts a call.
TEST(LocalGroupTest, AfterAnAbortNothingIsBegun) {
  for (const int done : {0, 70}) {
    std::vector<std::unique_ptr<Communicator>> ends = CreateLocalGroup(2);
    const auto begin = [&](int rank, float& value) {
      return ends[rank]->BeginAllReduce({&value, 1, DType::kFloat32}, ReduceOp::kSum);
    };
    for (int i = 0; i < done; ++i) {
      float first = 1;
      float second = 2;
      ASSERT_TRUE(begin(0, first).ok());
      const absl::StatusOr<int64_t> begun = begin(1, second);
      ASSERT_TRUE(begun.ok());
      ASSERT_TRUE(ends[1]->Await(*begun).ok());
      ASSERT_TRUE(ends[0]->Await(*begun).ok());
      ASSERT_EQ(first, 3);
    }
    std::vector<float> values(64, 1.0F);
    for (float& value : values) ASSERT_TRUE(begin(0, value).ok());
    ends[1]->Abort(absl::CancelledError("enough"));
    for (int i = 0; i < 200; ++i) {
      float late = 1;
      for (const int rank : {0, 1}) EXPECT_EQ(begin(rank, late).status(), absl::CancelledError("enough"));
    }
  }
}

// A rank that has made the call and computes on is not among the missing ranks.
TEST(LocalGroupTest, TheTimeLimitNamesThoseThatHaveNotCome) {
  std::vector<std::unique_ptr<Communicator>> ends = CreateLocalGroup(3, absl::Milliseconds(50));
  float first = 1;
  float third = 3;
  const absl::StatusOr<int64_t> begun = ends[2]->BeginAllReduce({&third, 1, DType::kFloat32}, ReduceOp::kSum);
  ASSERT_TRUE(begun.ok()) << begun.status();
  const absl::Status status = ends[0]->AllReduce({&first, 1, DType::kFloat32}, ReduceOp::kSum);
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("replica 1 has missed a collective"));
  EXPECT_EQ(ends[2]->Await(*begun), status);
}

// On a single thread, any wait for another rank would last forever. Beginning never blocks. A rank that
// awaits a call which all have begun does all remaining parts.
TEST(LocalGroupTest, RanksWaitForWhatOthersHaveNotComeToAndNothingElse) {
  for (const int awaits_first : {0, 1, 2}) {
    std::vector<std::unique_ptr<Communicator>> ends = CreateLocalGroup(3);
    constexpr int64_t kElements = 1000;
    std::vector<std::vector<float>> values;
    for (int rank = 0; rank < 3; ++rank) values.emplace_back(3 * kElements, static_cast<float>(rank + 1));
    for (int rank = 0; rank < 3; ++rank) {
      for (int i = 0; i < 3; ++i) {
        const absl::StatusOr<int64_t> begun = ends[rank]->BeginAllReduce(
            {values[rank].data() + i * kElements, kElements, DType::kFloat32}, ReduceOp::kSum);
        ASSERT_TRUE(begun.ok()) << begun.status();
        EXPECT_EQ(*begun, i + 1);
      }
    }
    EXPECT_TRUE(ends[awaits_first]->Await(2).ok());
    for (int rank = 0; rank < 3; ++rank) {
      EXPECT_EQ(std::count(values[rank].begin(), values[rank].begin() + 2 * kElements, 6.0F), 2 * kElements);
    }
    for (int rank = 0; rank < 3; ++rank) EXPECT_TRUE(ends[rank]->Await(3).ok());
    for (int rank = 0; rank < 3; ++rank) {
      EXPECT_EQ(values[rank], std::vector<float>(3 * kElements, 6.0F));
    }
  }
}

// Ranks that arrive at different times do each other's parts, each part once.
TEST(LocalGroupTest, EveryPartIsDoneOnceWhoeverComesLate) {
  std::vector<std::unique_ptr<Communicator>> ends = CreateLocalGroup(4);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 4; ++rank) {
    threads.emplace_back([&, rank] {
      for (int round = 0; round < 2000; ++round) {
        if ((round + rank) % 4 == 0) std::this_thread::yield();
        std::vector<float> first(100, static_cast<float>(rank));
        std::vector<float> second(300, 1.0F);
        const auto begin = [&](std::vector<float>& values) {
          return ends[rank]
              ->BeginAllReduce({values.data(), static_cast<int64_t>(values.size()), DType::kFloat32},
                               ReduceOp::kSum)
              .value_or(0);
        };
        const int64_t begun = begin(first);
        const int64_t last = begin(second);
        EXPECT_TRUE(ends[rank]->Await(begun).ok());
        EXPECT_EQ(first, std::vector<float>(100, 6.0F));
        EXPECT_TRUE(ends[rank]->Await(last).ok());
        EXPECT_EQ(second, std::vector<float>(300, 4.0F));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// More than a rank can begin before the others have done their parts.
TEST(LocalGroupTest, AnyNumberCanBeBegun) {
  constexpr int kCount = 1000;
  std::vector<std::unique_ptr<Communicator>> ends = CreateLocalGroup(3);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 3; ++rank) {
    threads.emplace_back([&, rank] {
      std::vector<float> values(kCount, static_cast<float>(rank));
      int64_t begun = 0;
      for (float& value : values) {
        begun = ends[rank]->BeginAllReduce({&value, 1, DType::kFloat32}, ReduceOp::kSum).value_or(0);
      }
      EXPECT_TRUE(ends[rank]->Await(begun).ok());
      EXPECT_EQ(values, std::vector<float>(kCount, 3.0F));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(LocalGroupTest, DisagreementOnTheOperationIsAnErrorForAll) {
  std::vector<std::unique_ptr<Communicator>> ends = CreateLocalGroup(2);
  std::vector<double> values = {1, 2};
  absl::Status statuses[2];
  std::thread other([&] {
    statuses[1] = ends[1]->AllReduce({&values[1], 1, DType::kFloat64}, ReduceOp::kAverage);
  });
  statuses[0] = ends[0]->AllReduce({&values[0], 1, DType::kFloat64}, ReduceOp::kSum);
  other.join();
  EXPECT_EQ(statuses[0].code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(statuses[0], statuses[1]);
}

}  // namespace
}  // namespace tandem

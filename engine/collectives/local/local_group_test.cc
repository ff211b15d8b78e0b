#include "engine/collectives/local/local_group.h"

#include <thread>
#include <vector>

#include "engine/backend/communicator_conformance.h"
#include "gtest/gtest.h"

namespace tandem {

INSTANTIATE_TEST_SUITE_P(Local, CommunicatorConformance,
                         testing::Values(CommunicatorMaker{
                             "local", [](int world_size) { return CreateLocalGroup(world_size); },
                             CreateLocalGroup}));

namespace {

// Ranks come and go at their own pace, while one of them ends the group: nobody touches memory that its owner
// has taken back, which the address and thread sanitizers would see.
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

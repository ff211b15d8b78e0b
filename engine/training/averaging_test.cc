#include <cmath>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/training/averaging_policy.h"
#include "engine/training/dealt_samples.h"
#include "engine/training/load_meter.h"
#include "engine/training/replica_average.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Two epochs of 21 samples in batches of 4: 5 whole batches, and a batch with a single sample.
v1::JobSpec Job(int64_t every_iterations) {
  v1::JobSpec spec;
  spec.mutable_training()->set_global_batch_size(4);
  spec.mutable_training()->set_epochs(2);
  spec.mutable_replicas()->mutable_parameter_averaging()->set_every_iterations(every_iterations);
  spec.mutable_replicas()->mutable_parameter_averaging()->set_average_optimizer_state(true);
  return spec;
}

DatasetInfo Data() {
  DatasetInfo data;
  data.train_samples = 21;
  return data;
}

// Returns the steps, from 1, after which replicas are averaged.
std::vector<int64_t> Points(const v1::JobSpec& spec) {
  const DealtSamples dealt(spec, Data(), {1, 1});
  std::vector<int64_t> points;
  for (int64_t step = 0; step < dealt.length.steps; ++step) {
    if (dealt.averaging.AveragesAfter(step)) points.push_back(step + 1);
    EXPECT_EQ(dealt.averaging.Averagings(step + 1), static_cast<int64_t>(points.size())) << step;
    EXPECT_EQ(dealt.averaging.AlikeAfter(step + 1).parameters,
              !spec.replicas().has_parameter_averaging() || dealt.averaging.AveragesAfter(step));
  }
  return points;
}

TEST(AveragingPolicyTest, PointsAreCountedAnewInEachEpochAndIncludeItsEnd) {
  EXPECT_THAT(Points(Job(1)), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12));
  EXPECT_THAT(Points(Job(3)), ElementsAre(3, 6, 9, 12));
  EXPECT_THAT(Points(Job(4)), ElementsAre(4, 6, 10, 12));
  EXPECT_THAT(Points(Job(1000)), ElementsAre(6, 12));
  v1::JobSpec all_reduce = Job(1);
  all_reduce.mutable_replicas()->mutable_all_reduce();
  EXPECT_THAT(Points(all_reduce), IsEmpty());
}

TEST(AveragingPolicyTest, TheLastStepOfAllIsAPoint) {
  v1::JobSpec spec = Job(4);
  spec.mutable_training()->clear_epochs();
  spec.mutable_training()->set_steps(9);
  EXPECT_THAT(Points(spec), ElementsAre(4, 6, 9));
}

TEST(AveragingPolicyTest, OnlyReplicasThatTookAStepCount) {
  // The single sample of an epoch's last batch goes to the first replica.
  const DealtSamples each(Job(1), Data(), {1, 1});
  EXPECT_THAT(each.averaging.SharesAfter(4), ElementsAre(0.5, 0.5));
  EXPECT_THAT(each.averaging.SharesAfter(5), ElementsAre(1, 0));
  EXPECT_THAT(each.averaging.SharesAfter(11), ElementsAre(1, 0));
  const DealtSamples seldom(Job(4), Data(), {1, 1});
  EXPECT_THAT(seldom.averaging.SharesAfter(5), ElementsAre(0.5, 0.5));
  const DealtSamples last_alone(Job(5), Data(), {1, 1});
  EXPECT_THAT(last_alone.averaging.SharesAfter(5), ElementsAre(1, 0));
}

TEST(AveragingPolicyTest, LoadsWeighOnlyWhereThatIsAsked) {
  v1::JobSpec spec = Job(3);
  EXPECT_THAT(DealtSamples(spec, Data(), {3, 1}).averaging.Shares(), ElementsAre(0.5, 0.5));
  spec.mutable_replicas()->mutable_parameter_averaging()->set_weighted_by_load(true);
  EXPECT_THAT(DealtSamples(spec, Data(), {3, 1}).averaging.Shares(), ElementsAre(0.75, 0.25));
}

TEST(ReplicaAverageTest, MeansByShares) {
  const Tensor a = Tensor::Of<double>({2}, {1, 8});
  const Tensor b = Tensor::Of<double>({2}, {3, std::nan("")});
  const Tensor c = Tensor::Of<float>({1}, {0.1f});
  EXPECT_THAT(MeanOf({&a, &a, &a}, {1.0 / 3, 1.0 / 3, 1.0 / 3}).data<double>(),
              ElementsAre(DoubleEq(1), DoubleEq(8)));
  EXPECT_EQ(MeanOf({&a, &b}, {0.25, 0.75}).data<double>()[0], 2.5);
  // A value with share 0 may be anything.
  EXPECT_THAT(MeanOf({&a, &b}, {1, 0}).data<double>(), ElementsAre(1, 8));
  EXPECT_THAT(MeanOf({&c, &c}, {0.5, 0.5}).data<float>(), ElementsAre(0.1f));
}

TEST(LoadMeterTest, LoadsFollowFromSpeeds) {
  const LoadMeter meter({"devices/cpu:0", "devices/cpu:1", "devices/cpu:2"}, /*first_step=*/100);
  std::vector<ReplicaSpeed> speeds(3);
  std::vector<double> measured(3);
  int64_t measured_after = 0;
  for (int64_t step = 100; step < 120 && measured_after == 0; ++step) {
    for (int rank = 0; rank < 3; ++rank) {
      // The first steps are slow. The third replica is eight times slower than the first.
      speeds[rank].samples += 10;
      speeds[rank].seconds += step < 103 ? 100 : rank == 2 ? 0.8 : rank == 1 ? 0.196 : 0.1;
      if (const std::optional<double> speed = meter.Measure(step, &speeds[rank]); speed.has_value()) {
        measured[rank] = *speed;
        measured_after = step;
      }
    }
  }
  EXPECT_EQ(measured_after, 112);
  const v1::WorkerLoads loads = meter.Loads(measured, 113, 30);
  EXPECT_EQ(loads.step(), 113);
  ASSERT_EQ(loads.replicas_size(), 3);
  EXPECT_EQ(loads.replicas(0).load(), 1);
  EXPECT_EQ(loads.replicas(1).load(), 0.5);
  EXPECT_EQ(loads.replicas(2).load(), 0.25);
  EXPECT_EQ(loads.replicas(2).device(), "devices/cpu:2");
  EXPECT_NEAR(loads.replicas(0).samples_per_second(), 100, 1e-6);
  // Every replica gets samples.
  const v1::WorkerLoads few = meter.Loads(measured, 113, 3);
  for (const v1::ReplicaLoad& replica : few.replicas()) EXPECT_EQ(replica.load(), 1);
}

}  // namespace
}  // namespace tandem

#include "engine/data/sampler.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;

std::vector<uint32_t> Epoch(Sampler& sampler, int64_t epoch, int replicas) {
  std::vector<uint32_t> all;
  for (int64_t step = 0; step < sampler.steps_per_epoch(); ++step) {
    for (int rank = 0; rank < replicas; ++rank) {
      const Sampler::Share share = sampler.ShareOf(epoch, step, rank);
      EXPECT_EQ(share.count, sampler.ShareSamples(step, rank));
      all.insert(all.end(), share.indices().begin(), share.indices().end());
    }
  }
  return all;
}

TEST(SamplerTest, ShufflesAreOtherEachEpochAndReachEverySample) {
  std::vector<uint32_t> first = ShuffledOrder(1000, 7, 1);
  EXPECT_NE(first, ShuffledOrder(1000, 7, 2));
  EXPECT_NE(first, ShuffledOrder(1000, 8, 1));
  EXPECT_EQ(first, ShuffledOrder(1000, 7, 1));
  std::sort(first.begin(), first.end());
  for (uint32_t i = 0; i < 1000; ++i) ASSERT_EQ(first[i], i);
}

TEST(SamplerTest, BatchesAreTheSameForAnyNumberOfReplicas) {
  const Sampler::Options options{.samples = 103, .batch = 10, .loads = {1}, .shuffle = true, .seed = 3};
  Sampler one(options);
  Sampler::Options spread = options;
  spread.loads = {1, 1, 1};
  Sampler three(spread);
  EXPECT_EQ(one.steps_per_epoch(), 11);
  EXPECT_EQ(one.BatchSamples(9), 10);
  EXPECT_EQ(one.BatchSamples(10), 3);
  for (const int64_t epoch : {1, 2}) EXPECT_EQ(Epoch(one, epoch, 1), Epoch(three, epoch, 3));
}

TEST(SamplerTest, ShardsFollowEachOtherAtRandomAndABufferMixesTheirSamples) {
  // 20 shards of 10, 1, 10, 1 ... samples.
  std::vector<int64_t> ends;
  for (int64_t i = 0; i < 20; ++i) ends.push_back((ends.empty() ? 0 : ends.back()) + (i % 2 == 0 ? 10 : 1));
  const auto sorted = [](std::vector<uint32_t> order) {
    std::sort(order.begin(), order.end());
    return order;
  };
  std::vector<uint32_t> all(110);
  std::iota(all.begin(), all.end(), 0);
  const std::vector<uint32_t> running = ShardedOrder(ends, 1, 7, 1);
  EXPECT_EQ(sorted(running), all);
  // With a buffer of one sample, only the order of the shards is random.
  EXPECT_NE(running, all);
  int breaks = 0;
  for (size_t i = 1; i < running.size(); ++i) {
    if (running[i] == running[i - 1] + 1) continue;
    ++breaks;
    EXPECT_TRUE(running[i] == 0 || std::count(ends.begin(), ends.end(), running[i]) == 1) << running[i];
  }
  EXPECT_LE(breaks, 19);
  for (const int64_t buffer : {2, 15, 110, 1000}) {
    SCOPED_TRACE(buffer);
    const std::vector<uint32_t> order = ShardedOrder(ends, buffer, 7, 1);
    EXPECT_EQ(sorted(order), all);
    EXPECT_EQ(order, ShardedOrder(ends, buffer, 7, 1));
    EXPECT_NE(order, ShardedOrder(ends, buffer, 7, 2));
    EXPECT_NE(order, ShardedOrder(ends, buffer, 8, 1));
    // Sample `running[i]` enters the buffer before step i - buffer + 1, so it is not used earlier.
    for (size_t i = 0; i < running.size(); ++i) {
      const auto used = std::find(order.begin(), order.end(), running[i]) - order.begin();
      EXPECT_GE(used, static_cast<int64_t>(i) - buffer + 1);
    }
  }
}

TEST(SamplerTest, ABufferOfAllSamplesMakesEachPlaceEquallyLikely) {
  const std::vector<int64_t> ends = {2, 3, 5};
  int counts[5][5] = {};
  constexpr int kEpochs = 5000;
  for (int epoch = 1; epoch <= kEpochs; ++epoch) {
    const std::vector<uint32_t> order = ShardedOrder(ends, 5, 3, epoch);
    for (size_t i = 0; i < 5; ++i) ++counts[i][order[i]];
  }
  // Five standard deviations of a binomial number.
  for (const auto& row : counts) {
    for (const int count : row) EXPECT_NEAR(count, kEpochs / 5, 5 * std::sqrt(kEpochs * 0.2 * 0.8));
  }
}

TEST(SamplerTest, ShardedBatchesAreTheSameForAnyNumberOfReplicas) {
  Sampler::Options options{.samples = 30,
                           .batch = 7,
                           .loads = {1},
                           .shuffle = true,
                           .shard_ends = {10, 11, 30},
                           .shuffle_buffer = 4,
                           .seed = 3};
  Sampler one(options);
  options.loads = {1, 1, 1};
  Sampler three(options);
  for (const int64_t epoch : {1, 2}) {
    EXPECT_EQ(Epoch(one, epoch, 1), Epoch(three, epoch, 3));
    EXPECT_EQ(Epoch(one, epoch, 1), ShardedOrder({10, 11, 30}, 4, 3, epoch));
  }
}

// Samples 0 to 89 are of a frequent class, 90 to 96 of a rare class, and 97 to 99 of the rarest.
ClassSamples ThreeClasses() {
  ClassSamples classes(3);
  for (uint32_t i = 0; i < 100; ++i) classes[i < 90 ? 0 : (i < 97 ? 1 : 2)].push_back(i);
  return classes;
}

TEST(SamplerTest, BalancedEpochsHaveAllClassesEquallyOften) {
  const ClassSamples classes = ThreeClasses();
  std::vector<int> longer;
  std::set<uint32_t> seen;
  for (int64_t epoch = 1; epoch <= 60; ++epoch) {
    std::map<uint32_t, int> times;
    for (const uint32_t index : BalancedOrder(classes, 100, 7, epoch)) ++times[index];
    std::vector<int> of_class;
    for (const std::vector<uint32_t>& members : classes) {
      int all = 0, least = 100, most = 0;
      for (const uint32_t index : members) {
        all += times[index];
        least = std::min(least, times[index]);
        most = std::max(most, times[index]);
        if (times[index] > 0) seen.insert(index);
      }
      EXPECT_LE(most - least, 1);
      of_class.push_back(all);
    }
    std::vector<int> sorted = of_class;
    std::sort(sorted.begin(), sorted.end());
    EXPECT_THAT(sorted, ElementsAre(33, 33, 34));
    longer.push_back(static_cast<int>(std::max_element(of_class.begin(), of_class.end()) - of_class.begin()));
  }
  EXPECT_EQ(std::count(longer.begin(), longer.end(), 0), 20);
  EXPECT_EQ(std::count(longer.begin(), longer.end(), 1), 20);
  EXPECT_EQ(seen.size(), 100u) << "some samples were never drawn";
}

TEST(SamplerTest, BalancedOrdersDependOnSeedAndEpochAlone) {
  const ClassSamples classes = ThreeClasses();
  const std::vector<uint32_t> first = BalancedOrder(classes, 100, 7, 1);
  EXPECT_EQ(first, BalancedOrder(classes, 100, 7, 1));
  EXPECT_NE(first, BalancedOrder(classes, 100, 7, 2));
  EXPECT_NE(first, BalancedOrder(classes, 100, 8, 1));
  Sampler::Options options{.samples = 100,
                           .batch = 9,
                           .loads = {1},
                           .shuffle = true,
                           .classes = std::make_shared<ClassSamples>(classes),
                           .seed = 7};
  Sampler one(options);
  options.loads = {1, 2, 1};
  Sampler three(options);
  EXPECT_EQ(Epoch(one, 1, 1), first);
  for (const int64_t epoch : {1, 2, 3}) EXPECT_EQ(Epoch(one, epoch, 1), Epoch(three, epoch, 3));
}

TEST(SamplerTest, FewerSamplesThanClassesTakeTurns) {
  const ClassSamples classes = {{0, 1}, {2}, {3}};
  std::map<uint32_t, int> times;
  for (int64_t epoch = 1; epoch <= 3; ++epoch) {
    const std::vector<uint32_t> order = BalancedOrder(classes, 2, 0, epoch);
    ASSERT_EQ(order.size(), 2u);
    for (const uint32_t index : order) ++times[index];
  }
  EXPECT_EQ(times[0] + times[1], 2);
  EXPECT_EQ(times[2], 2);
  EXPECT_EQ(times[3], 2);
}

TEST(SamplerTest, AReplicaMayGetNothingOfTheLastBatch) {
  Sampler sampler({.samples = 9, .batch = 4, .loads = {1, 1}, .shuffle = false, .seed = 0});
  EXPECT_EQ(sampler.ShareSamples(0, 1), 2);
  EXPECT_EQ(sampler.ShareSamples(2, 0), 1);
  EXPECT_EQ(sampler.ShareSamples(2, 1), 0);
  EXPECT_THAT(Epoch(sampler, 1, 2), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8));
}

TEST(SamplerTest, ALastShortBatchIsDropped) {
  const Sampler::Options options{.samples = 103, .batch = 10, .loads = {1, 1}, .shuffle = true, .seed = 3};
  Sampler::Options dropping = options;
  dropping.drop_last = true;
  Sampler whole(options);
  Sampler sampler(dropping);
  EXPECT_EQ(sampler.steps_per_epoch(), 10);
  EXPECT_EQ(sampler.BatchSamples(9), 10);
  EXPECT_EQ(sampler.ShareSamples(9, 1), 5);
  EXPECT_EQ(sampler.epoch_samples(), 100);
  EXPECT_EQ(whole.epoch_samples(), 103);
  std::set<uint32_t> dropped;
  for (const int64_t epoch : {1, 2}) {
    std::vector<uint32_t> all = Epoch(whole, epoch, 2);
    const std::vector<uint32_t> kept = Epoch(sampler, epoch, 2);
    dropped.insert(all.begin() + 100, all.end());
    all.resize(100);
    EXPECT_EQ(kept, all);
  }
  EXPECT_GT(dropped.size(), 3) << "the same samples are left out of each epoch";
}

TEST(SamplerTest, NothingIsDroppedOfWholeBatches) {
  Sampler sampler({.samples = 20, .batch = 10, .loads = {1}, .drop_last = true});
  EXPECT_EQ(sampler.steps_per_epoch(), 2);
  EXPECT_EQ(sampler.BatchSamples(1), 10);
}

TEST(SamplerTest, ABatchLargerThanTheDataIsTheData) {
  Sampler sampler({.samples = 5, .batch = 100, .loads = {1, 1}, .shuffle = false, .seed = 0});
  EXPECT_EQ(sampler.steps_per_epoch(), 1);
  EXPECT_EQ(sampler.BatchSamples(0), 5);
  EXPECT_EQ(sampler.ShareSamples(0, 0), 3);
}

}  // namespace
}  // namespace tandem

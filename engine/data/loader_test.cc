#include "engine/data/loader.h"

#include <atomic>
#include <new>
#include <numeric>

#include "engine/base/mutex.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

// Sample i is the bytes i, i and its label is i.
class CountingDataset final : public Dataset {
 public:
  int64_t size() const override { return 10; }
  int64_t sample_bytes() const override { return 2; }
  int64_t target_bytes() const override { return sizeof(int32_t); }
  void Gather(absl::Span<const uint32_t> indices, void* samples, void* targets) const override {
    uint8_t* images = static_cast<uint8_t*>(samples);
    int32_t* labels = static_cast<int32_t*>(targets);
    for (const uint32_t index : indices) {
      *images++ = static_cast<uint8_t>(index);
      *images++ = static_cast<uint8_t>(index);
      *labels++ = static_cast<int32_t>(index);
    }
  }
};

// No memory for its samples after the first step's.
class GreedyDataset final : public Dataset {
 public:
  int64_t size() const override { return 8; }
  int64_t sample_bytes() const override { return 1; }
  int64_t target_bytes() const override { return sizeof(int32_t); }
  void Gather(absl::Span<const uint32_t> /*indices*/, void* /*samples*/, void* /*targets*/) const override {
    if (calls_++ > 0) throw std::bad_alloc();
  }

 private:
  mutable std::atomic<int> calls_{0};
};

TEST(LoaderTest, MemoryThatItsThreadCannotHaveIsTheCallersError) {
  for (const int depth : {0, 1, 3}) {
    const GreedyDataset greedy;
    Sampler sampler({.samples = 8, .batch = 2, .loads = {1}, .shuffle = false, .seed = 0});
    Loader loader(&greedy, &sampler, 0, 0, sampler.steps_per_epoch(), depth);
    EXPECT_EQ(loader.Next().samples, 2);
    EXPECT_THROW(loader.Next(), std::bad_alloc);
  }
}

TEST(LoaderTest, GivesTheSamplersSharesAtAnyDepth) {
  const CountingDataset dataset;
  for (const int depth : {0, 1, 2, 64}) {
    SCOPED_TRACE(depth);
    Sampler sampler({.samples = 10, .batch = 4, .loads = {1, 1}, .shuffle = true, .seed = 1});
    Loader loader(&dataset, &sampler, 1, /*first_step=*/0, 3 * sampler.steps_per_epoch(), depth);
    for (int64_t epoch = 1; epoch <= 3; ++epoch) {
      const std::vector<uint32_t> order = ShuffledOrder(10, 1, epoch);
      for (int64_t step = 0; step < 3; ++step) {
        const Batch batch = loader.Next();
        ASSERT_EQ(batch.samples, step < 2 ? 2 : 1);
        for (int64_t i = 0; i < batch.samples; ++i) {
          const uint32_t expected = order[step * 4 + (step < 2 ? 2 : 1) + i];
          ASSERT_EQ(static_cast<const int32_t*>(batch.target)[i], static_cast<int32_t>(expected));
          ASSERT_EQ(static_cast<const uint8_t*>(batch.input)[2 * i + 1], expected);
        }
      }
    }
    EXPECT_GE(loader.wait_seconds(), 0);
  }
}

// Counts the steps that were gathered.
class WatchedDataset final : public Dataset {
 public:
  int64_t size() const override { return samples_.size(); }
  int64_t sample_bytes() const override { return samples_.sample_bytes(); }
  int64_t target_bytes() const override { return samples_.target_bytes(); }
  void Gather(absl::Span<const uint32_t> indices, void* samples, void* targets) const override {
    samples_.Gather(indices, samples, targets);
    MutexLock lock(&mutex_);
    ++gathered_;
  }

  bool WaitFor(int steps) const {
    MutexLock lock(&mutex_);
    const auto reached = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return gathered_ >= steps; };
    return mutex_.AwaitWithTimeout(absl::Condition(&reached), absl::Seconds(30));
  }
  int gathered() const {
    MutexLock lock(&mutex_);
    return gathered_;
  }

 private:
  CountingDataset samples_;
  mutable Mutex mutex_;
  mutable int gathered_ ABSL_GUARDED_BY(mutex_) = 0;
};

TEST(LoaderTest, KeepsAsManyStepsReadyAsItsDepthWhileOneIsRead) {
  for (const int depth : {1, 3}) {
    SCOPED_TRACE(depth);
    const WatchedDataset dataset;
    Sampler sampler({.samples = 10, .batch = 1, .loads = {1}, .shuffle = false, .seed = 0});
    Loader loader(&dataset, &sampler, 0, /*first_step=*/0, sampler.steps_per_epoch(), depth);
    EXPECT_TRUE(dataset.WaitFor(depth));
    for (int step = 0; step < 5; ++step) {
      const Batch batch = loader.Next();
      EXPECT_TRUE(dataset.WaitFor(step + 1 + depth));
      // Nor more: what is read would be overwritten.
      EXPECT_LE(dataset.gathered(), step + 1 + depth);
      EXPECT_EQ(static_cast<const int32_t*>(batch.target)[0], step);
    }
  }
}

TEST(LoaderTest, MayBeLeftInTheMiddle) {
  const CountingDataset dataset;
  Sampler sampler({.samples = 10, .batch = 1, .loads = {1}, .shuffle = false, .seed = 0});
  Loader loader(&dataset, &sampler, 0, /*first_step=*/0, 1000 * sampler.steps_per_epoch(), /*depth=*/3);
  loader.Next();
}

}  // namespace
}  // namespace tandem

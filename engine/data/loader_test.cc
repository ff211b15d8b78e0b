#include "engine/data/loader.h"

#include <pthread.h>

#include <atomic>
#include <new>
#include <numeric>
#include <system_error>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "engine/base/clock.h"
#include "engine/base/mutex.h"
#include "engine/base/status_macros.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

// Sample i is the bytes i, i, and its label is i.
class CountingDataset final : public Dataset {
 public:
  int64_t size() const override { return 10; }
  int64_t sample_bytes() const override { return 2; }
  int64_t target_bytes() const override { return sizeof(int32_t); }
  absl::Status Gather(absl::Span<const uint32_t> indices, void* samples, void* targets) const override {
    uint8_t* images = static_cast<uint8_t*>(samples);
    int32_t* labels = static_cast<int32_t*>(targets);
    for (const uint32_t index : indices) {
      *images++ = static_cast<uint8_t>(index);
      *images++ = static_cast<uint8_t>(index);
      *labels++ = static_cast<int32_t>(index);
    }
    return absl::OkStatus();
  }
};

// Has no memory for samples after the first step.
class GreedyDataset final : public Dataset {
 public:
  int64_t size() const override { return 8; }
  int64_t sample_bytes() const override { return 1; }
  int64_t target_bytes() const override { return sizeof(int32_t); }
  absl::Status Gather(absl::Span<const uint32_t> /*indices*/, void* /*samples*/,
                      void* /*targets*/) const override {
    if (calls_++ > 0) throw std::bad_alloc();
    return absl::OkStatus();
  }

 private:
  mutable std::atomic<int> calls_{0};
};

TEST(LoaderTest, MemoryThatItsThreadCannotHaveIsTheCallersError) {
  for (const int depth : {0, 1, 3}) {
    const GreedyDataset greedy;
    Sampler sampler({.samples = 8, .batch = 2, .loads = {1}, .shuffle = false, .seed = 0});
    Loader loader(&greedy, &sampler, 0, 0, sampler.steps_per_epoch(), depth);
    EXPECT_EQ(loader.Next()->samples, 2);
    EXPECT_THROW(loader.Next().status().IgnoreError(), std::bad_alloc);
  }
}

// Cannot read samples after the first step.
class BrokenDataset final : public Dataset {
 public:
  int64_t size() const override { return 8; }
  int64_t sample_bytes() const override { return 1; }
  int64_t target_bytes() const override { return sizeof(int32_t); }
  absl::Status Gather(absl::Span<const uint32_t> /*indices*/, void* /*samples*/,
                      void* /*targets*/) const override {
    return calls_++ > 0 ? absl::InvalidArgumentError("broken") : absl::OkStatus();
  }

 private:
  mutable std::atomic<int> calls_{0};
};

TEST(LoaderTest, SamplesThatCannotBeReadAreTheCallersError) {
  for (const int depth : {0, 1, 3}) {
    const BrokenDataset broken;
    Sampler sampler({.samples = 8, .batch = 2, .loads = {1}, .shuffle = false, .seed = 0});
    Loader loader(&broken, &sampler, 0, 0, sampler.steps_per_epoch(), depth);
    EXPECT_EQ(loader.Next()->samples, 2);
    for (int again = 0; again < 2; ++again) {
      const absl::Status status = loader.Next().status();
      EXPECT_TRUE(absl::IsDataLoss(status)) << status;
      EXPECT_EQ(status.message(), "cannot read samples: broken");
    }
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
        const Batch batch = *loader.Next();
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

// Counts the gathered steps.
class WatchedDataset final : public Dataset {
 public:
  int64_t size() const override { return samples_.size(); }
  int64_t sample_bytes() const override { return samples_.sample_bytes(); }
  int64_t target_bytes() const override { return samples_.target_bytes(); }
  absl::Status Gather(absl::Span<const uint32_t> indices, void* samples, void* targets) const override {
    TANDEM_RETURN_IF_ERROR(samples_.Gather(indices, samples, targets));
    MutexLock lock(&mutex_);
    ++gathered_;
    return absl::OkStatus();
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
      const Batch batch = *loader.Next();
      EXPECT_TRUE(dataset.WaitFor(step + 1 + depth));
      // The thread gathers no further, because that would overwrite the caller's samples.
      EXPECT_LE(dataset.gathered(), step + 1 + depth);
      EXPECT_EQ(static_cast<const int32_t*>(batch.target)[0], step);
    }
  }
}

// Each thread has its own time, which it moves by hand.
class OwnTime final : public Clock {
 public:
  absl::Time Now() const override { return absl::UnixEpoch() + time_; }
  absl::Duration Elapsed() const override { return time_; }
  static void Advance(absl::Duration by) { time_ += by; }

 private:
  static thread_local absl::Duration time_;
};
thread_local absl::Duration OwnTime::time_;

// Takes a settable time for a step, and records the thread that took it.
class SlowDataset final : public Dataset {
 public:
  int64_t size() const override { return samples_.size(); }
  int64_t sample_bytes() const override { return samples_.sample_bytes(); }
  int64_t target_bytes() const override { return samples_.target_bytes(); }
  absl::Status Gather(absl::Span<const uint32_t> indices, void* samples, void* targets) const override {
    TANDEM_RETURN_IF_ERROR(samples_.Gather(indices, samples, targets));
    MutexLock lock(&mutex_);
    OwnTime::Advance(cost_);
    last_ = std::this_thread::get_id();
    return absl::OkStatus();
  }

  void set_cost(absl::Duration cost) {
    MutexLock lock(&mutex_);
    cost_ = cost;
  }
  bool CallerWasLast() const {
    MutexLock lock(&mutex_);
    return last_ == std::this_thread::get_id();
  }

 private:
  CountingDataset samples_;
  mutable Mutex mutex_;
  absl::Duration cost_ ABSL_GUARDED_BY(mutex_);
  mutable std::thread::id last_ ABSL_GUARDED_BY(mutex_);
};

TEST(LoaderTest, CallersGatherWhatIsCheapThemselves) {
  const OwnTime clock;
  SlowDataset dataset;
  Sampler sampler({.samples = 10, .batch = 1, .loads = {1}, .shuffle = true, .seed = 5});
  constexpr int kEpochs = 100;
  Loader loader(&dataset, &sampler, 0, 0, kEpochs * sampler.steps_per_epoch(), /*depth=*/2, &clock);
  std::vector<uint32_t> order;
  for (int epoch = 1; epoch <= kEpochs; ++epoch) {
    for (const uint32_t index : ShuffledOrder(10, 5, epoch)) order.push_back(index);
  }
  int step = 0;
  // Takes steps, each with a second of computing, until the caller gathers or no longer gathers.
  const auto becomes = [&](bool caller) {
    for (const int last = step + 40; step < last;) {
      const Batch batch = *loader.Next();
      EXPECT_EQ(*static_cast<const int32_t*>(batch.target), static_cast<int32_t>(order[step++]));
      if (dataset.CallerWasLast() == caller) return true;
      OwnTime::Advance(absl::Seconds(1));
    }
    return false;
  };
  dataset.set_cost(absl::Milliseconds(50));
  EXPECT_FALSE(becomes(true)) << "dear samples are for a thread to prepare";
  dataset.set_cost(absl::Milliseconds(1));
  EXPECT_TRUE(becomes(true));
  dataset.set_cost(absl::Milliseconds(50));
  EXPECT_TRUE(becomes(false));
  dataset.set_cost(absl::Milliseconds(1));
  EXPECT_TRUE(becomes(true));
}

TEST(LoaderTest, CallersGatherIfNoThreadStarts) {
  // No machine has memory for so large a stack.
  pthread_attr_t usual, huge;
  ASSERT_EQ(::pthread_getattr_default_np(&usual), 0);
  ASSERT_EQ(::pthread_attr_init(&huge), 0);
  ASSERT_EQ(::pthread_attr_setstacksize(&huge, size_t{1} << 50), 0);
  ASSERT_EQ(::pthread_setattr_default_np(&huge), 0);
  EXPECT_THROW(std::thread([] {}).join(), std::system_error);
  const CountingDataset dataset;
  Sampler sampler({.samples = 10, .batch = 1, .loads = {1}, .shuffle = false, .seed = 0});
  Loader loader(&dataset, &sampler, 0, /*first_step=*/0, 10 * sampler.steps_per_epoch(), /*depth=*/3);
  for (int step = 0; step < 100; ++step) {
    const auto batch = loader.Next();
    ASSERT_TRUE(batch.ok()) << batch.status();
    EXPECT_EQ(*static_cast<const uint8_t*>(batch->input), step % 10);
  }
  ASSERT_EQ(::pthread_setattr_default_np(&usual), 0);
  ::pthread_attr_destroy(&huge);
  ::pthread_attr_destroy(&usual);
}

TEST(LoaderTest, MayBeLeftInTheMiddle) {
  const CountingDataset dataset;
  Sampler sampler({.samples = 10, .batch = 1, .loads = {1}, .shuffle = false, .seed = 0});
  Loader loader(&dataset, &sampler, 0, /*first_step=*/0, 1000 * sampler.steps_per_epoch(), /*depth=*/3);
  EXPECT_TRUE(loader.Next().ok());
}

}  // namespace
}  // namespace tandem

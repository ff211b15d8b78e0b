#include "engine/collectives/background_communicator.h"

#include <atomic>
#include <cfenv>
#include <cstdint>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "engine/backend/communicator_conformance.h"
#include "engine/backend/thread_communicator.h"
#include "engine/base/mutex.h"
#include "engine/collectives/local/local_group.h"

namespace tandem {
namespace {

std::vector<std::unique_ptr<Communicator>> Wrapped(std::vector<std::unique_ptr<Communicator>> inner) {
  for (std::unique_ptr<Communicator>& end : inner) {
    end = std::make_unique<BackgroundCommunicator>(std::move(end));
  }
  return inner;
}

INSTANTIATE_TEST_SUITE_P(
    Background, CommunicatorConformance,
    testing::Values(CommunicatorMaker{"threads",
                                      [](int size) { return Wrapped(CreateThreadCommunicators(size)); }},
                    CommunicatorMaker{"local", [](int size) { return Wrapped(CreateLocalGroup(size)); },
                                      [](int size, absl::Duration watchdog) {
                                        return Wrapped(CreateLocalGroup(size, watchdog));
                                      }}),
    [](const auto& info) { return info.param.name; });

// A single rank. Its reductions block until the test lets them pass. It records its calls.
class Gate final : public Communicator {
 public:
  int rank() const override { return 0; }
  int world_size() const override { return 1; }
  absl::Status AllReduce(BufferView buffer, ReduceOp) override {
    MutexLock lock(&mutex_);
    calls_.push_back("reduce " + std::to_string(buffer.elements));
    const auto may = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return open_ || !status_.ok(); };
    mutex_.Await(absl::Condition(&may));
    // The result is too small for a normal number.
    if (buffer.elements == 1) *static_cast<float*>(buffer.data) *= 0x1p-10f;
    return buffer.elements == 13 ? absl::InternalError("thirteen") : status_;
  }
  absl::Status Broadcast(BufferView, int) override { return absl::OkStatus(); }
  absl::Status Barrier() override {
    MutexLock lock(&mutex_);
    calls_.push_back("barrier");
    return status_;
  }
  void Abort(absl::Status status) override {
    MutexLock lock(&mutex_);
    status_ = std::move(status);
  }
  absl::Status status() const override {
    MutexLock lock(&mutex_);
    return status_;
  }

  void Open() {
    MutexLock lock(&mutex_);
    open_ = true;
  }
  std::vector<std::string> calls() const {
    MutexLock lock(&mutex_);
    return calls_;
  }

 private:
  mutable Mutex mutex_;
  bool open_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> calls_ ABSL_GUARDED_BY(mutex_);
};

BufferView Elements(std::vector<float>& memory, int64_t count) {
  return {memory.data(), count, DType::kFloat32};
}

class BackgroundCommunicatorTest : public testing::Test {
 protected:
  BackgroundCommunicatorTest() {
    auto gate = std::make_unique<Gate>();
    gate_ = gate.get();
    background_ = std::make_unique<BackgroundCommunicator>(std::move(gate));
  }

  std::vector<float> memory_ = std::vector<float>(20, 1.0f);
  Gate* gate_ = nullptr;
  std::unique_ptr<BackgroundCommunicator> background_;
};

TEST_F(BackgroundCommunicatorTest, WhatWasBegunGoesOnBesideTheCaller) {
  // The gate is shut, so these calls would hang if they blocked.
  const absl::StatusOr<int64_t> first = background_->BeginAllReduce(Elements(memory_, 2), ReduceOp::kSum);
  const absl::StatusOr<int64_t> second = background_->BeginAllReduce(Elements(memory_, 3), ReduceOp::kSum);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_LT(*first, *second);
  gate_->Open();
  EXPECT_TRUE(background_->Await(*second).ok());
  EXPECT_TRUE(background_->Await(*first).ok());
  EXPECT_EQ(gate_->calls(), std::vector<std::string>({"reduce 2", "reduce 3"}));
}

TEST_F(BackgroundCommunicatorTest, OtherCallsWaitForWhatWasBegun) {
  const absl::StatusOr<int64_t> begun = background_->BeginAllReduce(Elements(memory_, 2), ReduceOp::kSum);
  ASSERT_TRUE(begun.ok());
  std::atomic<bool> met{false};
  std::thread caller([&] {
    EXPECT_TRUE(background_->Barrier().ok());
    met = true;
  });
  absl::SleepFor(absl::Milliseconds(50));
  EXPECT_FALSE(met);
  gate_->Open();
  caller.join();
  EXPECT_TRUE(background_->Await(*begun).ok());
  EXPECT_EQ(gate_->calls(), std::vector<std::string>({"reduce 2", "barrier"}));
}

TEST_F(BackgroundCommunicatorTest, AnErrorIsSaidOnceByTheAwaitOfItsReduction) {
  gate_->Open();
  std::vector<int64_t> begun;
  for (const int64_t elements : {2, 13, 4, 13, 5}) {
    begun.push_back(*background_->BeginAllReduce(Elements(memory_, elements), ReduceOp::kSum));
  }
  EXPECT_TRUE(background_->Await(begun[0]).ok());
  EXPECT_EQ(background_->Await(begun[2]), absl::InternalError("thirteen"));
  EXPECT_TRUE(background_->Await(begun[2]).ok());
  EXPECT_EQ(background_->Await(begun[4]), absl::InternalError("thirteen"));
  EXPECT_TRUE(background_->Await(begun[4]).ok());
}

TEST_F(BackgroundCommunicatorTest, AnAbortEndsWhatWaits) {
  std::vector<int64_t> begun;
  for (const int64_t elements : {2, 3, 4}) {
    begun.push_back(*background_->BeginAllReduce(Elements(memory_, elements), ReduceOp::kSum));
  }
  const absl::Status reason = absl::UnavailableError("the other rank is gone");
  std::thread elsewhere([&] {
    absl::SleepFor(absl::Milliseconds(20));
    background_->Abort(reason);
  });
  for (const int64_t number : begun) EXPECT_EQ(background_->Await(number), reason);
  elsewhere.join();
}

TEST_F(BackgroundCommunicatorTest, ItsThreadComputesAsTheCallers) {
  gate_->Open();
  const auto product = [&] {
    memory_[0] = 0x1p-120f;
    EXPECT_TRUE(background_->Await(*background_->BeginAllReduce(Elements(memory_, 1), ReduceOp::kSum)).ok());
    return memory_[0];
  };
  EXPECT_EQ(product(), 0x1p-130f);
  std::fenv_t before;
  std::fegetenv(&before);
  // Denormal numbers become zero, as in runs of the CPU backend.
  std::fenv_t flushing = before;
  flushing.__mxcsr |= 0x8040;
  std::fesetenv(&flushing);
  const float flushed = product();
  std::fesetenv(&before);
  EXPECT_EQ(flushed, 0.0f);
  EXPECT_EQ(product(), 0x1p-130f);
}

}  // namespace
}  // namespace tandem

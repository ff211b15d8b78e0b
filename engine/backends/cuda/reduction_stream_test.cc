#include "engine/backends/cuda/reduction_stream.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "engine/backends/cuda/driver/driver.h"
#include "engine/backends/cuda/driver/emulated_stream.h"
#include "gtest/gtest.h"

namespace tandem::cuda {
namespace {

constexpr int64_t kElements = 64;
constexpr int64_t kBytes = kElements * sizeof(float);

// Streams of the emulation that work as late or as early as possible.
class ReductionStreamTest : public testing::Test {
 protected:
  void SetUp() override {
    for (DeviceMemory* memory : {&made_, &bucket_, &reduced_, &read_, &other_}) {
      absl::StatusOr<DeviceMemory> allocated = DeviceMemory::Allocate(kBytes);
      ASSERT_TRUE(allocated.ok()) << allocated.status();
      *memory = *std::move(allocated);
    }
    Fill(made_, 3);
  }
  void TearDown() override {
    reductions_.reset();
    device_.reset();
    DeferStreams(0);
  }

  // Creates a device whose stream is late or works at once, and a reduction stream of the same kind.
  void Open(bool computes_late, bool reduces_late) {
    device_ = std::make_shared<DeviceContext>();
    DeferStreams(computes_late ? 1 : 0);
    device_->stream = *OwnedStream::Create();
    if (!computes_late) DeferStreams(reduces_late ? 1 : 0);
    reductions_ = std::make_unique<ReductionStream>(device_);
  }

  static void Fill(DeviceMemory& memory, float number) {
    std::fill_n(reinterpret_cast<float*>(memory.data()), kElements, number);
  }
  static float First(const DeviceMemory& memory) { return *reinterpret_cast<const float*>(memory.data()); }

  void Compute(DeviceMemory& to, const DeviceMemory& from) {
    ASSERT_TRUE(Copy(to.data(), from.data(), kBytes, device_->stream->get()).ok());
  }
  // Does an operation in place of a reduction.
  int64_t Reduce() {
    const absl::StatusOr<Stream> stream = reductions_->Begin();
    EXPECT_TRUE(stream.ok()) << stream.status();
    EXPECT_TRUE(Copy(reduced_.data(), bucket_.data(), kBytes, *stream).ok());
    const absl::StatusOr<int64_t> begun = reductions_->End();
    EXPECT_TRUE(begun.ok()) << begun.status();
    return begun.value_or(-1);
  }

  DeviceMemory made_, bucket_, reduced_, read_, other_;
  std::shared_ptr<DeviceContext> device_;
  std::unique_ptr<ReductionStream> reductions_;
};

TEST_F(ReductionStreamTest, AReductionComesBehindWhatMakesItsElements) {
  Open(/*computes_late=*/true, /*reduces_late=*/false);
  Compute(bucket_, made_);
  const int64_t begun = Reduce();
  // Nothing has run, because nobody waits for it. The reduction waits for the computation.
  EXPECT_NE(First(bucket_), 3);
  EXPECT_NE(First(reduced_), 3);
  ASSERT_TRUE(reductions_->Await(begun).ok());
  Compute(read_, reduced_);
  ASSERT_TRUE(device_->stream->Synchronize().ok());
  EXPECT_EQ(First(read_), 3);
}

TEST_F(ReductionStreamTest, WhatIsReadComesBehindTheReduction) {
  Open(/*computes_late=*/false, /*reduces_late=*/true);
  Compute(bucket_, made_);
  const int64_t begun = Reduce();
  // The computation continues, and its await blocks nothing else.
  Compute(other_, made_);
  EXPECT_EQ(First(other_), 3);
  EXPECT_NE(First(reduced_), 3);
  EXPECT_FALSE(*reductions_->Reached());
  ASSERT_TRUE(reductions_->Await(begun).ok());
  Compute(read_, reduced_);
  EXPECT_NE(First(read_), 3);
  ASSERT_TRUE(device_->stream->Synchronize().ok());
  EXPECT_EQ(First(read_), 3);
  EXPECT_TRUE(*reductions_->Reached());
}

// The second reduction does not delay work that waits for the first alone.
TEST_F(ReductionStreamTest, EachIsAwaitedByItself) {
  Open(/*computes_late=*/false, /*reduces_late=*/true);
  for (int step = 0; step < 3; ++step) {
    Fill(made_, static_cast<float>(step));
    Compute(bucket_, made_);
    const int64_t first = Reduce();
    const absl::StatusOr<Stream> stream = reductions_->Begin();
    ASSERT_TRUE(stream.ok()) << stream.status();
    Fill(other_, 7);
    ASSERT_TRUE(Copy(other_.data(), bucket_.data(), kBytes, *stream).ok());
    const absl::StatusOr<int64_t> second = reductions_->End();
    ASSERT_TRUE(second.ok()) << second.status();
    EXPECT_GT(*second, first);
    ASSERT_TRUE(reductions_->Await(first).ok());
    Compute(read_, reduced_);
    ASSERT_TRUE(device_->stream->Synchronize().ok());
    EXPECT_EQ(First(read_), static_cast<float>(step));
    EXPECT_EQ(First(other_), 7);
    ASSERT_TRUE(reductions_->Await(*second).ok());
    // The stream already waits for it.
    ASSERT_TRUE(reductions_->Await(first).ok());
    ASSERT_TRUE(device_->stream->Synchronize().ok());
    EXPECT_EQ(First(other_), static_cast<float>(step));
  }
}

TEST_F(ReductionStreamTest, NoneIsReached) {
  Open(/*computes_late=*/false, /*reduces_late=*/false);
  EXPECT_TRUE(*reductions_->Reached());
  EXPECT_TRUE(reductions_->AwaitAll().ok());
}

}  // namespace
}  // namespace tandem::cuda

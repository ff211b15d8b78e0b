#include "engine/training/timed_communicator.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "engine/backend/late_communicator.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

// A device that fails from one of its waits on.
class FailingDevice final : public Device {
 public:
  explicit FailingDevice(int good) : good_(good) {}

  const std::string& name() const override { return name_; }
  DType dtype() const override { return DType::kFloat32; }
  std::unique_ptr<Variables> CreateVariables(const Variables*) override { return nullptr; }
  absl::StatusOr<std::unique_ptr<Executable>> Compile(const Graph&, Variables*) override {
    return absl::UnimplementedError("compiles nothing");
  }
  absl::Status Wait() override {
    return good_-- > 0 ? absl::OkStatus() : absl::InternalError("the device has failed");
  }

 private:
  const std::string name_ = "failing";
  int good_;
};

class TimedCommunicatorTest : public testing::Test {
 protected:
  BufferView View() { return {elements_.data(), static_cast<int64_t>(elements_.size()), DType::kFloat32}; }

  std::vector<float> elements_ = {1, 2, 3};
  LateCommunicator late_{/*is_late=*/true};
};

TEST_F(TimedCommunicatorTest, WhatWasBegunWhenTheDeviceFailedHasEnded) {
  // The device is well before the call and fails after it.
  FailingDevice device(1);
  TimedCommunicator timed(&late_, &device);
  timed.SetWaits(true);
  const absl::StatusOr<int64_t> begun = timed.BeginAllReduce(View(), ReduceOp::kSum);
  EXPECT_EQ(begun.status().message(), "the device has failed");
  EXPECT_EQ(late_.begun(), 1);
  EXPECT_EQ(late_.going_on(), 0);
  EXPECT_EQ(elements_[2], 6);
}

TEST_F(TimedCommunicatorTest, WhatWasBegunIsAwaitedThoughTheDeviceHasFailed) {
  FailingDevice device(2);
  TimedCommunicator timed(&late_, &device);
  timed.SetWaits(true);
  const absl::StatusOr<int64_t> begun = timed.BeginAllReduce(View(), ReduceOp::kSum);
  ASSERT_TRUE(begun.ok()) << begun.status();
  EXPECT_EQ(late_.going_on(), 1);
  EXPECT_EQ(timed.Await(*begun).message(), "the device has failed");
  EXPECT_EQ(late_.going_on(), 0);
}

TEST_F(TimedCommunicatorTest, NothingIsBegunOnADeviceThatHasFailed) {
  FailingDevice device(0);
  TimedCommunicator timed(&late_, &device);
  timed.SetWaits(true);
  EXPECT_EQ(timed.BeginAllReduce(View(), ReduceOp::kSum).status().code(), absl::StatusCode::kInternal);
  EXPECT_EQ(timed.AllReduce(View(), ReduceOp::kSum).code(), absl::StatusCode::kInternal);
  EXPECT_EQ(late_.reductions(), 0);
}

TEST_F(TimedCommunicatorTest, TheFirstErrorCounts) {
  FailingDevice device(1);
  TimedCommunicator timed(&late_, &device);
  timed.SetWaits(true);
  late_.FailAt(0, absl::UnavailableError("rank 1 is lost"));
  EXPECT_EQ(timed.BeginAllReduce(View(), ReduceOp::kSum).status().message(), "rank 1 is lost");
}

TEST_F(TimedCommunicatorTest, WaitsForTheDeviceOnDemandAlone) {
  FailingDevice device(0);
  TimedCommunicator timed(&late_, &device);
  const absl::StatusOr<int64_t> begun = timed.BeginAllReduce(View(), ReduceOp::kSum);
  ASSERT_TRUE(begun.ok()) << begun.status();
  EXPECT_TRUE(timed.Await(*begun).ok());
  EXPECT_EQ(elements_[0], 2);
}

}  // namespace
}  // namespace tandem

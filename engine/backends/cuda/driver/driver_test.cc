#include "engine/backends/cuda/driver/driver.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

// Tests the driver's own calls, on a GPU if there is one, and in the emulation.

namespace tandem::cuda {
namespace {

class DriverTest : public testing::Test {
 protected:
  void SetUp() override {
    const absl::StatusOr<int> devices = CountDevices();
    if (!devices.ok() || *devices == 0) GTEST_SKIP() << "no GPU: " << devices.status();
    ASSERT_TRUE(UseDevice(0).ok());
    absl::StatusOr<std::unique_ptr<OwnedStream>> stream = OwnedStream::Create();
    ASSERT_TRUE(stream.ok()) << stream.status();
    stream_ = *std::move(stream);
  }

  std::unique_ptr<OwnedStream> stream_;
};

TEST_F(DriverTest, AnEventThatIsNotReachedIsNoErrorOfALaunch) {
  constexpr int64_t kBytes = int64_t{1} << 26;
  const int rounds = IsEmulated() ? 1 : 2000;  // Tens of milliseconds on a GPU.
  const absl::StatusOr<DeviceMemory> memory = DeviceMemory::Allocate(kBytes);
  ASSERT_TRUE(memory.ok()) << memory.status();
  const absl::StatusOr<std::unique_ptr<Event>> event = Event::Create();
  ASSERT_TRUE(event.ok()) << event.status();
  for (int i = 0; i < rounds; ++i) ASSERT_TRUE(Zero(memory->data(), kBytes, stream_->get()).ok());
  ASSERT_TRUE((*event)->Record(stream_->get()).ok());
  int64_t unfinished = 0;
  for (;; ++unfinished) {
    const absl::StatusOr<bool> reached = (*event)->Reached();
    ASSERT_TRUE(reached.ok()) << reached.status();
    const absl::Status launched = CheckLaunches();
    ASSERT_TRUE(launched.ok()) << launched;
    if (*reached) break;
  }
  EXPECT_TRUE(IsEmulated() || unfinished > 0);
}

TEST_F(DriverTest, MemoryThatIsNotThereIsNoErrorOfALaunch) {
  constexpr int64_t kBytes = int64_t{1} << 50;
  EXPECT_EQ(DeviceMemory::Allocate(kBytes).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(CheckLaunches().ok());
  EXPECT_EQ(PinnedMemory::Allocate(kBytes).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(CheckLaunches().ok());
}

// Recorded work runs at each launch, with the memory's content at that time.
TEST_F(DriverTest, RecordedWorkIsDoneAtItsLaunches) {
  constexpr int64_t kBytes = 1 << 12;
  const Stream stream = stream_->get();
  const absl::StatusOr<DeviceMemory> from = DeviceMemory::Allocate(kBytes);
  const absl::StatusOr<DeviceMemory> to = DeviceMemory::Allocate(kBytes);
  ASSERT_TRUE(from.ok() && to.ok());
  const auto fill = [&](const DeviceMemory& memory, char value) {
    const std::string bytes(kBytes, value);
    ASSERT_TRUE(Copy(memory.data(), bytes.data(), kBytes, stream).ok());
    ASSERT_TRUE(stream_->Synchronize().ok());
  };
  const auto read = [&](const DeviceMemory& memory) {
    std::string bytes(kBytes, ' ');
    EXPECT_TRUE(Copy(bytes.data(), memory.data(), kBytes, stream).ok());
    EXPECT_TRUE(stream_->Synchronize().ok());
    return bytes;
  };
  fill(*from, 'a');
  fill(*to, 'z');
  ASSERT_TRUE(RecordedWork::Begin(stream).ok());
  EXPECT_TRUE(Copy(to->data(), from->data(), kBytes, stream).ok());
  EXPECT_TRUE(Zero(from->data(), kBytes / 2, stream).ok());
  const absl::StatusOr<std::unique_ptr<RecordedWork>> work = RecordedWork::End(stream);
  ASSERT_TRUE(work.ok()) << work.status();
  EXPECT_EQ(read(*to), std::string(kBytes, 'z'));
  ASSERT_TRUE((*work)->Launch(stream).ok());
  EXPECT_EQ(read(*to), std::string(kBytes, 'a'));
  EXPECT_EQ(read(*from), std::string(kBytes / 2, '\0') + std::string(kBytes / 2, 'a'));
  fill(*from, 'b');
  ASSERT_TRUE((*work)->Launch(stream).ok());
  EXPECT_EQ(read(*to), std::string(kBytes, 'b'));
}

// Each part copies the result of the part before it. The two chains share no memory.
TEST_F(DriverTest, PartsOfARecordComeAfterThoseThatTheyWaitFor) {
  constexpr int64_t kBytes = 1 << 20;
  constexpr int kLinks = 8;
  const Stream stream = stream_->get();
  std::vector<DeviceMemory> memory;
  for (int i = 0; i < 2 * (kLinks + 1); ++i) {
    absl::StatusOr<DeviceMemory> made = DeviceMemory::Allocate(kBytes);
    ASSERT_TRUE(made.ok()) << made.status();
    ASSERT_TRUE(Zero(made->data(), kBytes, stream).ok());
    memory.push_back(*std::move(made));
  }
  for (const int chain : {0, 1}) {
    const std::string bytes(kBytes, static_cast<char>('a' + chain));
    ASSERT_TRUE(Copy(memory[chain * (kLinks + 1)].data(), bytes.data(), kBytes, stream).ok());
  }
  ASSERT_TRUE(stream_->Synchronize().ok());
  std::vector<RecordedPart> parts;
  std::vector<std::vector<int>> after;
  for (int link = 0; link < kLinks; ++link) {
    for (const int chain : {0, 1}) {
      const int from = chain * (kLinks + 1) + link;
      ASSERT_TRUE(RecordedWork::Begin(stream).ok());
      EXPECT_TRUE(Copy(memory[from + 1].data(), memory[from].data(), kBytes, stream).ok());
      absl::StatusOr<RecordedPart> part = RecordedWork::EndPart(stream);
      ASSERT_TRUE(part.ok()) << part.status();
      parts.push_back(*std::move(part));
      after.push_back(link == 0 ? std::vector<int>() : std::vector<int>{2 * (link - 1) + chain});
    }
  }
  const absl::StatusOr<std::unique_ptr<RecordedWork>> work = RecordedWork::Join(parts, after, stream);
  ASSERT_TRUE(work.ok()) << work.status();
  ASSERT_TRUE((*work)->Launch(stream).ok());
  for (const int chain : {0, 1}) {
    std::string bytes(kBytes, ' ');
    ASSERT_TRUE(Copy(bytes.data(), memory[chain * (kLinks + 1) + kLinks].data(), kBytes, stream).ok());
    ASSERT_TRUE(stream_->Synchronize().ok());
    EXPECT_EQ(bytes, std::string(kBytes, static_cast<char>('a' + chain)));
  }
}

// The small clears at the beginning are taken. The large clear stays, with all that follows it.
TEST_F(DriverTest, ClearsAreTakenOutOfThePartThatTheyBegin) {
  constexpr int64_t kBytes = 1 << 12;
  const Stream stream = stream_->get();
  const absl::StatusOr<DeviceMemory> memory = DeviceMemory::Allocate(4 * kBytes);
  ASSERT_TRUE(memory.ok()) << memory.status();
  const auto place = [&](int64_t bytes) { return memory->data() + bytes; };
  const std::string before(4 * kBytes, 'a');
  ASSERT_TRUE(Copy(memory->data(), before.data(), 4 * kBytes, stream).ok());
  ASSERT_TRUE(stream_->Synchronize().ok());
  ASSERT_TRUE(RecordedWork::Begin(stream).ok());
  EXPECT_TRUE(Zero(memory->data(), 256, stream).ok());
  EXPECT_TRUE(Zero(place(kBytes), kBytes, stream).ok());
  EXPECT_TRUE(Zero(place(2 * kBytes), kBytes + 4, stream).ok());
  EXPECT_TRUE(Zero(place(4 * kBytes - 256), 256, stream).ok());
  std::vector<RecordedPart> parts(1);
  absl::StatusOr<RecordedPart> part = RecordedWork::EndPart(stream);
  ASSERT_TRUE(part.ok()) << part.status();
  parts[0] = *std::move(part);
  const absl::StatusOr<std::vector<MemoryRange>> clears = parts[0].TakeClears(kBytes);
  ASSERT_TRUE(clears.ok()) << clears.status();
  ASSERT_EQ(clears->size(), 2);
  EXPECT_EQ((*clears)[0].begin, memory->data());
  EXPECT_EQ((*clears)[0].end, place(256));
  EXPECT_EQ((*clears)[1].begin, place(kBytes));
  EXPECT_EQ((*clears)[1].end, place(2 * kBytes));
  const absl::StatusOr<std::unique_ptr<RecordedWork>> work = RecordedWork::Join(parts, {{}}, stream);
  ASSERT_TRUE(work.ok()) << work.status();
  ASSERT_TRUE((*work)->Launch(stream).ok());
  std::string after(4 * kBytes, ' ');
  EXPECT_TRUE(Copy(after.data(), memory->data(), 4 * kBytes, stream).ok());
  EXPECT_TRUE(stream_->Synchronize().ok());
  EXPECT_EQ(after, std::string(2 * kBytes, 'a') + std::string(kBytes + 4, '\0') +
                       std::string(kBytes - 260, 'a') + std::string(256, '\0'));
}

// A part never becomes empty.
TEST_F(DriverTest, APartsOnlyClearIsNotTaken) {
  const Stream stream = stream_->get();
  const absl::StatusOr<DeviceMemory> memory = DeviceMemory::Allocate(256);
  ASSERT_TRUE(memory.ok()) << memory.status();
  ASSERT_TRUE(RecordedWork::Begin(stream).ok());
  EXPECT_TRUE(Zero(memory->data(), 256, stream).ok());
  absl::StatusOr<RecordedPart> part = RecordedWork::EndPart(stream);
  ASSERT_TRUE(part.ok()) << part.status();
  const absl::StatusOr<std::vector<MemoryRange>> clears = part->TakeClears(256);
  ASSERT_TRUE(clears.ok()) << clears.status();
  EXPECT_TRUE(clears->empty());
}

TEST_F(DriverTest, WhatWaitsOrTakesMemoryEndsARecord) {
  const Stream stream = stream_->get();
  ASSERT_TRUE(RecordedWork::Begin(stream).ok());
  EXPECT_FALSE(stream_->Synchronize().ok());
  (void)RecordedWork::End(stream);
  (void)CheckLaunches();
  ASSERT_TRUE(RecordedWork::Begin(stream).ok());
  EXPECT_FALSE(DeviceMemory::Allocate(1 << 20).ok());
  (void)RecordedWork::End(stream);
  (void)CheckLaunches();
  // The stream still works.
  EXPECT_TRUE(stream_->Synchronize().ok());
  ASSERT_TRUE(RecordedWork::Begin(stream).ok());
  EXPECT_TRUE(RecordedWork::End(stream).ok());
}

TEST_F(DriverTest, ADeviceReachesItself) {
  const absl::StatusOr<bool> reached = ReachPeer(0, 0);
  EXPECT_TRUE(reached.ok() && *reached);
}

}  // namespace
}  // namespace tandem::cuda

#include "server/daemon/memory_return.h"

#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <memory>
#include <vector>

#include "absl/time/clock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

int64_t ResidentMebibytes() {
  int64_t size = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> size >> resident;
  return resident * sysconf(_SC_PAGESIZE) >> 20;
}

TEST(MemoryReturnTest, WhatWasFreedIsTheSystemsAgain) {
  const int64_t before = ResidentMebibytes();
  std::unique_ptr<char[]> last;
  {
    std::vector<std::unique_ptr<char[]>> pieces;
    for (int i = 0; i < 200'000; ++i) pieces.push_back(std::make_unique<char[]>(1000));
    // This block keeps the allocator from returning the memory below it.
    last = std::make_unique<char[]>(1000);
  }
  if (ResidentMebibytes() < before + 100) GTEST_SKIP() << "this allocator gives it back by itself";
  const MemoryReturn memory(absl::Milliseconds(20));
  for (int i = 0; i < 3000 && ResidentMebibytes() > before + 50; ++i) absl::SleepFor(absl::Milliseconds(20));
  EXPECT_LE(ResidentMebibytes(), before + 50);
}

// The allocator still counts returned pages as free, so only the process's size shows their second use.
TEST(MemoryReturnTest, ASecondBurstIsGivenBackToo) {
  const int64_t before = ResidentMebibytes();
  const MemoryReturn memory(absl::Milliseconds(400));
  std::vector<std::unique_ptr<char[]>> last;
  for (int burst = 0; burst < 3; ++burst) {
    {
      std::vector<std::unique_ptr<char[]>> pieces;
      for (int i = 0; i < 200'000; ++i) pieces.push_back(std::make_unique<char[]>(1000));
      last.push_back(std::make_unique<char[]>(1000));
    }
    for (int i = 0; i < 3000 && ResidentMebibytes() > before + 50; ++i)
      absl::SleepFor(absl::Milliseconds(20));
    EXPECT_LE(ResidentMebibytes(), before + 50) << burst;
  }
}

}  // namespace
}  // namespace tandem

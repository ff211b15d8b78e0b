#include "engine/backend/algorithm_memory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

std::string FreshFile(const std::string& name) {
  const std::string path = testing::TempDir() + "/" + name;
  std::remove(path.c_str());
  return path;
}

TEST(AlgorithmMemoryTest, MeasuresOnceAndRemembers) {
  const std::string path = FreshFile("once");
  int measured = 0;
  const auto measure = [&] {
    ++measured;
    return std::string(measured == 1 ? "winograd" : "direct");
  };
  AlgorithmMemory first(path);
  EXPECT_EQ(first.Choose("conv 1 2", measure), "winograd");
  EXPECT_EQ(first.Choose("conv 1 2", measure), "winograd");
  EXPECT_EQ(first.Choose("conv 3 4", measure), "direct");
  EXPECT_EQ(measured, 2);
  AlgorithmMemory second(path);
  EXPECT_EQ(second.Choose("conv 1 2", measure), "winograd");
  EXPECT_EQ(second.Choose("conv 3 4", measure), "direct");
  EXPECT_EQ(measured, 2);
}

TEST(AlgorithmMemoryTest, WithoutAFileNothingIsMeasured) {
  const auto measure = [] {
    ADD_FAILURE();
    return std::string("direct");
  };
  EXPECT_FALSE(AlgorithmMemory("").Choose("conv", measure).has_value());
  EXPECT_FALSE(AlgorithmMemory("/no/such/folder/file").Choose("conv", measure).has_value());
}

TEST(AlgorithmMemoryTest, ThatNothingWorksIsNotRemembered) {
  AlgorithmMemory memory(FreshFile("nothing"));
  EXPECT_FALSE(memory.Choose("conv", [] { return absl::optional<std::string>(); }).has_value());
  EXPECT_EQ(memory.Choose("conv", [] { return std::string("direct"); }), "direct");
}

TEST(AlgorithmMemoryTest, ALineThatWasCutOffSpoilsNoOther) {
  const std::string path = FreshFile("cut");
  std::ofstream(path) << "conv 1 direct\nconv 2 wino";
  AlgorithmMemory memory(path);
  EXPECT_EQ(memory.Choose("conv 3", [] { return std::string("winograd"); }), "winograd");
  AlgorithmMemory again(path);
  const auto measure = [] { return std::string("other"); };
  EXPECT_EQ(again.Choose("conv 1", measure), "direct");
  EXPECT_EQ(again.Choose("conv 2", measure), "other");
  EXPECT_EQ(again.Choose("conv 3", measure), "winograd");
}

TEST(AlgorithmMemoryTest, ALineThatWasCutOffBeforeItsChoiceIsNone) {
  const std::string path = FreshFile("before");
  std::ofstream(path) << "conv 1";
  const auto measure = [] { return std::string("direct"); };
  EXPECT_EQ(AlgorithmMemory(path).Choose("conv 2", measure), "direct");
  EXPECT_EQ(AlgorithmMemory(path).Choose("conv 1", measure), "direct");
}

// Like processes that start together: all follow the first.
TEST(AlgorithmMemoryTest, ManyAtOnceAgree) {
  const std::string path = FreshFile("many");
  std::vector<std::string> chosen(8);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < chosen.size(); ++i) {
    threads.emplace_back([&, i] {
      AlgorithmMemory memory(path);
      chosen[i] = memory.Choose("conv", [i] { return "algorithm" + std::to_string(i); }).value_or("none");
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& one : chosen) EXPECT_EQ(one, chosen[0]);
  EXPECT_NE(chosen[0], "none");
}

// A compromised worker may hold the file or replace it. The other workers train on without it.
TEST(AlgorithmMemoryTest, WhoeverHoldsTheFileHoldsUpNobodyForLong) {
  const std::string path = FreshFile("held");
  const auto measure = [] { return std::string("winograd"); };
  ASSERT_EQ(AlgorithmMemory(path).Choose("conv 1", measure), "winograd");
  const int holder = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_EQ(::flock(holder, LOCK_EX), 0);
  AlgorithmMemory memory(path, absl::Milliseconds(20));
  EXPECT_EQ(memory.Choose("conv 1", measure), "winograd");  // Already known.
  EXPECT_FALSE(memory.Choose("conv 2", measure).has_value());
  ::close(holder);
  EXPECT_FALSE(memory.Choose("conv 2", measure).has_value());
  EXPECT_EQ(AlgorithmMemory(path).Choose("conv 2", measure), "winograd");
}

TEST(AlgorithmMemoryTest, AFileThatNobodyCouldHaveMeasuredIsNotRead) {
  const auto measure = [] {
    ADD_FAILURE();
    return std::string("direct");
  };
  const std::string path = FreshFile("huge");
  std::ofstream(path) << "conv 1 direct\n";
  ASSERT_EQ(::truncate(path.c_str(), int64_t{1} << 40), 0);
  EXPECT_FALSE(AlgorithmMemory(path).Choose("conv 1", measure).has_value());
  const std::string pipe = FreshFile("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_FALSE(AlgorithmMemory(pipe).Choose("conv 1", measure).has_value());
}

}  // namespace
}  // namespace tandem

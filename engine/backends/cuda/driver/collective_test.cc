#include "engine/backends/cuda/driver/collective.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iostream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

// NCCL among processes. Each is a separate host to NCCL (NCCL_HOSTID), so that they may share a GPU. Skipped
// without a GPU.

extern char** environ;

namespace tandem::cuda {
namespace {

constexpr int kRanks = 3;
constexpr int kRefused = 77;  // A rank's exit code if NCCL does not let them share the GPU.
constexpr int64_t kElements = 70001;

// Waits for the id that rank 0 writes, and returns it.
std::string AwaitId(const std::string& path) {
  for (int i = 0; i < 6000; ++i) {
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    if (text.str().size() == 2 * kCollectiveIdBytes) return absl::HexStringToBytes(text.str());
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return "";
}

// The file by which a rank says that its checks have ended.
std::string EndOf(const std::string& path, int rank) { return absl::StrCat(path, ".end", rank); }

// Returns whether the file appears.
bool AwaitFile(const std::string& path) {
  for (int i = 0; i < 1000; ++i) {
    if (access(path.c_str(), F_OK) == 0) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

// The test of a single rank, in a process that the next test starts.
TEST(CollectiveRank, Runs) {
  const char* rank_text = std::getenv("TANDEM_TEST_RANK");
  if (rank_text == nullptr) return;
  int rank = 0;
  ASSERT_TRUE(absl::SimpleAtoi(rank_text, &rank));
  const std::string path = std::getenv("TANDEM_TEST_ID");
  ASSERT_TRUE(UseDevice(0).ok());
  std::string id;
  if (rank == 0) {
    const absl::StatusOr<std::string> made = MakeCollectiveId();
    ASSERT_TRUE(made.ok()) << made.status();
    id = *made;
    std::ofstream(path + ".new") << absl::BytesToHexString(id);
    ASSERT_EQ(std::rename((path + ".new").c_str(), path.c_str()), 0);
  } else {
    id = AwaitId(path);
  }
  auto collective = JoinCollective(id, rank, kRanks, absl::Minutes(1));
  if (!collective.ok()) {
    std::cout << "rank " << rank << ": " << collective.status() << std::endl;
    std::_Exit(kRefused);
  }
  const auto stream = OwnedStream::Create();
  ASSERT_TRUE(stream.ok()) << stream.status();
  const auto memory = DeviceMemory::Allocate(kElements * sizeof(float));
  ASSERT_TRUE(memory.ok()) << memory.status();
  std::vector<float> numbers(kElements);
  const auto run = [&](const std::function<absl::Status()>& call) {
    for (int64_t i = 0; i < kElements; ++i) numbers[i] = static_cast<float>(i % 97 + 100 * rank);
    const int64_t bytes = kElements * static_cast<int64_t>(sizeof(float));
    ASSERT_TRUE(Copy(memory->data(), numbers.data(), bytes, (*stream)->get()).ok());
    const absl::Status status = call();
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_TRUE(Copy(numbers.data(), memory->data(), bytes, (*stream)->get()).ok());
    ASSERT_TRUE((*stream)->Synchronize().ok());
    ASSERT_TRUE((*collective)->Check().ok()) << (*collective)->Check();
  };
  const auto reduce = [&](bool average) {
    return (*collective)->AllReduce(memory->data(), kElements, DType::kFloat32, average, (*stream)->get());
  };
  run([&] { return reduce(false); });
  for (int64_t i = 0; i < kElements; ++i) ASSERT_EQ(numbers[i], static_cast<float>(3 * (i % 97) + 300));
  run([&] { return reduce(true); });
  for (int64_t i = 0; i < kElements; ++i) ASSERT_NEAR(numbers[i], static_cast<float>(i % 97 + 100), 1e-3);
  run([&] {
    return (*collective)->Broadcast(memory->data(), kElements, DType::kFloat32, 1, (*stream)->get());
  });
  for (int64_t i = 0; i < kElements; ++i) ASSERT_EQ(numbers[i], static_cast<float>(i % 97 + 100));
  if (rank != 0) std::ofstream(EndOf(path, rank)) << "";
  if (rank == 0) {
    // An abort closes connections, which the others may notice.
    for (int other = 1; other < kRanks; ++other) EXPECT_TRUE(AwaitFile(EndOf(path, other))) << other;
    (*collective)->Abort();
    EXPECT_EQ(reduce(false).code(), absl::StatusCode::kAborted);
  }
  // All work has ended, so the end waits for nothing.
  const auto begin = std::chrono::steady_clock::now();
  collective->reset();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(4));
}

TEST(CollectiveTest, ProcessesOnOneGpuReduce) {
  if (std::getenv("TANDEM_TEST_RANK") != nullptr) return;
  const absl::StatusOr<int> devices = CountDevices();
  if (!devices.ok() || *devices == 0) GTEST_SKIP() << "no GPU: " << devices.status();
  const absl::Status loaded = CheckCollectives();
  ASSERT_TRUE(loaded.ok()) << loaded;
  const std::string path = absl::StrCat(testing::TempDir(), "/collective_test_id_", getpid());
  std::remove(path.c_str());
  std::vector<pid_t> processes(kRanks);
  for (int rank = 0; rank < kRanks; ++rank) {
    std::vector<std::string> environment = {absl::StrCat("TANDEM_TEST_RANK=", rank),
                                            absl::StrCat("TANDEM_TEST_ID=", path),
                                            absl::StrCat("NCCL_HOSTID=host", rank)};
    for (char** entry = environ; *entry != nullptr; ++entry) environment.emplace_back(*entry);
    std::vector<char*> entries;
    for (std::string& entry : environment) entries.push_back(entry.data());
    entries.push_back(nullptr);
    std::string program = "/proc/self/exe";
    std::string filter = "--gtest_filter=CollectiveRank.Runs";
    char* arguments[] = {program.data(), filter.data(), nullptr};
    ASSERT_EQ(posix_spawn(&processes[rank], program.c_str(), nullptr, nullptr, arguments, entries.data()), 0);
  }
  int refused = 0;
  for (int rank = 0; rank < kRanks; ++rank) {
    int status = 0;
    ASSERT_EQ(waitpid(processes[rank], &status, 0), processes[rank]);
    ASSERT_TRUE(WIFEXITED(status)) << "rank " << rank << ": " << status;
    if (WEXITSTATUS(status) == kRefused) {
      ++refused;
    } else {
      EXPECT_EQ(WEXITSTATUS(status), 0) << "rank " << rank;
    }
  }
  std::remove(path.c_str());
  for (int rank = 1; rank < kRanks; ++rank) std::remove(EndOf(path, rank).c_str());
  if (refused > 0) GTEST_SKIP() << "NCCL does not let " << kRanks << " processes share a GPU here";
}

}  // namespace
}  // namespace tandem::cuda

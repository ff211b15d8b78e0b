// Tests of `tandem-worker --job`, which trains without a daemon.
#include <signal.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "server/workers/exit_codes.h"
#include "tests/integration/programs.h"
#include "tests/integration/scratch_folder.h"
#include "tests/integration/subprocess.h"

namespace tandem::testing {
namespace {

constexpr char kJob[] =
    R"({"dataset": {"synthetic": {"shape": [4], "classes": 2, "trainSamples": 64}},
        "model": {"input": {"shape": [4]}, "layers": [{"dense": {"units": 2}}]},
        "training": {"loss": {"softmaxCrossEntropy": {}}, "optimizer": {"sgd": {"learningRate": 0.1}},
                     "globalBatchSize": 16, "epochs": 1}})";

// Returns whether the process has blocked SIGTERM, so that only a thread of its own can take the signal.
bool BlocksTerm(pid_t pid) {
  std::ifstream status(absl::StrCat("/proc/", pid, "/status"));
  for (std::string line; std::getline(status, line);) {
    uint64_t blocked = 0;
    if (absl::StartsWith(line, "SigBlk:\t") && absl::SimpleHexAtoi(line.substr(8), &blocked)) {
      return (blocked >> (SIGTERM - 1) & 1) != 0;
    }
  }
  return false;
}

// The parameter is the worker's rank.
class WorkerAloneTest : public ::testing::TestWithParam<int> {};

TEST_P(WorkerAloneTest, OneSignalStopsAWorkerThatWaitsForOthers) {
  const ScratchFolder folder;
  folder.Write("job.json", kJob);
  const absl::StatusOr<std::unique_ptr<Subprocess>> worker = Subprocess::Start(
      {.arguments = {WorkerProgram(), "--job", folder.File("job.json"), "--output", folder.File("run")},
       // Of two workers, the other never comes. No process listens at port 1.
       .environment = {{"RANK", absl::StrCat(GetParam())},
                       {"WORLD_SIZE", "2"},
                       {"MASTER_ADDR", "127.0.0.1"},
                       {"MASTER_PORT", GetParam() == 0 ? absl::StrCat(20000 + getpid() % 10000) : "1"}},
       .stdout_path = folder.File("log"),
       .stderr_path = folder.File("log")});
  ASSERT_TRUE(worker.ok()) << worker.status();
  const absl::Time limit = absl::Now() + absl::Seconds(60);
  while (!BlocksTerm((*worker)->pid()) && absl::Now() < limit) absl::SleepFor(absl::Milliseconds(20));
  ASSERT_TRUE(BlocksTerm((*worker)->pid()));
  absl::SleepFor(absl::Milliseconds(500));
  ASSERT_TRUE((*worker)->IsRunning());
  (*worker)->Signal(SIGTERM);
  EXPECT_EQ((*worker)->Wait(absl::Seconds(30)), std::optional<int>(kWorkerTrainingFailed));
}

INSTANTIATE_TEST_SUITE_P(Ranks, WorkerAloneTest, ::testing::Values(0, 1));

}  // namespace
}  // namespace tandem::testing

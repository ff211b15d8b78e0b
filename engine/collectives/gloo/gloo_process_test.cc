// If a process of a group dies or hangs, every other rank learns its name, and none waits forever.

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "engine/collectives/gloo/folder_rendezvous.h"
#include "engine/collectives/gloo/gloo_group.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

constexpr int kWorld = 3;
constexpr int kVictim = 1;
constexpr absl::Duration kSilenceLimit = absl::Seconds(2);

// The results of a rank's process.
enum Outcome { kNamedTheVictim = 0, kOtherStatus = 1, kNoGroup = 2 };

// Reduces forever. The exit status says whether the final error names the victim. The victim sends itself
// `signal` in its call after `calls` calls.
int RunRank(const std::string& folder, int rank, int signal, int calls) {
  FolderRendezvous rendezvous(folder);
  GlooOptions options;
  options.rank = rank;
  options.world_size = kWorld;
  options.silence_limit = kSilenceLimit;
  const absl::StatusOr<std::unique_ptr<Communicator>> end = ConnectGlooGroup(options, rendezvous);
  if (!end.ok()) {
    std::cerr << "rank " << rank << ": " << end.status() << "\n";
    return kNoGroup;
  }
  std::vector<float> elements(100'000, 1.0F);
  absl::Status status;
  for (int call = 0; status.ok(); ++call) {
    if (rank == kVictim && call == calls) kill(getpid(), signal);
    status = (*end)->AllReduce({elements.data(), static_cast<int64_t>(elements.size()), DType::kFloat32},
                               ReduceOp::kAverage);
  }
  const bool named = absl::StrContains(status.message(), absl::StrCat("rank ", kVictim, " of ", kWorld));
  if (!named) std::cerr << "rank " << rank << ": " << status << "\n";
  return named ? kNamedTheVictim : kOtherStatus;
}

// Returns the path of a new folder.
std::string MakeFolder() {
  std::string folder = absl::StrCat(testing::TempDir(), "/gloo-XXXXXX");
  EXPECT_NE(mkdtemp(folder.data()), nullptr);
  return folder;
}

// Ends the group while all other ranks hang. Returns whether that took little more than the time for a single
// rank's acknowledgement, 2 s for the abort and 2 s for the destructor.
bool LeavesAtOnce(const std::string& folder, int rank, int world_size) {
  FolderRendezvous rendezvous(folder);
  absl::StatusOr<std::unique_ptr<Communicator>> end =
      ConnectGlooGroup({.rank = rank, .world_size = world_size}, rendezvous);
  if (!end.ok() || !(*end)->Barrier().ok()) return false;
  if (rank != 0) kill(getpid(), SIGSTOP);
  absl::SleepFor(absl::Milliseconds(300));
  const absl::Time begin = absl::Now();
  (*end)->Abort(absl::CancelledError("enough"));
  end->reset();
  return absl::Now() - begin < absl::Seconds(8);
}

void CheckVictimIsNamed(int signal, int calls) {
  const std::string path = MakeFolder();
  pid_t processes[kWorld];
  for (int rank = 0; rank < kWorld; ++rank) {
    processes[rank] = fork();
    ASSERT_GE(processes[rank], 0);
    if (processes[rank] == 0) _exit(RunRank(path, rank, signal, calls));
  }
  for (int rank = 0; rank < kWorld; ++rank) {
    if (rank == kVictim) continue;
    int status = 0;
    ASSERT_EQ(waitpid(processes[rank], &status, 0), processes[rank]);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == kNamedTheVictim)
        << "rank " << rank << ": " << status;
  }
  kill(processes[kVictim], SIGKILL);
  int status = 0;
  ASSERT_EQ(waitpid(processes[kVictim], &status, 0), processes[kVictim]);
  EXPECT_TRUE(WIFSIGNALED(status));
  std::filesystem::remove_all(path);
}

TEST(GlooProcessTest, ARankThatIsKilledIsNamedByAllOthers) {
  for (int round = 0; round < 10; ++round) CheckVictimIsNamed(SIGKILL, 1 + round * 3);
}

TEST(GlooProcessTest, ARankThatHangsIsNamedByAllOthers) {
  for (int round = 0; round < 3; ++round) CheckVictimIsNamed(SIGSTOP, 1 + round * 3);
}

TEST(GlooProcessTest, TheFarewellDoesNotGrowWithTheHangingRanks) {
  constexpr int kRanks = 6;
  const std::string path = MakeFolder();
  pid_t processes[kRanks];
  for (int rank = 0; rank < kRanks; ++rank) {
    processes[rank] = fork();
    ASSERT_GE(processes[rank], 0);
    if (processes[rank] == 0) _exit(LeavesAtOnce(path, rank, kRanks) ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(processes[0], &status, 0), processes[0]);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  for (int rank = 1; rank < kRanks; ++rank) {
    kill(processes[rank], SIGKILL);
    waitpid(processes[rank], &status, 0);
  }
  std::filesystem::remove_all(path);
}

}  // namespace
}  // namespace tandem

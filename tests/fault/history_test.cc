// 16 clients submit, get, list, watch, pause, resume, cancel and delete jobs at the same time, while the
// daemon and workers are killed at random moments. Their answers must keep the promises of history_checker.h.
// The jobs are small, but train, so that kills can lose work.
//
//   bazel test //tests/fault:history_test --test_arg=--runs=100
//   bazel test //tests/fault:history_test --test_arg=--runs=1 --test_arg=--seed=7
#include <signal.h>

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <iterator>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tests/fault/flags.h"
#include "tests/fault/history_checker.h"
#include "tests/fault/history_client.h"
#include "tests/fault/history_load.h"
#include "tests/fault/history_recorder.h"
#include "tests/integration/api.h"
#include "tests/integration/daemon_process.h"
#include "tests/integration/processes.h"
#include "tests/integration/scratch_folder.h"

namespace tandem::testing {
namespace {

// --name=number on the command line.
struct Flags {
  // 0: 2, and 100 where $TANDEM_WHOLE is 1.
  int64_t runs = 0;
  // The seed of the first run. Later runs have the following numbers. 0: a new seed each time.
  int64_t seed = 0;
  // The time for which the clients of each run make calls.
  int64_t seconds = 12;
  int64_t clients = 16;
} flags;

constexpr size_t kMostJobs = 120;
constexpr size_t kMostExplained = 5;
constexpr size_t kLogEnd = 4000;
// The longest wait for an answer of a call, and for the end of all jobs.
constexpr absl::Duration kPatience = absl::Minutes(3);

// A daemon, its clients and their disturbances.
class HistoryRun {
 public:
  explicit HistoryRun(uint64_t seed) : seed_(seed), random_(seed) {}

  // False where the daemon does not come back or jobs do not end, which is a failure of the test.
  bool Run() {
    const absl::Status started = daemon_.Start();
    EXPECT_TRUE(started.ok()) << started;
    if (!started.ok()) return false;
    std::vector<std::unique_ptr<HistoryClient>> clients;
    // The last client makes the calls after the run.
    for (int i = 0; i <= flags.clients; ++i) {
      clients.push_back(std::make_unique<HistoryClient>(daemon_, &recorder_, i));
    }
    KnownJobs jobs;
    std::vector<std::thread> threads;
    const absl::Duration until = recorder_.Now() + absl::Seconds(flags.seconds);
    for (int i = 0; i < flags.clients; ++i) {
      threads.emplace_back([&, i] {
        HistoryLoad load(clients[i].get(), &recorder_, &jobs, i, seed_ * 1000 + i, kMostJobs);
        load.Run(until);
      });
    }
    const bool is_there = Disturb(until);
    for (std::thread& thread : threads) thread.join();
    return is_there && Settle(clients.back().get());
  }

  History TakeHistory() { return recorder_.Take(); }
  int kills() const { return kills_; }
  std::string LogEnd() const {
    const std::string log = daemon_.Log();
    return log.substr(log.size() - std::min(log.size(), kLogEnd));
  }

 private:
  int Random(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }

  // Kills the daemon and workers until this time. The daemon runs at the end.
  bool Disturb(absl::Duration until) {
    while (true) {
      absl::SleepFor(absl::Milliseconds(Random(100, 1800)));
      if (recorder_.Now() >= until) return true;
      if (Random(0, 2) == 0) {
        KillWorker();
        continue;
      }
      KillDaemon();
      if (Random(0, 3) == 0) {
        // Again while it starts.
        absl::SleepFor(absl::Milliseconds(Random(0, 200)));
        KillDaemon();
      }
      const absl::Status ready = daemon_.WaitUntilReady();
      EXPECT_TRUE(ready.ok()) << ready;
      if (!ready.ok()) return false;
      recorder_.Note("the daemon is ready");
    }
  }

  void KillDaemon() {
    recorder_.Note("the daemon is killed");
    daemon_.Kill();
    ++kills_;
    absl::SleepFor(absl::Milliseconds(Random(0, 2) == 0 ? Random(0, 500) : 0));
    EXPECT_TRUE(daemon_.Launch().ok());
  }

  void KillWorker() {
    const std::vector<pid_t> workers = daemon_.Workers();
    if (workers.empty()) return;
    const pid_t worker = workers[Random(0, static_cast<int>(workers.size()) - 1)];
    recorder_.Note(absl::StrCat("worker ", worker, " is killed"));
    kill(worker, SIGKILL);
  }

  // Cancels all running jobs, waits for their end, and reads everything.
  bool Settle(HistoryClient* client) {
    Call list;
    const auto is_over = [&] {
      list = client->List(/*page_size=*/50, {}, kPatience);
      bool all_ended = list.code == grpc::StatusCode::OK;
      for (const SeenJob& seen : list.jobs) {
        if (IsTerminal(seen.state)) continue;
        all_ended = false;
        if (seen.state != v1::JOB_STATE_CANCELLING) client->Cancel(seen.job, kPatience);
      }
      if (!all_ended) absl::SleepFor(absl::Milliseconds(100));
      return all_ended;
    };
    const bool all_ended = WaitUntil(is_over, kPatience);
    EXPECT_TRUE(all_ended) << "there are jobs that do not end, such as " << Unfinished(list);
    if (!all_ended) return false;
    for (const SeenJob& seen : list.jobs) {
      EXPECT_EQ(client->Get(seen.job, kPatience).code, grpc::StatusCode::OK);
      EXPECT_EQ(client->Watch(seen.job, 0, kPatience).code, grpc::StatusCode::OK);
    }
    return true;
  }

  static std::string Unfinished(const Call& list) {
    for (const SeenJob& seen : list.jobs) {
      if (!IsTerminal(seen.state)) return absl::StrCat(seen.job, ", ", v1::JobState_Name(seen.state));
    }
    return "none";
  }

  const uint64_t seed_;
  ScratchFolder scratch_;
  DaemonProcess daemon_{{.state_folder = scratch_.File("state"), .cpu_devices = 2}};
  HistoryRecorder recorder_;
  std::mt19937_64 random_;
  int kills_ = 0;
};

// Returns how jobs ended that were not deleted: "12 SUCCEEDED, 3 FAILED".
std::string EndsText(const History& history) {
  std::map<std::string, v1::JobState> last;
  for (const Call& call : history.calls) {
    for (const SeenJob& seen : call.jobs) last[seen.job] = seen.state;
    if (call.kind == CallKind::kDelete && call.code == grpc::StatusCode::OK) last.erase(call.job);
  }
  std::map<v1::JobState, int> counts;
  for (const auto& [job, state] : last) ++counts[state];
  return absl::StrJoin(counts, ", ", [](std::string* text, const auto& count) {
    absl::StrAppend(text, count.second, " ", absl::StripPrefix(v1::JobState_Name(count.first), "JOB_STATE_"));
  });
}

// The number of calls of each kind and outcome.
using Counts = std::map<CallKind, std::map<Outcome, int>>;

Counts CountCalls(const History& history) {
  Counts counts;
  for (const Call& call : history.calls) ++counts[call.kind][OutcomeOf(call)];
  return counts;
}

constexpr CallKind kAllKinds[] = {CallKind::kCreate, CallKind::kGet,    CallKind::kList,   CallKind::kCancel,
                                  CallKind::kPause,  CallKind::kResume, CallKind::kDelete, CallKind::kWatch};
// Runs that are added where some kind of call was never done, as on a slow machine.
constexpr int64_t kMostAdded = 8;

TEST(HistoryTest, EveryPromiseIsKept) {
  const int64_t runs = Amount(flags.runs, /*sample=*/2, /*whole=*/100);
  const int64_t first = flags.seed != 0 ? flags.seed : 1 + std::random_device()() % 1'000'000;
  Counts all;
  int kills = 0;
  // A history without calls would keep all promises, so the history must have some of each kind.
  const auto has_all = [&] {
    return kills > 0 && std::all_of(std::begin(kAllKinds), std::end(kAllKinds),
                                    [&](CallKind kind) { return all[kind][Outcome::kDone] > 0; });
  };
  for (int64_t seed = first; seed < first + runs || (!has_all() && seed < first + runs + kMostAdded);
       ++seed) {
    HistoryRun run(seed);
    const bool is_settled = run.Run();
    const History history = run.TakeHistory();
    const std::vector<Violation> violations = CheckHistory(history, is_settled);
    int unknown = 0;
    int refused = 0;
    for (const auto& [kind, outcomes] : CountCalls(history)) {
      for (const auto& [outcome, count] : outcomes) {
        all[kind][outcome] += count;
        if (outcome == Outcome::kUnknown) unknown += count;
        if (outcome == Outcome::kRefused) refused += count;
      }
    }
    std::cout << "--seed=" << seed << ": " << history.calls.size() << " calls, " << refused << " refused, "
              << unknown << " unanswered; " << run.kills() << " kills of the daemon, "
              << history.incidents.size() << " incidents; " << EndsText(history) << "; " << violations.size()
              << " violations" << std::endl;
    for (size_t i = 0; i < std::min(violations.size(), kMostExplained); ++i) {
      ADD_FAILURE() << "--seed=" << seed << ": " << Explain(history, violations[i]);
    }
    ASSERT_FALSE(HasFailure()) << "with --seed=" << seed << "; the daemon's last words:\n" << run.LogEnd();
    kills += run.kills();
  }
  EXPECT_GT(kills, 0);
  for (const CallKind kind : kAllKinds) {
    EXPECT_GT(all[kind][Outcome::kDone], 0) << CallKindName(kind);
    std::cout << "  " << CallKindName(kind) << ": " << all[kind][Outcome::kDone] << " done, "
              << all[kind][Outcome::kRefused] << " refused, " << all[kind][Outcome::kUnknown]
              << " unanswered\n";
  }
}

}  // namespace
}  // namespace tandem::testing

int main(int argc, char** argv) {
  auto& flags = tandem::testing::flags;
  return tandem::testing::RunTests(argc, argv,
                                   {{"runs", &flags.runs},
                                    {"seed", &flags.seed},
                                    {"seconds", &flags.seconds},
                                    {"clients", &flags.clients}});
}

#include "server/workers/model_workers.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "engine/base/field_violations.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

constexpr absl::Duration kPatience = absl::Seconds(60);

internal::v1::ModelTask Task(const std::vector<std::string>& labels) {
  internal::v1::ModelTask task;
  for (const std::string& label : labels) task.mutable_predict()->add_inputs()->set_label(label);
  task.mutable_device()->set_threads(1);
  return task;
}

ModelWorkers::Options OptionsFor(int running, int waiting) {
  ModelWorkers::Options options;
  options.worker_program =
      std::string(getenv("TEST_SRCDIR")) + "/tandem/server/workers/testing/fake_model_worker";
  options.most_running = running;
  options.most_waiting = waiting;
  return options;
}

// Blocks for the next output.
ModelCall::Result Next(ModelCall& call) {
  struct Waited {
    Mutex mutex;
    std::optional<ModelCall::Result> result ABSL_GUARDED_BY(mutex);
  };
  const auto waited = std::make_shared<Waited>();
  call.Next([waited](ModelCall::Result result) {
    MutexLock lock(&waited->mutex);
    waited->result = std::move(result);
  });
  MutexLock lock(&waited->mutex);
  const auto there = [&]()
                         ABSL_EXCLUSIVE_LOCKS_REQUIRED(waited->mutex) { return waited->result.has_value(); };
  if (!waited->mutex.AwaitWithTimeout(absl::Condition(&there), kPatience)) {
    return absl::DeadlineExceededError("the test waited in vain");
  }
  return *std::move(waited->result);
}

std::string NextInput(ModelCall& call) {
  const ModelCall::Result result = Next(call);
  if (!result.ok()) return result.status().ToString();
  return result->has_value() ? (*result)->predict().predictions(0).input() : "<end>";
}

std::shared_ptr<ModelCall> Start(ModelWorkers& workers, internal::v1::ModelTask task,
                                 const std::string& user = "ann") {
  absl::StatusOr<std::shared_ptr<ModelCall>> call = workers.Start(user, std::move(task));
  EXPECT_TRUE(call.ok()) << call.status();
  return *std::move(call);
}

TEST(ModelWorkersTest, GivesOutputsInOrderAndThenTheEnd) {
  ModelWorkers workers(OptionsFor(1, 4));
  const auto call = Start(workers, Task({"answer", "a", "b"}));
  EXPECT_EQ(NextInput(*call), "answer");
  EXPECT_EQ(NextInput(*call), "a");
  EXPECT_EQ(NextInput(*call), "b");
  EXPECT_EQ(NextInput(*call), "<end>");
  EXPECT_EQ(NextInput(*call), "<end>");
}

TEST(ModelWorkersTest, RunsLargeTasks) {
  ModelWorkers workers(OptionsFor(1, 4));
  internal::v1::ModelTask task = Task({"answer"});
  task.mutable_predict()->mutable_inputs(0)->set_image(std::string(12 << 20, 'x'));
  EXPECT_EQ(NextInput(*Start(workers, std::move(task))), "answer");
}

TEST(ModelWorkersTest, GivesTheWorkersOwnError) {
  ModelWorkers workers(OptionsFor(1, 4));
  const auto failed = Next(*Start(workers, Task({"fail"})));
  EXPECT_EQ(failed.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(failed.status().message(), "no such model");
  const std::vector<FieldViolation> violations =
      GetFieldViolations(Next(*Start(workers, Task({"violate"}))).status());
  ASSERT_EQ(violations.size(), 1u);
  EXPECT_EQ(violations[0].field, "inputs[0]");
}

TEST(ModelWorkersTest, SaysHowAProcessDied) {
  ModelWorkers workers(OptionsFor(1, 4));
  const absl::Status died = Next(*Start(workers, Task({"die"}))).status();
  EXPECT_EQ(died.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(died.message(), HasSubstr("SIGABRT"));
  EXPECT_EQ(Next(*Start(workers, Task({"nothing"}))).status().code(), absl::StatusCode::kInternal);
  EXPECT_EQ(Next(*Start(workers, Task({"garbage"}))).status().code(), absl::StatusCode::kDataLoss);
}

TEST(ModelWorkersTest, ACancelledCallsProcessIsKilled) {
  ModelWorkers workers(OptionsFor(1, 4));
  internal::v1::ModelTask task = Task({"hang"});
  const std::string path = testing::TempDir() + "/pid";
  task.set_model_path(path);
  const auto call = Start(workers, std::move(task));
  EXPECT_EQ(NextInput(*call), "hang");
  pid_t pid = 0;
  std::ifstream(path) >> pid;
  ASSERT_GT(pid, 0);
  EXPECT_EQ(kill(pid, 0), 0);
  call->Cancel();
  EXPECT_EQ(Next(*call).status().code(), absl::StatusCode::kCancelled);
  // The single thread is free again after the process's end.
  EXPECT_EQ(NextInput(*Start(workers, Task({"answer"}))), "answer");
  EXPECT_EQ(kill(pid, 0), -1);
  EXPECT_EQ(errno, ESRCH);
}

TEST(ModelWorkersTest, ASlowClientHoldsTheWorkerUp) {
  ModelWorkers workers(OptionsFor(1, 4));
  const auto call = Start(workers, Task({"flood"}));
  for (int i = 0; i < 100; ++i) EXPECT_EQ(NextInput(*call), "flood");
  call->Cancel();
  EXPECT_EQ(Next(*call).status().code(), absl::StatusCode::kCancelled);
}

TEST(ModelWorkersTest, TakesNoLongerThanAllowed) {
  ModelWorkers::Options options = OptionsFor(1, 4);
  options.time_limit = absl::Milliseconds(300);
  ModelWorkers workers(options);
  internal::v1::ModelTask task = Task({"hang"});
  task.set_model_path("/dev/null");
  const auto call = Start(workers, std::move(task));
  ModelCall::Result result = Next(*call);
  if (result.ok()) result = Next(*call);
  EXPECT_EQ(result.status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(result.status().message(), HasSubstr("--model-time-limit"));
}

TEST(ModelWorkersTest, SomeRunSomeWaitAndMoreAreRefused) {
  ModelWorkers workers(OptionsFor(1, 1));
  internal::v1::ModelTask task = Task({"hang"});
  task.set_model_path("/dev/null");
  const auto running = Start(workers, std::move(task));
  EXPECT_EQ(NextInput(*running), "hang");
  const auto waiting = Start(workers, Task({"answer"}));
  EXPECT_EQ(workers.Start("ann", Task({"answer"})).status().code(), absl::StatusCode::kResourceExhausted);
  running->Cancel();
  EXPECT_EQ(NextInput(*waiting), "answer");
}

TEST(ModelWorkersTest, OneUsersCallsKeepOutNobodyElses) {
  ModelWorkers::Options options = OptionsFor(2, 3);
  options.most_waiting_each = 2;
  ModelWorkers workers(options);
  const auto hang = [] {
    internal::v1::ModelTask task = Task({"hang"});
    task.set_model_path("/dev/null");
    return task;
  };
  std::vector<std::shared_ptr<ModelCall>> anns;
  for (int i = 0; i < 2; ++i) {
    anns.push_back(Start(workers, hang(), "ann"));
    EXPECT_EQ(NextInput(*anns.back()), "hang");
  }
  for (int i = 0; i < 2; ++i) anns.push_back(Start(workers, hang(), "ann"));
  EXPECT_EQ(workers.Start("ann", hang()).status().code(), absl::StatusCode::kResourceExhausted);
  const auto bobs = Start(workers, hang(), "bob");
  EXPECT_EQ(workers.Start("bob", hang()).status().code(), absl::StatusCode::kResourceExhausted);
  // Although the queue is full.
  const auto cats = Start(workers, hang(), "cat");
  // Cat's call came after ann's, but runs first, because a call of ann's already runs.
  anns[0]->Cancel();
  EXPECT_EQ(NextInput(*bobs), "hang");
  // Neither has a running call, so ann's earlier call runs first, and then cat's.
  anns[1]->Cancel();
  EXPECT_EQ(NextInput(*anns[2]), "hang");
  anns[2]->Cancel();
  EXPECT_EQ(NextInput(*cats), "hang");
  cats->Cancel();
  EXPECT_EQ(NextInput(*anns[3]), "hang");
  // If no other user waits, a user may have all.
  const auto last = Start(workers, hang(), "ann");
  bobs->Cancel();
  EXPECT_EQ(NextInput(*last), "hang");
}

TEST(ModelWorkersTest, StoppingEndsEveryCall) {
  ModelWorkers workers(OptionsFor(1, 4));
  internal::v1::ModelTask task = Task({"hang"});
  task.set_model_path("/dev/null");
  const auto running = Start(workers, std::move(task));
  EXPECT_EQ(NextInput(*running), "hang");
  const auto waiting = Start(workers, Task({"answer"}));
  workers.Stop();
  EXPECT_EQ(Next(*running).status().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(Next(*waiting).status().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(workers.Start("ann", Task({"answer"})).status().code(), absl::StatusCode::kUnavailable);
}

// Starts processes that wait for the same user's next prediction.
ModelWorkers::Options KeepingOptions(int running, absl::Duration idle_time = absl::Hours(1)) {
  ModelWorkers::Options options = OptionsFor(running, 4);
  options.idle_time = idle_time;
  return options;
}

internal::v1::ModelTask PredictionTask(const std::string& label, const std::string& path = "model",
                                       const std::string& sha256 = "abc") {
  internal::v1::ModelTask task = Task({label});
  task.set_model_path(path);
  task.set_model_sha256(sha256);
  return task;
}

// Predicts with a model, and returns the first prediction's input. The label "pid" gives the process's pid.
std::string Predict(ModelWorkers& workers, const std::string& label, const std::string& user = "ann",
                    const std::string& path = "model", const std::string& sha256 = "abc") {
  const auto call = Start(workers, PredictionTask(label, path, sha256), user);
  std::string input = NextInput(*call);
  if (input.find(':') == std::string::npos) {
    EXPECT_EQ(NextInput(*call), "<end>");
  }
  return input;
}

// Waits until a process has ended. It need not be reaped.
bool Ends(const std::string& pid) {
  for (absl::Duration waited; waited < kPatience; waited += absl::Milliseconds(10)) {
    std::string number, name, state;
    std::ifstream("/proc/" + pid + "/stat") >> number >> name >> state;
    if (state.empty() || state == "Z") return true;
    absl::SleepFor(absl::Milliseconds(10));
  }
  return false;
}

TEST(ModelWorkersTest, AProcessWaitsForTheNextPrediction) {
  ModelWorkers workers(KeepingOptions(1));
  const std::string pid = Predict(workers, "pid");
  EXPECT_EQ(Predict(workers, "answer"), "answer");
  EXPECT_EQ(Predict(workers, "pid"), pid);
  workers.Stop();
  EXPECT_TRUE(Ends(pid));
}

TEST(ModelWorkersTest, AProcessServesOneUserAndOneModel) {
  ModelWorkers workers(KeepingOptions(8));
  const std::string pid = Predict(workers, "pid");
  EXPECT_NE(Predict(workers, "pid", "bob"), pid);
  EXPECT_NE(Predict(workers, "pid", "ann", "other model"), pid);
  EXPECT_NE(Predict(workers, "pid", "ann", "model", "other checksum"), pid);
  // A model of a running job has no checksum.
  const std::string unchecked = Predict(workers, "pid", "ann", "model", "");
  EXPECT_NE(unchecked, pid);
  EXPECT_TRUE(Ends(unchecked));
  internal::v1::ModelTask evaluation;
  evaluation.set_model_path("model");
  evaluation.set_model_sha256("abc");
  evaluation.mutable_evaluate();
  EXPECT_FALSE(Next(*Start(workers, std::move(evaluation))).ok());  // The fake process does not evaluate.
  EXPECT_EQ(Predict(workers, "pid"), pid);
  // A data set's memory is not kept.
  internal::v1::ModelTask samples;
  samples.set_model_path("model");
  samples.set_model_sha256("abc");
  samples.mutable_predict();
  samples.mutable_dataset();
  const auto other = Next(*Start(workers, std::move(samples)));
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_NE((*other)->predict().predictions(0).input(), pid);
  EXPECT_TRUE(Ends((*other)->predict().predictions(0).input()));
  EXPECT_EQ(Predict(workers, "pid"), pid);
}

TEST(ModelWorkersTest, AProcessWaitsForSomeTime) {
  ModelWorkers workers(KeepingOptions(1, absl::Milliseconds(50)));
  EXPECT_TRUE(Ends(Predict(workers, "pid")));
  EXPECT_EQ(Predict(workers, "answer"), "answer");
}

TEST(ModelWorkersTest, FewProcessesWait) {
  ModelWorkers workers(KeepingOptions(2));
  const std::string first = Predict(workers, "pid", "ann");
  const std::string second = Predict(workers, "pid", "bob");
  const std::string third = Predict(workers, "pid", "cat");
  EXPECT_TRUE(Ends(first));
  EXPECT_EQ(Predict(workers, "pid", "bob"), second);
  EXPECT_EQ(Predict(workers, "pid", "cat"), third);
}

TEST(ModelWorkersTest, AProcessThatRefusedInputsIsKeptAndADeadProcessIsReplaced) {
  ModelWorkers workers(KeepingOptions(1));
  const std::string pid = Predict(workers, "pid");
  EXPECT_THAT(Predict(workers, "violate"), HasSubstr("is no image"));
  EXPECT_EQ(Predict(workers, "pid"), pid);
  EXPECT_EQ(Predict(workers, "exit"), pid);
  EXPECT_TRUE(Ends(pid));
  EXPECT_EQ(Predict(workers, "answer"), "answer");
}

TEST(ModelWorkersTest, AProcessThatMayLackTheModelEnds) {
  ModelWorkers workers(KeepingOptions(1));
  const std::string pid = Predict(workers, "pid");
  EXPECT_THAT(Predict(workers, "fail"), HasSubstr("no such model"));
  EXPECT_TRUE(Ends(pid));
  EXPECT_NE(Predict(workers, "pid"), pid);
}

TEST(ModelWorkersTest, AProcessThatDiesAsItGetsATaskIsReplaced) {
  ModelWorkers workers(KeepingOptions(1));
  const std::string pid = Predict(workers, "pid");
  const std::string other = Predict(workers, "pid, or death after another task");
  EXPECT_THAT(other, MatchesRegex("[0-9]+"));
  EXPECT_NE(other, pid);
  EXPECT_EQ(Predict(workers, "pid"), other);
  // The task itself may be the cause, so a new process is not replaced.
  EXPECT_THAT(Predict(workers, "nothing"), HasSubstr("its process exited"));
}

TEST(ModelWorkersTest, AnOutputAfterATasksEndIsNotTheNextTasks) {
  ModelWorkers workers(KeepingOptions(1));
  const std::string pid = Predict(workers, "pid");
  EXPECT_EQ(NextInput(*Start(workers, PredictionTask("late"))), "<end>");
  EXPECT_EQ(Predict(workers, "answer"), "answer");
  EXPECT_TRUE(Ends(pid));
}

TEST(ModelWorkersTest, TheNewestProcessOfAModelIsTheNextToWork) {
  ModelWorkers workers(KeepingOptions(2));
  internal::v1::ModelTask many = PredictionTask("answer");
  for (int i = 0; i < 20; ++i) many.mutable_predict()->add_inputs()->set_label("answer");
  // Blocks until its outputs are read.
  const auto slow = Start(workers, std::move(many));
  EXPECT_EQ(NextInput(*slow), "answer");
  const std::string first = Predict(workers, "pid");
  while (NextInput(*slow) == "answer") continue;
  const std::string last = Predict(workers, "pid");
  EXPECT_NE(last, first);
  EXPECT_EQ(Predict(workers, "pid"), last);
}

TEST(ModelWorkersTest, AProgramThatIsNotThereIsAnError) {
  ModelWorkers::Options options = OptionsFor(1, 4);
  options.worker_program = "/nonexistent/tandem-worker";
  ModelWorkers workers(options);
  EXPECT_FALSE(Next(*Start(workers, Task({"answer"}))).ok());
}

}  // namespace
}  // namespace tandem

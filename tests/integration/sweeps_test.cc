// Sweeps through the real programs: a grid finds its best while the daemon is killed, and one is cancelled.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "google/protobuf/util/json_util.h"
#include "google/protobuf/util/time_util.h"
#include "gtest/gtest.h"
#include "tandem/v1/sweep.pb.h"
#include "tests/integration/api.h"
#include "tests/integration/cli.h"
#include "tests/integration/daemon_fixture.h"
#include "tests/integration/job_specs.h"
#include "tests/integration/processes.h"

namespace tandem::testing {
namespace {

using google::protobuf::util::TimeUtil;
using ::testing::HasSubstr;

class SweepsTest : public DaemonFixture {
 protected:
  // Runs a command that prints a sweep.
  v1::Sweep Ask(std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"-o", "json"});
    const CliResult result = cli_.Run(arguments);
    EXPECT_EQ(result.exit_code, 0) << result << daemon_.Log();
    v1::Sweep sweep;
    EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(result.out, &sweep).ok()) << result;
    return sweep;
  }
  static int Count(const v1::Sweep& sweep, v1::JobState state) {
    for (const v1::SweepCount& count : sweep.counts()) {
      if (count.state() == state) return count.jobs();
    }
    return 0;
  }
};

TEST_F(SweepsTest, AGridFindsItsBestThoughTheDaemonIsKilled) {
  const std::string file = scratch_.Write("job.yaml", SmallJobYaml({.epochs = 4, .train_samples = 2048}));
  // The second lets training go nowhere.
  const auto waiter =
      cli_.Start({"sweep", file, "--grid", "training.optimizer.sgd.learning_rate=0.1,1e-9,0.01,0.05",
                  "--max-running", "1", "--objective", "accuracy", "--wait"});
  const auto submitted = [&] { return absl::StrContains(waiter->Out(), ": 4 jobs\n"); };
  ASSERT_TRUE(WaitUntil(submitted)) << waiter->Out() << waiter->Err();
  const std::string said = waiter->Out();
  const std::string name(absl::StripPrefix(said.substr(0, said.find(": 4 jobs")), "submitted "));
  const auto look = [&] { return Ask({"sweep", "show", name}); };
  // A job of the sweep has ended, and others wait.
  ASSERT_TRUE(WaitUntil([&] { return Count(look(), v1::JOB_STATE_SUCCEEDED) >= 1; }, absl::Minutes(3)))
      << daemon_.Log();
  daemon_.Kill();
  const absl::Status restarted = daemon_.Start();
  ASSERT_TRUE(restarted.ok()) << restarted;
  ASSERT_TRUE(WaitUntil([&] { return look().state() == v1::SWEEP_STATE_SUCCEEDED; }, absl::Minutes(4)))
      << daemon_.Log();

  // The waiting command has also ended.
  const CliResult waited = waiter->Finish();
  EXPECT_EQ(waited.exit_code, 0) << waited;
  EXPECT_THAT(waited.out, HasSubstr("succeeded: 4 succeeded"));
  EXPECT_THAT(waited.out, HasSubstr("\n* best: learning_rate="));
  const v1::Sweep sweep = look();
  EXPECT_EQ(Count(sweep, v1::JOB_STATE_SUCCEEDED), 4);
  ASSERT_EQ(sweep.results_size(), 4);
  double best = -1;
  std::vector<std::pair<int64_t, int64_t>> held;
  for (int i = 0; i < 4; ++i) {
    const v1::SweepResult& result = sweep.results(i);
    EXPECT_EQ(result.index(), i);
    EXPECT_EQ(result.epochs(), 4);
    EXPECT_EQ(result.best().metric(), "accuracy");
    EXPECT_TRUE(result.has_last_value());
    EXPECT_EQ(result.value(), result.last_value());
    EXPECT_GT(result.value_step(), 0);
    EXPECT_EQ(result.value_step(), result.weights_step());
    EXPECT_EQ(result.artifact(), "model.safetensors");
    best = std::max(best, result.value());
    const v1::Job job = Api(daemon_).Get(result.job());
    EXPECT_EQ(job.sweep(), absl::StrCat("sweeps/", name));
    EXPECT_EQ(job.spec().training().seed(), 1);
    EXPECT_EQ(job.spec().training().optimizer().sgd().learning_rate(),
              result.values(0).value().number_value());
    held.emplace_back(TimeUtil::TimestampToMicroseconds(job.lease_time()),
                      TimeUtil::TimestampToMicroseconds(job.end_time()));
  }
  EXPECT_EQ(sweep.best().value(), best);
  EXPECT_NE(sweep.best().index(), 1);
  // One job at a time, although there are two devices.
  std::sort(held.begin(), held.end());
  for (size_t i = 1; i < held.size(); ++i) EXPECT_GE(held[i].first, held[i - 1].second) << i;

  const CliResult table = cli_.Run({"sweep", "show", name});
  EXPECT_THAT(table.out, HasSubstr("succeeded: 4 succeeded"));
  EXPECT_THAT(table.out, HasSubstr("best accuracy"));
}

TEST_F(SweepsTest, ABadJobEndsEarly) {
  const std::string file = scratch_.Write("job.yaml", SmallJobYaml({.epochs = 300, .train_samples = 2048}));
  // The last lets training go nowhere. Five jobs succeed before it.
  const CliResult waited =
      cli_.Run({"sweep", file, "--grid", "training.optimizer.sgd.learning_rate=0.1,0.09,0.08,0.07,0.06,1e-9",
                "--max-running", "1", "--objective", "loss", "--prune", "--wait"});
  EXPECT_EQ(waited.exit_code, 0) << waited << daemon_.Log();
  EXPECT_THAT(waited.out, HasSubstr("1 cancelled"));
  EXPECT_THAT(waited.out, HasSubstr(" pruned  learning_rate=1e-09"));
  const std::string name(absl::StripPrefix(waited.out.substr(0, waited.out.find(": 6 jobs")), "submitted "));
  const v1::Sweep sweep = Ask({"sweep", "show", name});
  EXPECT_EQ(sweep.state(), v1::SWEEP_STATE_SUCCEEDED);
  ASSERT_EQ(sweep.results_size(), 6);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(sweep.results(i).state(), v1::JOB_STATE_SUCCEEDED) << i;
  const v1::SweepResult& bad = sweep.results(5);
  EXPECT_EQ(bad.state(), v1::JOB_STATE_CANCELLED);
  EXPECT_EQ(bad.reason(), v1::STATE_REASON_PRUNED);
  EXPECT_THAT(bad.message(), HasSubstr("Its best validation loss after epoch"));
  EXPECT_THAT(bad.message(), HasSubstr("the median of 5 jobs of its sweep"));
  EXPECT_LT(bad.epochs(), 300);
  EXPECT_NE(sweep.best().index(), 5);
  // Its model can be used.
  EXPECT_FALSE(bad.artifact().empty());
}

TEST_F(SweepsTest, OneThatIsCancelledEndsWhole) {
  std::string file;
  {
    v1::Sweep wanted;
    *wanted.mutable_base() = LongJob(1'000'000);
    wanted.add_grid()->set_field("training.seed");
    for (int seed = 1; seed <= 3; ++seed) wanted.mutable_grid(0)->add_values()->set_number_value(seed);
    wanted.set_max_running(1);
    google::protobuf::util::JsonPrintOptions options;
    options.preserve_proto_field_names = true;
    std::string json;
    ASSERT_TRUE(google::protobuf::util::MessageToJsonString(wanted, &json, options).ok());
    file = scratch_.Write("sweep.json", json);
  }
  const v1::Sweep sweep = Ask({"sweep", file});
  ASSERT_EQ(sweep.results_size(), 3);
  Api api(daemon_);
  api.WaitFor(sweep.results(0).job(), v1::JOB_STATE_RUNNING);
  EXPECT_EQ(api.Get(sweep.results(1).job()).waiting().reason(), v1::Waiting::REASON_SWEEP_LIMIT);
  const CliResult cancelled = cli_.Run({"sweep", "cancel", sweep.name()});
  EXPECT_EQ(cancelled.exit_code, 0) << cancelled;
  for (const v1::SweepResult& result : sweep.results()) {
    EXPECT_EQ(api.WaitFor(result.job(), v1::JOB_STATE_CANCELLED).state(), v1::JOB_STATE_CANCELLED);
  }
  EXPECT_EQ(Ask({"sweep", "show", sweep.name()}).state(), v1::SWEEP_STATE_CANCELLED);
  EXPECT_TRUE(WaitUntil([&] { return daemon_.Workers().empty(); })) << daemon_.Log();
}

TEST_F(SweepsTest, AWrongValueStopsTheWhole) {
  const std::string file = scratch_.Write("job.yaml", SmallJobYaml({}));
  const CliResult result = cli_.Run(
      {"sweep", file, "--grid", "training.epochs=1,2", "--grid", "model.layers[0].dense.units=8,-3"});
  EXPECT_EQ(result.exit_code, 2) << result;
  EXPECT_THAT(result.err, HasSubstr("model.layers[0].dense.units: with training.epochs=1, "
                                    "model.layers[0].dense.units=-3: "));
  EXPECT_TRUE(Api(daemon_).List().empty());
}

}  // namespace
}  // namespace tandem::testing

#include <atomic>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/app_fixture.h"
#include "client/cli/format.h"
#include "client/cli/style.h"
#include "client/cli/sweep_table.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem::cli {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kJob[] = "name: small\ntraining: {epochs: 2}\n";

class SweepCommandTest : public AppFixture {
 protected:
  SweepCommandTest() {
    daemon_.get_sweep = [](const v1::GetSweepRequest& request, v1::Sweep* sweep) -> grpc::Status {
      if (request.name() != "sweeps/small-1") return {grpc::StatusCode::NOT_FOUND, "no " + request.name()};
      *sweep = Sweep(v1::SWEEP_STATE_SUCCEEDED);
      return grpc::Status::OK;
    };
    daemon_.list_sweeps = [](const v1::ListSweepsRequest&, v1::ListSweepsResponse* response) {
      *response->add_sweeps() = Sweep(v1::SWEEP_STATE_SUCCEEDED);
      return grpc::Status::OK;
    };
  }

  // Three jobs over two fields: the best job, a failed job and a waiting job.
  static v1::Sweep Sweep(v1::SweepState state) {
    v1::Sweep sweep;
    sweep.set_name("sweeps/small-1");
    sweep.set_user("ann");
    sweep.set_state(state);
    sweep.set_jobs(3);
    sweep.mutable_objective()->set_metric("accuracy");
    sweep.mutable_create_time()->set_seconds(1'000'000 - 90);
    const v1::JobState states[] = {v1::JOB_STATE_SUCCEEDED, v1::JOB_STATE_FAILED, v1::JOB_STATE_QUEUED};
    for (int i = 0; i < 3; ++i) {
      v1::SweepCount* count = sweep.add_counts();
      count->set_state(states[i]);
      count->set_jobs(1);
      v1::SweepResult* result = sweep.add_results();
      result->set_job(absl::StrCat("jobs/small-", i));
      result->set_index(i);
      result->set_state(states[i]);
      for (const auto& [field, number] : {std::pair("training.optimizer.adam.learning_rate", 0.1 / (i + 1)),
                                          std::pair("model.layers[0].dense.units", 8.0)}) {
        v1::SweepValue* value = result->add_values();
        value->set_field(field);
        value->mutable_value()->set_number_value(number);
      }
    }
    v1::SweepResult* best = sweep.mutable_results(0);
    best->set_epochs(2);
    best->set_epochs_planned(2);
    best->mutable_best()->set_metric("accuracy");
    best->mutable_best()->set_value(0.9);
    best->mutable_best()->set_epoch(1);
    best->set_last_value(0.8);
    best->set_value(0.8);
    best->set_artifact("model.safetensors");
    best->set_value_step(4);
    best->set_weights_step(4);
    *sweep.mutable_best() = *best;
    sweep.mutable_results(1)->set_message("the loss is not a number\nsmall-2 succeeded");
    return sweep;
  }
};

TEST_F(SweepCommandTest, APrunedJobIsNoCancelledJob) {
  v1::Sweep sweep = Sweep(v1::SWEEP_STATE_SUCCEEDED);
  v1::SweepResult* const result = sweep.mutable_results(2);
  result->set_state(v1::JOB_STATE_CANCELLED);
  result->set_reason(v1::STATE_REASON_PRUNED);
  EXPECT_THAT(SweepText(sweep, Style(false)), HasSubstr("small-2  pruned "));
  result->set_reason(v1::STATE_REASON_CANCEL_REQUESTED);
  EXPECT_THAT(SweepText(sweep, Style(false)), HasSubstr("small-2  cancelled "));
}

TEST_F(SweepCommandTest, AUselessPruningNamesItsOptionAndItsField) {
  daemon_.create_sweep = [](const v1::CreateSweepRequest&, v1::Sweep*) {
    return client::BadRequestStatus("wrong", {{"sweep.pruning.min_jobs", "is 5 by default"}});
  };
  EXPECT_EQ(Run({"sweep", Write("job.yaml", kJob), "--grid", "training.seed=1,2,3", "--prune"}), 2);
  EXPECT_EQ(terminal_.err(), "--prune: pruning.min_jobs: is 5 by default\n");
}

TEST_F(SweepCommandTest, AGridIsSubmittedAsItsValuesAre) {
  v1::CreateSweepRequest sent;
  daemon_.create_sweep = [&sent](const v1::CreateSweepRequest& request, v1::Sweep* sweep) {
    sent = request;
    *sweep = Sweep(v1::SWEEP_STATE_ACTIVE);
    return grpc::Status::OK;
  };
  EXPECT_EQ(Run({"sweep", Write("job.yaml", kJob), "--grid", "training.optimizer.adam.learning_rate=0.1,0.01",
                 "--grid", "training.seed=1,2,3", "--max-running", "2", "--objective", "accuracy", "--prune",
                 "--set", "training.epochs=5"}),
            0)
      << terminal_.err();
  EXPECT_FALSE(sent.request_id().empty());
  EXPECT_EQ(sent.sweep().base().training().epochs(), 5);
  ASSERT_EQ(sent.sweep().grid_size(), 2);
  EXPECT_EQ(sent.sweep().grid(0).values(1).number_value(), 0.01);
  EXPECT_EQ(sent.sweep().grid(1).values_size(), 3);
  EXPECT_EQ(sent.sweep().max_running(), 2);
  EXPECT_TRUE(sent.sweep().has_pruning());
  EXPECT_EQ(sent.sweep().objective().metric(), "accuracy");
  EXPECT_THAT(terminal_.out(), HasSubstr("submitted small-1: 3 jobs"));
  EXPECT_THAT(terminal_.out(), HasSubstr("tandem sweep show small-1"));

  EXPECT_EQ(
      Run({"sweep", Write("job.yaml", kJob), "--random",
           "training.optimizer.adam.learning_rate=log_uniform(1e-4,0.1)", "--samples", "7", "--seed", "3"}),
      0);
  EXPECT_EQ(sent.sweep().random().samples(), 7);
  EXPECT_EQ(sent.sweep().random().seed(), 3);
  EXPECT_EQ(sent.sweep().random().fields(0).log_uniform().max(), 0.1);
}

TEST_F(SweepCommandTest, WhatIsWrongIsSaidWithItsPlace) {
  EXPECT_EQ(Run({"sweep", Write("job.yaml", kJob), "--grid", "training.epocs=1"}), 2);
  EXPECT_THAT(terminal_.err(), HasSubstr("--grid: training.epocs: unknown field; did you mean `epochs`?"));
  EXPECT_EQ(Run({"sweep", Write("job.yaml", kJob), "--random", "training.epochs=normal(0,1)"}), 2);
  EXPECT_THAT(terminal_.err(), HasSubstr("unknown distribution"));
  daemon_.create_sweep = [](const v1::CreateSweepRequest&, v1::Sweep*) {
    return client::BadRequestStatus("wrong",
                                    {{"sweep.base.training.epochs", "with training.epochs=0: is 0"}});
  };
  EXPECT_EQ(Run({"sweep", Write("job.yaml", kJob), "--grid", "training.epochs=0,1"}), 2);
  EXPECT_THAT(terminal_.err(), HasSubstr("job.yaml:2:12: training.epochs: with training.epochs=0: is 0"));
}

TEST_F(SweepCommandTest, WhatAnOptionGaveIsSaidWithTheOption) {
  daemon_.create_sweep = [](const v1::CreateSweepRequest&, v1::Sweep*) {
    return client::BadRequestStatus("wrong", {{"sweep.base.training.best_model.metric", "is \"acc\""},
                                              {"sweep.random.samples", "is 0"},
                                              {"sweep.random.fields[0].uniform.max", "is 1"},
                                              {"sweep.base.training.epochs", "is 0"}});
  };
  const std::string job = Write("job.yaml", kJob);
  const std::string random = "training.epochs=uniform(1,1)";
  EXPECT_EQ(Run({"sweep", job, "--objective", "acc", "--random", random}), 2);
  EXPECT_THAT(terminal_.err(), HasSubstr("--objective: is \"acc\"\n--samples: is 0\n"
                                         "--random: random.fields[0].uniform.max: is 1\n"));
  EXPECT_THAT(terminal_.err(), HasSubstr("job.yaml:2:12: training.epochs: is 0\n"));
}

TEST_F(SweepCommandTest, WhatTheFileGaveIsSaidWithItsPlace) {
  daemon_.create_sweep = [](const v1::CreateSweepRequest&, v1::Sweep*) {
    return client::BadRequestStatus("wrong", {{"sweep.base.training.best_model.metric", "is \"acc\""},
                                              {"sweep.objective.metric", "is \"loss\""},
                                              {"sweep.random.samples", "is 2000"}});
  };
  const std::string file = Write("sweep.yaml",
                                 "base: {training: {best_model: {metric: acc}}}\n"
                                 "objective: {metric: loss}\n"
                                 "random: {samples: 2000}\n");
  EXPECT_EQ(Run({"sweep", file, "--random", "training.epochs=uniform(1,2)"}), 2);
  EXPECT_THAT(terminal_.err(), HasSubstr("sweep.yaml:1:32: base.training.best_model.metric: is \"acc\"\n"));
  EXPECT_THAT(terminal_.err(), HasSubstr("sweep.yaml:2:13: objective.metric: is \"loss\"\n"));
  EXPECT_THAT(terminal_.err(), HasSubstr("sweep.yaml:3:10: random.samples: is 2000\n"));
}

TEST_F(SweepCommandTest, TheTableMarksTheBestAndNamesErrors) {
  EXPECT_EQ(Run({"sweep", "show", "small-1"}), 0) << terminal_.err();
  EXPECT_THAT(terminal_.out(), HasSubstr("small-1 succeeded: 1 succeeded, 1 failed, 1 queued"));
  EXPECT_THAT(terminal_.out(), HasSubstr("learning_rate  units  EPOCHS  best accuracy  last accuracy"));
  EXPECT_THAT(terminal_.out(), HasSubstr("*  small-0"));
  EXPECT_THAT(terminal_.out(), HasSubstr("0.9000"));
  EXPECT_THAT(terminal_.out(),
              HasSubstr("* best: learning_rate=0.1, units=8 with training accuracy 0.8000, over its "
                        "last epoch\n  these weights: tandem download small-0 "
                        "model.safetensors\n"));
  EXPECT_THAT(terminal_.out(),
              HasSubstr("failed small-1: the loss is not a number\n    small-2 succeeded\n"));
  FakeTerminal json;
  json.environment = terminal_.environment;
  EXPECT_EQ(RunCommand({"sweep", "show", "small", "-o", "json"}, json), 0) << json.err();
  EXPECT_THAT(json.out(), HasSubstr("\"SWEEP_STATE_SUCCEEDED\""));
}

TEST_F(SweepCommandTest, TheBestNamesTheStepsOfItsValueAndItsWeights) {
  v1::Sweep sweep = Sweep(v1::SWEEP_STATE_CANCELLED);
  v1::SweepResult* const best = sweep.mutable_best();
  best->mutable_best()->set_validation(true);
  EXPECT_THAT(SweepText(sweep, Style(false)), HasSubstr("validation accuracy 0.8000, of its last weights\n"));
  best->set_value_step(15000);
  best->set_weights_step(15934);
  EXPECT_THAT(SweepText(sweep, Style(false)),
              HasSubstr("validation accuracy 0.8000, of its last validation, at step 15,000; its weights are "
                        "of step 15,934\n"));
  best->mutable_best()->set_validation(false);
  EXPECT_THAT(SweepText(sweep, Style(false)),
              HasSubstr("training accuracy 0.8000, over its last epoch, to step 15,000; its weights are of "
                        "step 15,934\n"));
  // The job runs.
  best->clear_weights_step();
  EXPECT_THAT(SweepText(sweep, Style(false)),
              HasSubstr("training accuracy 0.8000, over its last epoch, to step 15,000\n"));
}

TEST_F(SweepCommandTest, SeedsKeepTheirDigits) {
  v1::Sweep sweep = Sweep(v1::SWEEP_STATE_SUCCEEDED);
  const double seeds[] = {20240531, 20240601, 9007199254740991};
  for (int i = 0; i < 3; ++i) {
    v1::SweepValue* value = sweep.mutable_results(i)->mutable_values(1);
    value->set_field("training.seed");
    value->mutable_value()->set_number_value(seeds[i]);
  }
  *sweep.mutable_best() = sweep.results(0);
  const std::string text = SweepText(sweep, Style(false));
  EXPECT_THAT(text, HasSubstr(" 20240531 "));
  EXPECT_THAT(text, HasSubstr(" 20240601 "));
  EXPECT_THAT(text, HasSubstr(" 9007199254740991 "));
  EXPECT_THAT(text, HasSubstr("* best: learning_rate=0.1, seed=20240531 with"));
}

TEST_F(SweepCommandTest, ListsAndCancels) {
  EXPECT_EQ(Run({"sweep", "list"}), 0);
  // The measure of the weights that a download returns.
  EXPECT_THAT(terminal_.out(), HasSubstr("accuracy 0.8000 with learning_rate=0.1, units=8"));
  daemon_.cancel_sweep = [](const v1::CancelSweepRequest& request, v1::Sweep* sweep) {
    *sweep = Sweep(v1::SWEEP_STATE_CANCELLING);
    sweep->set_name(request.name());
    return grpc::Status::OK;
  };
  EXPECT_EQ(Run({"sweep", "cancel", "sma"}), 0);
  EXPECT_THAT(terminal_.out(), HasSubstr("small-1 cancelling"));
  EXPECT_EQ(Run({"sweep", "show", "smell"}), 2);
  EXPECT_THAT(terminal_.err(), HasSubstr("no sweep's id begins with `smell`"));
}

TEST_F(SweepCommandTest, ACheckSubmitsNothing) {
  v1::CreateSweepRequest sent;
  daemon_.create_sweep = [&sent](const v1::CreateSweepRequest& request, v1::Sweep* sweep) {
    sent = request;
    *sweep = Sweep(v1::SWEEP_STATE_ACTIVE);
    return grpc::Status::OK;
  };
  const std::vector<std::string> check = {"sweep", Write("job.yaml", kJob), "--grid", "training.epochs=1,2,3",
                                          "--check"};
  EXPECT_EQ(Run(check), 0) << terminal_.err();
  EXPECT_TRUE(sent.validate_only());
  EXPECT_THAT(terminal_.out(), HasSubstr("learning_rate=0.05, units=8\n"));
  EXPECT_THAT(terminal_.out(), HasSubstr("all 3 jobs are valid; none was submitted\n"));
  EXPECT_NE(Run({"sweep", folder_ + "/none.yaml", "--grid", "training.epochs=1"}), 0);
  EXPECT_THAT(terminal_.err(), HasSubstr("none.yaml"));
}

TEST_F(SweepCommandTest, ASweepThatMayHaveArrivedSaysHowToRepeatIt) {
  daemon_.create_sweep = [](const v1::CreateSweepRequest&, v1::Sweep*) {
    return grpc::Status(grpc::StatusCode::UNAVAILABLE, "going");
  };
  EXPECT_NE(Run({"sweep", Write("job.yaml", kJob), "--grid", "training.epochs=1,2", "--request-id", "mine"}),
            0);
  EXPECT_THAT(terminal_.err(),
              HasSubstr("Submit it again with --request-id mine: this never creates a second sweep"));
}

TEST_F(SweepCommandTest, SweepsAreDeletedOneByOne) {
  std::vector<std::string> deleted;
  daemon_.delete_sweep = [&deleted](const v1::DeleteSweepRequest& request) {
    deleted.push_back(request.name());
    return grpc::Status::OK;
  };
  EXPECT_NE(Run({"sweep", "delete", "other", "small"}), 0);
  EXPECT_THAT(terminal_.err(), HasSubstr("no sweep's id begins with `other`"));
  EXPECT_THAT(terminal_.out(), HasSubstr("small-1 deleted, with its jobs\n"));
  EXPECT_THAT(deleted, ElementsAre("sweeps/small-1"));
  daemon_.delete_sweep = [](const v1::DeleteSweepRequest&) {
    return grpc::Status(grpc::StatusCode::FAILED_PRECONDITION, "the sweep has not ended");
  };
  EXPECT_NE(Run({"sweep", "delete", "small-1"}), 0);
  EXPECT_THAT(terminal_.err(), HasSubstr("the sweep has not ended"));
}

TEST_F(SweepCommandTest, ABeginningOfTwoSweepsNamesBoth) {
  daemon_.list_sweeps = [](const v1::ListSweepsRequest&, v1::ListSweepsResponse* response) {
    response->add_sweeps()->set_name("sweeps/small-1");
    response->add_sweeps()->set_name("sweeps/small-2");
    return grpc::Status::OK;
  };
  EXPECT_EQ(Run({"sweep", "show", "sma"}), 2);
  EXPECT_THAT(terminal_.err(),
              HasSubstr("2 sweeps begin with `sma`: small-1, small-2; write more of the id, or `sma@`"));
  const auto usual = daemon_.get_sweep;
  std::string asked;
  daemon_.get_sweep = [&](const v1::GetSweepRequest& request, v1::Sweep* sweep) {
    sweep->set_name(asked = request.name());
    return grpc::Status::OK;
  };
  EXPECT_EQ(Run({"sweep", "show", "sma@"}), 0) << terminal_.err();
  EXPECT_EQ(asked, "sweeps/small-1");
  daemon_.get_sweep = usual;
  EXPECT_EQ(Run({"sweep", "list", "-o", "json"}), 0) << terminal_.err();
  EXPECT_THAT(terminal_.out(), HasSubstr("\"sweeps/small-2\""));
  daemon_.list_sweeps = [](const v1::ListSweepsRequest&, v1::ListSweepsResponse*) {
    return grpc::Status::OK;
  };
  EXPECT_EQ(Run({"sweep", "list"}), 0) << terminal_.err();
  EXPECT_THAT(terminal_.out(), HasSubstr("no sweeps yet; "));
  EXPECT_EQ(Run({"sweep", "show", "@"}), 2);
  EXPECT_THAT(terminal_.err(), HasSubstr("there are no sweeps; `tandem sweep FILE` sends a sweep\n"));
}

// Answers with a sweep whose first job trains, then ends. The daemon is away once meanwhile.
class SweepWaitTest : public SweepCommandTest {
 protected:
  SweepWaitTest() {
    daemon_.create_sweep = [](const v1::CreateSweepRequest&, v1::Sweep* sweep) {
      *sweep = Sweep(v1::SWEEP_STATE_ACTIVE);
      return grpc::Status::OK;
    };
    daemon_.get_sweep = [this](const v1::GetSweepRequest&, v1::Sweep* sweep) -> grpc::Status {
      const int call = ++calls_;
      if (call == 2) return {grpc::StatusCode::UNAVAILABLE, "going"};
      *sweep = Sweep(call == 1 ? v1::SWEEP_STATE_ACTIVE : v1::SWEEP_STATE_SUCCEEDED);
      if (call == 1) {
        sweep->clear_best();
        sweep->mutable_results(0)->set_state(v1::JOB_STATE_RUNNING);
        sweep->mutable_results(0)->set_epochs(1);
      }
      return grpc::Status::OK;
    };
  }
  int RunAndWait() {
    return Run({"sweep", Write("job.yaml", kJob), "--grid", "training.epochs=1,2,3", "--wait"});
  }

  std::atomic<int> calls_ = 0;
};

TEST_F(SweepWaitTest, ATerminalShowsALiveTable) {
  terminal_.interactive = true;
  terminal_.width = 120;
  std::vector<std::string> during;
  terminal_.interrupt = [&](const std::string&) {
    if (calls_ == 1) during = terminal_.Screen();
    return false;
  };
  EXPECT_EQ(RunAndWait(), 0) << terminal_.err();
  EXPECT_EQ(calls_, 3);
  ASSERT_EQ(during.size(), 7);
  EXPECT_EQ(during[0], "submitted small-1: 3 jobs");
  EXPECT_THAT(during[1], HasSubstr("small-1 active: "));
  EXPECT_THAT(during[4], AllOf(HasSubstr("small-0  running"), HasSubstr("1/2")));
  EXPECT_THAT(during[6], HasSubstr("small-2  queued"));
  // The final table takes the place of the earlier table.
  const std::vector<std::string> after = terminal_.Screen();
  EXPECT_THAT(after[1], HasSubstr("small-1 succeeded: "));
  EXPECT_THAT(after, Contains(HasSubstr("* best: learning_rate=0.1")));
  EXPECT_THAT(after, Not(Contains(HasSubstr("running"))));
  EXPECT_THAT(terminal_.err(), HasSubstr("connection lost; reconnecting"));
}

TEST_F(SweepWaitTest, AFileGetsALineForEachJobThatEnds) {
  EXPECT_EQ(RunAndWait(), 0) << terminal_.err();
  EXPECT_THAT(terminal_.out(),
              HasSubstr("submitted small-1: 3 jobs\n"
                        "small-1 failed  learning_rate=0.05, units=8\n"
                        "small-0 succeeded  learning_rate=0.1, units=8\n\nsmall-1 succeeded: "));
  EXPECT_THAT(terminal_.out(), HasSubstr("* best: learning_rate=0.1"));
}

TEST_F(SweepWaitTest, CtrlCLeavesTheSweep) {
  terminal_.interrupt = [&](const std::string&) { return calls_ == 1; };
  EXPECT_EQ(RunAndWait(), 130);
  EXPECT_THAT(terminal_.err(), HasSubstr("show it with: tandem sweep show small-1"));
}

TEST_F(SweepCommandTest, ALiveTableFitsTheTerminal) {
  v1::Sweep sweep = Sweep(v1::SWEEP_STATE_ACTIVE);
  const v1::SweepResult queued = sweep.results(2);
  for (int i = 3; i < 100; ++i) {
    v1::SweepResult* result = sweep.add_results();
    *result = queued;
    result->set_index(i);
    result->set_job(absl::StrCat("jobs/small-", i));
    if (i == 77) result->set_state(v1::JOB_STATE_RUNNING);
  }
  for (const int height : {9, 12, 30}) {
    const std::vector<std::string> lines = SweepLines(sweep, Style(false), /*width=*/60, height);
    EXPECT_LE(lines.size(), height);
    for (const std::string& line : lines) EXPECT_LE(DisplayWidth(line), 60) << line;
    // The best job and the running job.
    EXPECT_THAT(lines, Contains(HasSubstr("*  small-0")));
    if (height > 9) {
      EXPECT_THAT(lines, Contains(HasSubstr("small-77  running")));
    }
    EXPECT_THAT(lines, Contains(HasSubstr(" more")));
    EXPECT_THAT(lines[lines.size() - 2], HasSubstr("* best: "));
    EXPECT_THAT(lines.back(), HasSubstr("tandem download small-0 model.safetensors"));
  }
  EXPECT_EQ(SweepLines(sweep, Style(false), 60, 200).size(), 106);
}

}  // namespace
}  // namespace tandem::cli

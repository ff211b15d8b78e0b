#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/epoch_table.h"
#include "client/cli/fake_terminal.h"
#include "client/cli/format.h"
#include "client/cli/job_display.h"
#include "client/cli/progress_line.h"
#include "client/cli/waiting_text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// The events of a job of 3 epochs with 100 steps of 10 ms.
class Story {
 public:
  explicit Story(FakeTerminal& terminal) : terminal_(terminal) {}

  v1::JobEvent State(v1::JobState state, const std::string& message = "") {
    v1::JobEvent event = Next();
    event.mutable_state_change()->set_to(state);
    event.mutable_state_change()->set_message(message);
    event.set_terminal(state >= v1::JOB_STATE_SUCCEEDED && state <= v1::JOB_STATE_CANCELLED);
    return event;
  }

  v1::JobEvent Progress(int64_t step) {
    v1::JobEvent event = Next();
    v1::Progress& progress = *event.mutable_progress();
    progress.set_epoch((step - 1) / 100 + 1);
    progress.set_epochs(3);
    progress.set_step(step);
    progress.set_steps(300);
    progress.mutable_training()->set_loss(0.391);
    (*progress.mutable_training()->mutable_metrics())["accuracy"] = 0.859;
    progress.set_images_per_second(12100);
    return event;
  }

  v1::JobEvent Epoch(int64_t epoch, double accuracy) {
    v1::JobEvent event = Next();
    v1::EpochSummary& summary = *event.mutable_epoch();
    summary.set_epoch(epoch);
    summary.set_epochs(3);
    summary.set_step(epoch * 100);
    summary.mutable_training()->set_loss(0.5432);
    (*summary.mutable_training()->mutable_metrics())["accuracy"] = 0.8012;
    summary.mutable_validation()->set_loss(0.4211);
    (*summary.mutable_validation()->mutable_metrics())["accuracy"] = accuracy;
    summary.set_training_seconds(4.5);
    summary.set_validation_seconds(0.37);
    summary.set_images_per_second(13333);
    summary.set_learning_rate(0.02);
    return event;
  }

  v1::JobEvent Checkpoint(int64_t step) {
    v1::JobEvent event = Next();
    event.mutable_checkpoint()->set_step(step);
    return event;
  }

  v1::JobEvent File() {
    v1::JobEvent event = Next();
    event.mutable_artifact()->set_name("model.safetensors");
    event.mutable_artifact()->set_size_bytes(1724840);
    event.mutable_artifact()->set_description("the trained parameters");
    return event;
  }

 private:
  v1::JobEvent Next() {
    v1::JobEvent event;
    event.set_job("jobs/lenet-1");
    event.set_sequence(++sequence_);
    event.set_attempt(1);
    // The daemon's clock differs from the terminal's.
    event.mutable_time()->set_seconds(absl::ToUnixSeconds(terminal_.now) + 777);
    event.mutable_time()->set_nanos(0);
    return event;
  }

  FakeTerminal& terminal_;
  int64_t sequence_ = 0;
};

class PlainDisplayTest : public ::testing::Test {
 protected:
  FakeTerminal terminal_;
  Story story_{terminal_};
  const std::unique_ptr<JobDisplay> display_ = MakePlainDisplay(terminal_, "lenet-1", absl::Seconds(5));
};

class LiveDisplayTest : public ::testing::Test {
 protected:
  LiveDisplayTest() { terminal_.interactive = true; }

  FakeTerminal terminal_;
  Story story_{terminal_};
  const std::unique_ptr<JobDisplay> display_ = MakeLiveDisplay(terminal_, "lenet-1");
};

TEST_F(LiveDisplayTest, RedrawsOneLineUnderAGrowingTable) {
  terminal_.width = 101;
  const auto later = [&](int seconds) { terminal_.now += absl::Seconds(seconds); };

  display_->OnEvent(story_.State(v1::JOB_STATE_QUEUED, "waits for 2 cpu devices"));
  later(3);
  display_->OnTick();
  EXPECT_THAT(terminal_.Screen(), ElementsAre(HasSubstr(" queued  0:03  waits for 2 cpu devices")));

  display_->OnEvent(story_.State(v1::JOB_STATE_RUNNING));
  later(1);
  display_->OnEvent(story_.Progress(100));
  EXPECT_THAT(terminal_.Screen(), ElementsAre("epoch 1/3  ━━━━─────────   33%  0:02 left  loss 0.3910  "
                                              "acc 0.8590  12,100 samples/s  step 100/300"));
  later(1);
  display_->OnTick();
  EXPECT_THAT(terminal_.Screen(), ElementsAre(HasSubstr("0:01 left")));
  display_->OnEvent(story_.Epoch(1, 0.8501));
  display_->OnEvent(story_.Progress(150));
  later(1);
  display_->OnEvent(story_.Epoch(2, 0.85));
  display_->OnNote("connection lost; reconnecting");
  EXPECT_EQ("\n" + absl::StrJoin(terminal_.Screen(), "\n") + "\n", R"(
  epoch  train loss  train acc   val loss   val acc  seconds  samples/s       lr
    1/3      0.5432     0.8012     0.4211    0.8501     4.87     13,333     0.02
    2/3      0.5432     0.8012     0.4211    0.8500     4.87     13,333     0.02
connection lost; reconnecting
epoch 2/3  ━━━━━━━━╸────   66%  0:02 left  loss 0.3910  acc 0.8590  12,100 samples/s  step 150/300
)");
  display_->OnEvent(story_.Epoch(3, 0.88));
  display_->OnEvent(story_.File());
  display_->OnEvent(story_.State(v1::JOB_STATE_SUCCEEDED, "trained 3 epochs"));
  display_->OnTick();
  display_->Close();
  EXPECT_EQ("\n" + absl::StrJoin(terminal_.Screen(), "\n") + "\n", R"(
  epoch  train loss  train acc   val loss   val acc  seconds  samples/s       lr
    1/3      0.5432     0.8012     0.4211    0.8501     4.87     13,333     0.02
    2/3      0.5432     0.8012     0.4211    0.8500     4.87     13,333     0.02
connection lost; reconnecting
    3/3      0.5432     0.8012     0.4211    0.8800     4.87     13,333     0.02
succeeded after 3.00 s: validation loss 0.4211, accuracy 0.8800
made model.safetensors (1.7 MB): the trained parameters
fetch with: tandem download lenet-1
)");
}

v1::Waiting Waiting(const FakeTerminal& terminal, int position, absl::Duration wait) {
  v1::Waiting waiting;
  waiting.set_reason(position == 1 ? v1::Waiting::REASON_DEVICES_BUSY : v1::Waiting::REASON_BEHIND_OTHERS);
  waiting.set_message(position == 1 ? "Needs 2 CPUs; 1 of 2 free." : "\"jobs/a\" goes first.");
  waiting.set_position(position);
  if (wait != absl::InfiniteDuration()) {
    waiting.mutable_estimated_start_time()->set_seconds(absl::ToUnixSeconds(terminal.now + wait));
  }
  return waiting;
}

TEST(WaitingTextTest, LeavesOutWhatNobodyKnows) {
  FakeTerminal terminal;
  EXPECT_EQ(WaitingText(Waiting(terminal, 1, absl::Minutes(5)), terminal.now),
            "#1 in the queue, starts in ~5 min or later: Needs 2 CPUs; 1 of 2 free.");
  EXPECT_EQ(WaitingText(Waiting(terminal, 1, absl::ZeroDuration()), terminal.now),
            "#1 in the queue, starts soon: Needs 2 CPUs; 1 of 2 free.");
  EXPECT_EQ(WaitingText(Waiting(terminal, 1, absl::InfiniteDuration()), terminal.now),
            "#1 in the queue: Needs 2 CPUs; 1 of 2 free.");
  v1::Waiting waiting;
  waiting.set_message("The scheduler has not looked at it yet.");
  EXPECT_EQ(WaitingText(waiting, terminal.now), "The scheduler has not looked at it yet.");
}

TEST_F(LiveDisplayTest, AQueuedJobSaysWhyItWaitsAndWhenItMayStart) {
  terminal_.width = 100;
  display_->OnEvent(story_.State(v1::JOB_STATE_QUEUED, "accepted"));
  terminal_.now += absl::Seconds(3);
  display_->OnWaiting(Waiting(terminal_, 1, absl::Minutes(5)));
  EXPECT_THAT(terminal_.Screen(),
              ElementsAre(HasSubstr("queued  0:03  #1 in the queue, starts in ~5 min or later: Needs "
                                    "2 CPUs; 1 of 2 free.")));
  terminal_.now += absl::Minutes(2);
  display_->OnTick();
  EXPECT_THAT(terminal_.Screen(), ElementsAre(HasSubstr("starts in ~3 min or later")));
  display_->OnEvent(story_.State(v1::JOB_STATE_STARTING, "has its devices"));
  terminal_.now += absl::Seconds(1);
  display_->OnTick();
  EXPECT_THAT(terminal_.Screen(), ElementsAre(HasSubstr("starting  0:01  has its devices")));
}

TEST_F(LiveDisplayTest, AJobThatTrainedAndWaitsAgainSaysWhy) {
  display_->OnEvent(story_.State(v1::JOB_STATE_RUNNING));
  display_->OnEvent(story_.Progress(100));
  terminal_.now += absl::Seconds(1);
  display_->OnEvent(story_.State(v1::JOB_STATE_QUEUED, "preempted"));
  terminal_.now += absl::Seconds(1);
  display_->OnWaiting(Waiting(terminal_, 2, absl::Hours(1)));
  EXPECT_THAT(terminal_.Screen(),
              ElementsAre(HasSubstr("#2 in the queue, starts in ~1 h or later: \"jobs/a\" goes first.")));
}

TEST_F(PlainDisplayTest, AQueuedJobSaysWhyItWaitsOnceAReason) {
  display_->OnEvent(story_.State(v1::JOB_STATE_QUEUED, "accepted"));
  for (const int position : {2, 2, 1, 1}) {
    terminal_.now += absl::Seconds(2);
    display_->OnWaiting(Waiting(terminal_, position, absl::Minutes(5)));
  }
  EXPECT_EQ("\n" + terminal_.out(), R"(
queued: accepted
waits: #2 in the queue, starts in ~5 min or later: "jobs/a" goes first.
waits: #1 in the queue, starts in ~5 min or later: Needs 2 CPUs; 1 of 2 free.
)");
}

TEST_F(PlainDisplayTest, ANewReasonOfAClusterIsNews) {
  display_->OnEvent(story_.State(v1::JOB_STATE_STARTING));
  for (const char* reason : {"Priority", "Resources", "Resources"}) {
    v1::Waiting waiting;
    waiting.set_reason(v1::Waiting::REASON_CLUSTER);
    waiting.set_message(absl::StrCat("Slurm job 5 waits: ", reason, "."));
    display_->OnWaiting(waiting);
  }
  EXPECT_EQ("\n" + terminal_.out(), R"(
starting
waits: Slurm job 5 waits: Priority.
waits: Slurm job 5 waits: Resources.
)");
}

TEST_F(PlainDisplayTest, AClustersQueueIsNoTimeOfTheJob) {
  v1::Job job;
  job.mutable_spec()->mutable_cluster();
  display_->SetJob(job);
  display_->OnEvent(story_.State(v1::JOB_STATE_STARTING));
  terminal_.now += absl::Hours(1);
  display_->OnEvent(story_.State(v1::JOB_STATE_RUNNING));
  terminal_.now += absl::Seconds(4);
  display_->OnEvent(story_.State(v1::JOB_STATE_SUCCEEDED));
  EXPECT_THAT(terminal_.out(), HasSubstr("succeeded after 4.00 s"));
}

TEST_F(PlainDisplayTest, ACancelledJobSaysWhatItLeaves) {
  display_->OnEvent(story_.State(v1::JOB_STATE_RUNNING));
  display_->OnEvent(story_.Checkpoint(7));
  display_->OnEvent(story_.File());
  display_->OnEvent(story_.State(v1::JOB_STATE_CANCELLED, "Stopped after step 7."));
  EXPECT_EQ("\n" + terminal_.out(), R"(
running
cancelled after 0.00 s: Stopped after step 7.
made model.safetensors (1.7 MB): the trained parameters
fetch with: tandem download lenet-1
continue from its last checkpoint with: tandem fork lenet-1
)");
  // A job that continued no longer has the model of its pause.
  display_->OnEvent(story_.State(v1::JOB_STATE_RUNNING));
  display_->OnEvent(story_.State(v1::JOB_STATE_CANCELLED, "Killed."));
  EXPECT_THAT(terminal_.out(), HasSubstr("cancelled after 0.00 s: Killed.\ncontinue from"));
}

TEST_F(LiveDisplayTest, AReplayedLogIsDrawnSeldom) {
  display_->OnEvent(story_.State(v1::JOB_STATE_RUNNING));
  const size_t before = terminal_.out().size();
  for (int step = 1; step < 300; ++step) display_->OnEvent(story_.Progress(step));
  EXPECT_LT(terminal_.out().size() - before, 200);
}

TEST_F(LiveDisplayTest, FailureSaysWhyAndWhereTheLogIs) {
  display_->OnEvent(story_.State(v1::JOB_STATE_RUNNING));
  terminal_.now += absl::Seconds(4);
  display_->OnEvent(story_.State(v1::JOB_STATE_FAILED, "the loss is not a number at step 12"));
  display_->Close();
  EXPECT_THAT(terminal_.Screen(), ElementsAre("failed after 4.00 s: the loss is not a number at step 12",
                                              "its log: tandem logs lenet-1"));
}

TEST_F(PlainDisplayTest, ProgressComesSeldom) {
  display_->OnEvent(story_.State(v1::JOB_STATE_QUEUED, "accepted"));
  display_->OnEvent(story_.State(v1::JOB_STATE_RUNNING));
  for (int step = 10; step <= 100; step += 10) {
    terminal_.now += absl::Seconds(1);
    display_->OnEvent(story_.Progress(step));
  }
  display_->OnEvent(story_.Epoch(1, 0.85));
  display_->OnEvent(story_.State(v1::JOB_STATE_CANCELLED, "cancelled by a user"));
  display_->Close();
  EXPECT_EQ("\n" + terminal_.out(), R"(
queued: accepted
running
epoch 1/3  step 10/300 (3%)  loss 0.3910  acc 0.8590  12,100 samples/s  0:29 left
epoch 1/3  step 60/300 (20%)  loss 0.3910  acc 0.8590  12,100 samples/s  0:24 left
epoch 1/3  train loss 0.5432  train acc 0.8012  val loss 0.4211  val acc 0.8500  4.87 s  13,333 samples/s  learning rate 0.02
cancelled after 10.0 s: cancelled by a user
)");
}

// The fork trained 10 of its 200 steps in 2 s, so 190 steps of 0.2 s are left.
TEST_F(PlainDisplayTest, TheStepsBeforeAForkAreNoPartOfItsRate) {
  v1::Job job;
  job.mutable_forked_from()->set_step(100);
  display_->SetJob(job);
  display_->OnEvent(story_.State(v1::JOB_STATE_RUNNING));
  terminal_.now += absl::Seconds(2);
  display_->OnEvent(story_.Progress(110));
  EXPECT_THAT(terminal_.out(), HasSubstr("step 110/300 (36%)  loss 0.3910  acc 0.8590  12,100 samples/s  "
                                         "0:38 left\n"));
}

TEST_F(PlainDisplayTest, AScaledLossShowsItsScaleAndWhatWasLeftOut) {
  display_->OnEvent(story_.State(v1::JOB_STATE_RUNNING));
  v1::JobEvent progress = story_.Progress(10);
  progress.mutable_progress()->set_loss_scale(65536);
  display_->OnEvent(progress);
  v1::JobEvent epoch = story_.Epoch(1, 0.85);
  epoch.mutable_epoch()->set_skipped_steps(2);
  display_->OnEvent(epoch);
  EXPECT_THAT(terminal_.out(), AllOf(HasSubstr("12,100 samples/s  loss scale 65536"),
                                     HasSubstr("learning rate 0.02  2 steps skipped\n")));
}

TEST_F(PlainDisplayTest, NobodyIsToResumeAJobWhoseCheckpointsAreDamaged) {
  display_->OnEvent(story_.State(v1::JOB_STATE_RUNNING));
  display_->OnEvent(story_.Checkpoint(100));
  v1::JobEvent end = story_.State(v1::JOB_STATE_FAILED, "none of the checkpoints is whole");
  end.mutable_state_change()->set_reason(v1::STATE_REASON_CHECKPOINT_ERROR);
  display_->OnEvent(end);
  EXPECT_THAT(terminal_.out(), HasSubstr("submit the job again\n"));
  EXPECT_THAT(terminal_.out(), Not(HasSubstr("tandem resume")));
}

TEST_F(PlainDisplayTest, AJobGoesOnAfterAPauseAndAFailureAndReportsAtItsEnd) {
  display_->OnEvent(story_.State(v1::JOB_STATE_RUNNING));
  display_->OnEvent(story_.Checkpoint(100));
  terminal_.now += absl::Seconds(2);
  display_->OnEvent(story_.State(v1::JOB_STATE_PAUSED, "Paused after step 100."));
  terminal_.now += absl::Hours(1);
  display_->OnEvent(story_.State(v1::JOB_STATE_QUEUED, "Resumed."));
  display_->OnEvent(story_.State(v1::JOB_STATE_FAILED, "killed"));
  // The time between two attempts does not count, as in `tandem list`.
  terminal_.now += absl::Hours(24);
  display_->OnEvent(story_.State(v1::JOB_STATE_RUNNING, "Training goes on from step 100."));
  terminal_.now += absl::Seconds(5);
  v1::JobEvent validation = story_.State(v1::JOB_STATE_RUNNING);
  validation.mutable_validation()->set_step(150);
  validation.mutable_validation()->mutable_validation()->set_loss(0.5);
  validation.mutable_validation()->set_validation_seconds(0.25);
  display_->OnEvent(validation);
  v1::JobEvent end = story_.State(v1::JOB_STATE_SUCCEEDED, "No better.");
  end.mutable_state_change()->set_reason(v1::STATE_REASON_NO_IMPROVEMENT);
  v1::TrainingSummary& summary = *end.mutable_state_change()->mutable_summary();
  summary.set_epochs(2);
  summary.set_steps(200);
  summary.set_training_seconds(9);
  summary.set_validation_seconds(0.5);
  summary.set_images_per_second(12345);
  summary.mutable_validation()->set_loss(0.75);
  summary.mutable_best()->set_epoch(1);
  summary.mutable_best()->set_step(100);
  summary.mutable_best()->set_metric("loss");
  summary.mutable_best()->set_value(0.25);
  summary.mutable_best()->set_validation(true);
  display_->OnEvent(end);
  EXPECT_EQ("\n" + terminal_.out(), R"(
running
paused: Paused after step 100.
queued: Resumed.
failed after 2.00 s: killed
its log: tandem logs lenet-1
continue from its last checkpoint with: tandem resume lenet-1
running: Training goes on from step 100.
step 150  val loss 0.5000  0.25 s
succeeded after 7.00 s: validation loss 0.7500
stopped early: No better.
trained 2 epochs, 200 steps in 9.00 s (12,345 samples/s), validation 0.50 s
best validation loss 0.2500, in epoch 1 (step 100); its weights were not kept, so a download returns the last weights (best_model keeps the best)
)");
}

TEST(PlotDisplayTest, RedrawsInPlaceAndLeavesThePlot) {
  FakeTerminal terminal;
  terminal.interactive = true;
  terminal.width = 110;
  terminal.height = 18;
  Story story(terminal);
  const auto display = MakePlotDisplay(terminal, "lenet-1");
  display->OnEvent(story.State(v1::JOB_STATE_RUNNING));
  for (int epoch = 1; epoch <= 3; ++epoch) {
    for (int step = 10; step <= 100; step += 10) {
      terminal.now += absl::Seconds(1);
      display->OnEvent(story.Progress((epoch - 1) * 100 + step));
      EXPECT_LE(terminal.Screen().size(), 17);
    }
    display->OnEvent(story.Epoch(epoch, 0.80 + 0.02 * epoch));
  }
  const auto during = terminal.Screen();
  EXPECT_THAT(during[0], HasSubstr("loss"));
  EXPECT_THAT(during[0], HasSubstr("accuracy"));
  EXPECT_THAT(during.back(), HasSubstr("epoch 3/3"));
  display->OnEvent(story.State(v1::JOB_STATE_SUCCEEDED));
  display->Close();
  const auto after = terminal.Screen();
  EXPECT_EQ(after[0], during[0]);
  EXPECT_THAT(after.back(), HasSubstr("succeeded after 30.0 s: validation loss 0.4211, accuracy 0.8600"));
}

TEST(PlotDisplayTest, AFileGetsPlainLinesAndOnePlotAtTheEnd) {
  FakeTerminal terminal;
  Story story(terminal);
  const auto display = MakePlotDisplay(terminal, "lenet-1");
  display->OnEvent(story.State(v1::JOB_STATE_RUNNING));
  display->OnEvent(story.Epoch(1, 0.85));
  display->OnEvent(story.State(v1::JOB_STATE_SUCCEEDED));
  display->Close();
  EXPECT_EQ(terminal.out().find('\x1b'), std::string::npos);
  EXPECT_LT(terminal.out().find("epoch 1/3"), terminal.out().find("● validation"));
  EXPECT_LT(terminal.out().find("● validation"), terminal.out().find("succeeded"));
}

TEST(PlotDisplayTest, StepsBecomeEpochsByTheEndsOfEpochs) {
  // Both jobs have epochs of 100 steps, and train 250 steps. The first plans 3 epochs with 250 steps.
  std::vector<std::vector<std::string>> plots;
  for (const int64_t planned : {250, 300}) {
    FakeTerminal terminal;
    terminal.interactive = true;
    terminal.width = 110;
    terminal.height = 18;
    Story story(terminal);
    const auto display = MakePlotDisplay(terminal, "lenet-1");
    for (int64_t step = 10; step <= 250; step += 10) {
      terminal.now += absl::Seconds(1);
      v1::JobEvent event = story.Progress(step);
      event.mutable_progress()->set_steps(planned);
      event.mutable_progress()->mutable_training()->set_loss(static_cast<double>(step));
      display->OnEvent(event);
      if (step % 100 == 0) display->OnEvent(story.Epoch(step / 100, 0.8));
    }
    plots.push_back(terminal.Screen());
    // The line of progress.
    plots.back().pop_back();
  }
  EXPECT_GT(plots[0].size(), 10);
  EXPECT_EQ(plots[0], plots[1]);
}

// The job trains 3 epochs of 100 steps and is validated every 50 steps, so each plot has a mark at every half
// epoch and a mark in its legend.
TEST(PlotDisplayTest, ValidationsWithinAnEpochAreDrawn) {
  FakeTerminal terminal;
  terminal.width = 110;
  Story story(terminal);
  const auto display = MakePlotDisplay(terminal, "lenet-1");
  display->OnEvent(story.Progress(1));
  for (int64_t step = 50; step <= 300; step += 50) {
    v1::JobEvent event = story.Progress(step);
    v1::ValidationResult& result = *event.mutable_validation();
    result.set_step(step);
    result.mutable_validation()->set_loss(1.0 / static_cast<double>(step));
    (*result.mutable_validation()->mutable_metrics())["accuracy"] = 1 - 1.0 / static_cast<double>(step);
    display->OnEvent(event);
  }
  display->Close();
  int marks = 0;
  for (size_t at = 0; (at = terminal.out().find("●", at)) != std::string::npos; ++at) ++marks;
  EXPECT_EQ(marks, 2 * (6 + 1)) << terminal.out();
}

TEST(ProgressLineTest, NeverWiderThanAsked) {
  FakeTerminal terminal;
  Story story(terminal);
  JobProgress job;
  job.Add(story.State(v1::JOB_STATE_RUNNING), terminal.now);
  terminal.now += absl::Seconds(10);
  job.Add(story.Progress(120), terminal.now);
  for (int width = 1; width < 160; ++width) {
    for (const bool unicode : {true, false}) {
      EXPECT_LE(DisplayWidth(ProgressLine(job, terminal.now, width, unicode, Style(true))), width);
    }
  }
  EXPECT_EQ(ProgressLine(job, terminal.now, 60, false, Style(false)),
            "epoch 2/3  ######-----------   40%  0:15 left  loss 0.3910");
}

TEST(ProgressBarTest, FillsByHalves) {
  EXPECT_EQ(ProgressBar(0, 4, true, Style(false)), "────");
  EXPECT_EQ(ProgressBar(0.125, 4, true, Style(false)), "╸───");
  EXPECT_EQ(ProgressBar(0.5, 4, true, Style(false)), "━━──");
  EXPECT_EQ(ProgressBar(1, 4, true, Style(false)), "━━━━");
  EXPECT_EQ(ProgressBar(7, 4, false, Style(false)), "####");
  EXPECT_EQ(ProgressBar(0.5, 4, false, Style(false)), "##--");
}

TEST(EpochTableTest, OfErrorsTheSmallestIsMarked) {
  EpochTable table(Style(true));
  v1::EpochSummary epoch;
  (*epoch.mutable_training()->mutable_metrics())["mae"] = 1;
  auto& mae = (*epoch.mutable_validation()->mutable_metrics())["mae"];
  const std::vector<std::pair<double, bool>> course = {{0.5, true}, {0.75, false}, {0.25, true}};
  for (const auto& [value, best] : course) {
    mae = value;
    EXPECT_EQ(absl::StrContains(table.Row(epoch, 120), Style(true).Green("  " + FormatMeasure(value))), best);
  }
}

TEST(EpochTableTest, EveryMetricIsToldOutsideOfTheTable) {
  v1::EpochSummary epoch;
  auto& metrics = *epoch.mutable_validation()->mutable_metrics();
  metrics["f1"] = 0.5;
  metrics["accuracy"] = 0.75;
  metrics["auc"] = 0.875;
  EXPECT_THAT(PlainEpoch(epoch), HasSubstr("val acc 0.7500  val auc 0.8750  val f1 0.5000"));
}

TEST(EpochTableTest, NarrowTerminalsLoseColumnsFromTheEnd) {
  FakeTerminal terminal;
  Story story(terminal);
  const v1::JobEvent event = story.Epoch(1, 0.85);
  EXPECT_EQ(EpochTable(Style(false)).Row(event.epoch(), 41),
            "  epoch  train loss  train acc   val loss\n    1/3      0.5432     0.8012     0.4211\n");
}

TEST(PlainNoticeTest, IsOneLine) {
  v1::Notice notice;
  notice.set_message("half\nepoch 9/9\ttrain loss 0");
  EXPECT_EQ(PlainNotice(notice), "half\\nepoch 9/9\\ttrain loss 0");
}

}  // namespace
}  // namespace tandem::cli

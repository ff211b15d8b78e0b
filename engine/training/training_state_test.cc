#include "engine/training/training_state.h"

#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

TrainingState Sample() {
  TrainingState state;
  state.step = (int64_t{1} << 60) + 1;
  state.steps_per_epoch = 16;
  state.epoch_shift = -5;
  state.earlier_epochs = {{.end = 30, .steps_per_epoch = 3, .epoch_shift = 0},
                          {.end = 40, .steps_per_epoch = 7, .epoch_shift = -6}};
  state.end = {v1::STATE_REASON_NO_IMPROVEMENT, "a \"message\"\n"};
  state.population_statistics = true;
  state.ended_by.emplace().set_loss(1.0 / 3);
  state.epoch_shares = {{.sums = {0.1, 1e-300, std::numeric_limits<double>::infinity()},
                         .samples = 7,
                         .data_wait_seconds = 0.3},
                        {.sums = {}, .samples = 0, .data_wait_seconds = 0, .reduce_seconds = 1.0 / 3}};
  state.epoch_seconds = 2.0 / 3;
  state.samples = 12345;
  state.summary.set_steps(9);
  state.summary.mutable_best()->set_value(1.0 / 7);
  (*state.summary.mutable_validation()->mutable_metrics())["auc"] = std::nan("");
  state.early_stopping = {.best = 0.1 + 0.2, .best_step = 3, .without_improvement = 2};
  state.plateau_measure = -std::numeric_limits<double>::infinity();
  state.plateau = Plateau::State{.rate = 1.0 / 3, .best = std::nullopt, .bad_epochs = 1, .cooldown_left = 4};
  state.aims = {.best = "the least loss", .early_stopping = "the largest f1", .plateau = "the least mae"};
  state.model = {{"framework", "tandem"}, {"class_names", "[\"a\",\"gr\xC3\xB6\"]\n"}};
  state.data = {{"csv.train", "ba78"}};
  return state;
}

TEST(TrainingStateTest, EveryNumberComesBackAsItWas) {
  const TrainingState state = Sample();
  const absl::StatusOr<TrainingState> read = TrainingStateFromJson(ToJson(state));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->step, state.step);
  EXPECT_EQ(read->steps_per_epoch, 16);
  EXPECT_EQ(read->epoch_shift, -5);
  ASSERT_EQ(read->earlier_epochs.size(), 2);
  EXPECT_EQ(read->earlier_epochs[0].end, 30);
  EXPECT_EQ(read->earlier_epochs[1].steps_per_epoch, 7);
  EXPECT_EQ(read->earlier_epochs[1].epoch_shift, -6);
  EXPECT_EQ(read->end.reason, state.end.reason);
  EXPECT_EQ(read->end.message, state.end.message);
  EXPECT_TRUE(read->population_statistics);
  EXPECT_EQ(read->ended_by.value().loss(), 1.0 / 3);
  ASSERT_EQ(read->epoch_shares.size(), 2);
  EXPECT_EQ(read->epoch_shares[0].sums, state.epoch_shares[0].sums);
  EXPECT_EQ(read->epoch_shares[0].samples, 7);
  EXPECT_EQ(read->epoch_shares[0].data_wait_seconds, 0.3);
  EXPECT_EQ(read->epoch_shares[1].reduce_seconds, 1.0 / 3);
  EXPECT_EQ(read->epoch_seconds, state.epoch_seconds);
  EXPECT_EQ(read->samples, 12345);
  EXPECT_EQ(read->summary.steps(), 9);
  EXPECT_EQ(read->summary.best().value(), 1.0 / 7);
  EXPECT_TRUE(std::isnan(read->summary.validation().metrics().at("auc")));
  EXPECT_EQ(read->early_stopping.best, 0.1 + 0.2);
  EXPECT_EQ(read->early_stopping.best_step, 3);
  EXPECT_EQ(read->early_stopping.without_improvement, 2);
  EXPECT_EQ(read->plateau_measure, state.plateau_measure);
  ASSERT_TRUE(read->plateau.has_value());
  EXPECT_EQ(read->plateau->rate, 1.0 / 3);
  EXPECT_FALSE(read->plateau->best.has_value());
  EXPECT_EQ(read->plateau->bad_epochs, 1);
  EXPECT_EQ(read->plateau->cooldown_left, 4);
  EXPECT_EQ(read->aims.best, "the least loss");
  EXPECT_EQ(read->aims.early_stopping, "the largest f1");
  EXPECT_EQ(read->aims.plateau, "the least mae");
  EXPECT_EQ(read->model, state.model);
  EXPECT_EQ(read->data, state.data);
  // A second conversion gives the same text.
  EXPECT_EQ(ToJson(*read), ToJson(state));
}

TEST(TrainingStateTest, WithoutAPlateauThereIsNone) {
  TrainingState state;
  state.steps_per_epoch = 16;
  const absl::StatusOr<TrainingState> read = TrainingStateFromJson(ToJson(state));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_FALSE(read->plateau.has_value());
  EXPECT_FALSE(read->plateau_measure.has_value());
  EXPECT_FALSE(read->population_statistics);
  EXPECT_FALSE(read->ended_by.has_value());
}

TEST(TrainingStateTest, EpochsGoOnWhateverTheirSteps) {
  TrainingState state;
  state.step = 48;
  EXPECT_EQ(EpochShift(state, 4), 0);  // No training had begun.
  state.steps_per_epoch = 16;
  EXPECT_EQ(EpochShift(state, 16), 0);
  EXPECT_EQ(state.step + EpochShift(state, 4), 12);
  EXPECT_EQ(state.step + EpochShift(state, 80), 240);
  // The fourth epoch is half done, and then a third.
  state.step = 56;
  EXPECT_EQ(state.step + EpochShift(state, 4), 14);
  state.step = 53;
  EXPECT_EQ(state.step + EpochShift(state, 3), 9);
  // The number of steps changes again.
  state.step = 60;
  state.steps_per_epoch = 4;
  state.epoch_shift = -40;
  EXPECT_EQ(state.step + EpochShift(state, 4), 20);
  EXPECT_EQ(state.step + EpochShift(state, 8), 40);
  // A damaged file may have such a number.
  state.step = int64_t{1} << 61;
  state.steps_per_epoch = 1;
  state.epoch_shift = int64_t{1} << 60;
  EXPECT_EQ(EpochShift(state, 1 << 28), int64_t{1} << 60);
}

TEST(TrainingStateTest, NothingInItIsTrusted) {
  const std::string good = ToJson(Sample());
  for (size_t length = 0; length < good.size(); ++length) {
    EXPECT_EQ(TrainingStateFromJson(good.substr(0, length)).status().code(), absl::StatusCode::kDataLoss)
        << length;
  }
  for (const char* bad : {"null", "[]", "{}", "3", R"({"step": "x"})"}) {
    EXPECT_EQ(TrainingStateFromJson(bad).status().code(), absl::StatusCode::kDataLoss) << bad;
  }
  std::string statistics = good;
  statistics.replace(statistics.find("population_statistics\":true") + 23, 4, "\"on\"");
  EXPECT_THAT(std::string(TrainingStateFromJson(statistics).status().message()),
              ::testing::HasSubstr("\"population_statistics\""));
  for (const auto& [right, wrong] : {std::pair("steps_per_epoch\":16", "steps_per_epoch\":0"),
                                     {"epoch_shift\":-5", "epoch_shift\":-9000000000000000000"},
                                     {"epoch_shift\":-5", "epoch_shift\":9000000000000000000"},
                                     {"steps_per_epoch\":7", "steps_per_epoch\":0"},
                                     {"epoch_shift\":-6", "epoch_shift\":-41"},
                                     {"\"end\":30", "\"end\":-30"},
                                     {"step\":1152921504606846977", "step\":9000000000000000000"},
                                     {"step\":1152921504606846977", "step\":-1"},
                                     {"\"the largest f1\"", "null"},
                                     {"\"tandem\"", "7"},
                                     {"\"model\":", "\"others\":"},
                                     {"\"ba78\"", "78"},
                                     {"{\"csv.train\":\"ba78\"}", "[]"}}) {
    std::string bad = good;
    bad.replace(bad.find(right), std::string(right).size(), wrong);
    EXPECT_TRUE(absl::IsDataLoss(TrainingStateFromJson(bad).status())) << wrong;
  }
  std::string other = good;
  other.replace(other.find("NO_IMPROVEMENT"), 14, "NO_SUCH_REASON");
  EXPECT_THAT(std::string(TrainingStateFromJson(other).status().message()),
              ::testing::HasSubstr("\"reason\""));
}

}  // namespace
}  // namespace tandem

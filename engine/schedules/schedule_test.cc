#include "engine/schedules/schedule.h"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "engine/base/testing/field_at_fault.h"
#include "engine/base/testing/from_text.h"
#include "engine/schedules/learning_rate.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::Pointwise;

v1::Schedule Parse(const std::string& text) {
  v1::Schedule schedule = FromText<v1::Schedule>(text);
  FillScheduleDefaults(&schedule);
  return schedule;
}

LearningRate::Options OptionsFor(const std::string& text, double rate, int64_t steps_per_epoch,
                                 int64_t epochs) {
  const v1::Schedule schedule = Parse(text);
  EXPECT_TRUE(CheckSchedule(schedule).ok()) << CheckSchedule(schedule);
  return {.schedule = schedule,
          .learning_rate = rate,
          .steps_per_epoch = steps_per_epoch,
          .steps = epochs * steps_per_epoch};
}

// Returns the rates of a training of `epochs` times `steps_per_epoch` steps.
std::vector<double> Rates(const std::string& text, double rate, int64_t steps_per_epoch, int64_t epochs) {
  const LearningRate learning_rate(OptionsFor(text, rate, steps_per_epoch, epochs));
  EXPECT_FALSE(learning_rate.watches());
  std::vector<double> rates;
  for (int64_t step = 0; step < steps_per_epoch * epochs; ++step) rates.push_back(learning_rate.Rate(step));
  return rates;
}

void ExpectRates(const std::vector<double>& actual, const std::vector<double>& expected) {
  EXPECT_THAT(actual, Pointwise(testing::DoubleNear(1e-12), expected));
}

std::string FaultOf(const std::string& text) { return FieldAtFault(CheckSchedule(Parse(text))); }

TEST(ScheduleTest, NothingIsConstant) {
  ExpectRates(Rates("", 0.5, 2, 2), {0.5, 0.5, 0.5, 0.5});
  EXPECT_TRUE(Parse("").has_constant());
}

TEST(ScheduleTest, EpochsGoOnWhereTheyGetOtherSteps) {
  // Two epochs of 8 steps were trained. Two epochs of 2 steps follow.
  LearningRate::Options options = OptionsFor("exponential { gamma: 0.5 }", 1, 2, 4);
  options.epoch_shift = 2 * 2 - 16;
  options.steps = 2 * 8 + 2 * 2;
  const LearningRate rate(options);
  ExpectRates({rate.Rate(16), rate.Rate(17), rate.Rate(18), rate.Rate(19)}, {0.25, 0.25, 0.125, 0.125});
  // A warm-up also continues. Steps count without the shift.
  options.schedule = Parse("warmup { length: 4 start_factor: 0 }");
  ExpectRates({LearningRate(options).Rate(16), LearningRate(options).Rate(18)}, {0.5, 0.75});
  options.schedule = Parse("exponential { gamma: 0.5 } unit: SCHEDULE_UNIT_STEPS");
  ExpectRates({LearningRate(options).Rate(3)}, {0.125});
}

TEST(ScheduleTest, TBeginsAfterAWarmUpOfTheOtherUnitIfEpochsGetOtherSteps) {
  // Two epochs of 4 steps were trained. Epochs of 3 steps follow, and the warm-up ends in them, after
  // step 11.
  LearningRate::Options options = OptionsFor(
      "polynomial {} unit: SCHEDULE_UNIT_STEPS warmup { length: 3 unit: SCHEDULE_UNIT_EPOCHS }", 1, 3, 6);
  options.earlier_epochs = {{.end = 8, .steps_per_epoch = 4, .epoch_shift = 0}};
  options.epoch_shift = -2;
  options.steps = 8 + 3 * 4;
  ExpectRates({LearningRate(options).Rate(8), LearningRate(options).Rate(11), LearningRate(options).Rate(13)},
              {1.0 / 3 + 2.0 / 3 * 2 / 3, 1, 7.0 / 9});
  // The warm-up ended before, with step 4.
  options.schedule.mutable_warmup()->set_length(1);
  ExpectRates({LearningRate(options).Rate(8), LearningRate(options).Rate(12)}, {1 - 4.0 / 16, 0.5});
  // A warm-up of 4 steps took an epoch.
  options.schedule = Parse("exponential { gamma: 0.5 } warmup { length: 4 unit: SCHEDULE_UNIT_STEPS }");
  ExpectRates({LearningRate(options).Rate(8), LearningRate(options).Rate(10), LearningRate(options).Rate(11)},
              {0.5, 0.5, 0.25});
  // Epochs of 6 steps follow from step 11.
  options.earlier_epochs.push_back({.end = 11, .steps_per_epoch = 3, .epoch_shift = -2});
  options.steps_per_epoch = 6;
  options.epoch_shift = 3 * 6 - 11;
  ExpectRates(
      {LearningRate(options).Rate(11), LearningRate(options).Rate(16), LearningRate(options).Rate(17)},
      {0.25, 0.25, 0.125});
}

TEST(ScheduleTest, TBeginsAfterAWarmUpInStepsIfEpochsGetLonger) {
  // Ten epochs of 2 steps were trained, with a warm-up of 10 steps. An epoch of 100 steps follows.
  LearningRate::Options options =
      OptionsFor("exponential { gamma: 0.5 } warmup { length: 10 unit: SCHEDULE_UNIT_STEPS }", 1, 100, 11);
  options.earlier_epochs = {{.end = 20, .steps_per_epoch = 2, .epoch_shift = 0}};
  options.epoch_shift = 10 * 100 - 20;
  options.steps = 120;
  ExpectRates({LearningRate(options).Rate(20), LearningRate(options).Rate(119)}, {1.0 / 32, 1.0 / 32});
}

TEST(ScheduleTest, CountsEpochsOrSteps) {
  ExpectRates(Rates("exponential { gamma: 0.5 }", 1, 2, 3), {1, 1, 0.5, 0.5, 0.25, 0.25});
  ExpectRates(Rates("exponential { gamma: 0.5 } unit: SCHEDULE_UNIT_STEPS", 1, 2, 2), {1, 0.5, 0.25, 0.125});
  ExpectRates(Rates("piecewise { drop_factor: 0.5 drop_period: 2 }", 1, 1, 5), {1, 1, 0.5, 0.5, 0.25});
  ExpectRates(Rates("multistep { milestones: [1, 3] gamma: 0.5 }", 1, 1, 4), {1, 0.5, 0.5, 0.25});
  // The schedule counts in steps.
  ExpectRates(Rates("inverse_sqrt { warmup_steps: 2 }", 1, 4, 1),
              {0.5, 1, 0.81649658092772603, 0.70710678118654757});
}

TEST(ScheduleTest, LengthsFollowFromTheTraining) {
  ExpectRates(Rates("polynomial {}", 1, 2, 2), {1, 1, 0.5, 0.5});
  ExpectRates(Rates("polynomial {} unit: SCHEDULE_UNIT_STEPS", 1, 2, 2), {1, 0.75, 0.5, 0.25});
  ExpectRates(Rates("cosine { eta_min: 0.2 }", 1, 1, 4), {1, 0.88284271247461903, 0.6, 0.31715728752538099});
  ExpectRates(Rates("polynomial {} warmup { length: 2 start_factor: 0 } unit: SCHEDULE_UNIT_STEPS", 1, 6, 1),
              {0, 0.5, 1, 0.75, 0.5, 0.25});
  // By default one cycle peaks at the optimizer's rate.
  const std::vector<double> rates = Rates("one_cycle { anneal_strategy: ANNEAL_STRATEGY_LINEAR }", 1, 10, 1);
  EXPECT_NEAR(rates[0], 0.04, 1e-12);
  EXPECT_NEAR(rates[2], 1, 1e-12);
  EXPECT_NEAR(rates[9], 0.04 / 1e4, 1e-12);
}

TEST(ScheduleTest, AWarmUpMayCountWhatTheScheduleDoesNot) {
  ExpectRates(
      Rates("exponential { gamma: 0.5 } warmup { length: 2 start_factor: 0.5 unit: SCHEDULE_UNIT_STEPS }", 1,
            3, 2),
      {0.5, 0.75, 1, 1, 1, 0.5});
  ExpectRates(Rates("exponential { gamma: 0.5 } warmup { length: 2 start_factor: 0.5 }", 1, 2, 3),
              {0.5, 0.5, 0.75, 0.75, 1, 1});
}

TEST(ScheduleTest, RatesAreScaledByTheReplicasIfAsked) {
  LearningRate::Options options =
      OptionsFor("cosine { t_max: 2 eta_min: 0.1 } linear_scaling: true", 0.5, 1, 3);
  options.replicas = 4;
  const LearningRate scaled(options);
  EXPECT_NEAR(scaled.Rate(0), 2, 1e-12);
  EXPECT_NEAR(scaled.Rate(2), 0.1, 1e-12);
  options.schedule.set_linear_scaling(false);
  EXPECT_EQ(LearningRate(options).Rate(0), 0.5);
}

TEST(ScheduleTest, APlateauFollowsWhatItHears) {
  LearningRate rate(OptionsFor("plateau { factor: 0.5 patience: 1 } warmup { length: 1 }", 0.8, 2, 9));
  EXPECT_TRUE(rate.watches());
  EXPECT_NEAR(rate.Rate(1), 0.8 / 3, 1e-12);
  rate.EndEpoch(2, 0.001, true);  // Within the warm-up.
  std::vector<double> rates;
  int64_t steps = 2;
  for (const double loss : {3.0, 2.0, 2.0, 2.5, 1.0, 1.0, 1.0}) {
    rates.push_back(rate.Rate(steps));
    steps += 2;
    rate.EndEpoch(steps, loss, true);
  }
  rates.push_back(rate.Rate(steps));
  ExpectRates(rates, {0.8, 0.8, 0.8, 0.8, 0.4, 0.4, 0.4, 0.2});
}

TEST(ScheduleTest, APlateauOfAMeasureThatIsBetterIfLargerLooksUpwards) {
  LearningRate rate(OptionsFor("plateau { factor: 0.5 patience: 0 }", 1, 1, 9));
  rate.EndEpoch(1, 0.5, false);
  rate.EndEpoch(2, 0.6, false);
  EXPECT_EQ(rate.Rate(2), 1);
  rate.EndEpoch(3, 0.6, false);
  EXPECT_EQ(rate.Rate(3), 0.5);
}

TEST(ScheduleTest, WhatIsLeftOutFollowsWhatIsChangedLater) {
  const auto rates = [](const v1::Schedule& schedule) {
    LearningRate rate({.schedule = schedule, .learning_rate = 1, .steps_per_epoch = 2, .steps = 8});
    std::vector<double> all;
    for (int64_t step = 0; step < 8; ++step) {
      all.push_back(rate.Rate(step));
      // The loss rises.
      if (step % 2 == 1) rate.EndEpoch(step + 1, static_cast<double>(step), true);
    }
    return all;
  };
  // One cycle counts steps: linearly from 1 / 25 up to 1 at step 1.4, then down to 4e-6 at step 7.
  v1::Schedule schedule = Parse("cosine {}");
  schedule.mutable_one_cycle()->set_anneal_strategy(v1::ANNEAL_STRATEGY_LINEAR);
  FillScheduleDefaults(&schedule);
  std::vector<double> expected = {0.04, 0.04 + 0.96 / 1.4};
  for (int t = 2; t < 8; ++t) expected.push_back(1 - (1 - 4e-6) * (t - 1.4) / 5.6);
  ExpectRates(rates(schedule), expected);
  schedule = Parse("plateau { factor: 0.5 patience: 0 }");
  ExpectRates(rates(schedule), {1, 1, 1, 1, 0.5, 0.5, 0.25, 0.25});
}

TEST(ScheduleTest, APlateauGetsOverMeasurementsThatAreNoNumbers) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const double first : {std::nan(""), kInfinity}) {
    LearningRate rate(OptionsFor("plateau { factor: 0.5 patience: 1 }", 1, 1, 9));
    rate.EndEpoch(1, first, true);
    rate.EndEpoch(2, 3, true);
    rate.EndEpoch(3, 2, true);
    rate.EndEpoch(4, 1, true);
    EXPECT_EQ(rate.Rate(4), 1) << first;
    EXPECT_EQ(rate.state()->best, 1) << first;
  }
}

TEST(ScheduleTest, NamesTheFieldAtFault) {
  EXPECT_EQ(FaultOf("piecewise { drop_factor: -1 }"), "piecewise.drop_factor");
  EXPECT_EQ(FaultOf("piecewise { drop_period: -1 }"), "piecewise.drop_period");
  EXPECT_EQ(FaultOf("piecewise_constant { boundaries: [2, 2] factors: [1, 2, 3] }"),
            "piecewise_constant.boundaries[1]");
  EXPECT_EQ(FaultOf("piecewise_constant { boundaries: [2] factors: [1] }"), "piecewise_constant.factors");
  EXPECT_EQ(FaultOf("piecewise_constant { boundaries: [2] factors: [1, nan] }"),
            "piecewise_constant.factors[1]");
  EXPECT_EQ(FaultOf("multistep {}"), "multistep.milestones");
  EXPECT_EQ(FaultOf("multistep { milestones: 0 }"), "multistep.milestones[0]");
  EXPECT_EQ(FaultOf("exponential {}"), "exponential.gamma");
  EXPECT_EQ(FaultOf("polynomial { power: 0 }"), "polynomial.power");
  EXPECT_EQ(FaultOf("cosine { t_max: -2 }"), "cosine.t_max");
  EXPECT_EQ(FaultOf("cosine_warm_restarts {}"), "cosine_warm_restarts.t_0");
  EXPECT_EQ(FaultOf("one_cycle { pct_start: 1.5 }"), "one_cycle.pct_start");
  EXPECT_EQ(FaultOf("one_cycle { pct_start: 0.6 three_phase: true }"), "one_cycle.pct_start");
  EXPECT_EQ(FaultOf("one_cycle { total_steps: 1 }"), "one_cycle.total_steps");
  EXPECT_EQ(FaultOf("inverse_sqrt {}"), "inverse_sqrt.warmup_steps");
  EXPECT_EQ(FaultOf("plateau { factor: 1 }"), "plateau.factor");
  EXPECT_EQ(FaultOf("plateau { patience: -1 }"), "plateau.patience");
  EXPECT_EQ(FaultOf("warmup {}"), "warmup.length");
  EXPECT_EQ(FaultOf("warmup { length: 3 start_factor: 2 }"), "warmup.start_factor");
}

TEST(ScheduleTest, ACycleWithoutRoomForItsRiseIsStillANumber) {
  for (const double rate : Rates("one_cycle { total_steps: 4 pct_start: 0.25 }", 1, 6, 1)) EXPECT_GT(rate, 0);
  for (const double rate : Rates("one_cycle { total_steps: 4 pct_start: 0 }", 1, 6, 1)) EXPECT_GT(rate, 0);
  for (const double rate : Rates("one_cycle { total_steps: 2 pct_start: 1 }", 1, 6, 1)) EXPECT_GT(rate, 0);
}

}  // namespace
}  // namespace tandem

#include "server/rpc/job_curves.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <utility>
#include <vector>

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// A point of a log; its place is its event's number.
struct Logged {
  int64_t step;
  double value;
};

ReducedCurve Read(const std::vector<Logged>& log, const CurveRange& range) {
  ReducedCurve curve(range);
  for (size_t i = 0; i < log.size(); ++i)
    curve.Add(static_cast<int64_t>(i) + 1, {.step = log[i].step, .time = 1.0 * i, .value = log[i].value});
  if (!curve.needs_second_reading()) return curve;
  curve.BeginSecondReading();
  for (size_t i = 0; i < log.size(); ++i)
    curve.AddAgain(static_cast<int64_t>(i) + 1,
                   {.step = log[i].step, .time = 1.0 * i, .value = log[i].value});
  return curve;
}

std::vector<int64_t> Steps(const ReducedCurve& curve) {
  std::vector<int64_t> steps;
  for (const CurvePoint& point : curve.Points()) steps.push_back(point.step);
  return steps;
}

// The log's points, as a page that watched it has them.
std::vector<CurvePoint> Watched(const std::vector<Logged>& log, const CurveRange& range) {
  std::vector<CurvePoint> points;
  for (size_t i = 0; i < log.size(); ++i) {
    while (!points.empty() && points.back().step >= log[i].step) points.pop_back();
    points.push_back({.step = log[i].step, .time = 1.0 * i, .value = log[i].value});
  }
  points.erase(std::remove_if(points.begin(), points.end(),
                              [&](const CurvePoint& point) {
                                return point.step < range.first_step || point.step > range.last_step;
                              }),
               points.end());
  return points;
}

TEST(ReducedCurveTest, KeepsAllPointsOfAShortCurve) {
  const ReducedCurve curve = Read({{10, 1}, {20, kNaN}, {30, 2}, {40, 3}, {50, 4}}, {.max_points = 5});
  EXPECT_FALSE(curve.is_reduced());
  EXPECT_EQ(curve.total_points(), 5);
  EXPECT_THAT(Steps(curve), ElementsAre(10, 20, 30, 40, 50));
  EXPECT_TRUE(std::isnan(curve.Points()[1].value));
  EXPECT_EQ(curve.Points()[4].time, 4);
}

TEST(ReducedCurveTest, KeepsFirstSmallestLargestLastAndNotFinitePoints) {
  // Two spans of 8 steps.
  std::vector<Logged> log;
  for (int64_t step = 0; step < 16; ++step) log.push_back({step, 1});
  log[2].value = -5;
  log[4].value = 7;
  log[5].value = kNaN;
  log[6].value = std::numeric_limits<double>::infinity();
  const ReducedCurve curve = Read(log, {.max_points = 10});
  EXPECT_TRUE(curve.is_reduced());
  EXPECT_EQ(curve.total_points(), 16);
  EXPECT_THAT(Steps(curve), ElementsAre(0, 2, 4, 5, 7, 8, 15));
}

TEST(ReducedCurveTest, KeepsASpanThatIsNowhereFinite) {
  std::vector<Logged> log;
  for (int64_t step = 0; step < 16; ++step) log.push_back({step, kNaN});
  EXPECT_THAT(Steps(Read(log, {.max_points = 10})), ElementsAre(0, 7, 8, 15));
}

TEST(ReducedCurveTest, CoversARangeOfSteps) {
  std::vector<Logged> log;
  for (int64_t step = 1; step <= 1000; ++step) log.push_back({step, 1.0 * step});
  const ReducedCurve exact = Read(log, {.first_step = 500, .last_step = 504, .max_points = 5});
  EXPECT_FALSE(exact.is_reduced());
  EXPECT_THAT(Steps(exact), ElementsAre(500, 501, 502, 503, 504));
  const ReducedCurve reduced = Read(log, {.first_step = 500, .last_step = 599, .max_points = 50});
  EXPECT_TRUE(reduced.is_reduced());
  EXPECT_EQ(reduced.total_points(), 100);
  EXPECT_EQ(reduced.Points().front().step, 500);
  EXPECT_EQ(reduced.Points().back().step, 599);
  EXPECT_THAT(Steps(Read(log, {.first_step = 2000})), IsEmpty());
}

TEST(ReducedCurveTest, LeavesLostStepsOut) {
  // The second attempt begins at step 20, the third at step 10.
  const std::vector<Logged> log = {{10, 1}, {20, 1}, {30, 1}, {40, 1}, {25, 2}, {35, 2}, {10, 3}, {20, 3}};
  EXPECT_THAT(Steps(Read(log, {.max_points = 5})), ElementsAre(10, 20));
  EXPECT_EQ(Read(log, {.max_points = 5}).Points()[0].value, 3);
}

// The second attempt's points are smaller and larger than all that it replaced.
TEST(ReducedCurveTest, LeavesLostStepsOutOfSpans) {
  std::vector<Logged> log;
  for (int64_t step = 1; step <= 900; ++step) log.push_back({step, step < 500 ? 1.0 : 1000.0 + step});
  for (int64_t step = 500; step <= 1000; ++step) log.push_back({step, 2});
  const ReducedCurve curve = Read(log, {.max_points = 50});
  EXPECT_TRUE(curve.is_reduced());
  EXPECT_EQ(curve.total_points(), 1000);
  for (const CurvePoint& point : curve.Points())
    EXPECT_EQ(point.value, point.step < 500 ? 1 : 2) << point.step;
}

// The reduced curve against the definition, for random logs.
TEST(ReducedCurveTest, AgreesWithTheWatchedLog) {
  std::mt19937 random(35);
  for (int round = 0; round < 300; ++round) {
    std::vector<Logged> log;
    int64_t step = 0;
    const int size = static_cast<int>(random() % 400);
    for (int i = 0; i < size; ++i) {
      step += 1 + static_cast<int64_t>(random() % 5);
      if (random() % 40 == 0) step = static_cast<int64_t>(random() % (step + 1));
      log.push_back({step, random() % 20 == 0 ? kNaN : static_cast<double>(random() % 100)});
    }
    CurveRange range{.max_points = 5 + static_cast<int>(random() % 200)};
    if (random() % 2 == 0) {
      range.first_step = static_cast<int64_t>(random() % 300);
      range.last_step = range.first_step + static_cast<int64_t>(random() % 600);
    }
    const std::vector<CurvePoint> all = Watched(log, range);
    const ReducedCurve curve = Read(log, range);
    const std::vector<CurvePoint> points = curve.Points();
    ASSERT_EQ(curve.total_points(), all.size());
    ASSERT_EQ(curve.is_reduced(), all.size() > static_cast<size_t>(range.max_points));
    ASSERT_LE(points.size(), range.max_points);
    ASSERT_TRUE(curve.is_reduced() || points.size() == all.size());
    // Each point is one of the log's, and ascends.
    size_t at = 0;
    for (const CurvePoint& point : points) {
      while (at < all.size() && all[at].step < point.step) ++at;
      ASSERT_LT(at, all.size());
      ASSERT_EQ(all[at].step, point.step);
      ASSERT_EQ(all[at].time, point.time);
      ++at;
    }
    if (all.empty()) continue;
    ASSERT_EQ(points.front().step, all.front().step);
    ASSERT_EQ(points.back().step, all.back().step);
    const auto extremes = [](const std::vector<CurvePoint>& of) {
      std::pair<double, double> found = {INFINITY, -INFINITY};
      for (const CurvePoint& point : of) {
        if (!std::isfinite(point.value)) continue;
        found = {std::min(found.first, point.value), std::max(found.second, point.value)};
      }
      return found;
    };
    ASSERT_EQ(extremes(points), extremes(all));
    const auto has_gap = [](const std::vector<CurvePoint>& of) {
      return std::any_of(of.begin(), of.end(),
                         [](const CurvePoint& point) { return !std::isfinite(point.value); });
    };
    ASSERT_EQ(has_gap(points), has_gap(all));
  }
}

TEST(JobCurvesTest, HasTheMeasuresOfReports) {
  JobCurves curves(CurveRange{});
  v1::JobEvent event;
  event.set_sequence(3);
  event.mutable_time()->set_seconds(100);
  event.mutable_time()->set_nanos(250'000'000);
  event.mutable_notice()->set_message("not a report");
  curves.Add(event);
  event.mutable_progress()->set_step(8);
  event.mutable_progress()->set_learning_rate(0.5);
  event.mutable_progress()->set_images_per_second(12);
  event.mutable_progress()->mutable_training()->set_loss(kNaN);
  event.mutable_progress()->mutable_training()->mutable_metrics()->insert({"accuracy", 0.75});
  curves.Add(event);
  google::protobuf::RepeatedPtrField<v1::Curve> written;
  curves.Write(&written);
  ASSERT_EQ(written.size(), 4);
  EXPECT_EQ(written[0].name(), "images_per_second");
  EXPECT_EQ(written[1].name(), "learning_rate");
  EXPECT_THAT(written[1].values(), ElementsAre(0.5));
  EXPECT_EQ(written[2].name(), "training/accuracy");
  EXPECT_THAT(written[2].steps(), ElementsAre(8));
  EXPECT_THAT(written[2].times(), ElementsAre(100.25));
  EXPECT_EQ(written[2].total_points(), 1);
  EXPECT_EQ(written[3].name(), "training/loss");
  EXPECT_TRUE(std::isnan(written[3].values(0)));
}

}  // namespace
}  // namespace tandem

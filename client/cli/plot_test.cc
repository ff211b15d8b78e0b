#include "client/cli/plot.h"

#include <cmath>
#include <string>

#include "absl/strings/str_join.h"
#include "client/cli/format.h"
#include "gtest/gtest.h"

namespace tandem::cli {
namespace {

Plot Losses() {
  Plot plot("loss");
  Plot::Series training{"training", "36", false, {}};
  for (int i = 1; i <= 60; ++i) training.points.push_back({i / 20.0, 0.3 + 2 * std::exp(-i / 8.0)});
  plot.Add(training);
  plot.Add({"validation", "33", true, {{1, 0.55}, {2, 0.42}, {3, 0.36}}});
  plot.SetXRange(0, 3);
  return plot;
}

std::string Text(const std::vector<std::string>& lines) { return "\n" + absl::StrJoin(lines, "\n") + "\n"; }

TEST(PlotTest, DrawsCurvesWithBraille) {
  EXPECT_EQ(Text(Losses().Render(48, 12, true, Style(false))), R"(
     loss  ⠒⠒ training  ● validation
2.5 ┤
    │⠠⡀
2.0 ┤ ⠱⡀
1.5 ┤  ⠑⢄
    │   ⠈⠢⡀
1.0 ┤     ⠈⠢⡀
0.5 ┤       ⠈⠑⠢⢄⣀⡀ ●⣀⣀⣀
    │            ⠈⠉⠒⠒⠒⠢⠭⠭⠭⠭⠭⠭⠭⠶⣒⣒●⣒⣒⣒⣒⣒⣒⣢⣤⣤⣤⣤⣤⣤●
0.0 ┤
    └┬─────────────┬─────────────┬─────────────┬
     0             1             2             3
)");
}

TEST(PlotTest, DrawsCurvesWithoutUnicode) {
  EXPECT_EQ(Text(Losses().Render(48, 12, false, Style(false))), R"(
     loss  .. training  o validation
2.5 +
    | .
2.0 + '.
1.5 +  '.
    |    :.
1.0 +      :.
0.5 +        ''... o......
    |             '''''''.:::::::o::::::.......o
0.0 +
    ++-------------+-------------+-------------+
     0             1             2             3
)");
}

TEST(PlotTest, AnEmptyPlotHasItsAxes) {
  Plot plot("accuracy");
  plot.Add({"training", "36", false, {}});
  plot.SetXRange(0, 5);
  EXPECT_EQ(Text(plot.Render(30, 8, true, Style(false))), R"(
   accuracy  ⠒⠒ training
1 ┤
  │
  │
  │
0 ┤
  └┬─────────────────────────┬
   0                         5
)");
}

TEST(PlotTest, OnePointAndEqualPointsAreShown) {
  Plot plot("loss");
  plot.Add({"training", "", false, {{1, 0.5}, {2, 0.5}}});
  plot.Add({"validation", "", true, {{1, 0.5}}});
  EXPECT_EQ(Text(plot.Render(30, 7, true, Style(false))), R"(
      loss  ⠒⠒ training  ● val
0.55 ┤
     │
0.50 ┤●⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉
0.45 ┤
     └┬───────────┬──────────┬
     1.0         1.5       2.0
)");
}

TEST(PlotTest, BreaksWhereAValueIsNotFinite) {
  Plot plot("loss");
  plot.Add({"training", "", false, {{0, 1}, {1, 1}, {2, std::nan("")}, {3, 2}, {4, INFINITY}}});
  EXPECT_EQ(Text(plot.Render(30, 7, true, Style(false))), R"(
     loss  ⠒⠒ training
2.0 ┤                        ⠈
1.5 ┤
    │
1.0 ┤⣀⣀⣀⣀⣀⣀⣀⣀⡀
    └┬───────────────┬────────
     0               2
)");
}

TEST(PlotTest, NoLineIsWiderThanAskedAndCellsHaveTheirColours) {
  for (const int width : {1, 24, 33, 80, 200}) {
    for (const int height : {1, 5, 9, 30}) {
      const auto lines = Losses().Render(width, height, true, Style(true));
      EXPECT_EQ(lines.size(), std::max(height, 5));
      for (const std::string& line : lines) EXPECT_LE(DisplayWidth(line), std::max(width, 24)) << line;
    }
  }
  EXPECT_NE(Text(Losses().Render(48, 12, true, Style(true))).find("\x1b[33m●\x1b[0m"), std::string::npos);
}

TEST(PlotTest, ALossThatExplodesFits) {
  Plot plot("loss");
  plot.Add({"training", "", false, {{0, 2.3}, {1, 1e38}, {2, 1e300}}});
  for (const std::string& line : plot.Render(24, 8, true, Style(false)))
    EXPECT_LE(DisplayWidth(line), 24) << line;
}

TEST(RoundTicksTest, StepsAreRound) {
  const AxisTicks accuracy = RoundTicks(0.813, 0.887, 4);
  EXPECT_DOUBLE_EQ(accuracy.step, 0.02);
  EXPECT_DOUBLE_EQ(accuracy.low, 0.8);
  EXPECT_NEAR(accuracy.high, 0.9, 1e-12);
  EXPECT_EQ(accuracy.decimals, 2);
  const AxisTicks large = RoundTicks(0, 1407, 5);
  EXPECT_EQ(large.step, 500);
  EXPECT_EQ(large.high, 1500);
  EXPECT_EQ(large.decimals, 0);
  const AxisTicks whole = RoundTicks(0, 3, 3);
  EXPECT_EQ(whole.step, 1);
  EXPECT_EQ(whole.high, 3);
}

}  // namespace
}  // namespace tandem::cli

#include "client/cli/format.h"
#include "client/cli/table.h"
#include "gtest/gtest.h"

namespace tandem::cli {
namespace {

TEST(FormatTest, Counts) {
  EXPECT_EQ(FormatCount(0), "0");
  EXPECT_EQ(FormatCount(999), "999");
  EXPECT_EQ(FormatCount(1000), "1,000");
  EXPECT_EQ(FormatCount(1234567), "1,234,567");
  EXPECT_EQ(FormatCount(-123), "-123");
  EXPECT_EQ(FormatCount(-1234), "-1,234");
}

TEST(FormatTest, Bytes) {
  EXPECT_EQ(FormatBytes(0), "0 B");
  EXPECT_EQ(FormatBytes(999), "999 B");
  EXPECT_EQ(FormatBytes(1000), "1.0 kB");
  EXPECT_EQ(FormatBytes(1735680), "1.7 MB");
  EXPECT_EQ(FormatBytes(999'960), "1.0 MB");
  EXPECT_EQ(FormatBytes(12'884'901'888), "12.9 GB");
}

TEST(FormatTest, Durations) {
  EXPECT_EQ(FormatClock(absl::Seconds(6)), "0:06");
  EXPECT_EQ(FormatClock(absl::Seconds(3723)), "1:02:03");
  EXPECT_EQ(FormatClock(-absl::Seconds(3)), "0:00");
  EXPECT_EQ(FormatElapsed(absl::Milliseconds(1500)), "1.50 s");
  EXPECT_EQ(FormatElapsed(absl::Seconds(14.2)), "14.2 s");
  EXPECT_EQ(FormatElapsed(absl::Seconds(125)), "2 min 5 s");
  EXPECT_EQ(FormatElapsed(absl::Seconds(3 * 3600 + 720)), "3 h 12 min");
  EXPECT_EQ(FormatAge(absl::Seconds(59)), "59 s");
  EXPECT_EQ(FormatAge(absl::Hours(30)), "30 h");
  EXPECT_EQ(FormatAge(absl::Hours(100)), "4 d");
}

TEST(FormatTest, Measures) {
  EXPECT_EQ(FormatMeasure(0.39104), "0.3910");
  EXPECT_EQ(FormatMeasure(0), "0.0000");
  EXPECT_EQ(FormatMeasure(0.00012), "1.200e-04");
  EXPECT_EQ(FormatMeasure(12345.678), "12345.7");
  EXPECT_EQ(FormatMeasure(std::nan("")), "-");
  EXPECT_EQ(FormatMeasure(-INFINITY), "-inf");
  EXPECT_EQ(FormatRate(12345.6), "12,346");
  EXPECT_EQ(FormatRate(87.54), "87.5");
  EXPECT_EQ(FormatRate(INFINITY), "-");
}

TEST(FormatTest, SettingsKeepTheDigitsOfWholeNumbers) {
  EXPECT_EQ(FormatSetting(0), "0");
  EXPECT_EQ(FormatSetting(128), "128");
  EXPECT_EQ(FormatSetting(-1234567), "-1234567");
  EXPECT_EQ(FormatSetting(20240531), "20240531");
  EXPECT_EQ(FormatSetting(9007199254740991), "9007199254740991");
  EXPECT_EQ(FormatSetting(9007199254740992), "9007199254740992");
  EXPECT_EQ(FormatSetting(1e20), "1e+20");
  EXPECT_EQ(FormatSetting(0.02), "0.02");
  EXPECT_EQ(FormatSetting(0.0001), "0.0001");
  EXPECT_EQ(FormatSetting(1e-7), "1e-07");
  EXPECT_EQ(FormatSetting(12345.67), "12345.67");
  EXPECT_EQ(FormatSetting(0.012345678901), "0.0123457");
  EXPECT_EQ(FormatSetting(INFINITY), "inf");
}

TEST(FormatTest, WidthsLeaveEscapesOut) {
  EXPECT_EQ(DisplayWidth("\x1b[32mé━\x1b[0m"), 2);
  EXPECT_EQ(PadLeft("é", 3), "  é");
  EXPECT_EQ(PadRight("\x1b[1mab\x1b[0m", 3), "\x1b[1mab\x1b[0m ");
  EXPECT_EQ(Truncate("\x1b[32m━━━━\x1b[0m", 2), "\x1b[32m━━\x1b[0m");
}

TEST(TableTest, ColumnsAreAsWideAsTheirCells) {
  Table table({{"JOB"}, {"N", true}, {"X"}});
  table.AddRow({"a", "10", "x"});
  table.AddRow({"long", "5", ""});
  EXPECT_EQ(table.Render(Style(false)), "JOB    N  X\na     10  x\nlong   5\n");
}

TEST(TableTest, ARowIsALine) {
  Table table({{"DEVICE"}, {"REASON"}, {"N"}});
  table.AddRow({"gpu:0", "a\nb\tc\r\n", "1"});
  EXPECT_EQ(table.Render(Style(false)), "DEVICE  REASON   N\ngpu:0   a b c    1\n");
}

}  // namespace
}  // namespace tandem::cli

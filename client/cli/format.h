#ifndef TANDEM_CLIENT_CLI_FORMAT_H_
#define TANDEM_CLIENT_CLI_FORMAT_H_

#include <google/protobuf/timestamp.pb.h>

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace tandem::cli {

// 12345 as "12,345".
std::string FormatCount(int64_t count);
// 1735680 as "1.7 MB" (powers of 1000).
std::string FormatBytes(int64_t bytes);
// "0:06", "12:34", "1:02:03": time left and time gone. Negative is 0.
std::string FormatClock(absl::Duration duration);
// "0.45 s", "14.2 s", "2 min 5 s", "3 h 12 min", "2 d 4 h".
std::string FormatElapsed(absl::Duration duration);
// "5 s", "3 min", "2 h", "4 d": how long ago, in one unit.
std::string FormatAge(absl::Duration duration);
// A loss or a metric: four places, in powers of ten where these would say little, "inf" by its name. "-" for
// a number that is none.
std::string FormatMeasure(double value);
// A rate such as images a second: 12,345 or 87.5 or 0.123.
std::string FormatRate(double value);
// A learning rate or another setting: the fewest digits, at most six.
std::string FormatSetting(double value);
// "2026-03-01 12:34:56" in the zone.
std::string FormatTimestamp(absl::Time time, absl::TimeZone zone);

absl::Time FromProto(const google::protobuf::Timestamp& time);

// A text of somebody else's, whose other lines are indented: so that none passes for one of this program's.
std::string Indented(absl::string_view text);

// Columns that the text takes on a terminal: code points, escape sequences not counted.
int DisplayWidth(absl::string_view text);
// With spaces before or behind up to a width.
std::string PadLeft(absl::string_view text, int width);
std::string PadRight(absl::string_view text, int width);
// The first `width` columns; escape sequences are kept, so that colours end.
std::string Truncate(absl::string_view text, int width);

}  // namespace tandem::cli

#endif  // TANDEM_CLIENT_CLI_FORMAT_H_

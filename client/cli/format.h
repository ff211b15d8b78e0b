#ifndef TANDEM_CLIENT_CLI_FORMAT_H_
#define TANDEM_CLIENT_CLI_FORMAT_H_

#include <google/protobuf/timestamp.pb.h>

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace tandem::cli {

// Returns 12345 as "12,345".
std::string FormatCount(int64_t count);
// Returns 1735680 as "1.7 MB" (powers of 1000).
std::string FormatBytes(int64_t bytes);
// Returns "0:06", "12:34" or "1:02:03", for time left and elapsed time. A negative duration counts as 0.
std::string FormatClock(absl::Duration duration);
// Returns "0.45 s", "14.2 s", "2 min 5 s", "3 h 12 min" or "2 d 4 h".
std::string FormatElapsed(absl::Duration duration);
// Returns an age in a single unit: "5 s", "3 min", "2 h", "4 d".
std::string FormatAge(absl::Duration duration);
// Returns a loss or a metric with four decimals, in scientific notation if four decimals say little, "inf"
// for infinity, or "-" for NaN.
std::string FormatMeasure(double value);
// Returns a rate, such as images per second: 12,345 or 87.5 or 0.123.
std::string FormatRate(double value);
// Returns a learning rate or another setting. A whole number of at most 2^53 has all its digits: "20240531".
// Another number has the fewest digits that read back as itself if the text has at most eight characters,
// otherwise at most six digits.
std::string FormatSetting(double value);
// Returns "2026-03-01 12:34:56" in the zone.
std::string FormatTimestamp(absl::Time time, absl::TimeZone zone);

// Returns "cpu:0" for the name "devices/cpu:0".
std::string ShortName(absl::string_view name);

absl::Time FromProto(const google::protobuf::Timestamp& time);

// Indents all lines of another program's text except the first, so that no such line looks like a line of
// this program.
std::string Indented(absl::string_view text);

// Returns the number of columns on a terminal: code points, without escape sequences.
int DisplayWidth(absl::string_view text);
// Pad with spaces on the left or right up to a width.
std::string PadLeft(absl::string_view text, int width);
std::string PadRight(absl::string_view text, int width);
// Returns the first `width` columns. Keeps escape sequences, so that colours end.
std::string Truncate(absl::string_view text, int width);

}  // namespace tandem::cli

#endif  // TANDEM_CLIENT_CLI_FORMAT_H_

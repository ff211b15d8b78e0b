#include "client/cli/upload_line.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/format.h"
#include "client/cli/progress_line.h"

namespace tandem::cli {

UploadLine::UploadLine(Session& session, std::string doing, int64_t bytes)
    : session_(session),
      doing_(std::move(doing)),
      bytes_(bytes),
      shown_(session.terminal().Interactive() && !session.structured()) {}

void UploadLine::Update(int64_t bytes) {
  Terminal& terminal = session_.terminal();
  const absl::Time now = terminal.Now();
  if (first_ < 0) {
    first_ = bytes;
    begun_ = now;
  }
  if (!shown_ || now - drawn_ < absl::Milliseconds(100)) return;
  drawn_ = now;
  const double share = bytes_ > 0 ? static_cast<double>(bytes) / static_cast<double>(bytes_) : 1;
  std::string line = absl::StrCat(doing_, "  ", ProgressBar(share, 20, terminal.Unicode(), session_.style()),
                                  "  ", FormatBytes(bytes), " of ", FormatBytes(bytes_));
  const double seconds = absl::ToDoubleSeconds(now - begun_);
  if (seconds > 0.5 && bytes > first_) {
    const double rate = static_cast<double>(bytes - first_) / seconds;
    absl::StrAppend(&line, "  ", FormatBytes(static_cast<int64_t>(rate)), "/s  ",
                    FormatClock(absl::Seconds(static_cast<double>(bytes_ - bytes) / rate)), " left");
  }
  terminal.Out(absl::StrCat("\r", Truncate(line, terminal.Width() - 1), "\x1b[K"));
}

void UploadLine::Erase() {
  if (drawn_ == absl::InfinitePast()) return;
  session_.terminal().Out("\r\x1b[K");
  drawn_ = absl::InfinitePast();
}

}  // namespace tandem::cli

#include "client/cli/fetch_display.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "client/cli/format.h"
#include "client/cli/progress_line.h"

namespace tandem::cli {
namespace {

constexpr int kBarWidth = 20;
// The time between two lines for a file.
constexpr absl::Duration kLineInterval = absl::Seconds(15);

// Returns "12.3 MiB of 26.4 MiB, 3 of 4 files".
std::string Words(const v1::FetchProgress& progress) {
  std::string words = FormatBytes(progress.bytes_done());
  if (progress.bytes_total() > 0) absl::StrAppend(&words, " of ", FormatBytes(progress.bytes_total()));
  if (progress.files_total() > 1) {
    absl::StrAppend(&words, ", ", FormatCount(progress.files_done()), " of ",
                    FormatCount(progress.files_total()), " files");
  }
  return words;
}

}  // namespace

bool FetchDisplay::OnFetching(const v1::FetchProgress& progress) {
  terminal_.CatchInterrupt();
  if (live_) {
    std::string bar;
    if (progress.bytes_total() > 0) {
      const double part =
          static_cast<double>(progress.bytes_done()) / static_cast<double>(progress.bytes_total());
      bar = ProgressBar(part, kBarWidth, terminal_.Unicode(), style_) + "  ";
    }
    terminal_.Out(absl::StrCat("\r\x1b[K", bar, "the daemon fetches the data: ", Words(progress)));
  } else if (const absl::Time now = terminal_.Now(); now - last_line_ >= kLineInterval) {
    last_line_ = now;
    terminal_.Err(absl::StrCat("the daemon fetches the data: ", Words(progress), "\n"));
  }
  return !terminal_.Interrupted();
}

void FetchDisplay::OnFetched() {
  if (live_) terminal_.Out("\r\x1b[K");
}

}  // namespace tandem::cli

#include "client/cli/upload_display.h"

#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "client/cli/exit_code.h"
#include "client/cli/format.h"
#include "client/cli/progress_line.h"
#include "client/cli/stream_notes.h"

namespace tandem::cli {
namespace {

// Shows the progress of work on bytes in one line of a terminal, redrawn in place: a bar, bytes, rate and
// time left. Shows nothing if the output is no terminal. Not thread-safe.
class UploadLine {
 public:
  // `doing` is what it begins with, such as "uploading".
  UploadLine(Session& session, std::string doing, int64_t bytes);
  // Erase().
  ~UploadLine() { Erase(); }
  UploadLine(const UploadLine&) = delete;
  UploadLine& operator=(const UploadLine&) = delete;

  // So many are done. The rate is that since the first call.
  void Update(int64_t bytes);
  void Erase();

 private:
  Session& session_;
  const std::string doing_;
  const int64_t bytes_;
  const bool shown_;
  int64_t first_ = -1;
  absl::Time begun_;
  absl::Time drawn_ = absl::InfinitePast();
};

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

std::string CountOf(int64_t count, absl::string_view noun) {
  return absl::StrCat(FormatCount(count), " ", noun, count == 1 ? "" : "s");
}

}  // namespace

void UploadNote(Session& session, absl::string_view text) {
  if (!session.structured()) session.terminal().Err(absl::StrCat(text, "\n"));
}

int FailStopped(Session& session, const absl::Status& status) {
  if (absl::IsCancelled(status) && session.terminal().Interrupted()) return kDetached;
  return session.Fail(status);
}

absl::Status ComputeDigests(Session& session, client::UploadPlan& plan) {
  UploadLine line(session, "reading", plan.bytes);
  StreamNotes observer(session.terminal(), [&](absl::string_view text) { UploadNote(session, text); });
  return client::ComputeDigests(
      [&](int64_t bytes) {
        line.Update(bytes);
        return observer.KeepGoing();
      },
      &plan);
}

absl::StatusOr<v1::Upload> UploadFiles(Session& session, client::Client& client,
                                       const client::UploadPlan& plan) {
  UploadLine line(session, "uploading", plan.bytes);
  StreamNotes observer(session.terminal(), [&](absl::string_view text) {
    line.Erase();
    UploadNote(session, text);
  });
  const std::string what =
      absl::StrCat(CountOf(static_cast<int64_t>(plan.files.size()), "file"), ", ", FormatBytes(plan.bytes));
  int64_t there = -1;
  absl::StatusOr<v1::Upload> upload = client.Upload(plan, observer, [&](int64_t bytes) {
    if (there < 0) {
      UploadNote(session, bytes == 0 ? absl::StrCat("uploading ", what)
                          : bytes < plan.bytes
                              ? absl::StrCat("uploading ", what, "; going on after ", FormatBytes(bytes))
                              : absl::StrCat(what, " were uploaded before"));
    }
    there = bytes;
    line.Update(bytes);
  });
  line.Erase();
  if (!upload.ok() && there >= 0) {
    UploadNote(session, absl::StrCat("stopped after about ", FormatBytes(there), " of ",
                                     FormatBytes(plan.bytes), "; the same command continues"));
  }
  return upload;
}

}  // namespace tandem::cli

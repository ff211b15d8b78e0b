#ifndef TANDEM_CLIENT_CLI_STREAM_NOTES_H_
#define TANDEM_CLIENT_CLI_STREAM_NOTES_H_

#include <functional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "client/cli/printable.h"
#include "client/cli/terminal.h"
#include "client/lib/resumable_stream.h"

namespace tandem::cli {

// Stops a stream at Ctrl-C, or if standard output takes no more. Reports each break once: either that the
// connection is lost, or why the daemon refuses the stream for now. Not thread-safe.
class StreamNotes : public client::StreamObserver {
 public:
  // Prints notes to standard error.
  explicit StreamNotes(Terminal& terminal)
      : StreamNotes(terminal,
                    [&terminal](absl::string_view note) { terminal.Err(absl::StrCat(note, "\n")); }) {}
  // `note` shows a line. `tick` is called each time the stream asks whether to continue.
  StreamNotes(
      Terminal& terminal, std::function<void(absl::string_view)> note, std::function<void()> tick = [] {})
      : terminal_(terminal), note_(std::move(note)), tick_(std::move(tick)) {
    terminal_.CatchInterrupt();
  }

  bool KeepGoing() override {
    tick_();
    return !terminal_.Interrupted() && terminal_.OutputStatus().ok();
  }
  void Lost(const absl::Status& why, absl::Duration /*wait*/) override {
    const bool refused = absl::IsResourceExhausted(why);
    if (refused && !refused_) {
      note_(absl::StrCat("the daemon refuses the stream for now; retrying: ",
                         Printable(std::string(why.message()))));
    } else if (!refused && !lost_) {
      note_("connection lost; reconnecting");
    }
    (refused ? refused_ : lost_) = true;
  }
  void Restored() override { lost_ = refused_ = false; }

 private:
  Terminal& terminal_;
  const std::function<void(absl::string_view)> note_;
  const std::function<void()> tick_;
  // Whether the present break was reported.
  bool lost_ = false;
  bool refused_ = false;
};

}  // namespace tandem::cli

#endif  // TANDEM_CLIENT_CLI_STREAM_NOTES_H_

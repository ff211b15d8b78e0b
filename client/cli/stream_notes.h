#ifndef TANDEM_CLIENT_CLI_STREAM_NOTES_H_
#define TANDEM_CLIENT_CLI_STREAM_NOTES_H_

#include <functional>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "client/cli/terminal.h"
#include "client/lib/resumable_stream.h"

namespace tandem::cli {

// Stops a stream at Ctrl-C or where standard output takes no more, and says once a break that the connection
// is lost and once that it is back. Not thread-safe.
class StreamNotes : public client::StreamObserver {
 public:
  // `note` shows a line; `tick` is called whenever the stream asks whether to go on.
  StreamNotes(
      Terminal& terminal, std::function<void(absl::string_view)> note, std::function<void()> tick = [] {})
      : terminal_(terminal), note_(std::move(note)), tick_(std::move(tick)) {
    terminal_.CatchInterrupt();
  }

  bool KeepGoing() override {
    tick_();
    return !terminal_.Interrupted() && terminal_.OutputStatus().ok();
  }
  void Lost(const absl::Status& /*why*/, absl::Duration /*wait*/) override {
    if (!lost_) note_("connection lost; reconnecting");
    lost_ = true;
  }
  void Restored() override { lost_ = false; }

 private:
  Terminal& terminal_;
  const std::function<void(absl::string_view)> note_;
  const std::function<void()> tick_;
  bool lost_ = false;
};

}  // namespace tandem::cli

#endif  // TANDEM_CLIENT_CLI_STREAM_NOTES_H_

#ifndef TANDEM_CLIENT_CLI_WAIT_DISPLAY_H_
#define TANDEM_CLIENT_CLI_WAIT_DISPLAY_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "client/cli/printable.h"
#include "client/cli/terminal.h"
#include "client/lib/wait_observer.h"

namespace tandem::cli {

// Prints to standard error that the daemon asked for a delay, and why. Ctrl-C ends the wait.
class WaitDisplay : public client::WaitObserver {
 public:
  // `terminal` must outlive this object.
  explicit WaitDisplay(Terminal& terminal) : terminal_(terminal) {}

  void OnAskedToWait(const absl::Status& why, absl::Duration wait) override {
    const absl::Duration shown = absl::Ceil(wait, absl::Milliseconds(100));
    terminal_.Err(absl::StrCat("tandem: waiting ", absl::FormatDuration(shown),
                               ", as the daemon asks: ", Printable(std::string(why.message())), "\n"));
  }
  bool KeepWaiting() override { return !terminal_.Interrupted(); }

 private:
  Terminal& terminal_;
};

}  // namespace tandem::cli

#endif  // TANDEM_CLIENT_CLI_WAIT_DISPLAY_H_

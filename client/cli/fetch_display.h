#ifndef TANDEM_CLIENT_CLI_FETCH_DISPLAY_H_
#define TANDEM_CLIENT_CLI_FETCH_DISPLAY_H_

#include "absl/time/time.h"
#include "client/cli/style.h"
#include "client/cli/terminal.h"
#include "client/lib/while_fetching.h"

namespace tandem::cli {

// Shows the progress of a fetch by the daemon. On a terminal it redraws a line, and erases this line at the
// end. Otherwise, or if standard output is for programs, it writes a line to standard error now and then.
// Ctrl-C ends the wait.
class FetchDisplay : public client::FetchObserver {
 public:
  // `terminal` must outlive this object.
  FetchDisplay(Terminal& terminal, bool structured, Style style)
      : terminal_(terminal), live_(terminal.Interactive() && !structured), style_(style) {}
  bool OnFetching(const v1::FetchProgress& progress) override;
  void OnFetched() override;

 private:
  Terminal& terminal_;
  const bool live_;
  const Style style_;
  absl::Time last_line_ = absl::InfinitePast();
};

}  // namespace tandem::cli

#endif  // TANDEM_CLIENT_CLI_FETCH_DISPLAY_H_

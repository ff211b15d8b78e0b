#ifndef TANDEM_CLIENT_CLI_FETCH_DISPLAY_H_
#define TANDEM_CLIENT_CLI_FETCH_DISPLAY_H_

#include "absl/time/time.h"
#include "client/cli/style.h"
#include "client/cli/terminal.h"
#include "client/lib/while_fetching.h"

namespace tandem::cli {

// Shows how far the daemon is with data that it fetches: on a terminal in one line, which goes away at the
// end; else, or where standard output is for programs, now and then as a line on standard error. Ctrl-C ends
// the waiting.
class FetchDisplay : public client::FetchObserver {
 public:
  // `terminal` outlives this.
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

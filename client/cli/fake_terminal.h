#ifndef TANDEM_CLIENT_CLI_FAKE_TERMINAL_H_
#define TANDEM_CLIENT_CLI_FAKE_TERMINAL_H_

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "client/cli/terminal.h"

namespace tandem::cli {

// A terminal for tests. It keeps all output, and can show the output as a screen would.
class FakeTerminal : public Terminal {
 public:
  bool interactive = false;
  bool color = false;
  bool unicode = true;
  int width = 80;
  int height = 24;
  absl::Time now = absl::FromUnixSeconds(1'000'000);
  std::map<std::string, std::string> environment;
  absl::Status output_status;
  // Returns whether Ctrl-C was pressed. Gets all standard output so far.
  std::function<bool(const std::string&)> interrupt = [](const std::string&) { return false; };

  const std::string& out() const { return out_; }
  const std::string& err() const { return err_; }
  // Returns the screen's view of standard output, line by line, without trailing spaces. It interprets line
  // feeds, carriage returns, "up", "erase to the end of the line" and "erase to the end of the screen", and
  // drops colours.
  std::vector<std::string> Screen() const;

  void Out(absl::string_view text) override { out_.append(text.data(), text.size()); }
  void Err(absl::string_view text) override { err_.append(text.data(), text.size()); }
  absl::Status OutputStatus() const override { return output_status; }
  bool Interactive() const override { return interactive; }
  bool Color() const override { return color; }
  bool Unicode() const override { return unicode; }
  int Width() const override { return width; }
  int Height() const override { return height; }
  absl::Time Now() const override { return now; }
  absl::TimeZone TimeZone() const override { return absl::UTCTimeZone(); }
  void CatchInterrupt() override {}
  bool Interrupted() const override { return interrupt(out_); }
  absl::optional<std::string> Environment(const std::string& name) const override;
  bool IsRoot() const override { return false; }

 private:
  std::string out_;
  std::string err_;
};

}  // namespace tandem::cli

#endif  // TANDEM_CLIENT_CLI_FAKE_TERMINAL_H_

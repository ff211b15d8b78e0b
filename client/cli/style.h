#ifndef TANDEM_CLIENT_CLI_STYLE_H_
#define TANDEM_CLIENT_CLI_STYLE_H_

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace tandem::cli {

// Colours and weights as a terminal's escape sequences (ECMA-48). Without colour, returns texts unchanged.
class Style {
 public:
  explicit Style(bool color) : color_(color) {}

  std::string Bold(absl::string_view text) const { return Wrap("1", text); }
  std::string Dim(absl::string_view text) const { return Wrap("2", text); }
  std::string Red(absl::string_view text) const { return Wrap("31", text); }
  std::string Green(absl::string_view text) const { return Wrap("32", text); }
  std::string Yellow(absl::string_view text) const { return Wrap("33", text); }
  std::string Blue(absl::string_view text) const { return Wrap("34", text); }
  std::string Cyan(absl::string_view text) const { return Wrap("36", text); }
  // Applies a code, such as "36".
  std::string Wrap(absl::string_view code, absl::string_view text) const {
    return color_ && !code.empty() && !text.empty() ? absl::StrCat("\x1b[", code, "m", text, "\x1b[0m")
                                                    : std::string(text);
  }

 private:
  bool color_;
};

}  // namespace tandem::cli

#endif  // TANDEM_CLIENT_CLI_STYLE_H_

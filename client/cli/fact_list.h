#ifndef TANDEM_CLIENT_CLI_FACT_LIST_H_
#define TANDEM_CLIENT_CLI_FACT_LIST_H_

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "client/cli/format.h"
#include "client/cli/style.h"

namespace tandem::cli {

// Lines with a name and a value. Not thread-safe.
class FactList {
 public:
  // Pads names to `width`. `style` must outlive this object.
  FactList(const Style& style, int width) : style_(style), width_(width) {}

  // Adds a line. Leaves out an empty value.
  void Add(absl::string_view name, absl::string_view value) {
    if (!value.empty()) absl::StrAppend(&text_, style_.Dim(PadRight(name, width_)), "  ", value, "\n");
  }
  // Returns all lines, each with a newline.
  const std::string& text() const { return text_; }

 private:
  const Style& style_;
  const int width_;
  std::string text_;
};

}  // namespace tandem::cli

#endif  // TANDEM_CLIENT_CLI_FACT_LIST_H_

#ifndef TANDEM_CLIENT_CLI_TEMPLATES_H_
#define TANDEM_CLIENT_CLI_TEMPLATES_H_

#include <vector>

#include "absl/strings/string_view.h"

namespace tandem::cli {

// A commented job file to start from.
struct JobTemplate {
  absl::string_view name;
  // In a few words.
  absl::string_view description;
  absl::string_view content;
};

// In the order in which they are listed.
const std::vector<JobTemplate>& JobTemplates();

}  // namespace tandem::cli

#endif  // TANDEM_CLIENT_CLI_TEMPLATES_H_

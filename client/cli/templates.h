#ifndef TANDEM_CLIENT_CLI_TEMPLATES_H_
#define TANDEM_CLIENT_CLI_TEMPLATES_H_

#include <vector>

#include "absl/strings/string_view.h"

namespace tandem::cli {

// A commented job file to start from.
struct JobTemplate {
  absl::string_view name;
  // A few words.
  absl::string_view description;
  absl::string_view content;
};

// Returns the templates, in the order of their list.
const std::vector<JobTemplate>& JobTemplates();

}  // namespace tandem::cli

#endif  // TANDEM_CLIENT_CLI_TEMPLATES_H_

#ifndef TANDEM_CLIENT_CLI_COMPLETION_H_
#define TANDEM_CLIENT_CLI_COMPLETION_H_

#include <string>

namespace CLI {
class App;
}  // namespace CLI

namespace tandem::cli {

// Return scripts that let a shell complete commands, options, job ids, templates and files. The scripts
// follow the definition of the command line.
std::string BashCompletion(const CLI::App& app);
// Uses zsh's support for bash's completions.
std::string ZshCompletion(const CLI::App& app);
std::string FishCompletion(const CLI::App& app);

}  // namespace tandem::cli

#endif  // TANDEM_CLIENT_CLI_COMPLETION_H_

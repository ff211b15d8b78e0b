#ifndef TANDEM_CLIENT_CLI_PROCESS_OPTIONS_H_
#define TANDEM_CLIENT_CLI_PROCESS_OPTIONS_H_

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

namespace tandem::cli {

// The options of a running daemon on this machine, from its command line and from the file of its --config.
// Immutable.
class ProcessOptions {
 public:
  // `root` is a prefix of /proc, for tests. Without such a process, all options are empty.
  ProcessOptions(int64_t pid, const std::string& root);

  // Returns the value of "--name value" or "--name=value". The last occurrence counts, and the command line
  // counts before the file. Empty if not given.
  std::string Value(const std::string& name) const;
  // Returns the value as an absolute path. The daemon resolves relative paths from its own folder. Empty if
  // not given.
  std::string Path(const std::string& name) const;

 private:
  std::filesystem::path folder_;
  std::map<std::string, std::string> values_;
};

}  // namespace tandem::cli

#endif  // TANDEM_CLIENT_CLI_PROCESS_OPTIONS_H_

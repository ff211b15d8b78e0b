#ifndef TANDEM_SERVER_DAEMON_YAML_CONFIG_H_
#define TANDEM_SERVER_DAEMON_YAML_CONFIG_H_

#include <CLI/CLI.hpp>
#include <istream>
#include <string>
#include <vector>

namespace tandem {

// Lets CLI11 read its options from a YAML file: one mapping of option names ('_' may stand for '-') to
// values, or to a list of values where an option may be repeated. A name that is no option, one that stands
// there twice, and a value that is a mapping are errors (CLI::ConfigError), with the line and the name that
// was probably meant.
class YamlConfig : public CLI::Config {
 public:
  // `options`: the long names that may be set, without dashes before them.
  explicit YamlConfig(std::vector<std::string> options) : options_(std::move(options)) {}

  std::vector<CLI::ConfigItem> from_config(std::istream& input) const override;
  // Not offered: empty.
  std::string to_config(const CLI::App*, bool, bool, std::string) const override { return ""; }

 private:
  const std::vector<std::string> options_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_DAEMON_YAML_CONFIG_H_

#ifndef TANDEM_SERVER_DAEMON_YAML_CONFIG_H_
#define TANDEM_SERVER_DAEMON_YAML_CONFIG_H_

#include <CLI/CLI.hpp>
#include <istream>
#include <string>
#include <vector>

namespace tandem {

// Makes CLI11 read options from a YAML file. The file is a mapping of option names ('_' may replace '-') to
// values. A repeatable option may have a list of values. An unknown name, a repeated name or a mapping as
// value throws CLI::ConfigError with the line and the name that was probably meant.
class YamlConfig : public CLI::Config {
 public:
  // `options` are the allowed long names, without leading dashes.
  explicit YamlConfig(std::vector<std::string> options) : options_(std::move(options)) {}

  std::vector<CLI::ConfigItem> from_config(std::istream& input) const override;
  // Not supported: returns an empty text.
  std::string to_config(const CLI::App*, bool, bool, std::string) const override { return ""; }

 private:
  const std::vector<std::string> options_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_DAEMON_YAML_CONFIG_H_

#ifndef TANDEM_CLIENT_CLI_COMMAND_H_
#define TANDEM_CLIENT_CLI_COMMAND_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace tandem::cli {

// An option or argument of a command. An Option is a handle: copies refer to the same option, and the program
// owns the option. Every method returns the handle. If a method refuses a value, the command ends with a
// usage error.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}

  // Names the value in the help: FILE, N.
  Option ValueName(const std::string& name) const;
  Option Required() const;
  // Takes a single value for each occurrence. The next word is not a value.
  Option OneValueEach() const;
  // Takes from `least` to `most` values.
  Option Values(int least, int most) const;
  // Shows the variable's present value as the default in the help.
  Option ShowDefault() const;
  // Accepts whole numbers from `least` to `most`.
  Option Range(int64_t least, int64_t most) const;
  Option AtLeast(int64_t least) const;
  Option OneOf(const std::vector<std::string>& values) const;
  // Reads the value as a size in bytes, such as 50GiB.
  Option Size() const;
  Option Excludes(Option other) const;
  Option Needs(Option other) const;

 private:
  CLI::Option* option_;
};

// A command of the command line, or the command line itself. A Command is a handle, as Option is. This class
// hides CLI11, because a source that includes CLI11 takes seconds to compile.
class Command {
 public:
  explicit Command(CLI::App* app) : app_(app) {}

  Command AddCommand(const std::string& name, const std::string& description) const;
  // Adds an option ("-f,--follow") or an argument ("JOB"). `value` must outlive the parsing. T is int,
  // int64_t, uint64_t, std::string or a vector of strings.
  template <typename T>
  Option AddOption(const std::string& names, T& value, const std::string& description) const;
  // Adds an option that `parse` reads. The message of its error says which values the option accepts.
  Option AddOption(const std::string& names, std::function<absl::Status(const std::string&)> parse,
                   const std::string& description) const;
  Option AddFlag(const std::string& names, bool& value, const std::string& description) const;
  Option AddFlag(const std::string& names, std::function<void()> set, const std::string& description) const;

  // Shows the text below the options in the help.
  Command Footer(const std::string& text) const;
  Command Alias(const std::string& name) const;
  // Leaves the command out of the help.
  Command Hide() const;
  // Accepts the global options after the command's name.
  Command TakeGlobalOptions() const;
  // Sets the command's action, which runs if the command line names this command and none of its subcommands.
  // `check`, if given, runs first; the message of its error becomes a usage error.
  Command Action(std::function<void()> run, std::function<absl::Status()> check = nullptr) const;

  // For code that reads the whole command line.
  CLI::App& app() const { return *app_; }

 private:
  CLI::App* app_;
};

}  // namespace tandem::cli

#endif  // TANDEM_CLIENT_CLI_COMMAND_H_

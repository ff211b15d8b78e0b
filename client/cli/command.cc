#include "client/cli/command.h"

#include <CLI/CLI.hpp>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace tandem::cli {

Option Option::ValueName(const std::string& name) const {
  option_->type_name(name);
  return *this;
}

Option Option::Required() const {
  option_->required();
  return *this;
}

Option Option::OneValueEach() const {
  option_->allow_extra_args(false);
  return *this;
}

Option Option::Values(int least, int most) const {
  option_->expected(least, most);
  return *this;
}

Option Option::ShowDefault() const {
  option_->capture_default_str();
  return *this;
}

Option Option::Range(int64_t least, int64_t most) const {
  option_->check(CLI::Range(least, most));
  return *this;
}

// CLI11's own check would print the largest double in its message.
Option Option::AtLeast(int64_t least) const {
  option_->check(CLI::Validator(
      [least](const std::string& text) -> std::string {
        int64_t value = 0;
        if (absl::SimpleAtoi(text, &value) && value >= least) return "";
        return absl::StrCat("'", text, "' is not a whole number from ", least, " on");
      },
      ""));
  return *this;
}

Option Option::OneOf(const std::vector<std::string>& values) const {
  option_->check(CLI::IsMember(values));
  return *this;
}

Option Option::Size() const {
  option_->transform(CLI::AsSizeValue(/*kb_is_1000=*/false));
  return *this;
}

Option Option::Excludes(Option other) const {
  option_->excludes(other.option_);
  return *this;
}

Option Option::Needs(Option other) const {
  option_->needs(other.option_);
  return *this;
}

Command Command::AddCommand(const std::string& name, const std::string& description) const {
  app_->require_subcommand(0, 1);
  return Command(app_->add_subcommand(name, description));
}

template <typename T>
Option Command::AddOption(const std::string& names, T& value, const std::string& description) const {
  return Option(app_->add_option(names, value, description));
}

template Option Command::AddOption(const std::string&, int&, const std::string&) const;
template Option Command::AddOption(const std::string&, int64_t&, const std::string&) const;
template Option Command::AddOption(const std::string&, uint64_t&, const std::string&) const;
template Option Command::AddOption(const std::string&, std::string&, const std::string&) const;
template Option Command::AddOption(const std::string&, std::vector<std::string>&, const std::string&) const;

Option Command::AddOption(const std::string& names, std::function<absl::Status(const std::string&)> parse,
                          const std::string& description) const {
  return Option(app_->add_option_function<std::string>(
      names,
      [names, parse = std::move(parse)](const std::string& text) {
        const absl::Status status = parse(text);
        if (!status.ok()) throw CLI::ValidationError(names, std::string(status.message()));
      },
      description));
}

Option Command::AddFlag(const std::string& names, bool& value, const std::string& description) const {
  return Option(app_->add_flag(names, value, description));
}

Option Command::AddFlag(const std::string& names, std::function<void()> set,
                        const std::string& description) const {
  return Option(app_->add_flag_callback(names, std::move(set), description));
}

Command Command::Footer(const std::string& text) const {
  app_->footer(text);
  return *this;
}

Command Command::Alias(const std::string& name) const {
  app_->alias(name);
  return *this;
}

Command Command::Hide() const {
  app_->group("");
  return *this;
}

Command Command::TakeGlobalOptions() const {
  app_->fallthrough();
  return *this;
}

Command Command::Action(std::function<void()> run, std::function<absl::Status()> check) const {
  app_->callback([app = app_, run = std::move(run), check = std::move(check)] {
    if (!app->get_subcommands().empty()) return;
    const absl::Status status = check ? check() : absl::OkStatus();
    if (!status.ok()) throw CLI::ValidationError(std::string(status.message()));
    run();
  });
  return *this;
}

}  // namespace tandem::cli

#include "client/cli/app.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <sstream>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "client/cli/command.h"
#include "client/cli/commands/commands.h"
#include "client/cli/examples.h"
#include "client/cli/session.h"
#include "client/cli/version.h"
#include "engine/base/spelling.h"

namespace tandem::cli {
namespace {

constexpr char kFooter[] =
    "JOB is a job's id, or a beginning that no other id has. BEGINNING@ is the newest job whose id begins\n"
    "with BEGINNING, and @ is the newest of all jobs.\n"
    "Global options may precede or follow the command. These environment variables set missing options:\n"
    "TANDEM_ADDRESS, TANDEM_STATE (--state-folder), TANDEM_TOKEN_FILE, TANDEM_TLS_CA, TANDEM_TLS_CERT,\n"
    "TANDEM_TLS_KEY, TANDEM_TLS_SERVER_NAME, TANDEM_TIMEOUT, TANDEM_RECONNECT_TIMEOUT, TANDEM_OUTPUT.\n"
    "NO_COLOR turns colours off.\n"
    "\nExit codes: 0 succeeded, 1 the job failed, 2 bad usage or an invalid job, 3 the job was cancelled,\n"
    "4 the daemon could not be reached or was lost, 5 the output could not be written, 130 Ctrl-C, and the "
    "job\n"
    "continues.\n"
    "\nTo begin: tandem init lenet > job.yaml && tandem submit job.yaml --follow";

// The texts of the global options. The environment sets options that are not given.
struct RawOptions {
  std::string output, timeout, reconnect_timeout;
};

absl::Duration ParseTimeout(const std::string& option, const std::string& text) {
  absl::Duration duration;
  double seconds = 0;
  if (absl::SimpleAtod(text, &seconds)) {
    duration = absl::Seconds(seconds);
  } else if (!absl::ParseDuration(text, &duration)) {
    duration = absl::ZeroDuration();
  }
  if (!(duration > absl::ZeroDuration()) || duration > absl::Hours(24 * 365)) {
    throw CLI::ValidationError(option, "want seconds or a duration such as 30s or 2m, got `" + text + "`");
  }
  return duration;
}

OutputFormat ParseOutput(const char* option, const std::string& text) {
  if (text.empty() || text == "table") return OutputFormat::kTable;
  if (text == "wide") return OutputFormat::kWide;
  if (text == "json") return OutputFormat::kJson;
  if (text == "yaml") return OutputFormat::kYaml;
  throw CLI::ValidationError(option, "want table, wide, json or yaml, got `" + text + "`");
}

void FinishOptions(RawOptions& raw, Session& session) {
  GlobalOptions& options = session.options;
  // Returns whether the value is the variable's, so that an error can name the variable.
  const auto from_environment = [&](const char* variable, std::string* value) {
    if (!value->empty()) return false;
    *value = session.terminal().Environment(variable).value_or("");
    return true;
  };
  from_environment("TANDEM_ADDRESS", &options.address);
  from_environment("TANDEM_STATE", &options.state_folder);
  from_environment("TANDEM_TOKEN_FILE", &options.token_file);
  from_environment("TANDEM_TLS_CA", &options.tls_ca);
  from_environment("TANDEM_TLS_CERT", &options.tls_certificate);
  from_environment("TANDEM_TLS_KEY", &options.tls_key);
  from_environment("TANDEM_TLS_SERVER_NAME", &options.tls_server_name);
  const char* const timeout =
      from_environment("TANDEM_TIMEOUT", &raw.timeout) ? "TANDEM_TIMEOUT" : "--timeout";
  const char* const reconnect = from_environment("TANDEM_RECONNECT_TIMEOUT", &raw.reconnect_timeout)
                                    ? "TANDEM_RECONNECT_TIMEOUT"
                                    : "--reconnect-timeout";
  const char* const output = from_environment("TANDEM_OUTPUT", &raw.output) ? "TANDEM_OUTPUT" : "--output";
  options.output = ParseOutput(output, raw.output);
  if (!raw.timeout.empty()) options.timeout = ParseTimeout(timeout, raw.timeout);
  if (!raw.reconnect_timeout.empty()) {
    options.reconnect_timeout = ParseTimeout(reconnect, raw.reconnect_timeout);
  }
}

// Lists commands before the many options.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override {
    if (mode == CLI::AppFormatMode::Sub) return make_expanded(app);
    return absl::StrCat(make_description(app), make_usage(app, name), make_subcommands(app, mode),
                        make_positionals(app), make_groups(app, mode), make_footer(app));
  }

  std::string make_usage(const CLI::App* app, std::string name) const override {
    if (app->get_parent() == nullptr) return "\nUsage: tandem COMMAND [OPTIONS]\n";
    return "\n" + CLI::Formatter::make_usage(app, name);
  }

  std::string make_footer(const CLI::App* app) const override {
    if (app->get_parent() == nullptr) return "\n" + app->get_footer() + "\n";
    // A command has its parent's footer unless it has its own.
    const bool own = app->get_footer() != app->get_parent()->get_footer();
    std::string command = app->get_name();
    for (const CLI::App* one = app->get_parent(); one->get_parent() != nullptr; one = one->get_parent()) {
      command = absl::StrCat(one->get_name(), " ", command);
    }
    const absl::string_view example = ExampleOf(command);
    std::string text = own ? absl::StrCat("\n", app->get_footer(), "\n") : "";
    if (!example.empty()) absl::StrAppend(&text, "\nExample:\n  ", example, "\n");
    return absl::StrCat(text, "\n`tandem --help` lists the options that every command takes.\n");
  }
};

void AddGlobalOptions(CLI::App& app, RawOptions& raw, Session& session) {
  constexpr char kGroup[] = "Global options";
  GlobalOptions& options = session.options;
  app.add_option("-o,--output,--format", raw.output,
                 "table, wide, json or yaml; json prints each job event on its own line")
      ->type_name("FORMAT")
      ->group(kGroup);
  app.add_option(
         "--address", options.address,
         "The daemon's address (default: the address of the daemon on this machine, or 127.0.0.1:7447)")
      ->type_name("HOST:PORT")
      ->group(kGroup);
  app.add_option(
         "--token-file", options.token_file,
         "A file with the daemon's token or the user's own token (default: `token` in the state folder)")
      ->type_name("FILE")
      ->group(kGroup);
  app.add_option("--state-folder", options.state_folder,
                 "The state folder of the daemon on this machine, with its token and address (default: "
                 "/var/lib/tandem for "
                 "root, else "
                 "~/.local/state/tandem)")
      ->type_name("DIR")
      ->group(kGroup);
  app.add_option("--timeout", raw.timeout,
                 "The longest time of a call (default: 30s). Calls for which the daemon may read data have "
                 "at least 10m")
      ->type_name("DURATION")
      ->group(kGroup);
  app.add_option("--reconnect-timeout", raw.reconnect_timeout,
                 "The longest time to reconnect a broken stream (default: 1m)")
      ->type_name("DURATION")
      ->group(kGroup);
  app.add_flag("--tls", options.tls, "Use TLS with the system's authorities")->group(kGroup);
  app.add_option("--tls-ca", options.tls_ca, "Use TLS with the authorities in this PEM file")
      ->type_name("FILE")
      ->group(kGroup);
  app.add_option("--tls-cert", options.tls_certificate, "The client's certificate")
      ->type_name("FILE")
      ->group(kGroup);
  app.add_option("--tls-key", options.tls_key, "The certificate's key")->type_name("FILE")->group(kGroup);
  app.add_option("--tls-server-name", options.tls_server_name, "The name in the daemon's certificate")
      ->type_name("NAME")
      ->group(kGroup);
  app.add_flag("--plaintext", options.plaintext, "Send the token unencrypted to another machine")
      ->group(kGroup);
}

void AddCommands(CLI::App& app, Session& session, int& exit_code) {
  using Adder = void (*)(Command, Session&, int&);
  const std::vector<std::pair<const char*, std::vector<Adder>>> groups = {
      {"Jobs",
       {AddInit, AddValidate, AddSubmit, AddSweep, AddWatch, AddDashboard, AddTensorBoard, AddList, AddQueue,
        AddDescribe, AddLogs, AddDownload, AddPause, AddResume, AddCheckpoints, AddFork, AddPriority,
        AddCancel, AddDelete}},
      {"Models", {AddEvaluate, AddPredict, AddExport}},
      {"Daemon", {AddDevices, AddDatasets, AddTokens, AddBackup, AddDoctor, AddShutdown}},
      {"Other", {AddSchema, AddVersion, AddCompletion}},
  };
  for (const auto& [group, adders] : groups) {
    for (const Adder add : adders) {
      add(Command(&app), session, exit_code);
      CLI::App* command = app.get_subcommands(nullptr).back();
      if (command->get_group() == "Subcommands") command->group(group);
      command->fallthrough();
    }
  }
}

std::vector<std::string> CommandNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!command->get_group().empty()) names.push_back(command->get_name());
  }
  return names;
}

// Returns the command of the arguments and its subcommand, such as `datasets` and `add`.
std::vector<const CLI::App*> ChosenCommands(const CLI::App& app) {
  std::vector<const CLI::App*> commands;
  for (const CLI::App* place = &app; !place->get_subcommands().empty();) {
    place = place->get_subcommands().front();
    commands.push_back(place);
  }
  return commands;
}

// Suggests options for a wrong option: those of the chosen command and the global options.
std::string OptionHint(const CLI::App& app, const std::string& typed) {
  std::vector<std::string> names;
  std::vector<const CLI::App*> places = {&app};
  for (const CLI::App* command : ChosenCommands(app)) places.push_back(command);
  for (const CLI::App* place : places) {
    for (const CLI::Option* option : place->get_options()) {
      for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    }
  }
  const std::string nearest = NearestName(typed.substr(0, typed.find('=')), names);
  return nearest.empty() ? "" : "; did you mean `" + nearest + "`?";
}

int FailUsage(const CLI::App& app, Terminal& terminal, const std::string& message) {
  std::string command = "tandem";
  for (const CLI::App* chosen : ChosenCommands(app)) absl::StrAppend(&command, " ", chosen->get_name());
  terminal.Err(absl::StrCat(command, ": ", message, "\n`", command, " --help` shows the usage.\n"));
  return kBadUsage;
}

// Returns the first argument that is neither a global option nor the value of a global option.
std::vector<std::string>::iterator FirstWord(const CLI::App& app, std::vector<std::string>& arguments) {
  auto argument = arguments.begin();
  for (; argument != arguments.end() && absl::StartsWith(*argument, "-"); ++argument) {
    const CLI::Option* const option = app.get_option_no_throw(*argument);
    const bool takes_next = option != nullptr && option->get_items_expected_min() > 0;
    if (takes_next && argument + 1 != arguments.end()) ++argument;
  }
  return argument;
}

// Turns `help COMMAND`, which many users type, into `COMMAND --help`. INVALID_ARGUMENT if there is no such
// command.
absl::StatusOr<std::vector<std::string>> WithoutHelpCommand(const CLI::App& app,
                                                            std::vector<std::string> arguments) {
  const auto help = FirstWord(app, arguments);
  if (help == arguments.end() || *help != "help") return arguments;
  arguments.erase(help);
  const auto command = FirstWord(app, arguments);
  const std::vector<std::string> names = CommandNames(app);
  if (command != arguments.end() && std::find(names.begin(), names.end(), *command) == names.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("unknown command `", *command, "`; ", SpellingHint(*command, names)));
  }
  arguments.push_back("--help");
  return arguments;
}

int Run(const std::vector<std::string>& arguments, Terminal& terminal) {
  Session session(terminal);
  int exit_code = kSucceeded;
  RawOptions raw;
  CLI::App app(
      "Tandem trains neural networks as a service. This program sends jobs to its daemon and follows them.",
      "tandem");
  app.footer(kFooter);
  app.set_version_flag("--version", std::string("tandem ") + kVersion);
  app.require_subcommand(0, 1);
  app.fallthrough();
  const auto formatter = std::make_shared<HelpFormatter>();
  formatter->column_width(30);
  app.formatter(formatter);
  AddGlobalOptions(app, raw, session);
  app.parse_complete_callback([&] { FinishOptions(raw, session); });
  AddCommands(app, session, exit_code);
  const absl::StatusOr<std::vector<std::string>> words = WithoutHelpCommand(app, arguments);
  if (!words.ok()) return FailUsage(app, terminal, std::string(words.status().message()));
  try {
    app.parse(std::vector<std::string>(words->rbegin(), words->rend()));
  } catch (const CLI::Success& request) {
    std::ostringstream out;
    app.exit(request, out, out);
    terminal.Out(out.str());
    return kSucceeded;
  } catch (const CLI::ExtrasError&) {
    const std::vector<std::string> extras = app.remaining(/*recurse=*/true);
    const std::string extra = extras.empty() ? "" : extras.front();
    if (app.get_subcommands().empty() && extra.substr(0, 1) != "-") {
      return FailUsage(
          app, terminal,
          absl::StrCat("unknown command `", extra, "`; ", SpellingHint(extra, CommandNames(app))));
    }
    return FailUsage(app, terminal,
                     absl::StrCat(extra.substr(0, 1) == "-" ? "no such option: `" : "unexpected argument: `",
                                  extra, "`", extra.substr(0, 1) == "-" ? OptionHint(app, extra) : ""));
  } catch (const CLI::ParseError& error) {
    return FailUsage(app, terminal, error.what());
  }
  if (app.get_subcommands().empty()) {
    terminal.Err(app.help());
    return kBadUsage;
  }
  return exit_code;
}

}  // namespace

int RunCommand(const std::vector<std::string>& arguments, Terminal& terminal) {
  const int exit_code = Run(arguments, terminal);
  const absl::Status output = terminal.OutputStatus();
  if (output.ok()) return exit_code;
  terminal.Err(absl::StrCat("tandem: ", output.message(), "\n"));
  return exit_code == kSucceeded ? kOutputLost : exit_code;
}

}  // namespace tandem::cli

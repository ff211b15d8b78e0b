#include "client/cli/completion.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "client/cli/described_model.h"
#include "client/cli/templates.h"
#include "proto/job_file/enum_names.h"
#include "tandem/v1/event.pb.h"
#include "tandem/v1/training.pb.h"

namespace tandem::cli {
namespace {

std::vector<const CLI::App*> Commands(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App* command) { return !command->get_group().empty(); });
}

// Returns "-f --follow", or "" for a positional.
std::vector<std::string> Flags(const CLI::Option& option) {
  std::vector<std::string> flags;
  for (const std::string& name : option.get_snames()) flags.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) flags.push_back("--" + name);
  return flags;
}

// Returns the flags of a command and its subcommands, each once.
std::vector<std::string> AllFlags(const CLI::App& app) {
  std::vector<std::string> flags;
  const auto add = [&](const CLI::App& command) {
    for (const CLI::Option* option : command.get_options()) {
      for (std::string& flag : Flags(*option)) {
        if (std::find(flags.begin(), flags.end(), flag) == flags.end()) flags.push_back(std::move(flag));
      }
    }
  };
  add(app);
  // The program's own flags are offered everywhere.
  if (app.get_parent() == nullptr) return flags;
  for (const CLI::App* command : Commands(app)) add(*command);
  return flags;
}

// Returns the names of the positionals of a command and its subcommands, each once: JOB, FILE, ...
std::vector<std::string> Positionals(const CLI::App& command) {
  std::vector<std::string> names;
  const auto add = [&](const CLI::App& one) {
    for (const CLI::Option* option : one.get_options()) {
      const std::string name = option->get_name(/*positional=*/true);
      if (option->get_positional() && std::find(names.begin(), names.end(), name) == names.end()) {
        names.push_back(name);
      }
    }
  };
  add(command);
  for (const CLI::App* sub : Commands(command)) add(*sub);
  return names;
}

std::vector<std::string> TemplateNames() {
  std::vector<std::string> names;
  for (const JobTemplate& job : JobTemplates()) names.emplace_back(job.name);
  return names;
}

// Returns shell code for the words of a kind of value.
std::string BashWords(const std::string& kind) {
  if (kind == "JOB")
    return R"sh(COMPREPLY=($(compgen -W "$(tandem --timeout 2 __jobs 2>/dev/null)" -- "$cur")))sh";
  if (kind == "SET") {
    return R"sh(COMPREPLY=($(compgen -W "$(tandem --timeout 2 __datasets 2>/dev/null)" -- "$cur")))sh";
  }
  if (kind == "SWEEP") {
    return R"sh(COMPREPLY=($(compgen -W "$(tandem --timeout 2 __sweeps 2>/dev/null)" -- "$cur")))sh";
  }
  if (kind == "FILE" || kind == "INPUT" || kind == "DATASET") {
    return R"sh(COMPREPLY=($(compgen -f -- "$cur")))sh";
  }
  if (kind == "MODEL") {
    return absl::StrCat("COMPREPLY=($(compgen -f -W \"", absl::StrJoin(ModelTemplateNames(), " "),
                        "\" -- \"$cur\"))");
  }
  if (kind == "DIR") return R"sh(COMPREPLY=($(compgen -d -- "$cur")))sh";
  std::vector<std::string> words;
  if (kind == "TEMPLATE") words = TemplateNames();
  if (kind == "SHELL") words = {"bash", "zsh", "fish"};
  if (kind == "FORMAT") words = {"table", "wide", "json", "yaml"};
  if (kind == "CLUSTER") words = {"slurm", "ssh"};
  if (kind == "ORDER") words = {"create_time", "name"};
  if (kind == "SPLIT") words = {"training", "validation"};
  if (kind == "METRIC") words = ShortEnumNames(*v1::Metric_descriptor());
  if (kind == "STATE") words = ShortEnumNames(*v1::JobState_descriptor());
  return absl::StrCat("COMPREPLY=($(compgen -W \"", absl::StrJoin(words, " "), "\" -- \"$cur\"))");
}

// Appends a branch for each option with a value.
void AppendValueCases(const CLI::App& app, std::string* text) {
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional() || option->get_expected_max() == 0) continue;
    absl::StrAppend(text, "    ", absl::StrJoin(Flags(*option), "|"), ") ",
                    BashWords(option->get_type_name()), "; return ;;\n");
  }
}

std::string FishQuoted(absl::string_view text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"'", "\\'"}}), "'");
}

void AppendFishOptions(const CLI::App& app, absl::string_view condition, std::string* text) {
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional()) continue;
    absl::StrAppend(text, "complete -c tandem", condition);
    for (const std::string& name : option->get_snames()) absl::StrAppend(text, " -s ", name);
    for (const std::string& name : option->get_lnames()) absl::StrAppend(text, " -l ", name);
    if (option->get_expected_max() != 0) {
      const std::string kind = option->get_type_name();
      const bool files = kind == "FILE" || kind == "DIR" || kind == "DATASET" || kind == "MODEL";
      absl::StrAppend(text, files ? " -r -F" : " -x");
      if (kind == "MODEL") absl::StrAppend(text, " -a '", absl::StrJoin(ModelTemplateNames(), " "), "'");
      if (kind == "SPLIT") absl::StrAppend(text, " -a 'training validation'");
      if (kind == "METRIC") {
        absl::StrAppend(text, " -a '", absl::StrJoin(ShortEnumNames(*v1::Metric_descriptor()), " "), "'");
      }
      if (kind == "FORMAT") absl::StrAppend(text, " -a 'table wide json yaml'");
      if (kind == "CLUSTER") absl::StrAppend(text, " -a 'slurm ssh'");
      if (kind == "STATE") {
        absl::StrAppend(text, " -a '", absl::StrJoin(ShortEnumNames(*v1::JobState_descriptor()), " "), "'");
      }
    }
    absl::StrAppend(text, " -d ", FishQuoted(option->get_description()), "\n");
  }
}

}  // namespace

std::string BashCompletion(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : Commands(app)) names.push_back(command->get_name());
  std::string text = absl::StrCat(
      "# Completion of tandem for bash: source <(tandem completion bash)\n"
      "_tandem() {\n"
      "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command= flags= i\n"
      "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
      "    case ${COMP_WORDS[i]} in\n"
      "      ",
      absl::StrJoin(names, "|"),
      ") command=${COMP_WORDS[i]}; break ;;\n"
      "    esac\n"
      "  done\n"
      "  case $prev in\n");
  AppendValueCases(app, &text);
  for (const CLI::App* command : Commands(app)) {
    AppendValueCases(*command, &text);
    for (const CLI::App* sub : Commands(*command)) AppendValueCases(*sub, &text);
  }
  absl::StrAppend(&text, "  esac\n  case $command in\n");
  for (const CLI::App* command : Commands(app)) {
    absl::StrAppend(&text, "    ", command->get_name(), ") flags='", absl::StrJoin(AllFlags(*command), " "),
                    "' ;;\n");
  }
  absl::StrAppend(&text,
                  "  esac\n"
                  "  if [[ $cur == -* ]]; then\n"
                  "    COMPREPLY=($(compgen -W \"$flags ",
                  absl::StrJoin(AllFlags(app), " "),
                  "\" -- \"$cur\"))\n"
                  "    return\n"
                  "  fi\n"
                  "  case $command in\n"
                  "    '') COMPREPLY=($(compgen -W \"",
                  absl::StrJoin(names, " "), "\" -- \"$cur\")) ;;\n");
  for (const CLI::App* command : Commands(app)) {
    // The script does not count positions, and offers all kinds of words.
    std::vector<std::string> words;
    std::vector<std::string> subs;
    for (const CLI::App* sub : Commands(*command)) subs.push_back(sub->get_name());
    if (!subs.empty()) {
      words.push_back(
          absl::StrCat("COMPREPLY=($(compgen -W \"", absl::StrJoin(subs, " "), "\" -- \"$cur\"))"));
    }
    for (const std::string& kind : Positionals(*command)) words.push_back(BashWords(kind));
    for (size_t i = 1; i < words.size(); ++i)
      words[i] = absl::StrReplaceAll(words[i], {{"COMPREPLY=", "COMPREPLY+="}});
    if (words.empty()) continue;
    absl::StrAppend(&text, "    ", command->get_name(), ") ", absl::StrJoin(words, "; "), " ;;\n");
  }
  return text + "  esac\n}\ncomplete -o filenames -F _tandem tandem\n";
}

std::string ZshCompletion(const CLI::App& app) {
  return absl::StrCat(
      "#compdef tandem\n"
      "# Completion of tandem for zsh: source <(tandem completion zsh)\n"
      "autoload -Uz compinit bashcompinit\n"
      "(( $+functions[compdef] )) || compinit\n"
      "bashcompinit\n",
      BashCompletion(app),
      "# A file _tandem of $fpath is run for the first completion.\n"
      "if [[ $funcstack[1] == _tandem ]]; then _bash_complete -o filenames -F _tandem; fi\n");
}

std::string FishCompletion(const CLI::App& app) {
  std::string text =
      "# Completion of tandem for fish: tandem completion fish | source\ncomplete -c tandem -f\n";
  AppendFishOptions(app, "", &text);
  for (const CLI::App* command : Commands(app)) {
    absl::StrAppend(&text, "complete -c tandem -n __fish_use_subcommand -a ", command->get_name(), " -d ",
                    FishQuoted(command->get_description()), "\n");
    const std::string condition = absl::StrCat(" -n '__fish_seen_subcommand_from ", command->get_name(), "'");
    AppendFishOptions(*command, condition, &text);
    for (const CLI::App* sub : Commands(*command)) {
      absl::StrAppend(&text, "complete -c tandem", condition, " -a ", sub->get_name(), " -d ",
                      FishQuoted(sub->get_description()), "\n");
      AppendFishOptions(*sub, condition, &text);
    }
    for (const std::string& kind : Positionals(*command)) {
      if (kind == "FILE" || kind == "INPUT") {
        absl::StrAppend(&text, "complete -c tandem", condition, " -F\n");
      }
      if (kind == "JOB") {
        absl::StrAppend(&text, "complete -c tandem", condition,
                        " -a '(tandem --timeout 2 __jobs 2>/dev/null)'\n");
      }
      if (kind == "SET") {
        absl::StrAppend(&text, "complete -c tandem", condition,
                        " -a '(tandem --timeout 2 __datasets 2>/dev/null)'\n");
      }
      if (kind == "SWEEP") {
        absl::StrAppend(&text, "complete -c tandem", condition,
                        " -a '(tandem --timeout 2 __sweeps 2>/dev/null)'\n");
      }
      if (kind == "TEMPLATE") {
        absl::StrAppend(&text, "complete -c tandem", condition, " -a '", absl::StrJoin(TemplateNames(), " "),
                        "'\n");
      }
      if (kind == "SHELL") absl::StrAppend(&text, "complete -c tandem", condition, " -a 'bash zsh fish'\n");
    }
  }
  return text;
}

}  // namespace tandem::cli

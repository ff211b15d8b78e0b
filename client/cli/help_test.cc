// Tests of help, completion, schemas and templates.

#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "client/cli/app.h"
#include "client/cli/app_fixture.h"
#include "client/cli/fake_terminal.h"
#include "client/cli/templates.h"
#include "client/lib/job_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/schema/schema_texts.h"

namespace tandem::cli {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

using HelpTest = AppFixture;

TEST_F(HelpTest, EveryTemplateIsAJob) {
  for (const JobTemplate& job : JobTemplates()) {
    const absl::StatusOr<client::JobFile> file =
        client::ParseJobFile(std::string(job.content), std::string(job.name));
    EXPECT_TRUE(file.ok()) << file.status();
    FakeTerminal terminal;
    EXPECT_EQ(RunCommand({"init", std::string(job.name)}, terminal), 0);
    EXPECT_EQ(terminal.out(), job.content);
  }
}

TEST_F(HelpTest, InitNamesTheSchemaForEditors) {
  const std::string schema = folder_ + "/.local/share/tandem/job.schema.json";
  for (const char* before : {"no schema", "an old schema"}) {
    SCOPED_TRACE(before);
    FakeTerminal init;
    init.environment["HOME"] = folder_;
    EXPECT_EQ(RunCommand({"init", "mlp"}, init), 0);
    EXPECT_THAT(init.out(), StartsWith("# yaml-language-server: $schema=" + schema + "\n# "));
    EXPECT_TRUE(client::ParseJobFile(init.out(), "mlp.yaml").ok());
    EXPECT_EQ(Read(schema), JobFileSchema());
    std::ofstream(schema) << "{}";
  }
}

TEST_F(HelpTest, SchemasArePrinted) {
  EXPECT_EQ(Run({"schema"}), 0);
  EXPECT_EQ(terminal_.out(), JobFileSchema());
  FakeTerminal sweep;
  EXPECT_EQ(RunCommand({"schema", "sweep"}, sweep), 0);
  EXPECT_EQ(sweep.out(), SweepFileSchema());
  FakeTerminal wrong;
  EXPECT_EQ(RunCommand({"schema", "dataset"}, wrong), 2);
}

TEST_F(HelpTest, CompletionIsValidShellAndKnowsCommands) {
  EXPECT_EQ(Run({"completion", "bash"}), 0);
  const std::string script = Write("completion.bash", terminal_.out());
  const std::string result = folder_ + "/words";
  const auto complete = [&](const std::string& words, int index) {
    const std::string command =
        absl::StrCat("bash -c 'source ", script, "; COMP_WORDS=(", words, "); COMP_CWORD=", index,
                     "; _tandem; echo \"${COMPREPLY[*]}\"' > ", result);
    EXPECT_EQ(std::system(command.c_str()), 0);
    return Read(result);
  };
  EXPECT_EQ(complete("tandem sub", 1), "submit\n");
  EXPECT_EQ(complete("tandem submit --fol", 2), "--follow\n");
  EXPECT_EQ(complete("tandem -o js", 2), "json\n");
  EXPECT_EQ(complete("tandem init lenet-", 2), "lenet-mnist\n");
  EXPECT_EQ(complete("tandem list --state que", 3), "queued\n");
  EXPECT_EQ(complete("tandem sweep job.yaml --on sl", 4), "slurm\n");
  EXPECT_EQ(complete("tandem datasets remo", 2), "remove\n");
  EXPECT_EQ(complete("tandem datasets add x --image-f", 4), "--image-folder\n");
  for (const char* shell : {"zsh", "fish"}) {
    FakeTerminal terminal;
    EXPECT_EQ(RunCommand({"completion", shell}, terminal), 0);
    EXPECT_THAT(terminal.out(), HasSubstr("submit"));
    // zsh looks for this in the first line of each file of $fpath.
    if (absl::string_view(shell) == "zsh") {
      EXPECT_THAT(terminal.out(), StartsWith("#compdef tandem\n"));
    }
  }
  FakeTerminal ids = terminal_;
  EXPECT_EQ(RunCommand({"__jobs"}, ids), 0);
  EXPECT_THAT(ids.out(), HasSubstr("lenet-1\nmlp-1a\nmlp-1b\n"));
}

TEST_F(HelpTest, HelpIsACommandToo) {
  for (const std::vector<std::string>& names : std::vector<std::vector<std::string>>{{}, {"submit"}}) {
    std::vector<std::string> option = names;
    option.push_back("--help");
    std::vector<std::string> command = {"help"};
    command.insert(command.end(), names.begin(), names.end());
    FakeTerminal wanted;
    EXPECT_EQ(RunCommand(option, wanted), 0);
    FakeTerminal terminal;
    EXPECT_EQ(RunCommand(command, terminal), 0);
    EXPECT_EQ(terminal.out(), wanted.out());
    EXPECT_NE(terminal.out(), "");
    // Also after global options.
    command.insert(command.begin(), {"--address", "host:1"});
    FakeTerminal behind;
    EXPECT_EQ(RunCommand(command, behind), 0);
    EXPECT_EQ(behind.out(), wanted.out());
  }
  EXPECT_EQ(Run({"help", "sumbit"}), 2);
  EXPECT_THAT(terminal_.err(), HasSubstr("unknown command `sumbit`; did you mean `submit`?"));
}

TEST_F(HelpTest, HelpOfEachCommandHasAnExample) {
  FakeTerminal all;
  EXPECT_EQ(RunCommand({"--help"}, all), 0);
  int commands = 0;
  // A command's line begins with two spaces and its name.
  for (absl::string_view line : absl::StrSplit(all.out().substr(0, all.out().find("\nOptions:")), '\n')) {
    if (!absl::ConsumePrefix(&line, "  ") || line.empty() || !absl::ascii_islower(line[0])) continue;
    const std::string name(line.substr(0, line.find_first_of(", ")));
    ++commands;
    FakeTerminal one;
    EXPECT_EQ(RunCommand({name, "--help"}, one), 0) << name;
    EXPECT_THAT(one.out(), AnyOf(HasSubstr("\nExample:\n  "), HasSubstr("\nExamples:\n  "))) << name;
  }
  EXPECT_GT(commands, 25);
  FakeTerminal nested;
  EXPECT_EQ(RunCommand({"tokens", "create", "--help"}, nested), 0);
  EXPECT_THAT(nested.out(), HasSubstr("\nExample:\n  tandem tokens create "));
}

TEST_F(HelpTest, HelpNamesTheVariablesThatCount) {
  EXPECT_EQ(Run({"--help"}), 0);
  for (const char* name :
       {"TANDEM_ADDRESS", "TANDEM_RECONNECT_TIMEOUT", "5 the output could not be written"}) {
    EXPECT_THAT(terminal_.out(), HasSubstr(name));
  }
  terminal_.environment["TANDEM_RECONNECT_TIMEOUT"] = "never";
  EXPECT_EQ(Run({"list"}), 2);
  EXPECT_THAT(terminal_.err(), HasSubstr("TANDEM_RECONNECT_TIMEOUT: want seconds"));
  EXPECT_EQ(Run({"list", "--reconnect-timeout", "no"}), 2);
  EXPECT_THAT(terminal_.err(), HasSubstr("--reconnect-timeout: want seconds"));
  terminal_.environment["TANDEM_OUTPUT"] = "xml";
  EXPECT_EQ(Run({"list", "--reconnect-timeout", "1s"}), 2);
  EXPECT_THAT(terminal_.err(), HasSubstr("TANDEM_OUTPUT: want table, wide, json or yaml, got `xml`"));
}

}  // namespace
}  // namespace tandem::cli

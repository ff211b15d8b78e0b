#include <algorithm>
#include <cstring>
#include <iterator>
#include <nlohmann/json.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "client/cli/cluster_checks.h"
#include "client/cli/commands/commands.h"
#include "client/cli/daemon_checks.h"
#include "client/cli/machine_checks.h"
#include "client/cli/printable.h"

namespace tandem::cli {
namespace {

// A call that hangs is a finding, so the wait is short.
constexpr absl::Duration kLongestCall = absl::Seconds(10);
constexpr int kMostQueued = 10'000;

void Append(Findings more, Findings* findings) {
  findings->insert(findings->end(), std::make_move_iterator(more.begin()),
                   std::make_move_iterator(more.end()));
}

// Adds an error as a finding, with its advice as the fix.
void AddError(Session& session, const char* subject, const absl::Status& status, Findings* findings) {
  const std::string text(absl::StripAsciiWhitespace(session.Explain(status)));
  const size_t end = text.find('\n');
  AddProblem(findings, subject, text.substr(0, end),
             end == std::string::npos ? "the daemon's log says more" : text.substr(end + 1));
}

Findings Examine(Session& session) {
  session.options.timeout = std::min(session.options.timeout, kLongestCall);
  Findings findings = CheckConnection(session);
  const absl::StatusOr<client::Client*> client = session.Connect();
  if (!client.ok()) {
    AddError(session, "connection", client.status(), &findings);
    return findings;
  }
  const absl::StatusOr<client::DaemonAnswer> answer = (*client)->AskDaemon();
  if (!answer.ok()) {
    AddError(session, "daemon", answer.status(), &findings);
    return findings;
  }
  Append(CheckAnswer(session, *answer), &findings);
  v1::ListDevicesResponse cluster;
  const absl::StatusOr<std::vector<v1::Device>> devices = (*client)->ListDevices(&cluster);
  if (devices.ok()) {
    Append(CheckDevices(*devices), &findings);
    Append(CheckPartitions(cluster), &findings);
  } else {
    AddError(session, "devices", devices.status(), &findings);
  }
  if (const auto queue = (*client)->ListQueue(kMostQueued); queue.ok()) {
    Append(CheckQueue(*queue), &findings);
  } else {
    AddError(session, "queue", queue.status(), &findings);
  }
  if (const auto datasets = (*client)->ListDatasets(session.options.timeout); datasets.ok()) {
    Append(CheckDatasets(*datasets), &findings);
  } else {
    AddError(session, "data sets", datasets.status(), &findings);
  }
  if (IsDaemonHere(answer->daemon)) {
    Append(CheckMachine(answer->daemon, devices.ok() ? *devices : std::vector<v1::Device>(), ""), &findings);
  } else {
    AddNote(&findings, "machine",
            "not checked: the daemon runs on another machine, or its state folder belongs to another user",
            "run `tandem doctor` there, as its user");
  }
  return findings;
}

const char* NameOf(Finding::Level level) {
  switch (level) {
    case Finding::Level::kFine:
      return "ok";
    case Finding::Level::kNote:
      return "note";
    case Finding::Level::kProblem:
      break;
  }
  return "problem";
}

std::string Json(const Findings& findings, int64_t problems) {
  nlohmann::ordered_json json;
  json["problems"] = problems;
  json["findings"] = nlohmann::ordered_json::array();
  for (const Finding& finding : findings) {
    nlohmann::ordered_json one;
    one["level"] = NameOf(finding.level);
    one["subject"] = finding.subject;
    one["message"] = finding.message;
    if (!finding.mend.empty()) one["mend"] = finding.mend;
    json["findings"].push_back(std::move(one));
  }
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

std::string Text(const Findings& findings, int64_t problems, const Style& style) {
  std::string text;
  for (const Finding& finding : findings) {
    const std::string name =
        absl::StrCat(NameOf(finding.level), std::string(9 - strlen(NameOf(finding.level)), ' '));
    const std::string level = finding.level == Finding::Level::kFine   ? style.Green(name)
                              : finding.level == Finding::Level::kNote ? style.Yellow(name)
                                                                       : style.Red(name);
    absl::StrAppend(&text, level, finding.subject, ": ", Printable(finding.message), "\n");
    if (finding.mend.empty()) continue;
    for (const absl::string_view line : absl::StrSplit(finding.mend, '\n')) {
      absl::StrAppend(&text, "         ", style.Dim(Printable(std::string(line))), "\n");
    }
  }
  absl::StrAppend(&text, problems == 0   ? "no faults found\n"
                         : problems == 1 ? "1 fault found\n"
                                         : absl::StrCat(problems, " faults found\n"));
  return text;
}

int RunDoctor(Session& session, bool as_json) {
  const Findings findings = Examine(session);
  const int64_t problems = std::count_if(findings.begin(), findings.end(), [](const Finding& finding) {
    return finding.level == Finding::Level::kProblem;
  });
  session.terminal().Out(as_json || session.structured() ? Json(findings, problems)
                                                         : Text(findings, problems, session.style()));
  return problems == 0 ? 0 : 1;
}

}  // namespace

void AddDoctor(Command app, Session& session, int& exit_code) {
  auto as_json = std::make_shared<bool>(false);
  const Command command =
      app.AddCommand("doctor", "Check usual faults, from the connection to the disk, and print their fixes");
  command.AddFlag("--json", *as_json, "Print JSON, as --output json does");
  command.Footer("Exit codes: 0 no faults, 1 faults.");
  command.Action([as_json, &session, &exit_code] { exit_code = RunDoctor(session, *as_json); });
}

}  // namespace tandem::cli

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "client/cli/commands/commands.h"
#include "client/cli/format.h"
#include "client/cli/job_reference.h"
#include "client/cli/table.h"
#include "client/lib/enum_names.h"

namespace tandem::cli {
namespace {

// The jobs on a device, else whether it takes any.
std::string Use(const v1::Device& device, const Style& style) {
  std::string use = absl::StrJoin(device.jobs(), ",",
                                  [](std::string* out, const std::string& job) { out->append(JobId(job)); });
  // Daemons that know no sharing.
  if (use.empty() && !device.job().empty()) use = JobId(device.job());
  const bool in_service =
      device.state() == v1::DEVICE_STATE_ACTIVE || device.state() == v1::DEVICE_STATE_UNSPECIFIED;
  if (in_service) return use.empty() ? style.Green("free") : use;
  const std::string state = style.Yellow(client::ShortEnumName(device.state()));
  return use.empty() ? state : absl::StrCat(use, " (", state, ")");
}

// What changes of a GPU, and what it is known by; a dash for what its driver does not say.
std::vector<std::string> GpuColumns(const v1::GpuStatus& gpu) {
  return {gpu.has_utilization_percent() ? absl::StrCat(gpu.utilization_percent(), "%") : "-",
          gpu.has_used_memory_bytes() ? FormatBytes(gpu.used_memory_bytes()) : "-",
          gpu.has_temperature_celsius() ? absl::StrCat(gpu.temperature_celsius(), " C") : "-",
          gpu.has_power_watts() ? absl::StrCat(std::lround(gpu.power_watts()), " W") : "-",
          gpu.has_ecc_uncorrected_errors() ? absl::StrCat(gpu.ecc_uncorrected_errors()) : "-",
          gpu.uuid().empty() ? "-" : gpu.uuid()};
}

int Run(Session& session) {
  const absl::StatusOr<client::Client*> client = session.Connect();
  if (!client.ok()) return session.Fail(client.status());
  absl::StatusOr<std::vector<v1::Device>> devices = (*client)->ListDevices();
  if (!devices.ok()) return session.Fail(devices.status());
  for (v1::Device& device : *devices) session.MakeShowable(&device);
  if (session.structured()) {
    session.terminal().Out(Structured(session.options.output, Pointers(*devices)));
    return kSucceeded;
  }
  std::vector<Table::Column> columns = {{"DEVICE"},       {"KIND"},          {"MODEL"},
                                        {"MEMORY", true}, {"THREADS", true}, {"JOB"}};
  const bool shows_gpus =
      session.wide() && std::any_of(devices->begin(), devices->end(),
                                    [](const v1::Device& device) { return device.has_gpu(); });
  if (session.wide()) columns.insert(columns.end(), {{"USED", true}, {"FAULTS", true}});
  if (shows_gpus) {
    columns.insert(
        columns.end(),
        {{"BUSY", true}, {"FILLED", true}, {"TEMP", true}, {"POWER", true}, {"ECC", true}, {"UUID"}});
  }
  if (session.wide()) columns.push_back({"MESSAGE"});
  Table table(columns);
  for (const v1::Device& device : *devices) {
    std::vector<std::string> row = {device.name().substr(device.name().find('/') + 1),
                                    client::ShortEnumName(device.kind()),
                                    device.model().empty() ? "-" : device.model(),
                                    FormatBytes(device.memory_bytes()),
                                    device.threads() > 0 ? absl::StrCat(device.threads()) : "-",
                                    Use(device, session.style())};
    if (session.wide()) {
      row.push_back(absl::StrCat(std::lround(100 * device.leased_share()), "%"));
      row.push_back(absl::StrCat(device.faults()));
    }
    if (shows_gpus) {
      for (std::string& cell : GpuColumns(device.gpu())) row.push_back(std::move(cell));
    }
    if (session.wide()) row.push_back(device.state_message().empty() ? "-" : device.state_message());
    table.AddRow(std::move(row));
  }
  session.terminal().Out(table.Render(session.style()));
  return kSucceeded;
}

// What is asked of each of some devices.
struct Change {
  std::vector<std::string> devices;
  std::string reason;
};
using Request =
    std::function<absl::StatusOr<v1::Device>(client::Client&, const std::string& name, const Change&)>;

int RunChange(Session& session, const Change& change, const Request& request) {
  const absl::StatusOr<client::Client*> client = session.Connect();
  if (!client.ok()) return session.Fail(client.status());
  int code = kSucceeded;
  std::vector<v1::Device> changed;
  for (const std::string& name : change.devices) {
    absl::StatusOr<v1::Device> device =
        request(**client, absl::StrCat("devices/", absl::StripPrefix(name, "devices/")), change);
    if (!device.ok()) {
      code = session.Fail(device.status());
      if (code == kNoDaemon) break;
      continue;
    }
    session.MakeShowable(&*device);
    if (!session.structured()) {
      session.terminal().Out(absl::StrCat(device->name().substr(device->name().find('/') + 1), " ",
                                          Use(*device, session.style()), "\n"));
    }
    changed.push_back(*std::move(device));
  }
  if (session.structured()) session.terminal().Out(Structured(session.options.output, Pointers(changed)));
  return code;
}

void AddChange(CLI::App& app, const char* name, const char* description, bool has_reason, Request request,
               Session& session, int& exit_code) {
  auto change = std::make_shared<Change>();
  CLI::App* command = app.add_subcommand(name, description);
  command->add_option("DEVICE", change->devices, "Devices, such as cpu:0")->required();
  if (has_reason) {
    command->add_option("--reason", change->reason, "Why, for whoever looks")->type_name("TEXT");
  }
  command->callback([change, request = std::move(request), &session, &exit_code] {
    exit_code = RunChange(session, *change, request);
  });
}

}  // namespace

void AddDevices(CLI::App& app, Session& session, int& exit_code) {
  CLI::App* command = app.add_subcommand(
      "devices", "List the daemon's devices and who holds them; take them out of service and back");
  command->require_subcommand(0, 1);
  command->callback([command, &session, &exit_code] {
    if (command->get_subcommands().empty()) exit_code = Run(session);
  });
  command->add_subcommand("list", "List them, as without a word")->callback([&session, &exit_code] {
    exit_code = Run(session);
  });
  AddChange(
      *command, "drain", "Let devices take no new jobs for now; those on them go on", /*has_reason=*/true,
      [](client::Client& client, const std::string& device, const Change& change) {
        return client.DrainDevice(device, change.reason);
      },
      session, exit_code);
  AddChange(
      *command, "resume", "Let drained or excluded devices take jobs again", /*has_reason=*/false,
      [](client::Client& client, const std::string& device, const Change&) {
        return client.ResumeDevice(device);
      },
      session, exit_code);
  AddChange(
      *command, "exclude", "Take devices out of service: no new jobs, and none is accepted that needs them",
      /*has_reason=*/true,
      [](client::Client& client, const std::string& device, const Change& change) {
        return client.ExcludeDevice(device, change.reason);
      },
      session, exit_code);
}

}  // namespace tandem::cli

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "client/cli/change_each.h"
#include "client/cli/commands/commands.h"
#include "client/cli/fact_list.h"
#include "client/cli/format.h"
#include "client/cli/job_reference.h"
#include "client/cli/table.h"
#include "proto/job_file/enum_names.h"

namespace tandem::cli {
namespace {

// Returns the jobs on a device. Without jobs, returns whether the device takes jobs.
std::string Use(const v1::Device& device, const Style& style) {
  std::string use = absl::StrJoin(device.jobs(), ",",
                                  [](std::string* out, const std::string& job) { out->append(JobId(job)); });
  // Daemons without sharing set only `job`.
  if (use.empty() && !device.job().empty()) use = JobId(device.job());
  const bool in_service =
      device.state() == v1::DEVICE_STATE_ACTIVE || device.state() == v1::DEVICE_STATE_UNSPECIFIED;
  if (in_service) return use.empty() ? style.Green("free") : use;
  const std::string state = style.Yellow(ShortEnumName(device.state()));
  return use.empty() ? state : absl::StrCat(use, " (", state, ")");
}

// Returns a GPU's changing values and its identity, with a dash for each value that its driver does not
// report.
std::vector<std::string> GpuColumns(const v1::GpuStatus& gpu) {
  return {gpu.has_utilization_percent() ? absl::StrCat(gpu.utilization_percent(), "%") : "-",
          gpu.has_used_memory_bytes() ? FormatBytes(gpu.used_memory_bytes()) : "-",
          gpu.has_temperature_celsius() ? absl::StrCat(gpu.temperature_celsius(), " C") : "-",
          gpu.has_power_watts() ? absl::StrCat(std::lround(gpu.power_watts()), " W") : "-",
          gpu.has_ecc_uncorrected_errors() ? absl::StrCat(gpu.ecc_uncorrected_errors()) : "-",
          gpu.uuid().empty() ? "-" : gpu.uuid()};
}

// Returns "XID 79, 3 min ago: The GPU has ...", or "" without an error.
std::string LastError(Session& session, const v1::GpuStatus& gpu) {
  if (!gpu.has_last_error()) return "";
  const v1::GpuError& error = gpu.last_error();
  return absl::StrCat("XID ", error.xid(), ", ",
                      FormatAge(session.terminal().Now() - FromProto(error.time())),
                      " ago: ", error.message());
}

// Returns "18 NVLinks, peer access; over a PCIe switch".
std::string Describe(const v1::GpuLink& link) {
  std::vector<std::string> parts;
  if (link.nvlinks() > 0)
    parts.push_back(absl::StrCat(link.nvlinks(), link.nvlinks() == 1 ? " NVLink" : " NVLinks"));
  parts.emplace_back(link.peer_access() ? "peer access" : "no peer access");
  const std::string text = absl::StrJoin(parts, ", ");
  switch (link.path()) {
    case v1::GpuLink::PATH_SAME_BOARD:
      return text + "; on the same board";
    case v1::GpuLink::PATH_PCIE_SWITCH:
      return text + "; over a PCIe switch";
    case v1::GpuLink::PATH_PCIE_SWITCHES:
      return text + "; over several PCIe switches";
    case v1::GpuLink::PATH_HOST_BRIDGE:
      return text + "; over a host bridge";
    case v1::GpuLink::PATH_NUMA_NODE:
      return text + "; on the same NUMA node";
    case v1::GpuLink::PATH_SYSTEM:
      return text + "; across NUMA nodes";
    default:
      return text;
  }
}

// Returns all facts about a device, line by line.
std::string Facts(Session& session, const v1::Device& device) {
  const Style& style = session.style();
  FactList facts(style, /*width=*/11);
  const v1::GpuStatus& gpu = device.gpu();
  facts.Add("device", style.Bold(ShortName(device.name())));
  facts.Add("kind", ShortEnumName(device.kind()));
  facts.Add("model", device.model());
  facts.Add("job", Use(device, style));
  facts.Add("message", device.state_message());
  if (device.faults() > 0) facts.Add("faults", absl::StrCat(device.faults()));
  facts.Add("memory", absl::StrCat(FormatBytes(device.memory_bytes()), " for jobs",
                                   gpu.has_used_memory_bytes()
                                       ? absl::StrCat(", ", FormatBytes(gpu.used_memory_bytes()), " in use")
                                       : ""));
  if (device.threads() > 0) facts.Add("threads", absl::StrCat(device.threads()));
  facts.Add("precisions", absl::StrJoin(device.precisions(), ", ", [](std::string* out, int precision) {
              out->append(ShortEnumName(static_cast<v1::Precision>(precision)));
            }));
  if (!device.has_gpu()) return facts.text();
  facts.Add("capability", gpu.compute_capability());
  facts.Add("uuid", gpu.uuid());
  facts.Add("pci bus", gpu.pci_bus_id());
  facts.Add("driver", gpu.driver_version());
  if (gpu.has_utilization_percent()) facts.Add("busy", absl::StrCat(gpu.utilization_percent(), "%"));
  if (gpu.has_temperature_celsius()) facts.Add("temperature", absl::StrCat(gpu.temperature_celsius(), " C"));
  if (gpu.has_power_watts()) {
    facts.Add("power", absl::StrCat(std::lround(gpu.power_watts()), " W",
                                    gpu.has_power_limit_watts()
                                        ? absl::StrCat(" of ", std::lround(gpu.power_limit_watts()), " W")
                                        : ""));
  }
  if (gpu.has_ecc_uncorrected_errors()) {
    facts.Add("ecc errors", absl::StrCat(gpu.ecc_corrected_errors(), " corrected, ",
                                         gpu.ecc_uncorrected_errors(), " not corrected"));
  }
  facts.Add("last error", LastError(session, gpu));
  for (const v1::GpuLink& link : gpu.links()) {
    facts.Add(absl::StrCat("to ", ShortName(link.device())), Describe(link));
  }
  return facts.text();
}

int Show(Session& session, const std::vector<std::string>& names) {
  const absl::StatusOr<client::Client*> client = session.Connect();
  if (!client.ok()) return session.Fail(client.status());
  absl::StatusOr<std::vector<v1::Device>> devices = (*client)->ListDevices();
  if (!devices.ok()) return session.Fail(devices.status());
  std::vector<v1::Device> shown;
  for (const std::string& name : names) {
    const auto found = std::find_if(devices->begin(), devices->end(), [&name](const v1::Device& device) {
      return ShortName(device.name()) == absl::StripPrefix(name, "devices/");
    });
    if (found == devices->end()) {
      return session.Fail(absl::NotFoundError(
          absl::StrCat("cannot find the device \"", name, "\"; the daemon has ",
                       absl::StrJoin(*devices, ", ", [](std::string* out, const v1::Device& device) {
                         out->append(ShortName(device.name()));
                       }))));
    }
    shown.push_back(*found);
    session.MakeShowable(&shown.back());
  }
  if (session.structured()) return session.PrintList(shown);
  for (size_t i = 0; i < shown.size(); ++i) {
    session.terminal().Out(absl::StrCat(i == 0 ? "" : "\n", Facts(session, shown[i])));
  }
  return kSucceeded;
}

// Returns the table of a cluster's partitions; empty without a cluster.
std::string Partitions(const v1::ListDevicesResponse& cluster, const Style& style) {
  if (!cluster.partitions_message().empty()) {
    return absl::StrCat(style.Yellow("cluster"), "  ", cluster.partitions_message(), "\n");
  }
  if (cluster.partitions().empty()) return "";
  Table table({{"PARTITION"},
               {"STATE"},
               {"FREE NODES", true},
               {"CORES", true},
               {"GPUS", true},
               {"TIME LIMIT", true}});
  for (const v1::ClusterPartition& partition : cluster.partitions()) {
    table.AddRow({absl::StrCat(partition.name(), partition.is_default() ? " (default)" : ""),
                  partition.is_up() ? style.Green("up") : style.Yellow("down"),
                  absl::StrCat(partition.free_nodes(), "/", partition.nodes()),
                  absl::StrCat(partition.cpus_per_node()), absl::StrCat(partition.gpus_per_node()),
                  partition.time_limit_seconds() > 0
                      ? FormatElapsed(absl::Seconds(partition.time_limit_seconds()))
                      : "-"});
  }
  return table.Render(style);
}

int RunDevices(Session& session) {
  const absl::StatusOr<client::Client*> client = session.Connect();
  if (!client.ok()) return session.Fail(client.status());
  v1::ListDevicesResponse cluster;
  absl::StatusOr<std::vector<v1::Device>> devices = (*client)->ListDevices(&cluster);
  if (!devices.ok()) return session.Fail(devices.status());
  session.MakeShowable(&cluster);
  for (v1::Device& device : *devices) session.MakeShowable(&device);
  if (session.structured()) {
    for (v1::Device& device : *devices) *cluster.add_devices() = std::move(device);
    return session.Print(cluster);
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
    std::vector<std::string> row = {ShortName(device.name()),
                                    ShortEnumName(device.kind()),
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
  if (const std::string partitions = Partitions(cluster, session.style()); !partitions.empty()) {
    session.terminal().Out(absl::StrCat("\n", partitions));
  }
  for (const v1::Device& device : *devices) {
    const std::string error = LastError(session, device.gpu());
    if (error.empty()) continue;
    session.terminal().Out(absl::StrCat(session.style().Yellow(ShortName(device.name())), "  ", error, "\n"));
  }
  return kSucceeded;
}

// A change of some devices.
struct Change {
  std::vector<std::string> devices;
  std::string reason;
};
using Request =
    std::function<absl::StatusOr<v1::Device>(client::Client&, const std::string& name, const Change&)>;

int RunChange(Session& session, const Change& change, const Request& request) {
  return ChangeEach<v1::Device>(
      session, change.devices,
      [&](client::Client& client, const std::string& name) {
        return request(client, absl::StrCat("devices/", absl::StripPrefix(name, "devices/")), change);
      },
      [&](const v1::Device& device) {
        return absl::StrCat(ShortName(device.name()), " ", Use(device, session.style()));
      });
}

void AddChange(Command app, const char* name, const char* description, bool has_reason, Request request,
               Session& session, int& exit_code) {
  auto change = std::make_shared<Change>();
  const Command command = app.AddCommand(name, description);
  command.AddOption("DEVICE", change->devices, "Devices, such as cpu:0").Required();
  if (has_reason) {
    command.AddOption("--reason", change->reason, "The reason, for other users").ValueName("TEXT");
  }
  command.Action([change, request = std::move(request), &session, &exit_code] {
    exit_code = RunChange(session, *change, request);
  });
}

}  // namespace

void AddDevices(Command app, Session& session, int& exit_code) {
  const Command command =
      app.AddCommand("devices", "List devices and their jobs; take devices out of service and back");
  command.Action([&session, &exit_code] { exit_code = RunDevices(session); });
  command.AddCommand("list", "List them (the default)").Action([&session, &exit_code] {
    exit_code = RunDevices(session);
  });
  auto names = std::make_shared<std::vector<std::string>>();
  const Command show = command.AddCommand(
      "show", "Show all facts of devices: state, memory, and the health and links of GPUs");
  show.AddOption("DEVICE", *names, "Devices, such as gpu:0").Required();
  show.Action([names, &session, &exit_code] { exit_code = Show(session, *names); });
  AddChange(
      command, "drain", "Stop devices from taking new jobs for now; their present jobs continue",
      /*has_reason=*/true,
      [](client::Client& client, const std::string& device, const Change& change) {
        return client.DrainDevice(device, change.reason);
      },
      session, exit_code);
  AddChange(
      command, "resume", "Let drained or excluded devices take jobs again", /*has_reason=*/false,
      [](client::Client& client, const std::string& device, const Change&) {
        return client.ResumeDevice(device);
      },
      session, exit_code);
  AddChange(
      command, "exclude",
      "Take devices out of service: they take no new jobs, and jobs that need them are refused",
      /*has_reason=*/true,
      [](client::Client& client, const std::string& device, const Change& change) {
        return client.ExcludeDevice(device, change.reason);
      },
      session, exit_code);
}

}  // namespace tandem::cli

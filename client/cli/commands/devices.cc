#include <CLI/CLI.hpp>

#include "absl/strings/str_cat.h"
#include "client/cli/commands/commands.h"
#include "client/cli/format.h"
#include "client/cli/job_reference.h"
#include "client/cli/table.h"
#include "client/lib/enum_names.h"

namespace tandem::cli {
namespace {

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
  Table table({{"DEVICE"}, {"KIND"}, {"MODEL"}, {"MEMORY", true}, {"THREADS", true}, {"JOB"}});
  for (const v1::Device& device : *devices) {
    table.AddRow({device.name().substr(device.name().find('/') + 1), client::ShortEnumName(device.kind()),
                  device.model().empty() ? "-" : device.model(), FormatBytes(device.memory_bytes()),
                  device.threads() > 0 ? absl::StrCat(device.threads()) : "-",
                  device.job().empty() ? session.style().Green("free") : JobId(device.job())});
  }
  session.terminal().Out(table.Render(session.style()));
  return kSucceeded;
}

}  // namespace

void AddDevices(CLI::App& app, Session& session, int& exit_code) {
  CLI::App* command = app.add_subcommand("devices", "List the daemon's devices and who holds them");
  command->callback([&session, &exit_code] { exit_code = Run(session); });
}

}  // namespace tandem::cli

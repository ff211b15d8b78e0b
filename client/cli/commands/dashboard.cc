#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>

#include <optional>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/cli/commands/commands.h"
#include "client/dashboard/dashboard.h"

extern char** environ;

namespace tandem::cli {
namespace {

constexpr char kDefaultListen[] = "127.0.0.1:7449";
// Between two looks for a Ctrl-C that came just before the wait.
constexpr int kLookMilliseconds = 1000;

struct DashboardOptions {
  // The address that the user named, if any.
  std::optional<std::string> listen;
  bool no_open = false;
};

struct Endpoint {
  std::string host;
  int port = 0;
};

// Returns whether the host is any address of the machine, such as "0.0.0.0" or "::".
bool IsUnspecified(const std::string& host) {
  in_addr address4;
  in6_addr address6;
  if (inet_aton(host.c_str(), &address4) == 1) return address4.s_addr == INADDR_ANY;
  return host.empty() ||
         (inet_pton(AF_INET6, host.c_str(), &address6) == 1 && IN6_IS_ADDR_UNSPECIFIED(&address6));
}

absl::StatusOr<Endpoint> ParseListen(const std::string& text) {
  const size_t colon = text.rfind(':');
  Endpoint endpoint;
  if (colon == std::string::npos || !absl::SimpleAtoi(text.substr(colon + 1), &endpoint.port) ||
      endpoint.port < 0 || endpoint.port > 65535) {
    return absl::InvalidArgumentError(absl::StrCat(
        "cannot serve on \"", text, "\": it is not ADDRESS:PORT; give an address such as ", kDefaultListen));
  }
  endpoint.host = text.substr(0, colon);
  if (absl::StartsWith(endpoint.host, "[") && absl::EndsWith(endpoint.host, "]"))
    endpoint.host = endpoint.host.substr(1, endpoint.host.size() - 2);
  if (endpoint.host == "localhost") endpoint.host = "127.0.0.1";
  if (IsUnspecified(endpoint.host)) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot serve on \"", text,
                     "\": the page answers only requests to the address that it listens on, and browsers "
                     "open another; give an address of this machine, or listen on 127.0.0.1 and use an SSH "
                     "tunnel"));
  }
  return endpoint;
}

// Opens the address in the desktop's browser. Returns false if there is no browser. The browser gets its own
// process session, so that Ctrl-C here does not end it.
bool OpenBrowser(const std::string& url) {
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_t actions;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
  posix_spawn_file_actions_init(&actions);
  for (const int fd : {0, 1, 2})
    posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", fd == 0 ? 0 : 1, 0);
  std::string program = "xdg-open", address = url;
  char* arguments[] = {program.data(), address.data(), nullptr};
  pid_t pid = -1;
  const bool started = posix_spawnp(&pid, program.c_str(), &actions, &attributes, arguments, environ) == 0;
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (!started) return false;
  // This program hands the address to a browser, and exits.
  int state = 0;
  for (int i = 0; i < 50; ++i) {
    if (waitpid(pid, &state, WNOHANG) == pid) return WIFEXITED(state) && WEXITSTATUS(state) == 0;
    absl::SleepFor(absl::Milliseconds(100));
  }
  return true;
}

int RunDashboard(Session& session, const DashboardOptions& options) {
  const absl::StatusOr<Endpoint> endpoint = ParseListen(options.listen.value_or(kDefaultListen));
  if (!endpoint.ok()) return session.Fail(endpoint.status());
  // The page must survive any break of the connection.
  session.options.reconnect_timeout = absl::InfiniteDuration();
  const absl::StatusOr<client::Client*> client = session.Connect();
  if (!client.ok()) return session.Fail(client.status());
  if (const absl::StatusOr<v1::Daemon> daemon = (*client)->GetDaemon(); !daemon.ok())
    return session.Fail(daemon.status());

  session.terminal().CatchInterrupt();
  auto dashboard = dashboard::Dashboard::Start(*client, endpoint->host, endpoint->port);
  // A machine may have two dashboards, so the default port may be in use. A user who names a port wants this
  // port.
  if (!dashboard.ok() && !options.listen.has_value())
    dashboard = dashboard::Dashboard::Start(*client, endpoint->host, 0);
  if (!dashboard.ok()) return session.Fail(dashboard.status());
  if (!absl::StartsWith(endpoint->host, "127.") && endpoint->host != "::1") {
    session.terminal().Err(
        "warning: other machines can reach the dashboard, and its traffic is not encrypted, so a reader of "
        "the traffic can act with your token; listen on 127.0.0.1 and use an SSH tunnel\n");
  }
  const std::string url = (*dashboard)->Url();
  const bool is_opened = !options.no_open && OpenBrowser(url);
  session.terminal().Out(
      absl::StrCat("The dashboard is at ", url, "\n",
                   is_opened ? "" : "Open this address in a browser; its key works once.\n",
                   "Ctrl-C ends the dashboard. Jobs continue.\n"));
  while (!session.terminal().Interrupted() && session.terminal().OutputStatus().ok()) {
    // Ctrl-C ends the wait.
    poll(nullptr, 0, kLookMilliseconds);
  }
  return session.terminal().OutputStatus().ok() ? kSucceeded : kOutputLost;
}

}  // namespace

void AddDashboard(Command app, Session& session, int& exit_code) {
  auto options = std::make_shared<DashboardOptions>();
  const Command command =
      app.AddCommand("dashboard", "Show jobs, curves, the queue and devices in a web page, until Ctrl-C");
  command
      .AddOption(
          "--listen",
          [options](const std::string& text) {
            options->listen = text;
            return absl::OkStatus();
          },
          absl::StrCat("Address and port of the page; port 0 is any free port (default: ", kDefaultListen,
                       ", or any free port if this port is in use)"))
      .ValueName("ADDRESS:PORT");
  command.AddFlag("--no-open", options->no_open, "Do not open a browser");
  command.Action([options, &session, &exit_code] { exit_code = RunDashboard(session, *options); });
}

}  // namespace tandem::cli

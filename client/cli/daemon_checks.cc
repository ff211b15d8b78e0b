#include "client/cli/daemon_checks.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "client/cli/format.h"
#include "client/cli/job_reference.h"
#include "client/cli/version.h"
#include "client/lib/tls_certificate.h"

namespace tandem::cli {
namespace {

// With a larger difference, times in events mislead, and checks of certificates and tokens may be wrong.
constexpr absl::Duration kMostClockLead = absl::Seconds(5);
constexpr absl::Duration kExpiresSoon = absl::Hours(24 * 14);
constexpr absl::Duration kLongestTlsWait = absl::Seconds(5);
// The largest number of names in a finding.
constexpr size_t kMostNamed = 5;

bool UsesTls(const GlobalOptions& options) {
  return options.tls || !options.tls_ca.empty() || !options.tls_certificate.empty();
}

// Returns "1.2" for "1.2.3".
std::string MinorVersion(const std::string& version) {
  const std::vector<std::string> parts = absl::StrSplit(version, '.');
  return parts.size() < 2 ? version : absl::StrCat(parts[0], ".", parts[1]);
}

// Returns the first names and the number of further names.
std::string Several(const std::vector<std::string>& names) {
  std::vector<std::string> first(names.begin(), names.begin() + std::min(names.size(), kMostNamed));
  const size_t more = names.size() - first.size();
  return absl::StrCat(absl::StrJoin(first, ", "), more == 0 ? "" : absl::StrCat(" and ", more, " more"));
}

void CheckCertificate(Session& session, Findings* findings) {
  if (!UsesTls(session.options)) return;
  const absl::StatusOr<client::TlsCertificate> certificate =
      client::FetchTlsCertificate(session.Address(), std::min(session.options.timeout, kLongestTlsWait));
  if (!certificate.ok()) {
    AddNote(findings, "certificate", std::string(certificate.status().message()));
    return;
  }
  const absl::Time now = session.terminal().Now();
  const std::string end = FormatTimestamp(certificate->end, session.terminal().TimeZone());
  if (certificate->end <= now) {
    AddProblem(findings, "certificate", absl::StrCat("the daemon's has expired on ", end),
               "renew it; the daemon reads the new files by itself and uses them for new connections");
  } else if (certificate->begin > now) {
    AddProblem(findings, "certificate", "the daemon's is not valid yet", "set this machine's clock");
  } else if (certificate->end - now < kExpiresSoon) {
    AddProblem(findings, "certificate", absl::StrCat("the daemon's expires on ", end),
               "renew it; the daemon reads the new files by itself and uses them for new connections");
  } else {
    AddFine(findings, "certificate", absl::StrCat("the daemon's is valid until ", end));
  }
}

}  // namespace

Findings CheckConnection(Session& session) {
  Findings findings;
  const std::string token = session.TokenFile();
  struct stat info = {};
  if (stat(token.c_str(), &info) != 0) {
    AddNote(&findings, "token", absl::StrCat("this user cannot read ", token, ": ", strerror(errno)),
            "with --token-file, name a copy of the daemon's token or a token of `tandem tokens create`");
  } else if ((info.st_mode & 077) != 0) {
    AddProblem(&findings, "token",
               absl::StrFormat("others may use %s (mode %04o)", token, info.st_mode & 07777),
               absl::StrCat("chmod 600 ", token,
                            "; if another user may have read it, revoke it and create another"));
  } else {
    AddFine(&findings, "token", absl::StrCat("only its owner may read ", token));
  }
  const std::string& key = session.options.tls_key;
  if (!key.empty() && stat(key.c_str(), &info) == 0 && (info.st_mode & 077) != 0) {
    AddProblem(&findings, "TLS key",
               absl::StrFormat("others may use %s (mode %04o)", key, info.st_mode & 07777),
               absl::StrCat("chmod 600 ", key));
  }
  if (session.options.plaintext && !client::IsLocalAddress(session.Address())) {
    AddNote(&findings, "TLS", "the token travels unencrypted, as --plaintext allows",
            "start tandemd with --tls-cert and --tls-key");
  }
  return findings;
}

Findings CheckAnswer(Session& session, const client::DaemonAnswer& answer) {
  Findings findings;
  AddFine(&findings, "daemon",
          absl::StrFormat("answers at %s within %.0f ms", session.Address(),
                          absl::ToDoubleMilliseconds(answer.round_trip)));
  if (MinorVersion(answer.daemon.version()) == MinorVersion(kVersion)) {
    AddFine(&findings, "versions", absl::StrCat("client ", kVersion, ", daemon ", answer.daemon.version()));
  } else {
    AddProblem(&findings, "versions", absl::StrCat("client ", kVersion, ", daemon ", answer.daemon.version()),
               "install the same version of both; a daemon that is replaced leaves its jobs running");
  }
  if (!answer.clock_lead.has_value()) {
    AddNote(&findings, "clock", "the answer does not have the daemon's time");
  } else if (absl::AbsDuration(*answer.clock_lead) > kMostClockLead + answer.round_trip / 2) {
    AddProblem(
        &findings, "clock",
        absl::StrCat("the daemon's is ", FormatElapsed(absl::AbsDuration(*answer.clock_lead)),
                     *answer.clock_lead > absl::ZeroDuration() ? " ahead of" : " behind", " this machine's"),
        "set both clocks by NTP: timedatectl set-ntp true");
  } else {
    AddFine(&findings, "clock", "the daemon's agrees with this machine's");
  }
  CheckCertificate(session, &findings);
  return findings;
}

Findings CheckDevices(const std::vector<v1::Device>& devices) {
  Findings findings;
  if (devices.empty()) {
    AddProblem(&findings, "devices", "the daemon has no devices",
               "the first lines of its log say why; see --cpu-devices");
    return findings;
  }
  size_t active = 0;
  for (const v1::Device& device : devices) {
    const std::string name = ShortName(device.name());
    const std::string why = device.state_message().empty() ? "" : absl::StrCat(": ", device.state_message());
    if (device.state() == v1::DEVICE_STATE_EXCLUDED) {
      AddProblem(&findings, "devices", absl::StrCat(name, " is out of service", why),
                 absl::StrCat("repair it, then: tandem devices resume ", name));
    } else if (device.state() == v1::DEVICE_STATE_DRAINED) {
      AddNote(&findings, "devices", absl::StrCat(name, " is drained", why),
              absl::StrCat("to use it again: tandem devices resume ", name));
    } else {
      ++active;
      if (device.faults() > 0) {
        AddNote(
            &findings, "devices",
            absl::StrCat(name,
                         ": a worker crashed on it; after a second crash the daemon takes it out of service"),
            "`tandem list` shows which job failed, and `tandem describe` why");
      }
    }
    const v1::GpuStatus& gpu = device.gpu();
    if (gpu.ecc_uncorrected_errors() > 0) {
      AddProblem(&findings, "devices",
                 absl::StrCat(name, " had ", gpu.ecc_uncorrected_errors(),
                              " errors of its memory that could not be corrected"),
                 "drain it and reset or replace it: nvidia-smi -q -d ECC says more");
    }
    if (gpu.has_last_error()) {
      AddNote(&findings, "devices",
              absl::StrCat(name, ": its driver reported XID ", gpu.last_error().xid(), ": ",
                           gpu.last_error().message()),
              "dmesg says more");
    }
  }
  if (active == 0) {
    AddProblem(&findings, "devices", "no device takes jobs", "tandem devices resume DEVICE");
  } else {
    AddFine(&findings, "devices", absl::StrCat(active, " of ", devices.size(), " take jobs"));
  }
  return findings;
}

Findings CheckQueue(const v1::ListQueueResponse& queue) {
  Findings findings;
  // Jobs that do not continue by themselves, by reason.
  std::map<v1::Waiting::Reason, std::vector<std::string>> stuck;
  std::map<v1::Waiting::Reason, std::string> messages;
  for (const v1::QueuedJob& job : queue.jobs()) {
    stuck[job.waiting().reason()].push_back(JobId(job.job()));
    messages.emplace(job.waiting().reason(), job.waiting().message());
  }
  const auto say = [&](v1::Waiting::Reason reason, const std::string& mend) {
    const auto found = stuck.find(reason);
    if (found == stuck.end()) return;
    AddProblem(&findings, "queue", absl::StrCat(Several(found->second), ": ", messages[reason]), mend);
  };
  say(v1::Waiting::REASON_DEVICES_MISSING, "start the daemon with such devices, or cancel them");
  say(v1::Waiting::REASON_DEVICES_OUT_OF_SERVICE, "tandem devices resume DEVICE, or cancel them");
  if (const auto found = stuck.find(v1::Waiting::REASON_LAST_ATTEMPT_ENDING); found != stuck.end()) {
    AddNote(&findings, "queue", absl::StrCat(Several(found->second), ": ", messages[found->first]),
            "the daemon kills a worker that does not end in time; `tandem logs` shows its work");
  }
  if (findings.empty()) {
    AddFine(&findings, "queue",
            queue.total_size() == 0   ? "no jobs wait"
            : queue.total_size() == 1 ? "1 job waits for its turn"
                                      : absl::StrCat(queue.total_size(), " jobs wait for their turn"));
  }
  return findings;
}

Findings CheckDatasets(const std::vector<v1::Dataset>& datasets) {
  Findings findings;
  for (const v1::Dataset& dataset : datasets) {
    if (!dataset.problem().empty()) {
      AddNote(&findings, "data sets",
              absl::StrCat(absl::StripPrefix(dataset.name(), "datasets/"), ": ", dataset.problem()));
    }
  }
  if (findings.empty()) AddFine(&findings, "data sets", absl::StrCat(datasets.size(), " can be used"));
  return findings;
}

}  // namespace tandem::cli

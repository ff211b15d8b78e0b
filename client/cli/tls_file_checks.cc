#include "client/cli/tls_file_checks.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <system_error>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "client/cli/format.h"
#include "client/lib/tls_certificate.h"

namespace tandem::cli {
namespace {

constexpr absl::Duration kFileExpiresSoon = absl::Hours(24 * 14);

// Returns "" if the file cannot be read.
std::string ReadText(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// Returns the options with a value, as "--name value" or "--name=value". The last occurrence counts.
std::map<std::string, std::string> ParseCommandLine(const std::string& text) {
  const std::vector<std::string> words = absl::StrSplit(text, '\0');
  std::map<std::string, std::string> options;
  for (size_t i = 0; i < words.size(); ++i) {
    absl::string_view word = words[i];
    if (!absl::ConsumePrefix(&word, "--")) continue;
    const std::pair<std::string, std::string> parts = absl::StrSplit(word, absl::MaxSplits('=', 1));
    if (absl::StrContains(word, "=")) {
      options[parts.first] = parts.second;
    } else if (i + 1 < words.size()) {
      options[parts.first] = words[i + 1];
    }
  }
  return options;
}

// Returns the scalar options of the options file, which is a mapping in YAML: "tls-cert: server.pem".
std::map<std::string, std::string> ParseConfig(const std::string& text) {
  std::map<std::string, std::string> options;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    const size_t colon = line.find(':');
    if (colon == absl::string_view::npos) continue;
    std::string name(absl::StripAsciiWhitespace(line.substr(0, colon)));
    std::replace(name.begin(), name.end(), '_', '-');
    std::string value(absl::StripAsciiWhitespace(line.substr(colon + 1)));
    if (const size_t comment = value.find(" #"); comment != std::string::npos) {
      value = std::string(absl::StripAsciiWhitespace(value.substr(0, comment)));
    }
    if (value.size() >= 2 && (value[0] == '"' || value[0] == '\'') && value.back() == value[0]) {
      value = value.substr(1, value.size() - 2);
    }
    options[name] = value;
  }
  return options;
}

}  // namespace

Findings CheckTlsFiles(int64_t pid, const std::string& root, absl::Time now, absl::TimeZone zone) {
  Findings findings;
  const std::string process = absl::StrCat(root, "/proc/", pid);
  std::map<std::string, std::string> options = ParseCommandLine(ReadText(process + "/cmdline"));
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::read_symlink(process + "/cwd", error);
  // The daemon resolves relative paths from its own folder.
  const auto path_of = [&](const char* name) {
    const std::string& path = options[name];
    return path.empty() ? path : (folder / path).string();
  };
  if (const std::string config = path_of("config"); !config.empty())
    options.merge(ParseConfig(ReadText(config)));
  const client::TlsFilePaths paths = {path_of("tls-cert"), path_of("tls-key"), path_of("tls-client-ca")};
  if (paths.certificate.empty()) return findings;
  const absl::StatusOr<client::TlsCertificate> certificate = client::ReadTlsFiles(paths);
  if (!certificate.ok()) {
    AddProblem(&findings, "TLS files",
               absl::StrCat(certificate.status().message(),
                            "; the daemon keeps its old files, and would not start again"),
               "put the right files there; the daemon reads them by itself within seconds, and logs it");
    return findings;
  }
  struct stat info = {};
  if (stat(paths.key.c_str(), &info) == 0 && (info.st_mode & 007) != 0) {
    AddProblem(&findings, "TLS files",
               absl::StrFormat("other users may use the key %s (mode %04o), so the daemon refuses it",
                               paths.key, info.st_mode & 07777),
               absl::StrCat("chmod 600 ", paths.key));
    return findings;
  }
  const std::string end = FormatTimestamp(certificate->end, zone);
  if (certificate->end - now < kFileExpiresSoon) {
    AddProblem(&findings, "TLS files",
               absl::StrCat("the certificate ", paths.certificate,
                            certificate->end <= now ? " has expired on " : " expires on ", end),
               "put a new certificate there; the daemon reads it by itself within seconds");
  } else {
    AddFine(&findings, "TLS files", absl::StrCat("can be used; the certificate is valid until ", end));
  }
  return findings;
}

}  // namespace tandem::cli

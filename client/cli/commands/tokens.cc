#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "client/cli/change_each.h"
#include "client/cli/commands/commands.h"
#include "client/cli/format.h"
#include "client/cli/print_table.h"

namespace tandem::cli {
namespace {

struct CreateOptions {
  std::string user;
  v1::TokenRole role = v1::TOKEN_ROLE_UNSPECIFIED;
  // The file for the token. Empty: standard output.
  std::string to;
  // Zero: the token does not expire.
  absl::Duration expires;
  int max_devices = 0;
  int max_queued_jobs = 0;
  int64_t max_disk_bytes = 0;
  int max_streams = 0;
};

const std::map<std::string, v1::TokenRole>& Roles() {
  static const auto& roles = *new std::map<std::string, v1::TokenRole>{
      {"viewer", v1::TOKEN_ROLE_VIEWER},
      {"submitter", v1::TOKEN_ROLE_SUBMITTER},
      {"admin", v1::TOKEN_ROLE_ADMIN},
  };
  return roles;
}

std::string RoleOf(const v1::Token& token) {
  for (const auto& [name, role] : Roles()) {
    if (role == token.role()) return name;
  }
  return absl::StrCat("role ", static_cast<int>(token.role()));
}

// Parses "30d", "2w" or a duration such as "12h".
absl::StatusOr<absl::Duration> ParseExpiry(const std::string& text) {
  constexpr absl::Duration kLongest = absl::Hours(24 * 36500);
  absl::Duration expiry = absl::ZeroDuration();
  int64_t count = 0;
  const std::string number = text.empty() ? "" : text.substr(0, text.size() - 1);
  const char unit = text.empty() ? '\0' : text.back();
  if ((unit == 'd' || unit == 'w') && absl::SimpleAtoi(number, &count)) {
    expiry = absl::Hours(unit == 'd' ? 24 : 7 * 24) * count;
  } else if (!absl::ParseDuration(text, &expiry)) {
    expiry = absl::ZeroDuration();
  }
  if (expiry <= absl::ZeroDuration() || expiry > kLongest) {
    return absl::InvalidArgumentError(
        absl::StrCat("want a time such as 30d, 2w or 12h, at most 36500d, got `", text, "`"));
  }
  return expiry;
}

absl::StatusOr<v1::TokenRole> ParseRole(const std::string& text) {
  const auto found = Roles().find(text);
  if (found != Roles().end()) return found->second;
  return absl::InvalidArgumentError(absl::StrCat("want viewer, submitter or admin, got `", text, "`"));
}

std::string Expiry(const v1::Token& token, absl::Time now) {
  if (!token.has_expire_time()) return "never";
  const absl::Duration left = FromProto(token.expire_time()) - now;
  if (left <= absl::ZeroDuration()) return absl::StrCat("expired ", FormatAge(-left), " ago");
  // A token of 30 days says "in 30 d" in its first minute.
  return absl::StrCat("in ", FormatAge(absl::Ceil(left, absl::Minutes(1))));
}

// Returns a limit in the unit of its option: "1 GiB", not "1.1 GB".
std::string FormatLimit(int64_t bytes) {
  int shift = 0;
  const char* unit = "";
  for (const char* next : {"KiB", "MiB", "GiB", "TiB"}) {
    if (bytes % (int64_t{1} << (shift + 10)) != 0) break;
    shift += 10;
    unit = next;
  }
  return shift < 20 ? FormatBytes(bytes) : absl::StrCat(bytes >> shift, " ", unit);
}

template <typename Number>
std::string AtMost(bool has, Number limit) {
  return has ? absl::StrCat("at most ", limit) : "-";
}

// A new file that only its owner may read. The destructor removes it unless it was written.
class SecretFile {
 public:
  // If the file is not open, errno has the cause.
  explicit SecretFile(const std::string& path)
      : path_(path), file_(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600)) {}
  ~SecretFile() {
    if (file_ < 0) return;
    close(file_);
    if (!written_) unlink(path_.c_str());
  }
  SecretFile(const SecretFile&) = delete;
  SecretFile& operator=(const SecretFile&) = delete;

  bool is_open() const { return file_ >= 0; }
  bool Write(const std::string& text) {
    const ssize_t count = write(file_, text.data(), text.size());
    // The disk had room for only a part of the text.
    if (count >= 0 && count < static_cast<ssize_t>(text.size())) errno = ENOSPC;
    written_ = count == static_cast<ssize_t>(text.size()) && fsync(file_) == 0;
    return written_;
  }

 private:
  const std::string path_;
  const int file_;
  bool written_ = false;
};

int CreateToken(Session& session, const CreateOptions& options) {
  // Opens the file before the daemon creates the token, because the daemon shows a token only once.
  std::optional<SecretFile> file;
  if (!options.to.empty() && !file.emplace(options.to).is_open()) {
    return session.Fail(absl::InvalidArgumentError(
        errno == EEXIST
            ? absl::StrCat("cannot write the token to ", options.to, ": the file exists; name a new file")
            : absl::StrCat("cannot create ", options.to, ": ", strerror(errno), "; name another file")));
  }
  const absl::StatusOr<client::Client*> client = session.Connect();
  if (!client.ok()) return session.Fail(client.status());
  v1::Token token;
  token.set_user(options.user);
  token.set_role(options.role);
  if (options.expires > absl::ZeroDuration()) {
    const absl::Time expiry = session.terminal().Now() + options.expires;
    token.mutable_expire_time()->set_seconds(absl::ToUnixSeconds(expiry));
  }
  if (options.max_disk_bytes > 0) token.set_max_disk_bytes(options.max_disk_bytes);
  if (options.max_streams > 0) token.set_max_streams(options.max_streams);
  if (options.max_devices > 0) token.set_max_devices(options.max_devices);
  if (options.max_queued_jobs > 0) token.set_max_queued_jobs(options.max_queued_jobs);
  const absl::StatusOr<v1::CreateTokenResponse> made = (*client)->CreateToken(token);
  if (!made.ok()) return session.Fail(made.status());
  if (file.has_value() && !file->Write(made->secret() + "\n")) {
    const std::string why = strerror(errno);
    session.terminal().Err(absl::StrCat("tandem: cannot write ", options.to, ": ", why,
                                        "; the token is lost, so revoke it: tandem tokens revoke ",
                                        made->token().user(), "\n"));
    return kOutputLost;
  }
  if (session.structured()) {
    v1::CreateTokenResponse shown = *made;
    if (file.has_value()) shown.clear_secret();
    return session.Print(shown);
  }
  if (file.has_value()) {
    session.terminal().Out(
        absl::StrCat("the token of ", made->token().user(), " is in ", options.to,
                     ", readable only by the file's owner; use it with --token-file or TANDEM_TOKEN_FILE\n"));
    return kSucceeded;
  }
  // Prints only the secret, so that a script can write it to a file.
  session.terminal().Out(absl::StrCat(made->secret(), "\n"));
  session.terminal().Err(
      absl::StrCat("this token of ", made->token().user(),
                   " is shown only once; use it with --token-file or TANDEM_TOKEN_FILE\n"));
  return kSucceeded;
}

int ListTokens(Session& session) {
  const absl::StatusOr<client::Client*> client = session.Connect();
  if (!client.ok()) return session.Fail(client.status());
  const std::vector<Table::Column> columns = {
      {"USER"},       {"ROLE"},          {"EXPIRES"},  {"DEVICES", true}, {"QUEUED JOBS", true},
      {"DISK", true}, {"STREAMS", true}, {"AGE", true}};
  return PrintTable(session, (*client)->ListTokens(),
                    "no tokens except the daemon's own; `tandem tokens create USER` creates one\n", columns,
                    [now = session.terminal().Now()](const v1::Token& token) -> std::vector<std::string> {
                      return {token.user(),
                              RoleOf(token),
                              Expiry(token, now),
                              AtMost(token.has_max_devices(), token.max_devices()),
                              AtMost(token.has_max_queued_jobs(), token.max_queued_jobs()),
                              AtMost(token.has_max_disk_bytes(), FormatLimit(token.max_disk_bytes())),
                              AtMost(token.has_max_streams(), token.max_streams()),
                              FormatAge(now - FromProto(token.create_time()))};
                    });
}

int Revoke(Session& session, const std::vector<std::string>& users) {
  return ChangeEach<v1::Token>(
      session, users,
      [](client::Client& client, const std::string& user) {
        return client.RevokeToken(absl::StrCat("tokens/", absl::StripPrefix(user, "tokens/")));
      },
      [](const v1::Token& token) { return absl::StrCat(token.user(), " revoked"); });
}

}  // namespace

void AddTokens(Command app, Session& session, int& exit_code) {
  const Command command = app.AddCommand("tokens", "List, create and revoke users' tokens");
  command.Action([&session, &exit_code] { exit_code = ListTokens(session); });
  command.AddCommand("list", "List them (the default)").Action([&session, &exit_code] {
    exit_code = ListTokens(session);
  });
  const Command create =
      command.AddCommand("create", "Create a token for a user and print it; it is shown only once");
  auto options = std::make_shared<CreateOptions>();
  create.AddOption("USER", options->user, "The user; jobs submitted with the token belong to this user")
      .Required();
  const Option role = create
                          .AddOption(
                              "--role",
                              [options](const std::string& text) {
                                const absl::StatusOr<v1::TokenRole> role = ParseRole(text);
                                if (role.ok()) options->role = *role;
                                return role.status();
                              },
                              "viewer: may read everything and change nothing. submitter (the default): may "
                              "also submit jobs and change the user's own. admin: may do everything")
                          .ValueName("ROLE");
  create
      .AddFlag(
          "--admin", [options] { options->role = v1::TOKEN_ROLE_ADMIN; },
          "Allow everything, as the daemon's own token does: --role admin")
      .Excludes(role);
  create
      .AddOption("--to", options->to,
                 "Write the token to this new file, readable only by its owner, instead of printing it")
      .ValueName("FILE");
  create
      .AddOption(
          "--expires",
          [options](const std::string& text) {
            const absl::StatusOr<absl::Duration> expires = ParseExpiry(text);
            if (expires.ok()) options->expires = *expires;
            return expires.status();
          },
          "The time until the token expires, such as 30d, 2w or 12h (default: never)")
      .ValueName("TIME");
  create.AddOption("--max-devices", options->max_devices, "The user's largest number of devices at a time")
      .ValueName("N")
      .Range(1, 1'000'000);
  create.AddOption("--max-queued-jobs", options->max_queued_jobs, "The user's largest number of queued jobs")
      .ValueName("N")
      .Range(1, 1'000'000);
  create
      .AddOption("--max-disk", options->max_disk_bytes,
                 "The largest size of the user's jobs and uploads on the disk, such as 50GiB")
      .ValueName("SIZE")
      .Size()
      .AtLeast(1);
  create
      .AddOption("--max-streams", options->max_streams,
                 "The user's largest number of open streams (watches, logs, uploads)")
      .ValueName("N")
      .Range(1, 1'000'000);
  create.Action([options, &session, &exit_code] { exit_code = CreateToken(session, *options); });
  const Command revoke = command.AddCommand("revoke", "Revoke users' tokens at once; their jobs stay");
  auto users = std::make_shared<std::vector<std::string>>();
  revoke.AddOption("USER", *users, "The users").Required();
  revoke.Action([users, &session, &exit_code] { exit_code = Revoke(session, *users); });
}

}  // namespace tandem::cli

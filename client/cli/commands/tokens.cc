#include <CLI/CLI.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "client/cli/commands/commands.h"
#include "client/cli/format.h"
#include "client/cli/table.h"

namespace tandem::cli {
namespace {

struct CreateOptions {
  std::string user;
  bool admin = false;
  int max_devices = 0;
  int max_queued_jobs = 0;
};

int Create(Session& session, const CreateOptions& options) {
  const absl::StatusOr<client::Client*> client = session.Connect();
  if (!client.ok()) return session.Fail(client.status());
  v1::Token token;
  token.set_user(options.user);
  token.set_admin(options.admin);
  if (options.max_devices > 0) token.set_max_devices(options.max_devices);
  if (options.max_queued_jobs > 0) token.set_max_queued_jobs(options.max_queued_jobs);
  const absl::StatusOr<v1::CreateTokenResponse> made = (*client)->CreateToken(token);
  if (!made.ok()) return session.Fail(made.status());
  if (session.structured()) {
    session.terminal().Out(Structured(session.options.output, *made));
    return kSucceeded;
  }
  // Nothing but the secret, so that it can be written to a file.
  session.terminal().Out(absl::StrCat(made->secret(), "\n"));
  session.terminal().Err(
      absl::StrCat("made for ", made->token().user(),
                   ", and not shown again; use it with --token-file or TANDEM_TOKEN_FILE\n"));
  return kSucceeded;
}

int List(Session& session) {
  const absl::StatusOr<client::Client*> client = session.Connect();
  if (!client.ok()) return session.Fail(client.status());
  absl::StatusOr<std::vector<v1::Token>> tokens = (*client)->ListTokens();
  if (!tokens.ok()) return session.Fail(tokens.status());
  for (v1::Token& token : *tokens) session.MakeShowable(&token);
  if (session.structured()) {
    session.terminal().Out(Structured(session.options.output, Pointers(*tokens)));
    return kSucceeded;
  }
  if (tokens->empty()) {
    session.terminal().Out("no tokens but the daemon's own; `tandem tokens create USER` makes one\n");
    return kSucceeded;
  }
  Table table({{"USER"}, {"ADMIN"}, {"DEVICES", true}, {"QUEUED JOBS", true}, {"AGE", true}});
  const absl::Time now = session.terminal().Now();
  for (const v1::Token& token : *tokens) {
    table.AddRow({token.user(), token.admin() ? "yes" : "no",
                  token.has_max_devices() ? absl::StrCat("at most ", token.max_devices()) : "-",
                  token.has_max_queued_jobs() ? absl::StrCat("at most ", token.max_queued_jobs()) : "-",
                  FormatAge(now - FromProto(token.create_time()))});
  }
  session.terminal().Out(table.Render(session.style()));
  return kSucceeded;
}

int Revoke(Session& session, const std::vector<std::string>& users) {
  const absl::StatusOr<client::Client*> client = session.Connect();
  if (!client.ok()) return session.Fail(client.status());
  int code = kSucceeded;
  std::vector<v1::Token> revoked;
  for (const std::string& user : users) {
    absl::StatusOr<v1::Token> token =
        (*client)->RevokeToken(absl::StrCat("tokens/", absl::StripPrefix(user, "tokens/")));
    if (!token.ok()) {
      code = session.Fail(token.status());
      if (code == kNoDaemon) break;
      continue;
    }
    session.MakeShowable(&*token);
    if (!session.structured()) session.terminal().Out(absl::StrCat(token->user(), " revoked\n"));
    revoked.push_back(*std::move(token));
  }
  if (session.structured()) session.terminal().Out(Structured(session.options.output, Pointers(revoked)));
  return code;
}

}  // namespace

void AddTokens(CLI::App& app, Session& session, int& exit_code) {
  CLI::App* command = app.add_subcommand("tokens", "List the users' tokens; make and revoke them");
  command->require_subcommand(0, 1);
  command->callback([command, &session, &exit_code] {
    if (command->get_subcommands().empty()) exit_code = List(session);
  });
  command->add_subcommand("list", "List them, as without a word")->callback([&session, &exit_code] {
    exit_code = List(session);
  });
  CLI::App* create = command->add_subcommand("create", "Make a token for a user and print it, this once");
  auto options = std::make_shared<CreateOptions>();
  create->add_option("USER", options->user, "Whom it is for; jobs submitted with it are this user's")
      ->required();
  create->add_flag("--admin", options->admin, "It allows everything, as the daemon's own token does");
  create->add_option("--max-devices", options->max_devices, "Devices that the user's jobs may hold at a time")
      ->type_name("N")
      ->check(CLI::Range(1, 1'000'000));
  create
      ->add_option("--max-queued-jobs", options->max_queued_jobs, "Jobs of the user that may wait at a time")
      ->type_name("N")
      ->check(CLI::Range(1, 1'000'000));
  create->callback([options, &session, &exit_code] { exit_code = Create(session, *options); });
  CLI::App* revoke =
      command->add_subcommand("revoke", "Make users' tokens useless, at once; their jobs stay");
  auto users = std::make_shared<std::vector<std::string>>();
  revoke->add_option("USER", *users, "Whose")->required();
  revoke->callback([users, &session, &exit_code] { exit_code = Revoke(session, *users); });
}

}  // namespace tandem::cli

#include "server/store/migrator.h"

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "server/store/connection.h"

namespace tandem {
namespace {

constexpr Migration kMigrations[] = {
#include "server/store/embedded_migrations.inc"
};

}  // namespace

absl::Span<const Migration> Migrations() { return kMigrations; }

absl::Status CheckNotNewer(const std::string& path, int64_t version, absl::Span<const Migration> migrations) {
  if (version <= static_cast<int64_t>(migrations.size())) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "cannot use ", path, ": a newer tandemd wrote it (schema ", version, "; this tandemd supports up to ",
      migrations.size(), "); start that version, or use another state folder"));
}

absl::Status Migrate(Connection* connection, absl::Span<const Migration> migrations) {
  const int64_t newest = static_cast<int64_t>(migrations.size());
  TANDEM_RETURN_IF_ERROR(connection->Execute("BEGIN IMMEDIATE"));
  const absl::Status status = [&]() -> absl::Status {
    TANDEM_ASSIGN_OR_RETURN(const int64_t version, connection->QueryInt("PRAGMA user_version"));
    TANDEM_RETURN_IF_ERROR(CheckNotNewer(connection->path(), version, migrations));
    for (int64_t step = version; step < newest; ++step) {
      const absl::Status applied = connection->Execute(migrations[step].sql);
      if (!applied.ok()) {
        return absl::Status(applied.code(), absl::StrCat("cannot apply the migration ", migrations[step].name,
                                                         ": ", applied.message()));
      }
    }
    return connection->Execute(absl::StrCat("PRAGMA user_version = ", newest));
  }();
  if (!status.ok()) {
    connection->Execute("ROLLBACK").IgnoreError();
    return status;
  }
  return connection->Execute("COMMIT");
}

}  // namespace tandem

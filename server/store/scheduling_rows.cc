#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "server/store/connection.h"
#include "server/store/job_rows.h"
#include "server/store/reader_pool.h"
#include "server/store/store.h"
#include "server/store/transaction.h"

// The part of Transaction and Store for the scheduler and for tokens.

namespace tandem {

absl::StatusOr<int> Transaction::CountJobs(absl::string_view user, v1::JobState state) {
  return WithoutExceptions("count jobs", [&]() -> absl::StatusOr<int> {
    // The index has both columns, so no row is read. Rows of deleted jobs are in terminal states.
    Query query(connection_, "SELECT count(*) FROM jobs WHERE user = ? AND state = ?");
    if (!query.Text(user).Int(state).Next())
      return absl::InternalError("cannot count jobs: the database returned no row");
    return static_cast<int>(query.GetInt(0));
  });
}

absl::Status Transaction::PutUsage(const StoredUsage& usage) {
  return WithoutExceptions("write a user's usage", [&]() -> absl::Status {
    Query(connection_, "INSERT OR REPLACE INTO usage (user, device_us, as_of_us) VALUES (?, ?, ?)")
        .Text(usage.user)
        .Int(usage.device_us)
        .Int(usage.as_of_us)
        .Run();
    return absl::OkStatus();
  });
}

absl::Status Transaction::PutDevice(const StoredDevice& device) {
  return WithoutExceptions("write a device's state", [&]() -> absl::Status {
    Query(connection_,
          "INSERT OR REPLACE INTO devices (name, state, message, faults, last_faulty_job) VALUES (?, ?, ?, "
          "?, ?)")
        .Text(device.name)
        .Int(device.state)
        .Text(device.message)
        .Int(device.faults)
        .Text(device.last_faulty_job)
        .Run();
    return absl::OkStatus();
  });
}

absl::Status Transaction::InsertToken(const StoredToken& token) {
  const std::string bytes = token.token.SerializeAsString();
  return WithoutExceptions("add a token", [&]() -> absl::Status {
    Query(connection_, "INSERT INTO tokens (user, hash, token) VALUES (?, ?, ?)")
        .Text(token.token.user())
        .Text(token.hash)
        .Blob(bytes)
        .Run();
    return absl::OkStatus();
  });
}

absl::Status Transaction::DeleteToken(absl::string_view user) {
  return WithoutExceptions("delete a token", [&]() -> absl::Status {
    if (Query(connection_, "DELETE FROM tokens WHERE user = ?").Text(user).Run() == 1)
      return absl::OkStatus();
    return absl::NotFoundError(absl::StrCat("there is no token \"tokens/", user, "\""));
  });
}

absl::StatusOr<std::vector<StoredUsage>> Store::Usages() {
  return readers_->Read("list usage", [](Connection* connection) -> absl::StatusOr<std::vector<StoredUsage>> {
    std::vector<StoredUsage> usages;
    Query query(connection, "SELECT user, device_us, as_of_us FROM usage ORDER BY user");
    while (query.Next()) {
      usages.push_back({std::string(query.GetBlob(0)), query.GetInt(1), query.GetInt(2)});
    }
    return usages;
  });
}

absl::StatusOr<std::vector<StoredDevice>> Store::Devices() {
  return readers_->Read(
      "list devices", [](Connection* connection) -> absl::StatusOr<std::vector<StoredDevice>> {
        std::vector<StoredDevice> devices;
        Query query(connection,
                    "SELECT name, state, message, faults, last_faulty_job FROM devices ORDER BY name");
        while (query.Next()) {
          StoredDevice& device = devices.emplace_back();
          device.name = std::string(query.GetBlob(0));
          device.state = static_cast<v1::DeviceState>(query.GetInt(1));
          device.message = std::string(query.GetBlob(2));
          device.faults = static_cast<int>(query.GetInt(3));
          device.last_faulty_job = std::string(query.GetBlob(4));
        }
        return devices;
      });
}

absl::StatusOr<std::vector<StoredToken>> Store::Tokens() {
  return readers_->Read("list tokens",
                        [](Connection* connection) -> absl::StatusOr<std::vector<StoredToken>> {
                          std::vector<StoredToken> tokens;
                          Query query(connection, "SELECT token, hash FROM tokens ORDER BY user");
                          while (query.Next()) {
                            StoredToken& token = tokens.emplace_back();
                            TANDEM_RETURN_IF_ERROR(ParseStored(query.GetBlob(0), "token", &token.token));
                            token.hash = std::string(query.GetBlob(1));
                          }
                          return tokens;
                        });
}

}  // namespace tandem

#include <cstdint>
#include <optional>
#include <string>

#include "server/store/connection.h"
#include "server/store/store.h"
#include "server/store/transaction.h"

namespace tandem {

absl::Status Transaction::PutDataFacts(absl::string_view digest, absl::string_view facts) {
  return WithoutExceptions("keep what a data set's files say", [&]() -> absl::Status {
    Query put(connection_, "INSERT OR REPLACE INTO data_facts (digest, facts) VALUES (?, ?)");
    put.Text(digest).Blob(facts).Run();
    // Newer rows have larger numbers. A key's prefix is all before its hexadecimal digits.
    Query drop(connection_,
               "DELETE FROM data_facts WHERE number IN (SELECT number FROM (SELECT number, "
               "sum(length(facts)) OVER newer AS bytes, row_number() OVER newer AS place "
               "FROM data_facts WINDOW newer AS (PARTITION BY rtrim(digest, '0123456789abcdef') "
               "ORDER BY number DESC)) WHERE bytes > ? OR place > ?)");
    drop.Int(kMostDataFactsBytesKept).Int(kMostDataFactsKept).Run();
    return absl::OkStatus();
  });
}

absl::StatusOr<std::optional<std::string>> Store::FindDataFacts(absl::string_view digest) {
  return readers_->Read("find what a data set's files say",
                        [&](Connection* connection) -> absl::StatusOr<std::optional<std::string>> {
                          Query query(connection, "SELECT facts FROM data_facts WHERE digest = ?");
                          if (!query.Text(digest).Next()) return std::optional<std::string>();
                          return std::optional<std::string>(std::string(query.GetBlob(0)));
                        });
}

}  // namespace tandem

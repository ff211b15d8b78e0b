#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "server/store/connection.h"
#include "server/store/reader_pool.h"
#include "server/store/store.h"
#include "server/store/transaction.h"

namespace tandem {

absl::Status Transaction::PutDataFacts(absl::string_view digest, absl::string_view facts) {
  return WithoutExceptions("keep what a data set's files say", [&]() -> absl::Status {
    Query put(connection_, "INSERT OR REPLACE INTO data_facts (digest, facts) VALUES (?, ?)");
    put.Text(digest).Blob(facts).Run();
    // Compare only keys with the same prefix, the part before the digest. Newer rows have larger numbers.
    const absl::string_view prefix = digest.substr(0, digest.rfind('/') + 1);
    Query drop(connection_,
               "DELETE FROM data_facts WHERE number IN (SELECT number FROM (SELECT number, "
               "sum(length(facts)) OVER newer AS bytes, row_number() OVER newer AS place "
               "FROM data_facts WHERE digest >= ? AND digest < ? WINDOW newer AS (ORDER BY number DESC)) "
               "WHERE bytes > ? OR place > ?)");
    // No hexadecimal digit sorts after these bounds.
    drop.Text(prefix)
        .Text(absl::StrCat(prefix, "g"))
        .Int(kMostDataFactsBytesKept)
        .Int(kMostDataFactsKept)
        .Run();
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

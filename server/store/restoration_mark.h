#ifndef TANDEM_SERVER_STORE_RESTORATION_MARK_H_
#define TANDEM_SERVER_STORE_RESTORATION_MARK_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace tandem {

// A database that was put in the place of another one.
struct Restoration {
  // Where it came from, and when that was copied; infinite past where nobody knows.
  std::string backup_path;
  absl::Time backup_time = absl::InfinitePast();
  // Where the other one is now; empty where there was none.
  std::string aside;
  // What is wrong with it; empty where somebody asked for the restoration.
  std::string damage;
  // When that was done, and never before the time of an earlier one.
  absl::Time time = absl::InfinitePast();
  // Whether those who should know of it do.
  bool told = false;
};

// Marks are files of lines "name=value", of which only "time" must be there. Nothing: there is no such file.
// Errors name it: DATA_LOSS where it is no mark, others as the file system fails. Whoever needs to know what
// came after a restoration cannot go on then.
absl::StatusOr<std::optional<Restoration>> ReadRestorationMark(const std::string& path);
// Durable when it returns.
absl::Status WriteRestorationMark(const std::string& path, const Restoration& restoration);

}  // namespace tandem

#endif  // TANDEM_SERVER_STORE_RESTORATION_MARK_H_

#include "server/auth/audit_record.h"

#include <nlohmann/json.hpp>

namespace tandem {

std::string AuditRecord::ToLine() const {
  nlohmann::ordered_json line;
  line["time"] = absl::FormatTime("%Y-%m-%dT%H:%M:%E6SZ", time, absl::UTCTimeZone());
  const auto add = [&line](const char* name, const std::string& value) {
    if (!value.empty()) line[name] = value;
  };
  add("event", event);
  add("user", user);
  add("peer", peer);
  add("method", method);
  add("resource", resource);
  add("code", code);
  add("reason", reason);
  add("call", call);
  add("version", version);
  add("address", address);
  if (count != 0) line["count"] = count;
  return line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace tandem

#include "server/store/restoration_mark.h"

#include <map>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "engine/base/env.h"

namespace tandem {
namespace {

std::string Show(absl::Time time) { return absl::FormatTime(absl::RFC3339_full, time, absl::UTCTimeZone()); }

bool ReadTime(const std::string& text, absl::Time* time) {
  return absl::ParseTime(absl::RFC3339_full, text, time, nullptr);
}

// Returns false without a valid time; the other fields are optional.
bool Parse(absl::string_view content, Restoration* restoration) {
  std::map<std::string, std::string> values;
  for (const absl::string_view line : absl::StrSplit(content, '\n', absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(line, absl::MaxSplits('=', 1));
    if (!absl::CUnescape(parts.second, &values[std::string(parts.first)])) return false;
  }
  restoration->backup_path = values["backup"];
  restoration->aside = values["aside"];
  restoration->damage = values["damage"];
  restoration->told = values["told"] == "yes";
  const bool has_backup_time = values.contains("backup_time");
  return (!has_backup_time || ReadTime(values["backup_time"], &restoration->backup_time)) &&
         ReadTime(values["time"], &restoration->time) &&
         // A restoration in the infinite future would keep everything for ever.
         restoration->time != absl::InfiniteFuture();
}

}  // namespace

absl::StatusOr<std::optional<Restoration>> ReadRestorationMark(const std::string& path) {
  const absl::StatusOr<std::string> content = Env::Real()->ReadFile(path);
  if (absl::IsNotFound(content.status())) return std::optional<Restoration>();
  if (!content.ok()) return content.status();
  Restoration restoration;
  if (!Parse(*content, &restoration)) {
    return absl::DataLossError(absl::StrCat("cannot read ", path, ": it is not the record of a restoration"));
  }
  if (restoration.backup_path.empty()) restoration.backup_path = "an unknown backup";
  return std::optional<Restoration>(std::move(restoration));
}

absl::Status WriteRestorationMark(const std::string& path, const Restoration& restoration) {
  return WriteFileAtomically(Env::Real(), path, [&](WritableFile& file) {
    return file.Append(absl::StrCat(
        "time=", Show(restoration.time), "\nbackup=", absl::CEscape(restoration.backup_path),
        "\nbackup_time=", Show(restoration.backup_time), "\naside=", absl::CEscape(restoration.aside),
        "\ndamage=", absl::CEscape(restoration.damage), "\ntold=", restoration.told ? "yes" : "no", "\n"));
  });
}

}  // namespace tandem

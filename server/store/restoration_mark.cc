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
  return ReadTime(values["backup_time"], &restoration->backup_time) &&
         ReadTime(values["time"], &restoration->time);
}

}  // namespace

std::optional<Restoration> ReadRestorationMark(const std::string& path) {
  const absl::StatusOr<std::string> content = Env::Real()->ReadFile(path);
  if (absl::IsNotFound(content.status())) return std::nullopt;
  Restoration restoration;
  if (content.ok() && Parse(*content, &restoration)) return restoration;
  restoration = Restoration();
  restoration.backup_path = absl::StrCat("a backup that is not known, as ", path, " cannot be read");
  restoration.time = absl::InfiniteFuture();
  return restoration;
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

#include "engine/data/formats/bad_images.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "engine/base/field_violations.h"
#include "engine/base/utf8.h"
#include "engine/data/parallel.h"

namespace tandem {
namespace {

// The room of all named images together in the daemon's answer (server/rpc/grpc_status.cc).
constexpr size_t kNamedBytes = 1760;

// Cuts out the middle of a name that is longer than `most` bytes, between UTF-8 characters. `most` is at
// least 8.
std::string ShortName(const std::string& name, size_t most) {
  if (name.size() <= most) return name;
  const auto is_inside = [&](size_t at) { return (static_cast<unsigned char>(name[at]) & 0xc0) == 0x80; };
  // The end of the name tells files apart better than the begin.
  size_t begin = (most - 3) / 3;
  size_t end = name.size() - (most - 3 - begin);
  while (begin > 0 && is_inside(begin)) --begin;
  while (end < name.size() && is_inside(end)) ++end;
  return absl::StrCat(name.substr(0, begin), "...", name.substr(end));
}

// Returns a name and its fault in at most `most` bytes.
std::string Shortened(absl::string_view path, absl::string_view fault, size_t most) {
  const std::string name = ToUtf8(path);
  if (name.size() + fault.size() <= most) return absl::StrCat(name, fault);
  // The text behind a colon explains the fault in detail.
  const absl::string_view brief = fault.substr(0, std::min(fault.find(':'), most / 2));
  return absl::StrCat(ShortName(name, most - brief.size()), brief);
}

}  // namespace

absl::Status BadImagesStatus(const std::vector<BadImages>& splits) {
  size_t bad = 0, named = 0;
  for (const BadImages& split : splits) {
    bad += split.bad;
    named += split.first.size();
  }
  named = std::min(named, kNamedImages);
  FieldViolations violations;
  size_t left = named;
  for (const BadImages& split : splits) {
    if (split.bad == 0) continue;
    // An answer may be cut at its end, so the number of bad images is its beginning.
    if (bad > named) {
      violations.Add(split.field, absl::StrCat("has bad images, ", split.bad, " of ", split.images,
                                               "; mend or remove them"));
    }
    for (const ImageFault& one : split.first) {
      if (left == 0) break;
      --left;
      violations.Add(split.field, bad == 1 ? one.path + one.fault
                                           : Shortened(absl::StripPrefix(one.path, split.folder), one.fault,
                                                       kNamedBytes / named));
    }
  }
  return violations.ToStatus();
}

std::vector<absl::Status> ReadAll(size_t count, const std::function<absl::Status(size_t)>& work) {
  std::vector<absl::Status> bad(count);
  std::vector<absl::Status> statuses = RunInParallel(count, [&](size_t i) {
    absl::Status status = work(i);
    if (!absl::IsInvalidArgument(status)) return status;
    bad[i] = std::move(status);
    return absl::OkStatus();
  });
  for (size_t i = 0; i < count; ++i) {
    if (statuses[i].ok()) statuses[i] = std::move(bad[i]);
  }
  return statuses;
}

}  // namespace tandem

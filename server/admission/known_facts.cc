#include "server/admission/known_facts.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/field_violations.h"

namespace tandem {
namespace {

// Of an entry, beside its text: the digest too.
constexpr size_t kEntryBytes = 512;

}  // namespace

size_t KnownFacts::BytesOf(const Known& known) {
  size_t bytes = kEntryBytes + known.facts.size() + known.status.message().size();
  for (const FieldViolation& violation : GetFieldViolations(known.status)) {
    bytes += violation.field.size() + violation.description.size();
  }
  return bytes;
}

std::string KnownFacts::DurableKey(const std::string& digest, Kind kind) {
  return kind == Kind::kNamed ? absl::StrCat(kNamedDataFacts, digest) : digest;
}

std::optional<KnownFacts::Known> KnownFacts::Look(const std::string& digest, Kind kind) {
  {
    MutexLock lock(&mutex_);
    const Room& room = rooms_[kind];
    if (const auto found = room.known.find(digest); found != room.known.end()) return found->second;
  }
  if (durable_.find == nullptr) return std::nullopt;
  std::optional<std::string> kept = durable_.find(DurableKey(digest, kind));
  if (!kept.has_value() || !internal::v1::DataFacts().ParseFromString(*kept)) return std::nullopt;
  Known known{.facts = *std::move(kept), .status = absl::OkStatus()};
  Remember(digest, known, kind);
  return known;
}

std::optional<KnownFacts::Facts> KnownFacts::Find(const std::string& digest, Kind kind) {
  std::optional<Known> known = Look(digest, Kind::kNamed);
  if (!known.has_value()) {
    known = Look(digest, Kind::kOther);
    if (known.has_value() && kind == Kind::kNamed) Keep(digest, *known, kind);
  }
  if (!known.has_value()) return std::nullopt;
  if (!known->status.ok()) return known->status;
  internal::v1::DataFacts facts;
  facts.ParseFromString(known->facts);
  return facts;
}

void KnownFacts::Add(const std::string& digest, const Facts& facts, Kind kind) {
  if (facts.ok()) {
    Keep(digest, {.facts = facts->SerializeAsString(), .status = absl::OkStatus()}, kind);
  } else if (absl::IsInvalidArgument(facts.status())) {
    Keep(digest, {.facts = "", .status = facts.status()}, kind);
  }
}

void KnownFacts::Keep(const std::string& digest, Known known, Kind kind) {
  if (known.status.ok() && durable_.put != nullptr) durable_.put(DurableKey(digest, kind), known.facts);
  Remember(digest, std::move(known), kind);
}

void KnownFacts::Remember(const std::string& digest, Known known, Kind kind) {
  MutexLock lock(&mutex_);
  Room& room = rooms_[kind];
  const auto [place, is_new] = room.known.try_emplace(digest);
  if (is_new) {
    room.order.push_back(digest);
  } else {
    room.bytes -= BytesOf(place->second);
  }
  room.bytes += BytesOf(known);
  place->second = std::move(known);
  while (room.bytes > kMostBytes && room.order.size() > 1) {
    const auto oldest = room.known.find(room.order.front());
    room.bytes -= BytesOf(oldest->second);
    room.known.erase(oldest);
    room.order.pop_front();
  }
}

}  // namespace tandem

#include "server/admission/known_facts.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/field_violations.h"

namespace tandem {
namespace {

// The memory of an entry besides its text, including the digest.
constexpr size_t kEntryBytes = 512;

// The prefix of keys for facts without a named set.
constexpr char kOtherPrefix[] = "";

std::string NamedPrefix(const std::string& owner) { return absl::StrCat("named/", owner, "/"); }

std::string PrefixOf(const KnownFacts::Place& place) {
  return place.is_named ? NamedPrefix(place.owner) : kOtherPrefix;
}

}  // namespace

size_t KnownFacts::BytesOf(const Known& known) {
  size_t bytes = kEntryBytes + known.facts.size() + known.status.message().size();
  for (const FieldViolation& violation : GetFieldViolations(known.status)) {
    bytes += violation.field.size() + violation.description.size();
  }
  return bytes;
}

std::optional<KnownFacts::Known> KnownFacts::Look(const std::string& digest, const std::string& prefix) {
  {
    MutexLock lock(&mutex_);
    const Room& room = rooms_[prefix];
    if (const auto found = room.known.find(digest); found != room.known.end()) return found->second;
  }
  if (durable_.find == nullptr) return std::nullopt;
  std::optional<std::string> kept = durable_.find(prefix + digest);
  if (!kept.has_value() || !internal::v1::DataFacts().ParseFromString(*kept)) return std::nullopt;
  Known known{.facts = *std::move(kept), .status = absl::OkStatus()};
  Remember(digest, known, prefix);
  return known;
}

std::optional<KnownFacts::Facts> KnownFacts::Find(const std::string& digest, const Place& place) {
  std::optional<Known> known = Look(digest, NamedPrefix(place.owner));
  if (!known.has_value()) {
    known = Look(digest, kOtherPrefix);
    if (known.has_value() && place.is_named) Keep(digest, *known, PrefixOf(place));
  }
  if (!known.has_value()) return std::nullopt;
  if (!known->status.ok()) return known->status;
  internal::v1::DataFacts facts;
  facts.ParseFromString(known->facts);
  return facts;
}

void KnownFacts::Add(const std::string& digest, const Facts& facts, const Place& place) {
  if (facts.ok()) {
    Keep(digest, {.facts = facts->SerializeAsString(), .status = absl::OkStatus()}, PrefixOf(place));
  } else if (absl::IsInvalidArgument(facts.status())) {
    Keep(digest, {.facts = "", .status = facts.status()}, PrefixOf(place));
  }
}

void KnownFacts::Keep(const std::string& digest, Known known, const std::string& prefix) {
  if (known.status.ok() && durable_.put != nullptr) durable_.put(prefix + digest, known.facts);
  Remember(digest, std::move(known), prefix);
}

void KnownFacts::Remember(const std::string& digest, Known known, const std::string& prefix) {
  MutexLock lock(&mutex_);
  Room& room = rooms_[prefix];
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

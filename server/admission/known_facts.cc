#include "server/admission/known_facts.h"

#include <utility>

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

std::optional<KnownFacts::Facts> KnownFacts::Find(const std::string& digest) {
  internal::v1::DataFacts facts;
  {
    MutexLock lock(&mutex_);
    const auto found = known_.find(digest);
    if (found != known_.end()) {
      if (!found->second.status.ok()) return found->second.status;
      facts.ParseFromString(found->second.facts);
      return facts;
    }
  }
  if (durable_.find == nullptr) return std::nullopt;
  std::optional<std::string> kept = durable_.find(digest);
  if (!kept.has_value() || !facts.ParseFromString(*kept)) return std::nullopt;
  Remember(digest, {.facts = *std::move(kept), .status = absl::OkStatus()});
  return facts;
}

void KnownFacts::Add(const std::string& digest, const Facts& facts) {
  if (!facts.ok()) {
    if (absl::IsInvalidArgument(facts.status())) Remember(digest, {.facts = "", .status = facts.status()});
    return;
  }
  std::string bytes = facts->SerializeAsString();
  Remember(digest, {.facts = bytes, .status = absl::OkStatus()});
  if (durable_.put != nullptr) durable_.put(digest, std::move(bytes));
}

void KnownFacts::Remember(const std::string& digest, Known known) {
  const size_t bytes = BytesOf(known);
  MutexLock lock(&mutex_);
  if (const auto before = known_.find(digest); before != known_.end()) {
    bytes_ -= BytesOf(before->second);
    known_.erase(before);
  }
  if (bytes_ + bytes > kMostBytes) {
    known_.clear();
    bytes_ = 0;
  }
  bytes_ += bytes;
  known_.emplace(digest, std::move(known));
}

}  // namespace tandem

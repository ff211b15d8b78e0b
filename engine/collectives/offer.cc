#include "engine/collectives/offer.h"

#include <string>

#include "absl/strings/str_cat.h"

namespace tandem {
namespace {

std::string Describe(const Offer& offer) {
  const std::string what = absl::StrCat(" of ", offer.elements, " elements of ", ToString(offer.dtype));
  switch (offer.call) {
    case CollectiveCall::kSum:
      return absl::StrCat("a sum", what);
    case CollectiveCall::kAverage:
      return absl::StrCat("an average", what);
    case CollectiveCall::kBroadcast:
      return absl::StrCat("a broadcast by rank ", offer.root, what);
    case CollectiveCall::kBarrier:
      return "a barrier";
  }
  return "an unknown call";
}

bool Same(const Offer& a, const Offer& b) {
  return a.call == b.call && a.dtype == b.dtype && a.root == b.root && a.elements == b.elements;
}

}  // namespace

absl::Status CheckOffers(absl::Span<const Offer> offers) {
  const Offer& first = offers[0];
  for (size_t rank = 1; rank < offers.size(); ++rank) {
    if (Same(offers[rank], first)) continue;
    return absl::InvalidArgumentError(absl::StrCat("ranks do not agree: rank 0 is at ", Describe(first),
                                                   ", rank ", rank, " at ", Describe(offers[rank])));
  }
  if (first.call == CollectiveCall::kAverage && !IsFloatingPoint(first.dtype)) {
    return absl::InvalidArgumentError(absl::StrCat("all-reduce: ", ToString(first.dtype), " has no average"));
  }
  if (first.call == CollectiveCall::kBroadcast &&
      (first.root < 0 || first.root >= static_cast<int64_t>(offers.size()))) {
    return absl::InvalidArgumentError(
        absl::StrCat("broadcast: root ", first.root, " is not one of the ", offers.size(), " ranks"));
  }
  return absl::OkStatus();
}

}  // namespace tandem

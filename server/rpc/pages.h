#ifndef TANDEM_SERVER_RPC_PAGES_H_
#define TANDEM_SERVER_RPC_PAGES_H_

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "google/protobuf/repeated_field.h"

// Pages of lists. A token is the number of earlier entries; of sweeps: the number of the last sweep. If the
// list changes between two pages, an entry may be shown twice or not at all.

namespace tandem::rpc {

struct Page {
  size_t begin = 0;
  size_t size = 0;
};

// Returns the page that a request asks for. INVALID_ARGUMENT for the fields "page_size" and "page_token".
absl::StatusOr<Page> ParsePage(int page_size, const std::string& page_token, int default_size, int most);
template <typename Request>
absl::StatusOr<Page> PageOf(const Request& request, int default_size = 1000, int most = 1000) {
  return ParsePage(request.page_size(), request.page_token(), default_size, most);
}

// A page ends after this many bytes. With one more entry of 1 MiB, the page stays below the 4 MiB that gRPC's
// clients accept.
inline constexpr size_t kPageBytes = 2 << 20;

// Adds the page's entries to `list`. The first entry of `all` has the number `first`. Returns the next page's
// token, "" on the last page.
template <typename Entry>
std::string AddPage(std::vector<Entry> all, size_t first, const Page& page,
                    google::protobuf::RepeatedPtrField<Entry>* list) {
  size_t bytes = 0;
  size_t next = page.begin;
  for (; next < first + all.size() && next - page.begin < page.size && bytes < kPageBytes; ++next) {
    bytes += all[next - first].ByteSizeLong();
    *list->Add() = std::move(all[next - first]);
  }
  return next < first + all.size() ? std::to_string(next) : "";
}

}  // namespace tandem::rpc

#endif  // TANDEM_SERVER_RPC_PAGES_H_

#include "server/rpc/pages.h"

#include <cstdint>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "engine/base/field_violations.h"
#include "engine/base/status_macros.h"

namespace tandem::rpc {

absl::StatusOr<Page> ParsePage(int page_size, const std::string& page_token, int default_size, int most) {
  FieldViolations violations;
  const int size = page_size == 0 ? default_size : page_size;
  if (size < 1 || size > most) {
    violations.Add("page_size", absl::StrCat("is ", page_size, "; it must be from 1 to ", most));
  }
  int64_t begin = 0;
  if (!page_token.empty() && (!absl::SimpleAtoi(page_token, &begin) || begin < 1)) {
    violations.Add(
        "page_token",
        "is not a page_token of this method; give the next_page_token of an earlier page, or none");
  }
  TANDEM_RETURN_IF_ERROR(violations.ToStatus());
  return Page{.begin = static_cast<size_t>(begin), .size = static_cast<size_t>(size)};
}

}  // namespace tandem::rpc

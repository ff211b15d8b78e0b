#include "client/dashboard/access.h"

#include <openssl/crypto.h>
#include <openssl/rand.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace tandem::dashboard {
namespace {

std::string RandomText() {
  std::string bytes(24, '\0');
  // Without random numbers nothing here is safe.
  if (RAND_bytes(reinterpret_cast<unsigned char*>(bytes.data()), static_cast<int>(bytes.size())) != 1)
    std::abort();
  return absl::BytesToHexString(bytes);
}

// Compares in a time that does not depend on the place of the difference.
bool IsSame(absl::string_view a, absl::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::string CookieIn(absl::string_view cookies, absl::string_view name) {
  for (const absl::string_view cookie : absl::StrSplit(cookies, ';')) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(cookie, absl::MaxSplits('=', 1));
    if (absl::StripAsciiWhitespace(parts.first) == name)
      return std::string(absl::StripAsciiWhitespace(parts.second));
  }
  return "";
}

}  // namespace

Access::Access(std::vector<std::string> hosts)
    : hosts_(std::move(hosts)),
      key_(RandomText()),
      secret_(RandomText()),
      cookie_name_(absl::StrCat("tandem_dashboard_", hosts_[0].substr(hosts_[0].rfind(':') + 1))) {}

std::optional<Access::Refusal> Access::Check(const WebRequest& request) const {
  if (std::find(hosts_.begin(), hosts_.end(), request.host) == hosts_.end()) {
    return Refusal{
        403, absl::StrCat("cannot answer: the request names another host; open http://", hosts_[0], "\n")};
  }
  // A link may lead to the page. Browsers send no cookie with a link's requests (SameSite=Strict). The page's
  // files hold no data.
  const bool is_page =
      request.method == "GET" && (request.path == "/" || absl::StartsWith(request.path, "/page/"));
  if (!request.origin.empty() && request.origin != absl::StrCat("http://", request.host))
    return Refusal{403, "cannot answer: the request comes from another site\n"};
  if (!is_page && !request.fetch_site.empty() && request.fetch_site != "same-origin" &&
      request.fetch_site != "none")
    return Refusal{403, "cannot answer: the request comes from another site\n"};
  if (request.method == "POST" && !absl::StartsWith(request.content_type, "application/json"))
    return Refusal{403, "cannot answer: the request is not JSON\n"};
  if (!is_page && !IsSame(CookieIn(request.cookie, cookie_name_), secret_)) {
    return Refusal{401,
                   "cannot answer: this browser has no key, or the key was used; open the address that "
                   "`tandem dashboard` prints, or start `tandem dashboard` again\n"};
  }
  return std::nullopt;
}

std::optional<std::string> Access::Exchange(absl::string_view key) {
  if (!IsSame(key, key_)) return std::nullopt;
  absl::MutexLock lock(&mutex_);
  if (std::exchange(key_is_used_, true)) return std::nullopt;
  return absl::StrCat(cookie_name_, "=", secret_, "; Path=/; HttpOnly; SameSite=Strict");
}

}  // namespace tandem::dashboard

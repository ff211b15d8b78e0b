#include "client/dashboard/page_files.h"

#include <openssl/sha.h>

#include <map>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace tandem::dashboard {
namespace {

struct Entry {
  absl::string_view name;
  absl::string_view content;
};

#include "client/dashboard/page_content.inc"

absl::string_view TypeOf(absl::string_view name) {
  if (absl::EndsWith(name, ".js")) return "text/javascript; charset=utf-8";
  if (absl::EndsWith(name, ".css")) return "text/css; charset=utf-8";
  if (absl::EndsWith(name, ".svg")) return "image/svg+xml";
  return "text/html; charset=utf-8";
}

}  // namespace

const PageFile* FindPageFile(absl::string_view name) {
  static const auto* const files = [] {
    auto* const made = new std::map<absl::string_view, PageFile>;
    for (const Entry& entry : kEntries)
      made->emplace(entry.name, PageFile{entry.content, TypeOf(entry.name)});
    return made;
  }();
  const auto found = files->find(name);
  return found == files->end() ? nullptr : &found->second;
}

std::string InlineScriptSource() {
  constexpr absl::string_view kBegin = "<script>";
  const absl::string_view page = FindPageFile("index.html")->content;
  const size_t begin = page.find(kBegin) + kBegin.size();
  const absl::string_view script = page.substr(begin, page.find("</script>", begin) - begin);
  unsigned char hash[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(script.data()), script.size(), hash);
  return absl::StrCat("'sha256-", absl::Base64Escape({reinterpret_cast<const char*>(hash), sizeof(hash)}),
                      "'");
}

bool HasPage() { return FindPageFile("uPlot.esm.js") != nullptr; }

}  // namespace tandem::dashboard

#include "engine/data/formats/tar.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "engine/base/status_macros.h"
#include "engine/base/utf8.h"
#include "proto/data_folder/data_folder.h"

namespace tandem {
namespace {

constexpr int64_t kBlock = 512;
// The longest name. No real file has a longer name.
constexpr int64_t kMaxLongName = 1 << 16;
// The longest pax header. Extended attributes may be longer than names.
constexpr int64_t kMaxPaxBytes = 1 << 20;

using Block = std::array<char, kBlock>;

// Returns the text of a field, up to a zero byte if any.
std::string Field(const Block& block, size_t begin, size_t size) {
  const char* text = block.data() + begin;
  return std::string(text, strnlen(text, size));
}

// Parses an octal number with blanks around it. Returns -1 if it is none.
int64_t Octal(const Block& block, size_t begin, size_t size) {
  int64_t value = 0;
  bool digits = false;
  for (size_t i = begin; i < begin + size; ++i) {
    const char c = block[i];
    if (c >= '0' && c <= '7') {
      if (value >> 58 != 0) return -1;
      value = value * 8 + (c - '0');
      digits = true;
    } else if (c == '\0' || c == ' ') {
      if (digits) break;
    } else {
      return -1;
    }
  }
  return digits ? value : -1;
}

bool ChecksumFits(const Block& block) {
  int64_t sum = 0;
  for (int64_t i = 0; i < kBlock; ++i) {
    sum += i >= 148 && i < 156 ? ' ' : static_cast<uint8_t>(block[i]);
  }
  return Octal(block, 148, 8) == sum;
}

// The records of a pax header that change the next member.
struct PaxRecords {
  std::string path;        // Empty: not given.
  int64_t bytes = -1;      // -1: not given.
  bool is_sparse = false;  // The content begins with a map of the file's holes.
};

// Parses records such as "16 path=a/b.jpg\n". Returns false if they are damaged.
bool ParsePax(absl::string_view text, PaxRecords& records) {
  while (!text.empty()) {
    const size_t blank = text.find(' ');
    size_t length = 0;
    if (blank == absl::string_view::npos || !absl::SimpleAtoi(text.substr(0, blank), &length) ||
        length <= blank + 1 || length > text.size() || text[length - 1] != '\n') {
      return false;
    }
    absl::string_view record = text.substr(blank + 1, length - blank - 2);
    if (absl::ConsumePrefix(&record, "path=")) {
      records.path = std::string(record);
    } else if (absl::ConsumePrefix(&record, "size=")) {
      if (!absl::SimpleAtoi(record, &records.bytes) || records.bytes < 0) return false;
    } else if (absl::StartsWith(record, "GNU.sparse.")) {
      records.is_sparse = true;
    }
    text.remove_prefix(length);
  }
  return true;
}

// Checks that only zeros follow the end of an archive. Archives that were joined have members there.
absl::Status CheckRest(CompressedFile& file) {
  std::vector<char> buffer(1 << 16);
  while (true) {
    TANDEM_ASSIGN_OR_RETURN(const int64_t count,
                            file.Read(buffer.data(), static_cast<int64_t>(buffer.size())));
    if (count == 0) return absl::OkStatus();
    if (!std::all_of(buffer.begin(), buffer.begin() + count, [](char c) { return c == '\0'; })) {
      return file.Error(
          "has data behind the block that ends a tar archive, as joined archives have; keep each archive in "
          "its own file");
    }
  }
}

// Refuses members whose content is elsewhere, or is not stored as it is.
absl::Status CheckType(const CompressedFile& file, char type, bool is_sparse, const std::string& name) {
  const bool is_link = type == '1' || type == '2';  // Hard, or symbolic.
  if ((!is_link && !is_sparse) || IsSkippedPath(name)) return absl::OkStatus();
  return file.Error(absl::StrCat(
      "has the ", is_link ? "link " : "sparse file ", ToUtf8(name), "; make the archive again by tar ",
      is_link ? "--dereference --hard-dereference" : "without --sparse, or by bsdtar with --no-read-sparse"));
}

}  // namespace

bool IsTar(absl::string_view begin) {
  if (static_cast<int64_t>(begin.size()) < kBlock) return false;
  Block block;
  std::memcpy(block.data(), begin.data(), kBlock);
  return ChecksumFits(block);
}

absl::Status ForEachTarMember(CompressedFile& file,
                              const std::function<absl::Status(const TarMember&, const TarRead&)>& visit) {
  std::string long_name;
  int64_t pax_bytes = -1;      // The next member's size by its pax header.
  bool is_pax_sparse = false;  // Whether its pax header says that it is sparse.
  int64_t position = 0;
  while (true) {
    Block block;
    TANDEM_ASSIGN_OR_RETURN(const int64_t header, file.Read(block.data(), kBlock));
    if (header == 0) return file.Error("is truncated: the block that ends a tar archive is missing");
    if (header < kBlock) return file.Error("is truncated: it ends within a tar header");
    if (std::all_of(block.begin(), block.end(), [](char c) { return c == '\0'; })) return CheckRest(file);
    if (!ChecksumFits(block)) {
      return file.Error(position == 0
                            ? "is no tar archive, or is damaged: its first header's checksum is wrong"
                            : "is damaged: a tar header's checksum is wrong");
    }
    position += kBlock;
    TarMember member;
    member.bytes = Octal(block, 124, 12);
    const char type = block[156];
    const bool names_next = type == 'L' || type == 'x';  // GNU, or pax.
    if (!names_next && pax_bytes >= 0) member.bytes = std::exchange(pax_bytes, -1);
    if (type == 'V') member.bytes = 0;  // GNU's label of a volume, which may have no size.
    if (member.bytes < 0) return file.Error("is damaged: a tar header gives no size");
    if (member.bytes > std::numeric_limits<int64_t>::max() - kBlock) {
      return file.Error("is damaged: a tar header's size is too large");
    }
    const int64_t padded = (member.bytes + kBlock - 1) / kBlock * kBlock;
    member.content_at = position;
    if (padded > std::numeric_limits<int64_t>::max() - position)
      return file.Error("is damaged: a tar header's size is too large");
    position += padded;
    if (names_next) {
      if (member.bytes > (type == 'L' ? kMaxLongName : kMaxPaxBytes)) {
        return file.Error(type == 'L' ? "is damaged: a tar member's name is too long"
                                      : "is damaged: a pax header is too long");
      }
      std::string text(padded, '\0');
      TANDEM_ASSIGN_OR_RETURN(const int64_t count, file.Read(text.data(), padded));
      if (count < padded) return file.Error("is truncated: it ends within a tar header");
      if (type == 'L') {
        long_name = text.substr(0, strnlen(text.data(), member.bytes));
        continue;
      }
      PaxRecords records;
      if (!ParsePax(absl::string_view(text).substr(0, member.bytes), records)) {
        return file.Error("is damaged: a pax header cannot be read");
      }
      if (static_cast<int64_t>(records.path.size()) > kMaxLongName) {
        return file.Error("is damaged: a tar member's name is too long");
      }
      if (!records.path.empty()) long_name = std::move(records.path);
      pax_bytes = records.bytes;
      is_pax_sparse = records.is_sparse;
      continue;
    }
    if (!long_name.empty()) {
      member.name = std::move(long_name);
      long_name.clear();
    } else {
      const std::string prefix = Field(block, 257, 5) == "ustar" ? Field(block, 345, 155) : "";
      member.name = absl::StrCat(prefix, prefix.empty() ? "" : "/", Field(block, 0, 100));
    }
    const bool is_sparse = std::exchange(is_pax_sparse, false) || type == 'S';
    TANDEM_RETURN_IF_ERROR(CheckType(file, type, is_sparse, member.name));
    int64_t left = member.bytes;
    if (type == '0' || type == '\0' || type == '7') {
      const TarRead read = [&](void* data, int64_t size) -> absl::StatusOr<int64_t> {
        const int64_t wanted = std::min(size, left);
        TANDEM_ASSIGN_OR_RETURN(const int64_t count, file.Read(data, wanted));
        if (count < wanted)
          return file.Error(absl::StrCat("is truncated: it ends within its member ", member.name));
        left -= count;
        return count;
      };
      TANDEM_RETURN_IF_ERROR(visit(member, read));
    }
    TANDEM_RETURN_IF_ERROR(file.Skip(left + padded - member.bytes));
  }
}

}  // namespace tandem

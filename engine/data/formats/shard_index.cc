#include "engine/data/formats/shard_index.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "engine/base/foreign_format.h"
#include "engine/base/status_macros.h"
#include "engine/base/unique_fd.h"
#include "engine/base/utf8.h"
#include "engine/data/dataset.h"
#include "engine/data/formats/compressed_file.h"
#include "engine/data/formats/tar.h"
#include "proto/data_folder/data_folder.h"

namespace tandem {
namespace {

// The longest content of a ".cls" member.
constexpr int64_t kMaxLabelBytes = 64;
constexpr size_t kQuotedBytes = 200;
// The most kinds of skipped members that are counted apart, and the longest ending of such a kind.
constexpr size_t kMostKinds = 100;
constexpr size_t kLongestEnding = 32;

// A plain file that is read at places, so that skipped bytes are not read.
class PlainFile final : public CompressedFile {
 public:
  static absl::StatusOr<std::unique_ptr<PlainFile>> Open(const std::string& path) {
    // Without O_NONBLOCK, opening a named pipe would block.
    UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (!fd.valid()) {
      const int error = errno;
      return absl::InvalidArgumentError(
          error == ENOENT ? absl::StrCat(path, " does not exist")
                          : absl::StrCat(path, " cannot be opened: ", std::strerror(error)));
    }
    struct stat stat;
    if (::fstat(fd.get(), &stat) != 0 || !S_ISREG(stat.st_mode)) {
      return absl::InvalidArgumentError(absl::StrCat(path, " is not a regular file"));
    }
    ShardVersion version = {
        .bytes = stat.st_size,
        .modify_time_nanos = int64_t{stat.st_mtim.tv_sec} * 1000000000 + stat.st_mtim.tv_nsec,
        .inode = stat.st_ino};
    return std::unique_ptr<PlainFile>(new PlainFile(path, std::move(fd), version));
  }

  const ShardVersion& version() const { return version_; }

  absl::StatusOr<int64_t> Read(void* data, int64_t size) override {
    TANDEM_ASSIGN_OR_RETURN(const int64_t count, ReadAt(at_, data, size));
    at_ += count;
    return count;
  }

  absl::Status Skip(int64_t bytes) override {
    if (bytes > version_.bytes - at_) return Error("is truncated: its last member does not end");
    at_ += bytes;
    return absl::OkStatus();
  }

  int64_t StatedLength() override { return version_.bytes; }

  // Reads up to `size` bytes, fewer only at the end.
  absl::StatusOr<int64_t> ReadAt(int64_t place, void* data, int64_t size) const {
    int64_t done = 0;
    while (done < size) {
      const ssize_t count = ::pread(fd_.get(), static_cast<char*>(data) + done, size - done, place + done);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return Error(absl::StrCat("cannot be read: ", std::strerror(errno)));
      if (count == 0) break;
      done += count;
    }
    return done;
  }

 private:
  PlainFile(const std::string& path, UniqueFd fd, ShardVersion version)
      : CompressedFile(path, version.bytes), fd_(std::move(fd)), version_(version) {}

  const UniqueFd fd_;
  const ShardVersion version_;
  int64_t at_ = 0;
};

// A member's name in its parts: "a/7.seg.PNG" has the key "a/7" and the ending "seg.png".
struct MemberName {
  std::string key;
  std::string ending;
};

MemberName SplitName(absl::string_view name) {
  while (absl::ConsumePrefix(&name, "./")) {
  }
  const size_t file = name.rfind('/') == absl::string_view::npos ? 0 : name.rfind('/') + 1;
  const size_t dot = name.find('.', file);
  if (dot == absl::string_view::npos) return {std::string(name), ""};
  return {std::string(name.substr(0, dot)), absl::AsciiStrToLower(name.substr(dot + 1))};
}

bool IsPictureEnding(absl::string_view ending) {
  return !absl::StrContains(ending, '.') && IsPictureName(absl::StrCat(".", ending));
}

// Returns a name of any bytes for messages, cut if it is long.
std::string Shown(absl::string_view name) {
  return absl::StrCat(ToUtf8(absl::Utf8SafeCHexEscape(name.substr(0, kQuotedBytes))),
                      name.size() > kQuotedBytes ? "..." : "");
}

std::string QuoteName(absl::string_view name) { return absl::StrCat("'", Shown(name), "'"); }

// Builds an index, member by member.
class Indexer {
 public:
  explicit Indexer(const PlainFile& file) : file_(file) {}

  absl::Status Add(const TarMember& member, const TarRead& read) {
    const MemberName name = SplitName(member.name);
    if (name.key.empty() || absl::EndsWith(name.key, "/") || IsSkippedPath(name.key)) {
      CountSkipped("hidden");
      return absl::OkStatus();
    }
    const bool is_picture = IsPictureEnding(name.ending);
    if (!is_picture && name.ending != "cls") {
      CountSkipped(name.ending.empty() ? "without an ending" : absl::StrCat(".", name.ending));
      return absl::OkStatus();
    }
    if (name.key != key_ || !is_open_) {
      TANDEM_RETURN_IF_ERROR(EndSample());
      key_ = name.key;
      is_open_ = true;
    }
    if (is_picture ? has_picture_ : has_label_) {
      return file_.Error(absl::StrCat("has two ", is_picture ? "pictures" : "labels", " for the sample ",
                                      QuoteName(key_), "; a sample has one of each"));
    }
    return is_picture ? AddPicture(member) : AddLabel(member, read);
  }

  absl::StatusOr<ShardIndex> Finish() {
    TANDEM_RETURN_IF_ERROR(EndSample());
    if (index_.samples.empty()) {
      return file_.Error("has no samples: no picture with a .cls member of the same name beside it");
    }
    index_.path = file_.path();
    index_.version = file_.version();
    return std::move(index_);
  }

 private:
  void CountSkipped(const std::string& kind) {
    // A damaged shard may have any number of endings.
    const bool has_room = index_.skipped.size() < kMostKinds || index_.skipped.count(kind) != 0;
    ++index_.skipped[has_room && kind.size() <= kLongestEnding ? kind : "with other endings"];
  }

  absl::Status AddPicture(const TarMember& member) {
    if (member.bytes > kMaxShardPictureBytes) {
      return file_.Error(absl::StrCat("has ", QuoteName(member.name), " of ", member.bytes,
                                      " bytes; a picture may have at most ", kMaxShardPictureBytes));
    }
    sample_.picture_at = member.content_at;
    sample_.picture_bytes = static_cast<int32_t>(member.bytes);
    has_picture_ = true;
    return absl::OkStatus();
  }

  absl::Status AddLabel(const TarMember& member, const TarRead& read) {
    std::string text(std::min(member.bytes, kMaxLabelBytes), '\0');
    TANDEM_RETURN_IF_ERROR(read(text.data(), static_cast<int64_t>(text.size())).status());
    if (member.bytes > kMaxLabelBytes || !absl::SimpleAtoi(text, &sample_.label) || sample_.label < 0) {
      return file_.Error(absl::StrCat("has the label ", QuoteName(absl::StripAsciiWhitespace(text)), " in ",
                                      QuoteName(member.name),
                                      "; a .cls member must hold the number of a class, from 0"));
    }
    has_label_ = true;
    return absl::OkStatus();
  }

  absl::Status EndSample() {
    if (!is_open_) return absl::OkStatus();
    if (!has_picture_ || !has_label_) {
      return file_.Error(absl::StrCat(
          "has the sample ", QuoteName(key_), has_picture_ ? " without a label" : " without a picture",
          "; a picture and its .cls member must have the same name up to the first dot, and must "
          "not have another sample between them"));
    }
    if (static_cast<int64_t>(index_.samples.size()) >= kMaxSamples) {
      return file_.Error(absl::StrCat("has more than the ", kMaxSamples, " samples that can be read"));
    }
    index_.samples.push_back(sample_);
    sample_ = {};
    is_open_ = has_picture_ = has_label_ = false;
    return absl::OkStatus();
  }

  const PlainFile& file_;
  ShardIndex index_;
  // The sample whose members are being read.
  bool is_open_ = false;
  std::string key_;
  bool has_picture_ = false;
  bool has_label_ = false;
  ShardSample sample_;
};

// Returns the reason why a file with these first bytes is no shard. "" if it begins as a tar archive.
std::string WhyNoShard(absl::string_view begin) {
  if (begin.empty()) return "is empty; a shard is a tar archive with samples";
  // An archive without members begins with the block of zeros at its end.
  if (IsTar(begin) || begin.find_first_not_of('\0') == absl::string_view::npos) return "";
  for (const absl::string_view magic :
       {absl::string_view("\x1F\x8B"), absl::string_view("\xFD\x37zXZ\0", 6),
        absl::string_view("\x28\xB5\x2F\xFD"), absl::string_view("BZh"), absl::string_view("PK\x03\x04")}) {
    if (absl::StartsWith(begin, magic)) {
      return "is compressed, but a shard must be a plain tar archive; decompress it";
    }
  }
  if (const std::string fault = ForeignDataFault(begin); !fault.empty()) return fault;
  return "is no tar archive, or is damaged: its first header cannot be read";
}

}  // namespace

absl::StatusOr<ShardIndex> ReadShardIndex(const std::string& path) {
  TANDEM_ASSIGN_OR_RETURN(const std::unique_ptr<PlainFile> file, PlainFile::Open(path));
  std::string begin(std::max<size_t>(512, kForeignFormatBytes), '\0');
  TANDEM_ASSIGN_OR_RETURN(const int64_t count,
                          file->ReadAt(0, begin.data(), static_cast<int64_t>(begin.size())));
  begin.resize(count);
  if (const std::string fault = WhyNoShard(begin); !fault.empty()) return file->Error(fault);
  Indexer indexer(*file);
  TANDEM_RETURN_IF_ERROR(ForEachTarMember(
      *file, [&](const TarMember& member, const TarRead& read) { return indexer.Add(member, read); }));
  return indexer.Finish();
}

absl::StatusOr<std::string> ReadShardPicture(const ShardIndex& shard, const ShardSample& sample,
                                             int64_t most) {
  TANDEM_ASSIGN_OR_RETURN(const std::unique_ptr<PlainFile> file, PlainFile::Open(shard.path));
  if (file->version() != shard.version) {
    return file->Error(
        "has changed since it was opened; start the job again when no program writes the shard");
  }
  std::string content(std::min<int64_t>(most, sample.picture_bytes), '\0');
  TANDEM_ASSIGN_OR_RETURN(const int64_t count, file->ReadAt(sample.picture_at, content.data(),
                                                            static_cast<int64_t>(content.size())));
  if (count < static_cast<int64_t>(content.size())) return file->Error("is truncated");
  return content;
}

std::string ShownPicture(const ShardIndex& shard, const ShardSample& sample) {
  std::string name = absl::StrCat("the picture at byte ", sample.picture_at);
  const absl::StatusOr<std::unique_ptr<PlainFile>> file = PlainFile::Open(shard.path);
  if (file.ok()) {
    // If the shard cannot be read, the offset names the picture.
    ForEachTarMember(**file, [&](const TarMember& member, const TarRead& /*read*/) {
      if (member.content_at != sample.picture_at) return absl::OkStatus();
      name = member.name;
      return absl::CancelledError("found");
    }).IgnoreError();
  }
  return absl::StrCat(shard.path, "/", Shown(name));
}

}  // namespace tandem

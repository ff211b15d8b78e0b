#include "engine/data/formats/picture_tree.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "engine/base/status_macros.h"
#include "engine/base/unique_fd.h"
#include "engine/base/utf8.h"
#include "engine/data/formats/archive.h"
#include "engine/data/formats/compressed_file.h"
#include "engine/data/formats/tar.h"
#include "engine/data/formats/zip.h"
#include "proto/data_folder/data_folder.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostFiles = size_t{1} << 22;
// The most bytes of pictures in memory, if half of the memory has as many.
constexpr int64_t kMostBytesInMemory = int64_t{1} << 33;

// Returns a member's path without "./" and empty parts. Old archivers of Windows separate folders by
// backslashes.
std::string PlainPath(absl::string_view name) {
  std::string path(name);
  if (!absl::StrContains(path, '/')) path = absl::StrReplaceAll(path, {{"\\", "/"}});
  std::vector<std::string> parts;
  for (const absl::string_view part : absl::StrSplit(path, '/', absl::SkipEmpty())) {
    if (part != ".") parts.emplace_back(part);
  }
  return absl::StrJoin(parts, "/");
}

class FolderTree final : public PictureTree {
 public:
  explicit FolderTree(const std::string& folder) : PictureTree(folder) {}

  absl::Status List() {
    absl::Status sizes;
    TANDEM_RETURN_IF_ERROR(WalkDataFolder(root_, [&](const fs::path& path, bool is_folder) {
      std::string relative(absl::StripPrefix(path.string().substr(root_.size()), "/"));
      if (is_folder) {
        folders_.push_back(std::move(relative));
        return;
      }
      std::error_code error;
      const uintmax_t bytes = fs::file_size(path, error);
      if (error) {
        sizes.Update(absl::InvalidArgumentError(
            absl::StrCat(path.string(), " cannot be read: ", error.message(), "; mend or remove the file")));
        return;
      }
      files_.push_back({.path = std::move(relative), .bytes = static_cast<int64_t>(bytes)});
    }));
    TANDEM_RETURN_IF_ERROR(sizes);
    if (files_.size() > kMostFiles)
      return absl::InvalidArgumentError(absl::StrCat(root_, " has more than ", kMostFiles, " files"));
    Finish();
    return absl::OkStatus();
  }

  absl::StatusOr<std::string> Read(const File& file, int64_t most) const override {
    const std::string path = Shown(file.path);
    std::ifstream stream(path, std::ios::binary);
    if (!stream) return absl::InvalidArgumentError(absl::StrCat(path, " cannot be opened"));
    std::string content(std::min(most, file.bytes), '\0');
    stream.read(content.data(), static_cast<std::streamsize>(content.size()));
    content.resize(stream.gcount());
    return content;
  }
};

class ZipTree final : public PictureTree {
 public:
  ZipTree(const std::string& path, ZipFile zip) : PictureTree(path), zip_(std::move(zip)) {}

  absl::Status List() {
    const std::vector<ZipMember>& members = zip_.members();
    for (size_t i = 0; i < members.size(); ++i) {
      if (members[i].is_link && !IsSkippedPath(members[i].name)) {
        return absl::InvalidArgumentError(absl::StrCat(root_, " has the link ", ToUtf8(members[i].name),
                                                       "; make the archive again without links"));
      }
      TANDEM_RETURN_IF_ERROR(AddMember(members[i].name, members[i].bytes, static_cast<int64_t>(i)));
    }
    FinishArchive();
    return absl::OkStatus();
  }

  absl::StatusOr<std::string> Read(const File& file, int64_t most) const override {
    return zip_.Read(zip_.members()[file.place], most);
  }

 private:
  const ZipFile zip_;
};

class TarTree final : public PictureTree {
 public:
  explicit TarTree(const std::string& path) : PictureTree(path), path_(path) {}

  absl::Status List() {
    TANDEM_ASSIGN_OR_RETURN(const std::unique_ptr<CompressedFile> file, CompressedFile::Open(path_));
    if (file->is_plain()) {
      fd_ = UniqueFd(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
      if (!fd_.valid()) return file->Error(absl::StrCat("cannot be opened: ", std::strerror(errno)));
    }
    const int64_t most = CompressedFile::MostInMemory(kMostBytesInMemory, 1);
    int64_t bytes = 0;
    TANDEM_RETURN_IF_ERROR(
        ForEachTarMember(*file, [&](const TarMember& member, const TarRead& read) -> absl::Status {
          if (file->is_plain()) return AddMember(member.name, member.bytes, member.content_at);
          TANDEM_RETURN_IF_ERROR(
              AddMember(member.name, member.bytes, static_cast<int64_t>(contents_.size())));
          const std::string path = PlainPath(member.name);
          if (IsSkippedPath(path) || !IsPictureName(path)) return absl::OkStatus();
          if (member.bytes > most - bytes) {
            return file->Error(
                absl::StrCat("has pictures of more than the ", most,
                             " bytes that are held in memory; unpack it, or make a zip archive"));
          }
          bytes += member.bytes;
          return Keep(member, read);
        }));
    FinishArchive();
    return absl::OkStatus();
  }

  absl::StatusOr<std::string> Read(const File& file, int64_t most) const override {
    if (!fd_.valid()) {
      if (!IsPictureName(file.path))
        return absl::InvalidArgumentError(absl::StrCat(Shown(file.path), " is no picture"));
      return contents_[file.place].substr(0, most);
    }
    std::string content(std::min(most, file.bytes), '\0');
    for (size_t done = 0; done < content.size();) {
      const ssize_t count = ::pread(fd_.get(), content.data() + done, content.size() - done,
                                    file.place + static_cast<int64_t>(done));
      if (count <= 0) return absl::InvalidArgumentError(absl::StrCat(Shown(file.path), " cannot be read"));
      done += count;
    }
    return content;
  }

 private:
  // Keeps the content of a member. A header's size takes no memory before the bytes are there.
  absl::Status Keep(const TarMember& member, const TarRead& read) {
    constexpr int64_t kPiece = int64_t{1} << 20;
    std::string& content = contents_.emplace_back();
    while (static_cast<int64_t>(content.size()) < member.bytes) {
      const auto done = static_cast<int64_t>(content.size());
      const int64_t wanted = std::min(kPiece, member.bytes - done);
      content.resize(done + wanted);
      TANDEM_RETURN_IF_ERROR(read(content.data() + done, wanted).status());
    }
    return absl::OkStatus();
  }

  const std::string path_;
  UniqueFd fd_;                        // Of a plain archive.
  std::vector<std::string> contents_;  // Pictures of a compressed archive.
};

}  // namespace

absl::StatusOr<std::shared_ptr<const PictureTree>> PictureTree::Open(const std::string& path) {
  std::error_code ignored;
  const auto list = [](auto tree) -> absl::StatusOr<std::shared_ptr<const PictureTree>> {
    TANDEM_RETURN_IF_ERROR(tree->List());
    return tree;
  };
  if (!fs::is_regular_file(path, ignored)) {
    return list(std::make_shared<FolderTree>(std::string(absl::StripSuffix(path, "/"))));
  }
  if (BeginsAsZip(path)) {
    TANDEM_ASSIGN_OR_RETURN(ZipFile zip, ZipFile::Open(path));
    return list(std::make_shared<ZipTree>(path, std::move(zip)));
  }
  return list(std::make_shared<TarTree>(path));
}

std::string PictureTree::Shown(absl::string_view path) const {
  return path.empty() ? root_ : absl::StrCat(root_, "/", path);
}

absl::Status PictureTree::AddMember(absl::string_view name, int64_t bytes, int64_t place) {
  std::string path = PlainPath(name);
  if (path.empty() || IsSkippedPath(path)) return absl::OkStatus();
  if (absl::EndsWith(name, "/") || absl::EndsWith(name, "\\")) {
    folders_.push_back(std::move(path));
  } else {
    files_.push_back({.path = std::move(path), .bytes = bytes, .place = place});
  }
  if (files_.size() + folders_.size() <= kMostFiles) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(root_, " has more than ", kMostFiles, " files"));
}

void PictureTree::Finish() {
  std::stable_sort(files_.begin(), files_.end(),
                   [](const File& a, const File& b) { return a.path < b.path; });
  std::vector<File> last;
  for (File& file : files_) {
    if (!last.empty() && last.back().path == file.path) last.pop_back();
    last.push_back(std::move(file));
  }
  files_ = std::move(last);
  std::set<std::string> folders(std::make_move_iterator(folders_.begin()),
                                std::make_move_iterator(folders_.end()));
  for (const File& file : files_) {
    for (size_t slash = file.path.rfind('/'); slash != std::string::npos && slash > 0;
         slash = file.path.rfind('/', slash - 1)) {
      if (!folders.insert(file.path.substr(0, slash)).second) break;
    }
  }
  folders_.assign(folders.begin(), folders.end());
}

void PictureTree::FinishArchive() {
  Finish();
  while (true) {
    // The folder that holds all pictures.
    std::string outer;
    for (const File& file : files_) {
      if (!IsPictureName(file.path)) continue;
      const size_t slash = file.path.find('/');
      if (slash == std::string::npos || file.path.find('/', slash + 1) == std::string::npos) return;
      const absl::string_view first = absl::string_view(file.path).substr(0, slash + 1);
      if (outer.empty()) outer = std::string(first);
      if (outer != first) return;
    }
    if (outer.empty()) return;
    std::vector<File> files;
    for (File& file : files_) {
      if (!absl::StartsWith(file.path, outer)) continue;
      file.path.erase(0, outer.size());
      files.push_back(std::move(file));
    }
    files_ = std::move(files);
    std::vector<std::string> folders;
    for (std::string& folder : folders_) {
      if (absl::StartsWith(folder, outer)) folders.push_back(folder.substr(outer.size()));
    }
    folders_ = std::move(folders);
    root_ = absl::StrCat(root_, "/", absl::StripSuffix(outer, "/"));
  }
}

}  // namespace tandem

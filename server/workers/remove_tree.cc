#include "server/workers/remove_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <memory>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "server/workers/owner_mode.h"
#include "server/workers/unique_fd.h"

namespace tandem {
namespace {

// Each level takes a file descriptor. Deeper folders are moved up.
constexpr int kMostDepth = 32;

// Opens a folder; restores its mode first if it forbids reading or removing. errno has the reason of a
// failure.
UniqueFd OpenFolder(int parent, const char* name) {
  const UniqueFd found(openat(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!found.valid()) return UniqueFd();
  // If another account owns the folder, the next call fails.
  RestoreOwnerMode(found.get());
  return UniqueFd(openat(found.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

class TreeRemoval {
 public:
  TreeRemoval(int top, const std::function<bool()>& stops) : top_(top), stops_(stops) {}

  // Removes the open folder's entries once. Returns the first error.
  absl::Status Empty(int folder, int depth);
  // The number of removals and moves so far.
  int64_t changes() const { return changes_; }
  bool stopped() const { return stopped_; }

 private:
  absl::Status Remove(int folder, const char* name, int depth);
  // Moves a folder into the top folder.
  bool MoveUp(int folder, const char* name);

  const int top_;
  const std::function<bool()>& stops_;
  int64_t changes_ = 0;
  int64_t moves_ = 0;
  bool stopped_ = false;
};

absl::Status TreeRemoval::Empty(int folder, int depth) {
  // A separate descriptor, because the stream closes it.
  const int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(fd < 0 ? nullptr : fdopendir(fd), closedir);
  if (entries == nullptr) return absl::ErrnoToStatus(errno, "cannot look into a folder");
  absl::Status status;
  while (const dirent* const entry = readdir(entries.get())) {
    const absl::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    stopped_ = stopped_ || stops_();
    if (stopped_) break;
    status.Update(Remove(folder, entry->d_name, depth));
  }
  return status;
}

bool TreeRemoval::MoveUp(int folder, const char* name) {
  // Other entries may have such names.
  for (int tries = 0; tries < 1000; ++tries) {
    if (renameat(folder, name, top_, absl::StrCat(".removed-", moves_++).c_str()) == 0) return true;
    if (errno != ENOTEMPTY && errno != EEXIST && errno != ENOTDIR) return false;
  }
  return false;
}

absl::Status TreeRemoval::Remove(int folder, const char* name, int depth) {
  absl::Status inside;
  bool gone = unlinkat(folder, name, 0) == 0;
  if (!gone && errno == EISDIR) {
    const UniqueFd opened = OpenFolder(folder, name);
    if (opened.valid() && depth < kMostDepth) inside = Empty(opened.get(), depth + 1);
    gone = unlinkat(folder, name, AT_REMOVEDIR) == 0;
    if (!gone && errno == ENOTEMPTY && depth == kMostDepth) gone = MoveUp(folder, name);
  }
  if (gone) ++changes_;
  if (gone || stopped_ || errno == ENOENT) return absl::OkStatus();
  if (!inside.ok()) return inside;
  return absl::ErrnoToStatus(errno, absl::StrCat("its entry '", absl::CHexEscape(name), "'"));
}

}  // namespace

absl::Status RemoveTree(const std::string& path, const std::function<bool()>& stops) {
  if (unlink(path.c_str()) == 0 || errno == ENOENT) return absl::OkStatus();
  if (errno != EISDIR) return absl::ErrnoToStatus(errno, "unlink");
  const UniqueFd top = OpenFolder(AT_FDCWD, path.c_str());
  if (!top.valid()) return absl::ErrnoToStatus(errno, "open");
  TreeRemoval removal(top.get(), stops);
  absl::Status inside;
  int64_t before = 0;
  // Repeat for folders that were moved up, and for entries that a listing missed during removals.
  do {
    before = removal.changes();
    inside = removal.Empty(top.get(), 0);
    if (removal.stopped() || rmdir(path.c_str()) == 0 || errno == ENOENT) return absl::OkStatus();
  } while (removal.changes() != before);
  return inside.ok() ? absl::ErrnoToStatus(errno, "rmdir") : inside;
}

}  // namespace tandem

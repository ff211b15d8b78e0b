#include "engine/base/faulty_env.h"

#include <algorithm>
#include <random>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"

namespace tandem {
namespace {

constexpr int kUnlimited = 1 << 30;
// A write that is cut short ends at a multiple of this size.
constexpr int64_t kSector = 512;

}  // namespace

class FaultyEnv::File final : public WritableFile {
 public:
  File(FaultyEnv* env, std::shared_ptr<Inode> inode) : env_(env), inode_(std::move(inode)) {}

  absl::Status Append(absl::string_view data) override {
    MutexLock lock(&env_->mutex_);
    return env_->EditInode(
        inode_.get(), {.offset = static_cast<int64_t>(inode_->content.size()), .data = std::string(data)});
  }
  absl::Status Sync() override {
    MutexLock lock(&env_->mutex_);
    return env_->SyncInode(inode_.get());
  }
  absl::Status Close() override {
    MutexLock lock(&env_->mutex_);
    return env_->Change();
  }

 private:
  FaultyEnv* const env_;
  const std::shared_ptr<Inode> inode_;
};

class FaultyEnv::RandomFile final : public RandomAccessFile {
 public:
  RandomFile(FaultyEnv* env, std::shared_ptr<Inode> inode) : env_(env), inode_(std::move(inode)) {}

  absl::StatusOr<int64_t> ReadAt(int64_t offset, int64_t size, char* to) const override {
    MutexLock lock(&env_->mutex_);
    const int64_t end = static_cast<int64_t>(inode_->content.size());
    const int64_t count = std::clamp<int64_t>(end - offset, 0, size);
    if (count > 0) inode_->content.copy(to, count, offset);
    return count;
  }
  absl::Status WriteAt(int64_t offset, absl::string_view data) override {
    MutexLock lock(&env_->mutex_);
    return env_->EditInode(inode_.get(), {.offset = offset, .data = std::string(data)});
  }
  absl::Status Truncate(int64_t size) override {
    MutexLock lock(&env_->mutex_);
    return env_->EditInode(inode_.get(), {.offset = size, .data = "", .truncates = true});
  }
  absl::Status Sync() override {
    MutexLock lock(&env_->mutex_);
    return env_->SyncInode(inode_.get());
  }
  absl::StatusOr<int64_t> Size() const override {
    MutexLock lock(&env_->mutex_);
    return static_cast<int64_t>(inode_->content.size());
  }

 private:
  FaultyEnv* const env_;
  const std::shared_ptr<Inode> inode_;
};

void FaultyEnv::Apply(const Edit& edit, std::string* content) {
  if (edit.truncates) {
    content->resize(edit.offset);
    return;
  }
  const size_t end = edit.offset + edit.data.size();
  if (content->size() < end) content->resize(end);
  edit.data.copy(content->data() + edit.offset, edit.data.size());
}

absl::Status FaultyEnv::Change() {
  if (allowed_ == 0) {
    if (std::exchange(once_, false)) allowed_ = kUnlimited;
    return error_;
  }
  --allowed_;
  ++changes_;
  return absl::OkStatus();
}

absl::Status FaultyEnv::EditInode(Inode* inode, Edit edit) {
  TANDEM_RETURN_IF_ERROR(Change());
  Apply(edit, &inode->content);
  inode->unsynced.push_back(std::move(edit));
  return absl::OkStatus();
}

absl::Status FaultyEnv::SyncInode(Inode* inode) {
  const absl::Status status = Change();
  if (status.ok()) {
    for (const Edit& edit : inode->unsynced) Apply(edit, &inode->synced);
  } else if (allowed_ == 0) {
    return status;  // The power is about to fail: unsynced edits may still survive.
  }
  inode->unsynced.clear();
  return status;
}

absl::StatusOr<std::unique_ptr<WritableFile>> FaultyEnv::CreateFile(const std::string& path) {
  MutexLock lock(&mutex_);
  TANDEM_RETURN_IF_ERROR(Change());
  names_[path] = std::make_shared<Inode>();
  return std::make_unique<File>(this, names_[path]);
}

absl::StatusOr<std::unique_ptr<WritableFile>> FaultyEnv::CreatePrivateFile(const std::string& path) {
  return CreateFile(path);
}

absl::StatusOr<std::unique_ptr<WritableFile>> FaultyEnv::AppendToFile(const std::string& path) {
  MutexLock lock(&mutex_);
  TANDEM_RETURN_IF_ERROR(Change());
  const auto found = names_.find(path);
  if (found == names_.end()) return absl::NotFoundError(path);
  return std::make_unique<File>(this, found->second);
}

absl::StatusOr<std::unique_ptr<RandomAccessFile>> FaultyEnv::OpenRandomAccess(const std::string& path,
                                                                              Open how) {
  MutexLock lock(&mutex_);
  const auto found = names_.find(path);
  if (found == names_.end()) {
    if (how == Open::kReadOnly || how == Open::kExisting) return absl::NotFoundError(path);
    TANDEM_RETURN_IF_ERROR(Change());
    names_[path] = std::make_shared<Inode>();
  } else if (how == Open::kCreateNew) {
    return absl::AlreadyExistsError(path);
  } else if (how == Open::kEmpty) {
    TANDEM_RETURN_IF_ERROR(EditInode(found->second.get(), {.offset = 0, .data = "", .truncates = true}));
  }
  return std::make_unique<RandomFile>(this, names_[path]);
}

absl::StatusOr<std::string> FaultyEnv::ReadFile(const std::string& path) {
  MutexLock lock(&mutex_);
  const auto found = names_.find(path);
  if (found == names_.end()) return absl::NotFoundError(path);
  return found->second->content;
}

absl::Status FaultyEnv::RenameFile(const std::string& from, const std::string& to) {
  MutexLock lock(&mutex_);
  TANDEM_RETURN_IF_ERROR(Change());
  const auto found = names_.find(from);
  if (found == names_.end()) return absl::NotFoundError(from);
  names_[to] = found->second;
  names_.erase(from);
  return absl::OkStatus();
}

absl::Status FaultyEnv::RemoveFile(const std::string& path) {
  MutexLock lock(&mutex_);
  TANDEM_RETURN_IF_ERROR(Change());
  if (names_.erase(path) == 0) return absl::NotFoundError(path);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> FaultyEnv::ListFolder(const std::string& path) {
  MutexLock lock(&mutex_);
  const std::string prefix = absl::StrCat(path, "/");
  std::vector<std::string> names;
  for (const auto& [name, inode] : names_) {
    if (name.rfind(prefix, 0) != 0) continue;
    const std::string rest = name.substr(prefix.size());
    if (rest.find('/') == std::string::npos) names.push_back(rest);
  }
  if (names.empty()) return absl::NotFoundError(path);
  return names;
}

absl::Status FaultyEnv::SyncDirectory(const std::string& path) {
  MutexLock lock(&mutex_);
  TANDEM_RETURN_IF_ERROR(Change());
  const std::string prefix = absl::StrCat(path, "/");
  std::erase_if(durable_names_, [&](const auto& entry) { return entry.first.rfind(prefix, 0) == 0; });
  for (const auto& [name, inode] : names_) {
    if (name.rfind(prefix, 0) == 0) durable_names_[name] = inode;
  }
  return absl::OkStatus();
}

void FaultyEnv::FailAfter(int count, absl::Status error) {
  MutexLock lock(&mutex_);
  allowed_ = count;
  error_ = std::move(error);
  once_ = false;
}

void FaultyEnv::FailOnceAfter(int count, absl::Status error) {
  MutexLock lock(&mutex_);
  allowed_ = count;
  error_ = std::move(error);
  once_ = true;
}

int FaultyEnv::changes() const {
  MutexLock lock(&mutex_);
  return changes_;
}

void FaultyEnv::CutPower(Unsynced unsynced, uint64_t seed) {
  MutexLock lock(&mutex_);
  std::mt19937_64 random(seed);
  if (unsynced == Unsynced::kLost) names_ = durable_names_;
  if (unsynced == Unsynced::kSome) {
    std::set<std::string> all;
    for (const auto& [name, inode] : names_) all.insert(name);
    for (const auto& [name, inode] : durable_names_) all.insert(name);
    std::map<std::string, std::shared_ptr<Inode>> names;
    for (const std::string& name : all) {
      const auto& from = random() % 2 == 0 ? names_ : durable_names_;
      if (const auto found = from.find(name); found != from.end()) names.insert(*found);
    }
    names_ = std::move(names);
  }
  for (const auto& [name, inode] : names_) {
    if (unsynced != Unsynced::kLost) {
      for (Edit& edit : inode->unsynced) {
        const uint64_t draw = unsynced == Unsynced::kKept ? 0 : random() % 4;
        if (draw == 1 || draw == 2) continue;
        if (draw == 3 && !edit.truncates) {
          // The write ends at the end of a sector.
          const int64_t sectors = static_cast<int64_t>(edit.data.size()) / kSector + 1;
          const int64_t end =
              (edit.offset / kSector + 1 + static_cast<int64_t>(random() % sectors)) * kSector;
          edit.data.resize(std::clamp<int64_t>(end - edit.offset, 0, edit.data.size()));
        }
        Apply(edit, &inode->synced);
      }
    }
    inode->unsynced.clear();
    inode->content = inode->synced;
  }
  durable_names_ = names_;
  allowed_ = kUnlimited;
  once_ = false;
}

}  // namespace tandem

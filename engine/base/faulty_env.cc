#include "engine/base/faulty_env.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"

namespace tandem {

class FaultyEnv::File final : public WritableFile {
 public:
  File(FaultyEnv* env, std::shared_ptr<Inode> inode) : env_(env), inode_(std::move(inode)) {}

  absl::Status Append(absl::string_view data) override {
    MutexLock lock(&env_->mutex_);
    TANDEM_RETURN_IF_ERROR(env_->Change());
    absl::StrAppend(&inode_->content, data);
    return absl::OkStatus();
  }
  absl::Status Sync() override {
    MutexLock lock(&env_->mutex_);
    TANDEM_RETURN_IF_ERROR(env_->Change());
    inode_->synced = inode_->content;
    return absl::OkStatus();
  }
  absl::Status Close() override {
    MutexLock lock(&env_->mutex_);
    return env_->Change();
  }

 private:
  FaultyEnv* const env_;
  const std::shared_ptr<Inode> inode_;
};

absl::Status FaultyEnv::Change() {
  if (allowed_ == 0) return absl::UnavailableError("the disk is gone");
  --allowed_;
  ++changes_;
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<WritableFile>> FaultyEnv::CreateFile(const std::string& path) {
  MutexLock lock(&mutex_);
  TANDEM_RETURN_IF_ERROR(Change());
  names_[path] = std::make_shared<Inode>();
  return std::make_unique<File>(this, names_[path]);
}

absl::StatusOr<std::unique_ptr<WritableFile>> FaultyEnv::AppendToFile(const std::string& path) {
  MutexLock lock(&mutex_);
  TANDEM_RETURN_IF_ERROR(Change());
  const auto found = names_.find(path);
  if (found == names_.end()) return absl::NotFoundError(path);
  return std::make_unique<File>(this, found->second);
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

void FaultyEnv::FailAfter(int count) {
  MutexLock lock(&mutex_);
  allowed_ = count;
}

int FaultyEnv::changes() const {
  MutexLock lock(&mutex_);
  return changes_;
}

void FaultyEnv::CutPower() {
  MutexLock lock(&mutex_);
  names_ = durable_names_;
  for (const auto& [name, inode] : names_) inode->content = inode->synced;
  allowed_ = 1 << 30;
}

}  // namespace tandem

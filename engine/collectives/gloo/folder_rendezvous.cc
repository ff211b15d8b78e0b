#include "engine/collectives/gloo/folder_rendezvous.h"

#include <unistd.h>

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "engine/base/clock.h"
#include "engine/base/env.h"
#include "engine/base/status_macros.h"

namespace tandem {
namespace {

// The interval of checks while a group forms. A shared folder does not announce other hosts' writes.
constexpr absl::Duration kLookEvery = absl::Milliseconds(10);

}  // namespace

FolderRendezvous::FolderRendezvous(std::string folder) : folder_(std::move(folder)) {}

absl::Status FolderRendezvous::Publish(const std::string& key, const std::string& value) {
  Env* const env = Env::Real();
  const std::string path = absl::StrCat(folder_, "/", key), unfinished = absl::StrCat(path, ".", getpid());
  TANDEM_ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file, env->CreateFile(unfinished));
  TANDEM_RETURN_IF_ERROR(file->Append(value));
  TANDEM_RETURN_IF_ERROR(file->Close());
  return env->RenameFile(unfinished, path);
}

absl::StatusOr<std::string> FolderRendezvous::Await(const std::string& key, absl::Duration timeout) {
  const std::string path = absl::StrCat(folder_, "/", key);
  const absl::Duration deadline = Clock::Real()->Elapsed() + timeout;
  while (true) {
    absl::StatusOr<std::string> value = Env::Real()->ReadFile(path);
    if (!absl::IsNotFound(value.status())) return value;
    if (Clock::Real()->Elapsed() >= deadline) {
      return absl::DeadlineExceededError(
          absl::StrCat(path, " has not appeared within ", absl::FormatDuration(timeout)));
    }
    absl::SleepFor(kLookEvery);
  }
}

}  // namespace tandem

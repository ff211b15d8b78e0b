#include "server/workers/worker_secret.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "server/workers/launch_file.h"
#include "third_party/spdlog/log.h"

namespace tandem {
namespace {

constexpr size_t kSecretBytes = 32;

}  // namespace

absl::StatusOr<std::string> MakeWorkerSecret() {
  std::string bytes(kSecretBytes, '\0');
  if (getentropy(bytes.data(), bytes.size()) != 0) {
    return absl::InternalError(absl::StrCat("cannot get random bytes: ", strerror(errno)));
  }
  return absl::BytesToHexString(bytes);
}

std::string WorkerSecretOf(const JobFolder& folder, int attempt) {
  absl::StatusOr<internal::v1::WorkerLaunch> launch = ReadLaunchFile(folder, attempt);
  if (launch.ok()) return std::move(*launch->mutable_secret());
  if (!absl::IsNotFound(launch.status())) {
    spdlog::error("cannot recognise a worker of an earlier daemon: {}",
                  std::string(launch.status().message()));
  }
  return "";
}

bool IsWorkerSecret(absl::string_view shown, absl::string_view secret) {
  if (secret.empty() || shown.size() != secret.size()) return false;
  unsigned char different = 0;
  for (size_t i = 0; i < secret.size(); ++i) different |= static_cast<unsigned char>(shown[i] ^ secret[i]);
  return different == 0;
}

}  // namespace tandem

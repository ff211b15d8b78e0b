#include "server/workers/worker_secret.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "engine/base/env.h"
#include "google/protobuf/text_format.h"
#include "tandem/internal/v1/worker.pb.h"

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
  const std::string path = folder.LaunchPath(attempt);
  const absl::StatusOr<std::string> text = Env::Real()->ReadFile(path);
  if (absl::IsNotFound(text.status())) return "";
  internal::v1::WorkerLaunch launch;
  google::protobuf::TextFormat::Parser parser;
  // Of a later version, from which somebody went back to this one.
  parser.AllowUnknownField(true);
  if (text.ok() && parser.ParseFromString(*text, &launch)) return std::move(*launch.mutable_secret());
  spdlog::error("a worker cannot be known again, as {} cannot be read: {}", path,
                text.ok() ? "it does not parse" : std::string(text.status().message()));
  absl::StatusOr<std::string> unknown = MakeWorkerSecret();
  // Longer than any.
  return unknown.ok() ? *std::move(unknown) : std::string(3 * kSecretBytes, '?');
}

bool IsWorkerSecret(absl::string_view shown, absl::string_view secret) {
  if (secret.empty()) return true;
  if (shown.size() != secret.size()) return false;
  unsigned char different = 0;
  for (size_t i = 0; i < secret.size(); ++i) different |= static_cast<unsigned char>(shown[i] ^ secret[i]);
  return different == 0;
}

}  // namespace tandem

#include "client/lib/shard_writer.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "engine/base/status_macros.h"

namespace tandem::client {
namespace {

constexpr size_t kBlock = 512;

// Returns the header of a plain file: mode 0644, without owner and time.
std::string HeaderOf(const std::string& name, size_t bytes) {
  std::string header(kBlock, '\0');
  const auto put = [&](size_t at, absl::string_view text) {
    header.replace(at, text.size(), text.data(), text.size());
  };
  put(0, name);
  put(100, "0000644");
  put(108, "0000000");
  put(116, "0000000");
  put(124, absl::StrFormat("%011o", bytes));
  put(136, "00000000000");
  put(148, "        ");
  put(156, "0");
  put(257, absl::string_view("ustar\0"
                             "00",
                             8));
  unsigned sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  put(148, absl::StrFormat("%06o", sum));
  header[154] = '\0';
  return header;
}

}  // namespace

std::string ShardWriter::PathOf(int64_t shard) const {
  return absl::StrFormat("%s-%06d.tar", prefix_, shard);
}

absl::Status ShardWriter::AddMember(const std::string& name, absl::string_view content) {
  TANDEM_RETURN_IF_ERROR(file_->Append(HeaderOf(name, content.size())));
  TANDEM_RETURN_IF_ERROR(file_->Append(content));
  const size_t padding = (kBlock - content.size() % kBlock) % kBlock;
  TANDEM_RETURN_IF_ERROR(file_->Append(std::string(padding, '\0')));
  here_ += static_cast<int64_t>(kBlock + content.size() + padding);
  return absl::OkStatus();
}

absl::Status ShardWriter::Add(const std::string& key, const std::string& ending, absl::string_view picture,
                              int label) {
  if (file_ == nullptr) {
    TANDEM_ASSIGN_OR_RETURN(file_, env_->CreateFile(PathOf(shards_) + kUnfinishedEnding));
  }
  TANDEM_RETURN_IF_ERROR(AddMember(absl::StrCat(key, ".", ending), picture));
  TANDEM_RETURN_IF_ERROR(AddMember(absl::StrCat(key, ".cls"), absl::StrCat(label)));
  return here_ >= shard_bytes_ ? Finish() : absl::OkStatus();
}

absl::Status ShardWriter::Finish() {
  if (file_ == nullptr) return absl::OkStatus();
  // Two blocks of zeros end an archive.
  TANDEM_RETURN_IF_ERROR(file_->Append(std::string(2 * kBlock, '\0')));
  TANDEM_RETURN_IF_ERROR(file_->Sync());
  TANDEM_RETURN_IF_ERROR(std::exchange(file_, nullptr)->Close());
  TANDEM_RETURN_IF_ERROR(env_->RenameFile(PathOf(shards_) + kUnfinishedEnding, PathOf(shards_)));
  bytes_ += std::exchange(here_, 0) + static_cast<int64_t>(2 * kBlock);
  ++shards_;
  return absl::OkStatus();
}

}  // namespace tandem::client

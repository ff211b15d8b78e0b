#ifndef TANDEM_CLIENT_CLI_UPLOAD_LINE_H_
#define TANDEM_CLIENT_CLI_UPLOAD_LINE_H_

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "client/cli/session.h"

namespace tandem::cli {

// Says how far the work on so many bytes is, in one line of a terminal that is redrawn in place: a bar,
// bytes, rate and time left. Elsewhere it says nothing. Not thread-safe.
class UploadLine {
 public:
  // `doing` is what it begins with, such as "uploading".
  UploadLine(Session& session, std::string doing, int64_t bytes);
  // Erase().
  ~UploadLine() { Erase(); }
  UploadLine(const UploadLine&) = delete;
  UploadLine& operator=(const UploadLine&) = delete;

  // So many are done. The rate is that since the first call.
  void Update(int64_t bytes);
  void Erase();

 private:
  Session& session_;
  const std::string doing_;
  const int64_t bytes_;
  const bool shown_;
  int64_t first_ = -1;
  absl::Time begun_;
  absl::Time drawn_ = absl::InfinitePast();
};

}  // namespace tandem::cli

#endif  // TANDEM_CLIENT_CLI_UPLOAD_LINE_H_

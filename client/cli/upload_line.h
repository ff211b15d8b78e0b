#ifndef TANDEM_CLIENT_CLI_UPLOAD_LINE_H_
#define TANDEM_CLIENT_CLI_UPLOAD_LINE_H_

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "client/cli/session.h"

namespace tandem::cli {

// Shows the progress of a long operation in a line that a terminal redraws: a bar, bytes, rate and time left.
// Without a terminal it shows nothing. Not thread-safe.
class UploadLine {
 public:
  // `doing` is the start of the line, such as "uploading". `bytes` is the total.
  UploadLine(Session& session, std::string doing, int64_t bytes);
  ~UploadLine() { Erase(); }
  UploadLine(const UploadLine&) = delete;
  UploadLine& operator=(const UploadLine&) = delete;

  // Sets the number of finished bytes. The rate is measured from the first call.
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

#ifndef TANDEM_CLIENT_CLI_LIVE_BLOCK_H_
#define TANDEM_CLIENT_CLI_LIVE_BLOCK_H_

#include <string>
#include <vector>

#include "client/cli/terminal.h"

namespace tandem::cli {

// Lines at the end of an interactive terminal's output that are redrawn in place. Not thread-safe.
class LiveBlock {
 public:
  // `terminal` must outlive this object.
  explicit LiveBlock(Terminal& terminal) : terminal_(terminal) {}

  // Draws the lines over the lines of the last call. Each line must leave the terminal's last column free,
  // and all lines together must leave a line of the terminal free.
  void Draw(const std::vector<std::string>& lines);
  // Leaves the lines on the terminal. The next call of Draw begins a new block below them.
  void Leave() { lines_ = 0; }
  // Erases the lines.
  void Erase();

 private:
  // Returns the escape sequence that moves to the start of the block.
  std::string ToBegin() const;

  Terminal& terminal_;
  // The lines and the width of the last drawing.
  int lines_ = 0;
  int width_ = 0;
};

}  // namespace tandem::cli

#endif  // TANDEM_CLIENT_CLI_LIVE_BLOCK_H_

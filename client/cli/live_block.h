#ifndef TANDEM_CLIENT_CLI_LIVE_BLOCK_H_
#define TANDEM_CLIENT_CLI_LIVE_BLOCK_H_

#include <string>
#include <vector>

#include "client/cli/terminal.h"

namespace tandem::cli {

// Lines at the end of an interactive terminal's output that are redrawn in place. Not thread-safe.
class LiveBlock {
 public:
  // `terminal` outlives it.
  explicit LiveBlock(Terminal& terminal) : terminal_(terminal) {}

  // Draws the lines over those that were drawn before. They must fit the terminal: each its width but for the
  // last column, all of them its height but for one line.
  void Draw(const std::vector<std::string>& lines);
  // Lets what was drawn stand, and begins a new block below it.
  void Leave() { lines_ = 0; }
  // Removes what was drawn.
  void Erase();

 private:
  // Moves to where the block begins.
  std::string ToBegin() const;

  Terminal& terminal_;
  // As drawn last.
  int lines_ = 0;
  int width_ = 0;
};

}  // namespace tandem::cli

#endif  // TANDEM_CLIENT_CLI_LIVE_BLOCK_H_

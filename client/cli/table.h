#ifndef TANDEM_CLIENT_CLI_TABLE_H_
#define TANDEM_CLIENT_CLI_TABLE_H_

#include <string>
#include <vector>

#include "client/cli/style.h"

namespace tandem::cli {

// Rows under headings. Each column is as wide as its widest cell. Not thread-safe.
class Table {
 public:
  struct Column {
    std::string heading;
    // Whether cells are aligned to the right, as numbers are.
    bool right = false;
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // Adds a row with a cell for each column. Spaces take the places of newlines and tabs, because a row is a
  // line.
  void AddRow(std::vector<std::string> cells);
  bool empty() const { return rows_.empty(); }

  // Returns all lines, the headings first. Each line ends with a newline, without spaces before it.
  std::string Render(const Style& style) const;

 private:
  const std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace tandem::cli

#endif  // TANDEM_CLIENT_CLI_TABLE_H_

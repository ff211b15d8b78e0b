#ifndef TANDEM_CLIENT_CLI_TABLE_H_
#define TANDEM_CLIENT_CLI_TABLE_H_

#include <string>
#include <vector>

#include "client/cli/style.h"

namespace tandem::cli {

// Rows under headings, columns as wide as their widest cell. Not thread-safe.
class Table {
 public:
  struct Column {
    std::string heading;
    // Numbers stand at the right.
    bool right = false;
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // One cell a column.
  void AddRow(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  bool empty() const { return rows_.empty(); }

  // All lines, the headings first; each ends with a newline and without spaces before that.
  std::string Render(const Style& style) const;

 private:
  const std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace tandem::cli

#endif  // TANDEM_CLIENT_CLI_TABLE_H_

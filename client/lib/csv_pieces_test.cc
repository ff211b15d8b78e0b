#include "client/lib/csv_pieces.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem::client {
namespace {

using ::testing::ElementsAre;

// Returns the pieces of a table, each after the number of its rows.
std::vector<std::string> Pieces(const std::string& table, size_t bytes, int64_t rows) {
  const auto pieces = CutCsv(table, bytes, rows);
  if (!pieces.ok()) return {std::string(pieces.status().message())};
  std::vector<std::string> texts;
  for (const CsvPiece& piece : *pieces) texts.push_back(absl::StrCat(piece.rows, ":", piece.content));
  return texts;
}

TEST(CsvPiecesTest, EachPieceBeginsWithTheFirstRow) {
  EXPECT_THAT(Pieces("a,b\n1,2\n3,4\n5,6\n", 100, 3), ElementsAre("3:a,b\n1,2\n3,4\n", "2:a,b\n5,6\n"));
  EXPECT_THAT(Pieces("a,b\n1,2\n3,4\n5,6\n", 8, 100),
              ElementsAre("2:a,b\n1,2\n", "2:a,b\n3,4\n", "2:a,b\n5,6\n"));
  // A row that is too large has a piece of its own.
  EXPECT_THAT(Pieces("a\n1\n1234567\n2\n", 5, 100), ElementsAre("2:a\n1\n", "2:a\n1234567\n", "2:a\n2\n"));
  EXPECT_THAT(Pieces("a,b\n1,2", 100, 100), ElementsAre("2:a,b\n1,2"));
  EXPECT_THAT(Pieces("1,2", 100, 100), ElementsAre("1:1,2"));
}

TEST(CsvPiecesTest, RowsEndOutsideOfQuotes) {
  EXPECT_THAT(Pieces("a;b\n\"x\n\"\"y\"\"\";1\nz;\"\n\"\n", 1, 100),
              ElementsAre("2:a;b\n\"x\n\"\"y\"\"\";1\n", "2:a;b\nz;\"\n\"\n"));
  // A quote within a field is text.
  EXPECT_THAT(Pieces("a,b\n5\" pipe,1\n6\" pipe,2\n", 1, 100),
              ElementsAre("2:a,b\n5\" pipe,1\n", "2:a,b\n6\" pipe,2\n"));
  EXPECT_THAT(Pieces("a,b\n\"\",1\n\"\",2\n", 1, 100), ElementsAre("2:a,b\n\"\",1\n", "2:a,b\n\"\",2\n"));
}

TEST(CsvPiecesTest, WhatIsBeforeTheFirstRowStays) {
  EXPECT_THAT(Pieces("\xEF\xBB\xBFsep=;\r\na;b\r\n\r\n1;2\r\n3;4\r\n", 1, 100),
              ElementsAre("2:\xEF\xBB\xBFsep=;\r\na;b\r\n1;2\r\n", "2:\xEF\xBB\xBFsep=;\r\na;b\r\n3;4\r\n"));
}

TEST(CsvPiecesTest, ATableThatCannotBeCutIsRefused) {
  EXPECT_THAT(Pieces("\n\n", 1, 100), ElementsAre("it has no rows"));
  EXPECT_THAT(Pieces("a\n1\n\"2\n3\n", 1, 100), ElementsAre("the text of row 3 ends within quotes"));
}

}  // namespace
}  // namespace tandem::client

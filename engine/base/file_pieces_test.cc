#include "engine/base/file_pieces.h"

#include <memory>
#include <string>
#include <vector>

#include "engine/base/faulty_env.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

constexpr char kFrom[] = "/d/from";
constexpr char kTo[] = "/d/to";

std::string Content(int64_t size) {
  std::string content(size, '\0');
  for (int64_t i = 0; i < size; ++i) content[i] = static_cast<char>(i * 7 + i / 251);
  return content;
}

void Write(FaultyEnv* env, const std::string& path, const std::string& content) {
  ASSERT_TRUE(WriteFileAtomically(env, path, [&](WritableFile& file) { return file.Append(content); }).ok());
}

TEST(FilePiecesTest, NoPieceIsLargerThanIsSaidAndAllComeInOrder) {
  FaultyEnv env;
  const std::string content = Content(2 * kPieceBytes + 3);
  Write(&env, kFrom, content);
  const auto file = env.OpenRandomAccess(kFrom, RandomAccessEnv::Open::kReadOnly);
  ASSERT_TRUE(file.ok()) << file.status();
  std::string read;
  std::vector<size_t> sizes;
  const auto take = [&](absl::string_view piece) {
    read.append(piece.data(), piece.size());
    sizes.push_back(piece.size());
    return absl::OkStatus();
  };
  ASSERT_TRUE(ReadInPieces(**file, 1, static_cast<int64_t>(content.size()), take).ok());
  EXPECT_TRUE(read == content.substr(1));
  EXPECT_EQ(sizes, (std::vector<size_t>{kPieceBytes, kPieceBytes, 2}));
  sizes.clear();
  EXPECT_TRUE(ReadInPieces(**file, 5, 5, take).ok());
  EXPECT_TRUE(sizes.empty());
  EXPECT_EQ(ReadInPieces(**file, 0, static_cast<int64_t>(content.size()) + 1, take).code(),
            absl::StatusCode::kDataLoss);
  const absl::Status refused = absl::ResourceExhaustedError("full");
  EXPECT_EQ(ReadInPieces(**file, 0, 9, [&](absl::string_view) { return refused; }), refused);
}

TEST(FilePiecesTest, ACopyIsWholeOrNotThere) {
  FaultyEnv env;
  EXPECT_EQ(CopyFileAtomically(&env, kFrom, kTo).code(), absl::StatusCode::kNotFound);
  const std::string content = Content(kPieceBytes + 1);
  Write(&env, kFrom, content);
  const int before = env.changes();
  ASSERT_TRUE(CopyFileAtomically(&env, kFrom, kTo).ok());
  const int needed = env.changes() - before;
  for (int allowed = 0; allowed <= needed; ++allowed) {
    SCOPED_TRACE(allowed);
    ASSERT_NO_FATAL_FAILURE(Write(&env, kTo, "before"));
    env.FailAfter(allowed);
    const bool copied = CopyFileAtomically(&env, kFrom, kTo).ok();
    EXPECT_EQ(copied, allowed == needed);
    env.CutPower();
    const absl::StatusOr<std::string> found = env.ReadFile(kTo);
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_TRUE(*found == content || (!copied && *found == "before"));
  }
}

}  // namespace
}  // namespace tandem

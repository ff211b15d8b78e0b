#include "server/store/connection.h"

#include <memory>

#include "gtest/gtest.h"
#include "server/store/temporary_folder.h"

namespace tandem {
namespace {

TEST(ConnectionTest, APreparedStatementRunsAgainEvenAfterAnError) {
  const TemporaryFolder folder;
  auto opened = Connection::Open(folder.path() + "/test.db", Connection::Access::kMake);
  ASSERT_TRUE(opened.ok()) << opened.status();
  const std::unique_ptr<Connection> connection = *std::move(opened);
  ASSERT_TRUE(connection->Execute("CREATE TABLE a (x INTEGER)").ok());
  for (int i = 1; i <= 3; ++i) {
    EXPECT_FALSE(connection->ExecutePrepared("COMMIT").ok()) << "no transaction is open";
    ASSERT_TRUE(connection->ExecutePrepared("BEGIN IMMEDIATE").ok());
    EXPECT_FALSE(connection->ExecutePrepared("BEGIN IMMEDIATE").ok()) << "a transaction is open";
    ASSERT_TRUE(connection->ExecutePrepared("SAVEPOINT body").ok());
    ASSERT_TRUE(connection->ExecutePrepared("INSERT INTO a VALUES (1)").ok());
    ASSERT_TRUE(connection->ExecutePrepared("RELEASE body").ok());
    ASSERT_TRUE(connection->ExecutePrepared("COMMIT").ok());
    EXPECT_FALSE(connection->InTransaction());
    EXPECT_EQ(connection->QueryInt("SELECT count(*) FROM a").value(), i);
  }
}

}  // namespace
}  // namespace tandem

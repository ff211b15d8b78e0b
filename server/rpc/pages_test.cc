#include "server/rpc/pages.h"

#include <map>
#include <set>
#include <string>
#include <vector>

#include "engine/base/field_violations.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tandem/v1/daemon_service.pb.h"
#include "tandem/v1/dataset_service.pb.h"
#include "tandem/v1/job_service.pb.h"
#include "tandem/v1/model_service.pb.h"
#include "tandem/v1/sweep_service.pb.h"

namespace tandem::rpc {
namespace {

using google::protobuf::FieldDescriptor;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Returns the names of the wrong fields.
std::vector<std::string> Faults(int size, const std::string& token) {
  std::vector<std::string> fields;
  for (const FieldViolation& violation : GetFieldViolations(ParsePage(size, token, 10, 20).status())) {
    fields.push_back(violation.field);
  }
  return fields;
}

TEST(PagesTest, TakesWhatWasGiven) {
  EXPECT_THAT(Faults(0, ""), IsEmpty());
  EXPECT_THAT(Faults(20, "7"), IsEmpty());
  EXPECT_THAT(Faults(21, ""), ElementsAre("page_size"));
  EXPECT_THAT(Faults(-1, "x"), ElementsAre("page_size", "page_token"));
  EXPECT_THAT(Faults(1, "-3"), ElementsAre("page_token"));
}

TEST(PagesTest, GiveEachEntryOnce) {
  std::vector<v1::Device> all(25);
  for (int i = 0; i < 25; ++i) all[i].set_index(i);
  v1::ListDevicesRequest request;
  std::vector<int> indices;
  int pages = 0;
  do {
    const absl::StatusOr<Page> page = PageOf(request, 10);
    ASSERT_TRUE(page.ok()) << page.status();
    v1::ListDevicesResponse response;
    response.set_next_page_token(AddPage(all, 0, *page, response.mutable_devices()));
    for (const v1::Device& device : response.devices()) indices.push_back(device.index());
    request.set_page_token(response.next_page_token());
    ++pages;
  } while (!request.page_token().empty());
  EXPECT_EQ(pages, 3);
  ASSERT_EQ(indices.size(), 25);
  for (int i = 0; i < 25; ++i) EXPECT_EQ(indices[i], i);
}

TEST(PagesTest, EndAfterSoManyBytes) {
  std::vector<v1::Dataset> all(10);
  for (v1::Dataset& dataset : all) dataset.set_description(std::string(1 << 20, 'x'));
  v1::ListDatasetsResponse response;
  EXPECT_EQ(AddPage(all, 0, {.begin = 0, .size = 10}, response.mutable_datasets()), "2");
  EXPECT_EQ(response.datasets_size(), 2);
  EXPECT_EQ(AddPage(all, 0, {.begin = 100, .size = 10}, response.mutable_datasets()), "");
}

// Whoever adds a list must give it pages.
TEST(PagesTest, EveryListHasThem) {
  std::set<std::string> lists;
  for (const google::protobuf::FileDescriptor* file :
       {v1::GetJobRequest::descriptor()->file(), v1::GetSweepRequest::descriptor()->file(),
        v1::PredictRequest::descriptor()->file(), v1::GetUploadRequest::descriptor()->file(),
        v1::GetDaemonRequest::descriptor()->file()}) {
    for (int i = 0; i < file->service_count(); ++i) {
      for (int k = 0; k < file->service(i)->method_count(); ++k) {
        const google::protobuf::MethodDescriptor& method = *file->service(i)->method(k);
        if (method.name().rfind("List", 0) != 0) continue;
        lists.insert(method.name());
        const auto has = [&](const google::protobuf::Descriptor* message, const char* name,
                             FieldDescriptor::Type type) {
          const FieldDescriptor* field = message->FindFieldByName(name);
          return field != nullptr && field->type() == type;
        };
        EXPECT_TRUE(has(method.input_type(), "page_size", FieldDescriptor::TYPE_INT32)) << method.full_name();
        EXPECT_TRUE(has(method.input_type(), "page_token", FieldDescriptor::TYPE_STRING))
            << method.full_name();
        EXPECT_TRUE(has(method.output_type(), "next_page_token", FieldDescriptor::TYPE_STRING))
            << method.full_name();
      }
    }
  }
  EXPECT_GE(lists.size(), 9);
}

}  // namespace
}  // namespace tandem::rpc

#include "server/admission/dataset_catalog.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "engine/base/field_violations.h"
#include "engine/data/formats/test_bytes.h"
#include "server/admission/idx_files.h"
#include "server/admission/read_dataset.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;

v1::DatasetSpec Named(const std::string& name) {
  v1::DatasetSpec spec;
  spec.set_name(name);
  return spec;
}

v1::DatasetSpec Files(const std::string& images, const std::string& labels) {
  v1::DatasetSpec spec;
  spec.mutable_idx()->set_train_images(images);
  spec.mutable_idx()->set_train_labels(labels);
  return spec;
}

// Returns the only violation.
FieldViolation Violation(const absl::Status& status) {
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  const std::vector<FieldViolation> violations = GetFieldViolations(status);
  EXPECT_EQ(violations.size(), 1) << status;
  return violations.empty() ? FieldViolation() : violations.front();
}

// The sets that a test registers.
class FakeRegistered : public RegisteredDatasets {
 public:
  std::optional<v1::Dataset> Find(absl::string_view id) const override {
    const auto found = datasets.find(id);
    return found == datasets.end() ? std::nullopt : std::optional(found->second);
  }
  std::optional<v1::DatasetSpec> FindSpec(absl::string_view id) const override {
    const auto found = datasets.find(id);
    return found == datasets.end() ? std::nullopt : std::optional(found->second.spec());
  }
  std::vector<std::string> Ids() const override {
    std::vector<std::string> ids;
    for (const auto& [id, dataset] : datasets) ids.push_back(id);
    return ids;
  }
  const std::string& Folder() const override { return folder; }

  void Add(const std::string& id, const v1::DatasetSpec& spec) {
    datasets[id].set_name("datasets/" + id);
    datasets[id].set_description("About " + id + ".");
    *datasets[id].mutable_spec() = spec;
  }

  std::string folder;
  std::map<std::string, v1::Dataset, std::less<>> datasets;
};

// Waits for `go_on` if set, then returns `error` or reads.
class FakeReader : public DatasetReader {
 public:
  absl::StatusOr<internal::v1::DataFacts> Read(const internal::v1::DataTask& task) override {
    ++readings;
    if (go_on != nullptr) go_on->WaitForNotification();
    if (!error.ok()) return error;
    return local.Read(task);
  }

  LocalDatasetReader local;
  std::atomic<int> readings = 0;
  absl::Notification* go_on = nullptr;
  absl::Status error;
};

class DatasetCatalogTest : public ::testing::Test {
 protected:
  const std::string data_ = FreshFolder();
  const std::string other_ = FreshFolder();
  const std::string outside_ = FreshFolder();
  LocalDatasetReader reader_;
  const DatasetCatalog catalog_{{data_, other_ + "/", outside_ + "/none"}, &reader_};
};

TEST_F(DatasetCatalogTest, FindsSetsByTheirFolders) {
  WriteNamedSet(data_ + "/shapes");
  WriteNamedSet(other_ + "/digits", 9, 3);
  WriteNamedSet(other_ + "/shapes", 99, 3);
  std::filesystem::create_directories(data_ + "/no-set");
  const std::vector<v1::Dataset> sets = catalog_.List(0, 1000, 1 << 20);
  ASSERT_EQ(sets.size(), 3);
  EXPECT_EQ(sets[0].name(), "datasets/digits");
  EXPECT_EQ(sets[0].train_samples(), 9);
  EXPECT_EQ(sets[0].location(), other_ + "/digits");
  EXPECT_EQ(sets[1].name(), "datasets/fashion-mnist");
  EXPECT_THAT(sets[1].problem(), HasSubstr("dataset-fashion-mnist"));
  EXPECT_EQ(sets[2].name(), "datasets/shapes");
  EXPECT_EQ(sets[2].train_samples(), 12);
  EXPECT_EQ(sets[2].validation_samples(), 6);
  EXPECT_EQ(sets[2].classes(), 3);
  EXPECT_THAT(std::vector<int64_t>(sets[2].shape().begin(), sets[2].shape().end()),
              ::testing::ElementsAre(1, 4, 4));
  EXPECT_EQ(sets[2].problem(), "");

  const absl::StatusOr<v1::DatasetSpec> resolved = catalog_.Resolve(Named("digits"));
  ASSERT_TRUE(resolved.ok()) << resolved.status();
  EXPECT_EQ(resolved->name(), "digits");
  EXPECT_EQ(resolved->idx().train_images(), other_ + "/digits/train-images-idx3-ubyte");
  EXPECT_TRUE(catalog_.Resolve(Named("datasets/digits")).ok());
}

TEST_F(DatasetCatalogTest, KnowsCifarAndPublicSetsByTheirFolders) {
  const std::string record = std::string(1, '\x03') + std::string(3072, '\x33');
  std::filesystem::create_directories(data_ + "/cifar-10/cifar-10-batches-bin");
  for (const char* file :
       {"data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5", "test_batch"}) {
    std::ofstream(data_ + "/cifar-10/cifar-10-batches-bin/" + file + ".bin") << record << record;
  }
  WriteNamedSet(data_ + "/mnist");
  const absl::StatusOr<v1::DatasetSpec> cifar = catalog_.Resolve(Named("cifar-10"));
  ASSERT_TRUE(cifar.ok()) << cifar.status();
  EXPECT_EQ(cifar->cifar().path(), data_ + "/cifar-10/cifar-10-batches-bin");
  EXPECT_EQ(catalog_.Describe(*cifar)->train_samples, 10);
  EXPECT_EQ(catalog_.Resolve(Named("mnist"))->class_names(9), "9");
  EXPECT_EQ(catalog_.Describe(*catalog_.Resolve(Named("mnist")))->classes, 10);

  const absl::StatusOr<v1::Dataset> shown = catalog_.Get("datasets/cifar-10");
  ASSERT_TRUE(shown.ok()) << shown.status();
  EXPECT_EQ(shown->problem(), "");
  EXPECT_EQ(shown->class_names(3), "cat");
  EXPECT_EQ(shown->class_counts(3), 10);
  ASSERT_EQ(shown->mean_size(), 3);
  EXPECT_DOUBLE_EQ(shown->mean(0), 0.2);
  EXPECT_DOUBLE_EQ(shown->standard_deviation(0), 0);
  EXPECT_EQ(catalog_.Get("cifar-10")->class_counts(3), 10);
  EXPECT_EQ(catalog_.Get("nothing").status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(Violation(catalog_.Resolve(Named("cifar-100")).status()).description,
              HasSubstr("cifar-100-binary.tar.gz"));

  // Replace a file in the folder.
  std::ofstream(data_ + "/cifar-10/cifar-10-batches-bin/data_batch_2.bin") << record;
  EXPECT_EQ(catalog_.Describe(*cifar)->train_samples, 9);
  std::filesystem::remove(data_ + "/cifar-10/cifar-10-batches-bin/test_batch.bin");
  EXPECT_EQ(catalog_.Get("cifar-10").status().code(), absl::StatusCode::kNotFound);
}

TEST_F(DatasetCatalogTest, FoldersAreResolvedAsFilesAre) {
  v1::DatasetSpec spec;
  spec.mutable_cifar()->set_path("none");
  EXPECT_THAT(Violation(catalog_.Resolve(spec).status()).description, HasSubstr("no such file"));
  spec.mutable_cifar()->set_path(outside_);
  EXPECT_EQ(Violation(catalog_.Resolve(spec).status()).field, "cifar.path");
  EXPECT_THAT(Violation(catalog_.Resolve(spec).status()).description, HasSubstr("not inside a data folder"));
  std::filesystem::create_directories(data_ + "/folder");
  spec.mutable_cifar()->set_path("folder");
  EXPECT_EQ(catalog_.Resolve(spec)->cifar().path(), data_ + "/folder");
}

TEST_F(DatasetCatalogTest, NoticesThatAFileChanged) {
  WriteNamedSet(data_ + "/shapes");
  EXPECT_EQ(catalog_.Describe(*catalog_.Resolve(Named("shapes")))->train_samples, 12);
  WriteNamedSet(data_ + "/shapes", 24);
  EXPECT_EQ(catalog_.Describe(*catalog_.Resolve(Named("shapes")))->train_samples, 24);
  WriteIdx(data_ + "/shapes/train-images-idx3-ubyte", {24, 4, 4}, "short");
  EXPECT_FALSE(catalog_.Describe(*catalog_.Resolve(Named("shapes"))).ok());
  EXPECT_NE(catalog_.List(0, 1000, 1 << 20).back().problem(), "");
}

// Cleared fields would keep the names' memory.
TEST_F(DatasetCatalogTest, AListHoldsNoClassNames) {
  FakeRegistered registered;
  DatasetCatalog catalog({data_}, &reader_);
  catalog.SetRegistered(&registered);
  v1::DatasetSpec spec;
  spec.mutable_synthetic()->add_shape(4);
  spec.mutable_synthetic()->set_classes(3000);
  spec.mutable_synthetic()->set_train_samples(3000);
  for (int i = 0; i < 3000; ++i) spec.add_class_names(absl::StrCat(std::string(200, 'x'), i));
  for (const char* const id : {"a", "b", "c"}) registered.Add(id, spec);
  const std::vector<v1::Dataset> sets = catalog.List(0, 1000, 1 << 20);
  ASSERT_EQ(sets.size(), 4) << "with Fashion-MNIST";
  for (const v1::Dataset& set : sets) EXPECT_LT(set.SpaceUsedLong(), 10'000) << set.name();
  EXPECT_EQ(sets[0].classes(), 3000);
  EXPECT_EQ(catalog.List(0, 1000, /*most_bytes=*/1).size(), 2) << "a page, and a set behind it";
}

TEST_F(DatasetCatalogTest, SuggestsAName) {
  WriteNamedSet(data_ + "/shapes");
  const FieldViolation close = Violation(catalog_.Resolve(Named("shaeps")).status());
  EXPECT_EQ(close.field, "name");
  EXPECT_THAT(close.description, HasSubstr("did you mean 'shapes'?"));
  EXPECT_THAT(Violation(catalog_.Resolve(Named("fashion-mnist")).status()).description, HasSubstr("install"));
  EXPECT_THAT(Violation(catalog_.Resolve(Named("../shapes")).status()).description, HasSubstr("known: "));
}

TEST_F(DatasetCatalogTest, WantsANameOrASource) {
  EXPECT_EQ(Violation(catalog_.Resolve({}).status()).field, "");
  WriteNamedSet(data_ + "/shapes");
  v1::DatasetSpec both = Named("shapes");
  both.mutable_synthetic()->set_classes(2);
  EXPECT_EQ(Violation(catalog_.Resolve(both).status()).field, "name");
  v1::DatasetSpec synthetic;
  synthetic.mutable_synthetic()->set_classes(2);
  EXPECT_TRUE(catalog_.Resolve(synthetic).ok());
  const absl::Status empty = catalog_.Resolve(Files("", "")).status();
  ASSERT_EQ(GetFieldViolations(empty).size(), 2);
  EXPECT_EQ(GetFieldViolations(empty)[0].field, "idx.train_images");
  EXPECT_EQ(GetFieldViolations(empty)[1].field, "idx.train_labels");
}

TEST_F(DatasetCatalogTest, ResolvesPathsInsideTheDataFolders) {
  WriteIdx(data_ + "/images", {2, 4, 4});
  WriteIdx(other_ + "/labels", {2});
  const absl::StatusOr<v1::DatasetSpec> relative = catalog_.Resolve(Files("images", "labels"));
  ASSERT_TRUE(relative.ok()) << relative.status();
  EXPECT_EQ(relative->idx().train_images(), data_ + "/images");
  EXPECT_EQ(relative->idx().train_labels(), other_ + "/labels");
  EXPECT_TRUE(catalog_
                  .Resolve(Files(data_ + "/images",
                                 other_ + "/../" + other_.substr(other_.rfind('/') + 1) + "/labels"))
                  .ok());
  // A link from one data folder to another.
  std::filesystem::create_symlink(other_ + "/labels", data_ + "/link");
  const absl::StatusOr<v1::DatasetSpec> linked = catalog_.Resolve(Files("images", "link"));
  ASSERT_TRUE(linked.ok()) << linked.status();
  EXPECT_EQ(linked->idx().train_labels(), other_ + "/labels");
}

TEST_F(DatasetCatalogTest, SaysThatPermissionIsMissing) {
  // Root may read everything, and other users may not reach a test's folder below root's.
  std::string folder = "/tmp/tandem-catalog-XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  std::filesystem::create_directories(folder + "/secret");
  for (const char* name : {"/open.npy", "/shut.npy", "/secret/x.npy"}) std::ofstream(folder + name) << "x";
  chmod(folder.c_str(), 0755);
  chmod((folder + "/open.npy").c_str(), 0644);
  for (const char* name : {"/shut.npy", "/secret"}) chmod((folder + name).c_str(), 0);
  const DatasetCatalog catalog({folder}, &reader_);
  const uid_t user = geteuid();
  ASSERT_EQ(user == 0 ? seteuid(65534) : 0, 0);
  const absl::Status open = catalog.ResolveFile("open.npy").status();
  const absl::Status shut = catalog.ResolveFile("shut.npy").status();
  const absl::Status secret = catalog.ResolveFile("secret/x.npy").status();
  ASSERT_EQ(seteuid(user), 0);
  chmod((folder + "/secret").c_str(), 0700);
  std::filesystem::remove_all(folder);
  EXPECT_TRUE(open.ok()) << open;
  EXPECT_THAT(shut.message(), HasSubstr("has no permission to read it"));
  EXPECT_THAT(secret.message(), HasSubstr("has no permission to read it"));
}

TEST_F(DatasetCatalogTest, RefusesPathsOutside) {
  WriteIdx(data_ + "/labels", {2});
  WriteIdx(outside_ + "/images", {2, 4, 4});
  std::filesystem::create_symlink(outside_ + "/images", data_ + "/link");
  std::filesystem::create_directory_symlink(outside_, data_ + "/folder");
  const std::string beside = data_.substr(data_.rfind('/') + 1) + "-more";
  for (const std::string& path :
       {outside_ + "/images", std::string("../") + outside_.substr(outside_.rfind('/') + 1) + "/images",
        std::string("link"), std::string("folder/images"), data_ + "/link", std::string("/etc/passwd"),
        std::string("/no/such/file"), data_ + "-more/images", std::string("../") + beside}) {
    const FieldViolation violation = Violation(catalog_.Resolve(Files(path, "labels")).status());
    EXPECT_EQ(violation.field, "idx.train_images") << path;
    EXPECT_THAT(violation.description, HasSubstr("not inside a data folder")) << path;
    EXPECT_THAT(violation.description, HasSubstr(data_));
  }
  EXPECT_THAT(Violation(catalog_.Resolve(Files("none", "labels")).status()).description,
              HasSubstr("no such file"));
  EXPECT_THAT(Violation(catalog_.Resolve(Files(data_, "labels")).status()).description,
              HasSubstr("plain file"));
  EXPECT_THAT(Violation(catalog_.Resolve(Files(std::string("a\0b", 3), "labels")).status()).description,
              HasSubstr("not a path"));
}

TEST_F(DatasetCatalogTest, RefusesFoldersWithLinksThatLeadOutside) {
  v1::DatasetSpec spec;
  spec.mutable_image_folder()->set_train("images");
  std::filesystem::create_directories(data_ + "/images/cat");
  std::filesystem::create_directories(other_ + "/dogs");
  std::ofstream(other_ + "/1.png") << "1";
  // Links into data folders, and links that lead nowhere, are allowed.
  std::filesystem::create_directory_symlink(other_ + "/dogs", data_ + "/images/dog");
  std::filesystem::create_symlink(other_ + "/1.png", data_ + "/images/cat/1.png");
  std::filesystem::create_symlink(other_ + "/none", data_ + "/images/cat/2.png");
  EXPECT_TRUE(catalog_.Resolve(spec).ok()) << catalog_.Resolve(spec).status();

  std::ofstream(outside_ + "/3.png") << "3";
  const auto refuses = [&](const std::string& link) {
    const FieldViolation violation = Violation(catalog_.Resolve(spec).status());
    EXPECT_EQ(violation.field, "image_folder.train") << link;
    EXPECT_THAT(violation.description, HasSubstr(link));
    EXPECT_THAT(violation.description, HasSubstr("a link that leaves the data folders"));
    std::filesystem::remove(link);
  };
  std::filesystem::create_symlink(outside_ + "/3.png", data_ + "/images/cat/3.png");
  refuses(data_ + "/images/cat/3.png");
  std::filesystem::create_directory_symlink(outside_, data_ + "/images/bird");
  refuses(data_ + "/images/bird");
  std::filesystem::create_symlink(outside_ + "/3.png", other_ + "/dogs/3.png");
  refuses(other_ + "/dogs/3.png");
}

TEST_F(DatasetCatalogTest, ResolvesPatternsOfShards) {
  std::filesystem::create_directories(other_ + "/set");
  for (const char* name : {"/set/0.tar", "/set/1.tar"}) std::ofstream(other_ + name) << "x";
  v1::DatasetSpec spec;
  v1::WebDatasetSource& source = *spec.mutable_webdataset();
  for (const std::string& pattern : {std::string("set/{0..1}.tar"), other_ + "/set/{0..1}.tar"}) {
    source.set_train(pattern);
    const absl::StatusOr<v1::DatasetSpec> resolved = catalog_.Resolve(spec);
    ASSERT_TRUE(resolved.ok()) << resolved.status();
    EXPECT_EQ(resolved->webdataset().train(), other_ + "/set/{0..1}.tar");
  }
  for (const char* plain : {"set", "set/0.tar"}) {
    source.set_train(plain);
    EXPECT_EQ(catalog_.Resolve(spec)->webdataset().train(), other_ + "/" + plain);
  }
  const auto refusal = [&](const std::string& pattern) {
    source.set_train(pattern);
    const FieldViolation violation = Violation(catalog_.Resolve(spec).status());
    EXPECT_EQ(violation.field, "webdataset.train") << pattern;
    return violation.description;
  };
  EXPECT_THAT(refusal("set/{0..2}.tar"), HasSubstr("set/2.tar', but the daemon can read no such file"));
  EXPECT_THAT(refusal("set/{0..2.tar"), HasSubstr("'{' without a '}'"));
  EXPECT_THAT(refusal("set/{0..100000}.tar"), HasSubstr("more than 100000 shards"));
  EXPECT_THAT(refusal(std::string(1 << 20, 'a') + "{0..99999}"), HasSubstr("more than 4096 bytes"));
  EXPECT_THAT(refusal(std::string("set/\0{0..1}.tar", 15)), HasSubstr("a zero byte"));
  EXPECT_THAT(refusal(std::string(4000, 'a') + "{0..99999}"), HasSubstr("more than 64 MiB together"));
  EXPECT_THAT(refusal("set/{0.tar,../../../etc/passwd}"), HasSubstr("not inside a data folder"));
  std::ofstream(outside_ + "/2.tar") << "x";
  // The refusal does not tell whether the file exists.
  for (const char* name : {"/2.tar", "/3.tar"}) {
    const std::string file = std::filesystem::relative(outside_ + name, other_).string();
    EXPECT_THAT(refusal(absl::StrCat("{", file, ",x}")),
                HasSubstr(absl::StrCat("is '", file, "', which is not inside a data folder")));
  }
  std::filesystem::create_symlink(outside_ + "/2.tar", other_ + "/set/2.tar");
  EXPECT_THAT(refusal("set/{0..2}.tar"), HasSubstr("not inside a data folder"));
  std::ofstream(other_ + "/set/{0..1}.tar") << "x";
  EXPECT_THAT(refusal("set/{0..1}.tar"), HasSubstr("also the name of a file"));
}

// Whoever expands such a path again gets other files.
TEST_F(DatasetCatalogTest, RefusesAPatternInADataFolderWithBraces) {
  const std::string folder = data_ + "/{a,b}";
  std::filesystem::create_directories(folder);
  for (const char* name : {"/0.tar", "/1.tar"}) std::ofstream(folder + name) << "x";
  const DatasetCatalog catalog({folder}, &reader_);
  v1::DatasetSpec spec;
  spec.mutable_webdataset()->set_train("{0..1}.tar");
  EXPECT_THAT(Violation(catalog.Resolve(spec).status()).description, HasSubstr("whose name has braces"));
}

// If a folder cannot be read, for example because too many files are open, its links are unknown.
TEST_F(DatasetCatalogTest, RefusesFoldersThatCannotBeLookedThrough) {
  v1::DatasetSpec spec;
  spec.mutable_image_folder()->set_train("images");
  std::filesystem::create_directories(data_ + "/images/cat");
  std::filesystem::create_directory_symlink(outside_, data_ + "/images/cat/out");
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const int next = dup(0);
  close(next);
  for (const int allowed : {0, 1}) {
    rlimit few = before;
    few.rlim_cur = next + allowed;
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
    const absl::Status status = catalog_.Resolve(spec).status();
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
    const FieldViolation violation = Violation(status);
    EXPECT_EQ(violation.field, "image_folder.train") << status;
    EXPECT_THAT(violation.description,
                HasSubstr(absl::StrCat(
                    "cannot be checked for links that leave the data folders of the daemon: cannot read ",
                    data_, "/images", allowed == 1 ? "/cat" : "", ": Too many open files")));
  }
}

// An array in NumPy's format, version 1.0.
void WriteNpy(const std::string& path, const std::string& type, const std::string& shape,
              const std::string& data) {
  std::ofstream(path, std::ios::binary) << Npy(type, shape, data);
}

// An error that only a whole reading finds is not read for again.
TEST_F(DatasetCatalogTest, WhySomethingCannotBeCountedIsRemembered) {
  FakeRegistered registered;
  registered.folder = FreshFolder();
  WriteNpy(registered.folder + "/x.npy", "<f4", "(2, 1)", std::string("\0\0\0\0\0\0\xc0\x7f", 8));
  WriteNpy(registered.folder + "/y.npy", "|u1", "(2,)", std::string("\0\1", 2));
  v1::DatasetSpec spec;
  spec.mutable_npy()->mutable_train_inputs()->set_path(registered.folder + "/x.npy");
  spec.mutable_npy()->mutable_train_targets()->set_path(registered.folder + "/y.npy");
  registered.Add("numbers", spec);
  FakeReader reader;
  DatasetCatalog catalog({data_}, &reader);
  catalog.SetRegistered(&registered);

  ASSERT_EQ(catalog.DescribeById("numbers")->problem(), "");
  const absl::StatusOr<v1::Dataset> counted = catalog.Get("numbers");
  ASSERT_TRUE(counted.ok()) << counted.status();
  EXPECT_THAT(counted->problem(), HasSubstr("x.npy"));
  EXPECT_EQ(reader.readings, 2) << "its description, and its counts";
  EXPECT_EQ(catalog.Get("numbers")->problem(), counted->problem());
  EXPECT_EQ(reader.readings, 2);
}

// A stopped daemon or a dead reader says nothing about the set.
TEST_F(DatasetCatalogTest, WhoCannotReadSaysNothingOfTheSet) {
  WriteNamedSet(data_ + "/shapes");
  FakeReader reader;
  const DatasetCatalog catalog({data_}, &reader);
  for (const absl::Status& error : {absl::UnavailableError("stopping"), absl::InternalError("it died"),
                                    absl::DeadlineExceededError("too slow")}) {
    reader.error = error;
    EXPECT_EQ(catalog.Get("shapes").status(), error);
    EXPECT_EQ(catalog.Describe(*catalog.Resolve(Named("shapes"))).status(), error);
    EXPECT_THAT(catalog.DescribeById("shapes")->problem(), HasSubstr("cannot be read at the moment"));
  }
  reader.error = absl::ResourceExhaustedError("it takes too much memory");
  EXPECT_EQ(catalog.Get("shapes")->problem(), "it takes too much memory");
  reader.error = absl::OkStatus();
  EXPECT_EQ(catalog.Get("shapes")->problem(), "");
}

TEST_F(DatasetCatalogTest, EqualQuestionsAtOnceAreOneReading) {
  WriteNamedSet(data_ + "/shapes");
  FakeReader reader;
  absl::Notification go_on;
  reader.go_on = &go_on;
  const DatasetCatalog catalog({data_}, &reader);
  const v1::DatasetSpec spec = *catalog.Resolve(Named("shapes"));
  std::atomic<int> described = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      if (catalog.Describe(spec).ok()) ++described;
    });
  }
  while (reader.readings == 0) absl::SleepFor(absl::Milliseconds(1));
  absl::SleepFor(absl::Milliseconds(50));
  go_on.Notify();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(described, 4);
  EXPECT_EQ(reader.readings, 1);
}

TEST_F(DatasetCatalogTest, RegisteredSetsComeFirstAndGiveDefaults) {
  FakeRegistered registered;
  registered.folder = FreshFolder();
  DatasetCatalog catalog({data_}, &reader_);
  catalog.SetRegistered(&registered);
  WriteNamedSet(data_ + "/shapes");
  WriteNamedSet(registered.folder + "/u1", 9, 3);
  v1::DatasetSpec spec = Files(registered.folder + "/u1/train-images-idx3-ubyte",
                               registered.folder + "/u1/train-labels-idx1-ubyte");
  spec.mutable_normalization()->add_mean(0.5);
  spec.mutable_validation_split()->set_fraction(0.25);
  for (const char* name : {"a", "b", "c"}) spec.add_class_names(name);
  registered.Add("shapes", spec);

  const std::vector<v1::Dataset> sets = catalog.List(0, 1000, 1 << 20);
  ASSERT_EQ(sets.size(), 2);
  EXPECT_EQ(sets[1].description(), "About shapes.");
  EXPECT_EQ(sets[1].origin(), v1::DATASET_ORIGIN_REGISTERED);
  EXPECT_EQ(sets[1].problem(), "");
  EXPECT_EQ(sets[1].class_names_size(), 0);
  EXPECT_EQ(sets[1].spec().class_names_size(), 0);
  EXPECT_EQ(catalog.DescribeById("shapes")->class_names_size(), 3);
  const absl::StatusOr<v1::Dataset> counted = catalog.Get("shapes");
  ASSERT_TRUE(counted.ok()) << counted.status();
  EXPECT_EQ(counted->class_counts_size(), 3);

  absl::StatusOr<v1::DatasetSpec> resolved = catalog.Resolve(Named("datasets/shapes"));
  ASSERT_TRUE(resolved.ok()) << resolved.status();
  EXPECT_EQ(resolved->normalization().mean(0), 0.5);
  EXPECT_EQ(resolved->class_names_size(), 3);
  EXPECT_EQ(resolved->name(), "datasets/shapes");
  v1::DatasetSpec own = Named("shapes");
  own.mutable_normalization()->set_from_data(true);
  own.mutable_validation_split()->set_seed(7);
  own.add_class_names("only");
  own.set_train_limit(5);
  resolved = catalog.Expand(own);
  ASSERT_TRUE(resolved.ok()) << resolved.status();
  EXPECT_EQ(resolved->normalization().mean_size(), 0);
  EXPECT_TRUE(resolved->normalization().from_data());
  EXPECT_EQ(resolved->validation_split().fraction(), 0);
  EXPECT_EQ(resolved->class_names_size(), 1);
  EXPECT_EQ(resolved->train_limit(), 5);

  // A path alone leads to no uploaded file.
  EXPECT_EQ(GetFieldViolations(catalog.Resolve(spec).status()).size(), 2);
  EXPECT_THAT(Violation(catalog.Resolve(Named("shape")).status()).description,
              HasSubstr("did you mean 'shapes'?"));
}

}  // namespace
}  // namespace tandem

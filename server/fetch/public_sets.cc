#include "server/fetch/public_sets.h"

#include "absl/strings/str_cat.h"

namespace tandem {
namespace {

// The four files of MNIST and of sets with its form.
constexpr const char* kIdxFiles[] = {"t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz",
                                     "train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz"};

PublicSet IdxSet(const std::string& name, const std::vector<std::string>& folders,
                 const std::vector<std::string>& digests) {
  PublicSet set;
  set.name = name;
  for (size_t i = 0; i < digests.size(); ++i) {
    PublicFile file{kIdxFiles[i], digests[i], {}};
    for (const std::string& folder : folders)
      file.addresses.push_back(absl::StrCat(folder, "/", kIdxFiles[i]));
    set.files.push_back(std::move(file));
  }
  return set;
}

PublicSet CifarSet(const std::string& name, const std::string& digest) {
  const std::string file = absl::StrCat(name, "-binary.tar.gz");
  return {name, {{file, digest, {absl::StrCat("https://www.cs.toronto.edu/~kriz/", file)}}}};
}

}  // namespace

const std::vector<PublicSet>& PublicSets() {
  // The digests of the files whose MD5 sums the authors published.
  static const auto& sets = *new std::vector<PublicSet>{
      CifarSet("cifar-10", "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"),
      CifarSet("cifar-100", "58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec"),
      IdxSet("fashion-mnist",
             {"https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion",
              "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com"},
             {"346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
              "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
              "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
              "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845"}),
      IdxSet("mnist",
             {"https://ossci-datasets.s3.amazonaws.com/mnist",
              "https://storage.googleapis.com/cvdf-datasets/mnist"},
             {"8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
              "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
              "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
              "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"}),
  };
  return sets;
}

const PublicSet* FindPublicSet(absl::string_view name) {
  for (const PublicSet& set : PublicSets()) {
    if (set.name == name) return &set;
  }
  return nullptr;
}

}  // namespace tandem

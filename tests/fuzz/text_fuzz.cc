// Text for language models: by bytes or by characters, which the first byte says.

#include "engine/data/formats/test_files.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/input_files.h"

namespace tandem {

std::vector<std::string> Seeds() {
  const std::string text = "To be, or not to be: \xE2\x80\x94 that is \xC3\xA4 question.\n";
  return {"b" + JoinFiles({text, "or not"}), "c" + JoinFiles({text, "to be"}),
          "c" + JoinFiles({Gzipped(text), ""})};
}

}  // namespace tandem

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::vector<absl::string_view> files =
      tandem::SplitFiles({reinterpret_cast<const char*>(data) + 1, size - 1}, 2);
  tandem::v1::DatasetSpec spec;
  tandem::v1::TextSource* text = spec.mutable_text();
  text->set_train(tandem::WriteInput("train.txt", files[0]));
  if (!files[1].empty()) text->set_validation(tandem::WriteInput("validation.txt", files[1]));
  text->set_tokens(data[0] == 'b' ? tandem::v1::TEXT_TOKENS_BYTES : tandem::v1::TEXT_TOKENS_CHARACTERS);
  text->set_sequence_length(4);
  tandem::OpenAndRead(spec);
  return 0;
}

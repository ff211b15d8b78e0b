#ifndef TANDEM_ENGINE_BASE_TESTING_FROM_TEXT_H_
#define TANDEM_ENGINE_BASE_TESTING_FROM_TEXT_H_

#include <string>

#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

namespace tandem {

// Parses a message in text format. Text that does not parse fails the test.
template <typename Message>
Message FromText(const std::string& text) {
  Message message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &message)) << text;
  return message;
}

}  // namespace tandem

#endif  // TANDEM_ENGINE_BASE_TESTING_FROM_TEXT_H_

// Headers of tests that use the messages of the API.

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "third_party/precompiled/sources/messages.h"

// Headers of tests that call or serve the API.

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "third_party/precompiled/sources/services.h"

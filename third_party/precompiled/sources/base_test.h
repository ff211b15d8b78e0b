// Headers of most tests.

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "third_party/precompiled/sources/base.h"

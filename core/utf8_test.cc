#include "core/utf8.h"

#include "gtest/gtest.h"

namespace expanse {
namespace {

TEST(Utf8, WellFormedTextOfEveryLength) {
  for (const char* text : {"", "step 3", "\xc2\x80", "Schritt \xc3\xbc", "\xe0\xa0\x80", "\xe2\x82\xac", "\xed\x9f\xbf",
                           "\xee\x80\x80", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"}) {
    EXPECT_TRUE(IsUtf8(text)) << text;
  }
}

TEST(Utf8, WhatIsCutShortOverlongOrNoCharacter) {
  for (const char* text : {"\x80", "\xbf", "\xc0\x80", "\xc1\xbf", "\xc3", "\xc3(", "\xe0\x80\x80", "\xe0\x9f\xbf",
                           "\xe2\x82", "\xed\xa0\x80", "\xed\xbf\xbf", "\xf0\x8f\xbf\xbf", "\xf0\x9f\x98",
                           "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff", "fine until \xfe"}) {
    EXPECT_FALSE(IsUtf8(text)) << text;
  }
}

}  // namespace
}  // namespace expanse

#include "core/mapping_hooks.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace expanse {
namespace {

constexpr AddressRange kRange{DeviceAddress(0x7000'0000'0000), MiB(2)};

class MappingHooksTest : public ::testing::Test {
 protected:
  MappingCallbacksId Add(const std::string& name, bool allows) {
    MappingCallbacks callbacks;
    callbacks.before_unmap = [this, name, allows](AddressRange range) {
      EXPECT_EQ(range, kRange);
      absl::StrAppend(&told_, name, "-unmap ");
      return allows;
    };
    callbacks.after_map = [this, name](AddressRange range) {
      EXPECT_EQ(range, kRange);
      absl::StrAppend(&told_, name, "-map ");
    };
    return hooks_.Add(callbacks).value();
  }

  MappingHooks hooks_;
  std::string told_;
};

TEST_F(MappingHooksTest, NothingToCallIsRefused) {
  EXPECT_TRUE(absl::IsInvalidArgument(hooks_.Add(MappingCallbacks()).status()));
  EXPECT_TRUE(hooks_.empty());
  EXPECT_TRUE(hooks_.MayUnmap(kRange));
}

TEST_F(MappingHooksTest, AreCalledInTheOrderOfAdding) {
  Add("a", true);
  Add("b", true);
  EXPECT_TRUE(hooks_.MayUnmap(kRange));
  hooks_.Mapped(kRange);
  EXPECT_EQ(told_, "a-unmap b-unmap a-map b-map ");
}

TEST_F(MappingHooksTest, ThoseThatAgreedBeforeAVetoAreToldThatTheChunkStays) {
  Add("a", true);
  Add("b", false);
  Add("c", true);
  EXPECT_FALSE(hooks_.MayUnmap(kRange));
  EXPECT_EQ(told_, "a-unmap b-unmap a-map ");
  told_.clear();
  hooks_.WillUnmap(kRange);
  EXPECT_EQ(told_, "a-unmap b-unmap c-unmap ");
}

TEST_F(MappingHooksTest, WhatWasRemovedIsNotCalledAndCannotBeRemovedAgain) {
  const MappingCallbacksId a = Add("a", false);
  const MappingCallbacksId b = Add("b", true);
  EXPECT_NE(a, b);
  EXPECT_EQ(hooks_.Remove(a), absl::OkStatus());
  EXPECT_TRUE(hooks_.MayUnmap(kRange));
  EXPECT_EQ(told_, "b-unmap ");
  EXPECT_TRUE(absl::IsNotFound(hooks_.Remove(a)));
  EXPECT_TRUE(absl::IsNotFound(hooks_.Remove(MappingCallbacksId())));
  EXPECT_NE(Add("c", true), a);
}

TEST_F(MappingHooksTest, EitherMayBeMissing) {
  MappingCallbacks map_only;
  map_only.after_map = [this](AddressRange) { absl::StrAppend(&told_, "map "); };
  ASSERT_TRUE(hooks_.Add(map_only).ok());
  EXPECT_TRUE(hooks_.MayUnmap(kRange));
  hooks_.WillUnmap(kRange);
  EXPECT_EQ(told_, "");
  MappingCallbacks unmap_only;
  unmap_only.before_unmap = [](AddressRange) { return false; };
  ASSERT_TRUE(hooks_.Add(unmap_only).ok());
  EXPECT_FALSE(hooks_.MayUnmap(kRange));
  EXPECT_EQ(told_, "");
  hooks_.Mapped(kRange);
  EXPECT_EQ(told_, "map ");
}

}  // namespace
}  // namespace expanse

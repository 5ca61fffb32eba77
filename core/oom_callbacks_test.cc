#include "core/oom_callbacks.h"

#include <string>

#include "gtest/gtest.h"

namespace expanse {
namespace {

TEST(OomCallbacks, AllAreCalledInOrderAndAnyCanAskToTryAgain) {
  OomCallbacks callbacks;
  std::string called;
  EXPECT_FALSE(callbacks.CanCall());
  callbacks.Add([&](const Shortage&) {
    called += 'a';
    return true;
  });
  callbacks.Add([&](const Shortage& shortage) {
    called += 'b';
    EXPECT_EQ(shortage.missing, MiB(2));
    return false;
  });
  Shortage shortage;
  shortage.missing = MiB(2);
  EXPECT_TRUE(callbacks.CanCall());
  EXPECT_TRUE(callbacks.Call(shortage));
  EXPECT_EQ(called, "ab");
}

TEST(OomCallbacks, ARemovedOneIsNotCalledAndItsIdIsGone) {
  OomCallbacks callbacks;
  const CallbackId a = callbacks.Add([](const Shortage&) { return true; });
  const CallbackId b = callbacks.Add([](const Shortage&) { return false; });
  EXPECT_NE(a, b);
  EXPECT_TRUE(callbacks.Remove(a));
  EXPECT_FALSE(callbacks.Remove(a));
  EXPECT_FALSE(callbacks.Call(Shortage()));
}

TEST(OomCallbacks, ACallbackMayRemoveItselfAndOthersThatAreStillToBeCalled) {
  OomCallbacks callbacks;
  int called = 0;
  CallbackId first = 0;
  CallbackId second = 0;
  first = callbacks.Add([&](const Shortage&) {
    ++called;
    EXPECT_TRUE(callbacks.Remove(first));
    EXPECT_TRUE(callbacks.Remove(second));
    return true;
  });
  second = callbacks.Add([&](const Shortage&) {
    ADD_FAILURE() << "it was removed";
    return false;
  });
  EXPECT_TRUE(callbacks.Call(Shortage()));
  EXPECT_EQ(called, 1);
  EXPECT_FALSE(callbacks.CanCall());
}

TEST(OomCallbacks, WithinACallbackNoneIsCalled) {
  OomCallbacks callbacks;
  callbacks.Add([&](const Shortage&) {
    EXPECT_FALSE(callbacks.CanCall());
    EXPECT_FALSE(OomCallbacks().CanCall());
    return true;
  });
  EXPECT_TRUE(callbacks.Call(Shortage()));
  EXPECT_TRUE(callbacks.CanCall());
}

}  // namespace
}  // namespace expanse

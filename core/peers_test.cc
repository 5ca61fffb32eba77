#include "core/peers.h"

#include "gtest/gtest.h"

namespace expanse {
namespace {

// Has some idle memory and gives back what it is asked for.
struct Member {
  Member(int device, Bytes has)
      : idle(has), peer(DeviceOrdinal(device), [this](Bytes wanted) {
          const Bytes given = wanted < idle ? wanted : idle;
          idle -= given;
          return given;
        }) {}
  Bytes idle;
  Peer peer;
};

TEST(Peers, OthersGiveNoMoreThanIsWanted) {
  Member a(0, MiB(10));
  Member b(0, MiB(4));
  Member c(0, MiB(20));
  EXPECT_EQ(a.peer.AskOthers(MiB(6)), MiB(6));
  EXPECT_EQ(a.idle, MiB(10)) << "who asks gives nothing";
  EXPECT_EQ(b.idle, Bytes());
  EXPECT_EQ(c.idle, MiB(18));
  EXPECT_EQ(a.peer.AskOthers(MiB(30)), MiB(18));
}

TEST(Peers, AllocatorsOfOtherDevicesAreNotAsked) {
  Member a(0, MiB(2));
  Member b(1, MiB(2));
  EXPECT_FALSE(a.peer.HasOthers());
  EXPECT_EQ(a.peer.AskOthers(MiB(2)), Bytes());
  EXPECT_EQ(b.idle, MiB(2));
}

TEST(Peers, WhoIsGoneIsNotAsked) {
  Member a(0, MiB(2));
  {
    Member b(0, MiB(2));
    EXPECT_TRUE(a.peer.HasOthers());
  }
  EXPECT_FALSE(a.peer.HasOthers());
  EXPECT_EQ(a.peer.AskOthers(MiB(2)), Bytes());
}

}  // namespace
}  // namespace expanse

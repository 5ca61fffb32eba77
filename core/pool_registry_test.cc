#include "core/pool_registry.h"

#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace expanse {
namespace {

PoolOptions Named(const char* name, std::optional<Bytes> limit) {
  PoolOptions options;
  options.name = name;
  options.limit = limit;
  return options;
}

TEST(PoolRegistry, TheDefaultPoolExistsAndCannotBeRetired) {
  PoolRegistry pools;
  ASSERT_TRUE(pools.Find(PoolId()).ok());
  EXPECT_EQ(*pools.Find(PoolId()), &pools.default_pool());
  EXPECT_TRUE(absl::IsInvalidArgument(pools.Retire(PoolId())));
  EXPECT_EQ(pools.Pools().size(), 1u);
}

TEST(PoolRegistry, UnknownAndRetiredPoolsAreToldApartByName) {
  PoolRegistry pools;
  const PoolId id = pools.Create(Named("tenant", std::nullopt)).id();
  EXPECT_EQ(id, PoolId(1));
  const absl::Status unknown = pools.Find(PoolId(7)).status();
  EXPECT_TRUE(absl::IsNotFound(unknown));
  EXPECT_NE(std::string(unknown.message()).find("no pool 7"), std::string::npos) << unknown;
  ASSERT_TRUE(pools.Retire(id).ok());
  for (const absl::Status& status : {pools.Find(id).status(), pools.Retire(id)}) {
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_NE(std::string(status.message()).find("pool 1 (tenant) was retired"), std::string::npos) << status;
  }
}

TEST(PoolRegistry, ARetiredPoolIsForgottenOnceNoRequestHoldsIt) {
  PoolRegistry pools;
  PoolState& pool = pools.Create(PoolOptions());
  const PoolId id = pool.id();
  pool.BeginRequest();
  ASSERT_TRUE(pools.Retire(id).ok());
  EXPECT_TRUE(pools.ForgetEmptyRetired().empty());
  EXPECT_EQ(pools.retired(), 1u);
  pool.EndRequest();
  EXPECT_EQ(pools.ForgetEmptyRetired(), std::vector<PoolId>{id});
  EXPECT_EQ(pools.retired(), 0u);
  EXPECT_EQ(pools.Pools().size(), 1u);
  EXPECT_TRUE(absl::IsFailedPrecondition(pools.Find(id).status()));
  EXPECT_EQ(pools.Create(PoolOptions()).id(), PoolId(2)) << "numbers are not given twice";
}

TEST(PoolRegistry, DestroyedStreamsLeaveTheirHeapsUntilThoseAreEmpty) {
  PoolRegistry pools;
  PoolState& pool = pools.Create(PoolOptions());
  const auto stream = std::make_shared<StreamState>(StreamKey{});
  StreamHeap& heap = pool.Add(stream);
  EXPECT_EQ(pool.Find(StreamKey{}), &heap);
  EXPECT_EQ(&heap.pool(), &pool);
  pools.Detach(StreamKey{});
  EXPECT_EQ(pool.Find(StreamKey{}), nullptr);
  EXPECT_EQ(pools.Heaps().size(), 1u);
  pool.ForgetEmptyDetached();
  EXPECT_EQ(pools.Heaps().size(), 0u);
}

TEST(PoolState, RoomIsWhatTheLimitLeaves) {
  PoolState pool(PoolId(3), Named("", MiB(8)));
  EXPECT_EQ(pool.Name(), "pool 3");
  EXPECT_EQ(pool.Room(), MiB(8));
  pool.figures().reserved.Add(MiB(6));
  EXPECT_EQ(pool.Room(), MiB(2));
  EXPECT_GT(PoolState(PoolId(4), PoolOptions()).Room(), TiB(1024));
}

}  // namespace
}  // namespace expanse

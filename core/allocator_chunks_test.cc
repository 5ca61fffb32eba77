// Chunks of several sizes, through the public interface: on a large device, where they are used.

#include <optional>
#include <random>
#include <vector>

#include "core/allocator_fixture.h"

namespace expanse {
namespace {

class ChunkSizesTest : public AllocatorTest {
 protected:
  static sim::Config LargeDevice() {
    sim::Config config = SmallDevice();
    config.devices[0].total_memory = TiB(1);
    return config;
  }
  // Leaves the device so much memory that nobody has.
  void LeaveFree(Bytes left) { sim_->SetTakenByOthers(DeviceOrdinal(0), TiB(1) - stats().reserved.current - left); }
};

TEST_F(ChunkSizesTest, MemoryThatIsPlentifulIsMadeOfLargeChunks) {
  Start(LargeDevice());
  Alloc(GiB(8));
  EXPECT_EQ(stats().chunks_created, 256u) << "32 MiB each";
  Alloc(GiB(8) + KiB(1));
  EXPECT_EQ(stats().reserved.current, GiB(16) + MiB(2)) << "what is missing, to the slot";
  EXPECT_EQ(stats().chunks_created, 256u + 257u);
  Alloc(KiB(4));
  EXPECT_EQ(stats().reserved.current, GiB(16) + MiB(4)) << "small blocks never get more";
}

TEST_F(ChunkSizesTest, AnExplicitChunkSizeIsTheSizeOfEveryChunk) {
  AllocatorOptions options;
  options.chunk_size = MiB(4);
  Start(LargeDevice(), options);
  Alloc(GiB(8));
  Alloc(GiB(8));
  EXPECT_EQ(stats().chunks_created, 4096u);
}

TEST_F(ChunkSizesTest, AnIdleLargeChunkIsBrokenUpWhereOnlyPartOfItIsMissing) {
  Start(LargeDevice());
  Alloc(GiB(8));
  const DeviceAddress large = Alloc(MiB(256));
  const uint64_t created = stats().chunks_created;
  EXPECT_LE(created, 4096u + 8u);
  Free(large);
  LeaveFree(Bytes());
  const StreamHandle other = NewStream();
  Alloc(MiB(6), other);
  EXPECT_EQ(stats().chunks_moved, 1u);
  EXPECT_EQ(stats().chunks_released, 1u);
  EXPECT_EQ(stats().reserved.current, GiB(8) + MiB(256 - 32 + 6)) << "the rest went back to the device";
  Alloc(MiB(64), other);
  EXPECT_EQ(stats().chunks_moved, 3u) << "what the device still had, a chunk as it is, and part of another";
}

TEST_F(ChunkSizesTest, ADeviceThatRefusesALargeChunkIsAskedForSmallerOnes) {
  Start(LargeDevice());
  Alloc(GiB(8));
  LeaveFree(MiB(46));
  Alloc(MiB(46));
  EXPECT_EQ(stats().reserved.current, GiB(8) + MiB(46));
  EXPECT_TRUE(absl::IsResourceExhausted(AllocFails(MiB(2))));
  EXPECT_EQ(stats().reserved.current, GiB(8) + MiB(46));
}

// Every call of a growth that moves, breaks up and creates fails in turn; a second attempt gets what was asked for.
TEST_F(ChunkSizesTest, AFailureWhileBreakingUpLosesNothing) {
  for (const EntryPoint entry_point : {EntryPoint::mem_unmap, EntryPoint::mem_release, EntryPoint::mem_create,
                                       EntryPoint::mem_map, EntryPoint::mem_set_access}) {
    for (uint64_t nth = 1; nth <= 3; ++nth) {
      SCOPED_TRACE(std::string(SymbolName(entry_point)) + " " + std::to_string(nth));
      Start(LargeDevice());
      Alloc(GiB(8));
      const DeviceAddress large = Alloc(MiB(64));
      Free(large);
      LeaveFree(Bytes());
      const StreamHandle other = NewStream();
      sim_->FailNthCall(entry_point, nth, abi::kUnknown);
      const absl::StatusOr<DeviceAddress> first = allocator_->Allocate(MiB(14), other);
      Check();
      sim_->ClearFaults();
      if (!first.ok()) {
        EXPECT_TRUE(absl::IsInternal(first.status())) << first.status();
        Alloc(MiB(14), other);
      }
      EXPECT_LE(stats().chunks_quarantined, entry_point == EntryPoint::mem_release ? 1u : 0u);
      EXPECT_EQ(stats().live.current, GiB(8) + MiB(14));
      TearDown();
      streams_.clear();
      sim_.reset();
    }
  }
}

// A limit so low that all chunks are created with 2 MiB, and a workload that uses half of it at most, on ever new
// streams.
class MergedChunksTest : public ChunkSizesTest {
 protected:
  void Start(std::optional<Bytes> chunk_size = std::nullopt) {
    AllocatorOptions options;
    options.growth = Growth::kLazy;
    options.limit = GiB(6);
    options.chunk_size = chunk_size;
    ChunkSizesTest::Start(LargeDevice(), options);
    Free(Alloc(GiB(3), NewStream()));
    Free(Alloc(GiB(3), NewStream()));
  }
  // Moves a third of what is held.
  absl::Status Move() {
    const absl::StatusOr<DeviceAddress> block = allocator_->Allocate(GiB(2), NewStream());
    Check();
    if (block.ok()) Free(*block);
    return block.status();
  }
};

TEST_F(MergedChunksTest, MovesThatGoOnAndOnMakeLargerChunks) {
  Start();
  ASSERT_EQ(Move(), absl::OkStatus());
  EXPECT_EQ(stats().chunks_moved, 1024u);
  EXPECT_EQ(stats().chunks_released, 0u) << "a workload that repeats may be done with moving by now";
  ASSERT_EQ(Move(), absl::OkStatus());
  EXPECT_EQ(stats().chunks_released, 1024u);
  EXPECT_EQ(stats().chunks_created, 3072u + 256u) << "8 MiB each";
  EXPECT_EQ(stats().reserved.current, GiB(6));
  const uint64_t moved = stats().chunks_moved;
  ASSERT_EQ(Move(), absl::OkStatus());
  EXPECT_EQ(stats().chunks_moved, moved + 256u) << "those, as they are";
  EXPECT_EQ(stats().chunks_released, 1024u);
}

TEST_F(MergedChunksTest, AnExplicitChunkSizeIsKept) {
  Start(MiB(2));
  for (int i = 0; i < 3; ++i) ASSERT_EQ(Move(), absl::OkStatus());
  EXPECT_EQ(stats().chunks_released, 0u);
}

TEST_F(MergedChunksTest, AFullWorkloadIsLeftWithSmallChunks) {
  Start();
  const DeviceAddress most = Alloc(GiB(6) - MiB(256), NewStream());
  Free(most);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(Move(), absl::OkStatus());
  EXPECT_EQ(stats().chunks_released, 0u) << "256 MiB leave no room for larger ones";
}

TEST_F(MergedChunksTest, ADeviceThatKeepsWhatItIsGivenGetsOneChunksWorth) {
  Start();
  ASSERT_EQ(Move(), absl::OkStatus());
  sim_->FailCreateAfter(Bytes());
  ASSERT_EQ(Move(), absl::OkStatus()) << "there is enough without it";
  EXPECT_EQ(stats().chunks_released, 4u);
  sim_->ClearFaults();
  ASSERT_EQ(Move(), absl::OkStatus());
  EXPECT_EQ(stats().chunks_released, 4u) << "and never again";
}

// Every call of a growth that merges fails in turn; a second attempt gets what was asked for.
TEST_F(MergedChunksTest, AFailureWhileMergingLosesNothing) {
  for (const EntryPoint entry_point : {EntryPoint::mem_unmap, EntryPoint::mem_release, EntryPoint::mem_create,
                                       EntryPoint::mem_map, EntryPoint::mem_set_access}) {
    for (const abi::Result error : {abi::kOutOfMemory, abi::kUnknown}) {
      for (uint64_t nth = 1; nth <= 6; ++nth) {
        SCOPED_TRACE(std::string(SymbolName(entry_point)) + " " + std::to_string(nth));
        Start();
        ASSERT_EQ(Move(), absl::OkStatus());
        sim_->FailNthCall(entry_point, nth, error);
        (void)Move();
        sim_->ClearFaults();
        EXPECT_EQ(Move(), absl::OkStatus());
        EXPECT_LE(stats().chunks_quarantined, entry_point == EntryPoint::mem_release ? 1u : 0u);
        EXPECT_GE(stats().reserved.current, GiB(6) - MiB(8));
        TearDown();
        streams_.clear();
        sim_.reset();
      }
    }
  }
}

// Sizes from 1 MiB to 2 GiB on three streams in 16 GiB, of which one block has half.
TEST_F(ChunkSizesTest, RandomBlocksUnderPressureKeepEveryInvariant) {
  for (const Growth growth : {Growth::kLazy, Growth::kBalanced, Growth::kFrugal}) {
    AllocatorOptions options;
    options.growth = growth;
    Start(LargeDevice(), options);
    Alloc(GiB(8));
    LeaveFree(GiB(8));
    std::mt19937_64 random(7);
    const std::vector<StreamHandle> streams = {StreamHandle(), NewStream(), NewStream()};
    std::vector<DeviceAddress> live;
    for (int i = 0; i < 300; ++i) {
      if (live.size() > 60 || (!live.empty() && random() % 100 < 45)) {
        std::swap(live[random() % live.size()], live.back());
        Free(live.back());
        live.pop_back();
        continue;
      }
      const Bytes size = KiB(1024) * (uint64_t{1} << (random() % 12)) - Bytes(random() % 1'000'000);
      const absl::StatusOr<DeviceAddress> address = allocator_->Allocate(size, streams[random() % 3]);
      Check();
      if (address.ok()) {
        live.push_back(*address);
      } else {
        ASSERT_TRUE(absl::IsResourceExhausted(address.status())) << address.status();
      }
    }
    EXPECT_GT(stats().chunks_moved, 100u);
    EXPECT_GT(stats().chunks_released, 0u) << "some were broken up";
    TearDown();
    streams_.clear();
    sim_.reset();
  }
}

}  // namespace
}  // namespace expanse

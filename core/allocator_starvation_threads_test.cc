// Several threads that run out of memory at the same time: whoever could be served is served, and nobody for ever.

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "core/allocator_fixture.h"
#include "vmm/mutex.h"

namespace expanse {
namespace {

using std::chrono::microseconds;

class StarvationTest : public AllocatorTest {
 protected:
  template <typename Body>
  void RunThreads(int threads, Body body) {
    std::vector<std::thread> running;
    for (int i = 0; i < threads; ++i) {
      running.emplace_back([this, i, &body] {
        ASSERT_EQ(sim_->driver().ctx_set_current(context_), abi::kSuccess);
        body(i);
      });
    }
    for (std::thread& thread : running) thread.join();
    Check();
  }
};

// Each needs most of the device, and gets it once another one's callback, or the end of its work, gives it up.
TEST_F(StarvationTest, ThreadsThatTakeTurnsWithMostOfTheDeviceAreAllServed) {
  Start();
  std::vector<StreamHandle> streams;
  for (int i = 0; i < 4; ++i) streams.push_back(NewStream());
  // What is held is at most one block, which whoever starves may take away from its holder.
  Mutex mu;
  DeviceAddress held;
  const auto give_up = [&](const Shortage&) {
    MutexLock lock(mu);
    if (held.is_null()) return true;
    EXPECT_EQ(allocator_->Free(held), absl::OkStatus());
    held = DeviceAddress();
    return true;
  };
  ASSERT_TRUE(allocator_->AddOutOfMemoryCallback(give_up).ok());
  std::atomic<int> served{0};
  RunThreads(4, [&](int thread) {
    const StreamHandle stream = streams[static_cast<size_t>(thread)];
    for (int i = 0; i < 50; ++i) {
      // Others may be quicker, time and again; a thread whose callback has seen a free always tries once more.
      for (;;) {
        const absl::StatusOr<DeviceAddress> block = allocator_->Allocate(MiB(40), stream);
        if (!block.ok()) {
          ASSERT_EQ(block.status().code(), absl::StatusCode::kResourceExhausted) << block.status();
          continue;
        }
        ++served;
        Launch(stream, microseconds(20), *block, MiB(40));
        MutexLock lock(mu);
        EXPECT_TRUE(held.is_null());
        held = *block;
        break;
      }
    }
  });
  EXPECT_EQ(served, 200);
  Free(held);
}

// Memory for all of them is there, but held back by queued work: whoever waits finds it, though others take part of it.
TEST_F(StarvationTest, NobodyFailsWhileQueuedWorkHoldsBackEnoughForAll) {
  Start();
  for (int round = 0; round < 20; ++round) {
    const StreamHandle slow = NewStream();
    std::vector<DeviceAddress> blocks;
    for (int i = 0; i < 8; ++i) blocks.push_back(Alloc(MiB(8), slow));
    for (DeviceAddress block : blocks) {
      Launch(slow, microseconds(100), block, MiB(8));
      Free(block);
    }
    std::vector<StreamHandle> streams;
    for (int i = 0; i < 4; ++i) streams.push_back(NewStream());
    RunThreads(4, [&](int thread) {
      const absl::StatusOr<DeviceAddress> block = allocator_->Allocate(MiB(16), streams[static_cast<size_t>(thread)]);
      ASSERT_TRUE(block.ok()) << block.status();
      Launch(streams[static_cast<size_t>(thread)], microseconds(10), *block, MiB(16));
      EXPECT_EQ(allocator_->Free(*block), absl::OkStatus());
    });
    ASSERT_FALSE(HasFailure());
    for (StreamHandle stream : streams) {
      EXPECT_EQ(allocator_->OnStreamDestroyed(stream), absl::OkStatus());
      DestroyStream(stream);
    }
    EXPECT_EQ(allocator_->OnStreamDestroyed(slow), absl::OkStatus());
    DestroyStream(slow);
  }
}

// Each pool is at its limit all the time, with what it needs next idle on its other stream and still in use by the
// device; together they are nearly as large as the device.
TEST_F(StarvationTest, PoolsAtTheirLimitsWaitForTheirOwnWorkAndAreAllServed) {
  Start();
  constexpr int kPools = 3;
  std::vector<PoolId> pools;
  std::vector<StreamHandle> streams;
  for (int i = 0; i < kPools; ++i) {
    PoolOptions options;
    options.limit = MiB(20);
    options.deterministic = i == 2;
    pools.push_back(allocator_->CreatePool(options).value());
    streams.push_back(NewStream());
    streams.push_back(NewStream());
  }
  RunThreads(kPools, [&](int thread) {
    for (int i = 0; i < 100; ++i) {
      const StreamHandle stream = streams[2 * static_cast<size_t>(thread) + static_cast<size_t>(i % 2)];
      const absl::StatusOr<DeviceAddress> block =
          allocator_->Allocate(MiB(18), stream, pools[static_cast<size_t>(thread)]);
      ASSERT_TRUE(block.ok()) << block.status();
      Launch(stream, microseconds(50), *block, MiB(18));
      EXPECT_EQ(allocator_->Free(*block), absl::OkStatus());
    }
  });
  EXPECT_LE(stats().reserved.peak, MiB(60));
  EXPECT_GT(stats().waits, 0u);
}

// Allocators that ask each other at the same time neither deadlock nor lose anything.
TEST_F(StarvationTest, AllocatorsThatStarveAtOnceAskEachOther) {
  Start();
  std::vector<std::unique_ptr<Allocator>> allocators;
  for (int i = 0; i < 3; ++i) {
    auto allocator = Allocator::Create(sim_->driver(), {});
    ASSERT_TRUE(allocator.ok()) << allocator.status();
    allocators.push_back(*std::move(allocator));
  }
  std::atomic<uint64_t> served{0};
  RunThreads(3, [&](int thread) {
    Allocator& mine = *allocators[static_cast<size_t>(thread)];
    for (int i = 0; i < 100; ++i) {
      const absl::StatusOr<DeviceAddress> block = mine.Allocate(MiB(30), StreamHandle());
      if (!block.ok()) {
        EXPECT_EQ(block.status().code(), absl::StatusCode::kResourceExhausted) << block.status();
        continue;
      }
      ++served;
      EXPECT_EQ(mine.Free(*block), absl::OkStatus());
    }
  });
  EXPECT_GE(served, 100u);
  for (const auto& allocator : allocators) {
    EXPECT_EQ(allocator->CheckInvariants(), absl::OkStatus());
    ASSERT_TRUE(allocator->Trim(Bytes()).ok());
  }
  EXPECT_EQ(sim_->committed(DeviceOrdinal(0)), Bytes());
}

// A callback that another thread is in may be removed: whoever removes it waits for its end.
TEST_F(StarvationTest, ARemovedCallbackIsOverWhenRemoveReturns) {
  Start();
  const DeviceAddress all = Alloc(MiB(64));
  for (int i = 0; i < 50; ++i) {
    auto alive = std::make_unique<std::atomic<int>>(0);
    const auto id = allocator_->AddOutOfMemoryCallback([count = alive.get()](const Shortage&) {
      for (int n = 0; n < 100; ++n) ++*count;
      return false;
    });
    ASSERT_TRUE(id.ok());
    RunThreads(3, [&](int thread) {
      if (thread > 0) {
        EXPECT_FALSE(allocator_->Allocate(MiB(2), StreamHandle()).ok());
        return;
      }
      EXPECT_EQ(allocator_->RemoveOutOfMemoryCallback(*id), absl::OkStatus());
      alive.reset();
    });
  }
  Free(all);
}

}  // namespace
}  // namespace expanse

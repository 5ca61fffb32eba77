// Threads of several allocators that starve at once.

#include <atomic>
#include <thread>
#include <vector>

#include "core/allocator_fixture.h"
#include "core/peers.h"
#include "vmm/mutex.h"

namespace expanse {
namespace {

// While one thread asks a member, which wants its own lock, the member's other thread holds that lock and looks whether
// it could ask somebody itself.
TEST(PeersThreadsTest, AMemberThatIsBeingAskedMayLookForOthersUnderItsLock) {
  Mutex lock_of_asked;
  std::atomic<bool> being_asked{false};
  const Peer asked(DeviceOrdinal(0), [&](Bytes) {
    being_asked = true;
    MutexLock lock(lock_of_asked);
    return MiB(2);
  });
  const Peer asking(DeviceOrdinal(0), [](Bytes) { return Bytes(); });
  std::thread starving;
  {
    MutexLock lock(lock_of_asked);
    starving = std::thread([&] { EXPECT_EQ(asking.AskOthers(MiB(2)), MiB(2)); });
    while (!being_asked) std::this_thread::yield();
    EXPECT_TRUE(asked.HasOthers());
  }
  starving.join();
}

class TwoAllocatorsTest : public AllocatorTest {};

// The device has room for the blocks of one thread at a time, and each keeps what it freed until it is asked.
TEST_F(TwoAllocatorsTest, StarvingAtOnceTakeWhatTheOtherFreed) {
  Start();
  absl::StatusOr<std::unique_ptr<Allocator>> second = Allocator::Create(sim_->driver(), {});
  ASSERT_TRUE(second.ok()) << second.status();
  std::atomic<int> served{0};
  const auto work = [&served](Allocator& allocator) {
    for (int i = 0; i < 200; ++i) {
      const absl::StatusOr<DeviceAddress> block = allocator.Allocate(MiB(40), StreamHandle());
      if (!block.ok()) {
        EXPECT_TRUE(absl::IsResourceExhausted(block.status())) << block.status();
        continue;
      }
      ++served;
      EXPECT_EQ(allocator.Free(*block), absl::OkStatus());
    }
  };
  std::thread first_thread([&] { work(*allocator_); });
  std::thread second_thread([&] { work(**second); });
  first_thread.join();
  second_thread.join();
  EXPECT_GT(served, 0);
  Check();
  EXPECT_EQ((*second)->CheckInvariants(), absl::OkStatus());
  second->reset();
}

}  // namespace
}  // namespace expanse

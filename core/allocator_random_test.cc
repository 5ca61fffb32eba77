// Long random programs on small devices, where memory is always short and chunks move all the time, compared with a
// simple model: a map of the live ranges and what they should hold.

#include <chrono>
#include <cstring>
#include <map>
#include <optional>
#include <random>

#include "core/allocator_fixture.h"

namespace expanse {
namespace {

struct LiveBlock {
  Bytes size;
  unsigned char content = 0;
  // The stream that was given the last work on the block; none once the host has waited for it.
  std::optional<StreamHandle> last;
};

struct Program {
  uint32_t seed;
  sim::MemoryMode memory;
  Growth growth;
  Bytes capacity;
  int operations;
};

class RandomProgram : public AllocatorTest, public ::testing::WithParamInterface<uint32_t> {
 protected:
  void Run(const Program& program) {
    random_.seed(program.seed);
    sim::Config config = SmallDevice();
    config.devices[0].total_memory = program.capacity;
    config.memory = program.memory;
    real_ = program.memory == sim::MemoryMode::kReal;
    AllocatorOptions options;
    options.growth = program.growth;
    if (program.seed % 3 == 1) options.chunk_size = MiB(4);
    if (program.seed % 4 == 3) options.limit = program.capacity * 3 / 4;
    Start(config, options);
    program_streams_ = {StreamHandle(), NewStream(), NewStream(), NewStream()};
    for (int i = 0; i < program.operations && !HasFailure(); ++i) {
      SCOPED_TRACE(::testing::Message() << "seed " << program.seed << ", operation " << i);
      Step(program.capacity);
      Check();
      ASSERT_EQ(sim_->hazard_count(), 0u) << sim_->hazards()[0].description;
      ASSERT_EQ(stats().live.current, live_bytes_);
      ASSERT_EQ(stats().live_blocks, live_.size());
    }
    CheckContents();
    EXPECT_GT(served_, static_cast<uint64_t>(program.operations) / 5);
    EXPECT_GT(stats().chunks_moved, 0u);
  }

 private:
  uint64_t Pick(uint64_t n) { return random_() % n; }
  StreamHandle AnyStream() { return program_streams_[Pick(program_streams_.size())]; }
  std::map<DeviceAddress, LiveBlock>::iterator AnyLive() {
    return std::next(live_.begin(), static_cast<std::ptrdiff_t>(Pick(live_.size())));
  }
  Bytes AnySize(Bytes capacity) {
    switch (Pick(4)) {
      case 0:
        return Bytes(1 + Pick(4096));
      case 1:
        return Bytes(1 + Pick(MiB(1).count()));
      case 2:
        return Bytes(1 + Pick(MiB(6).count()));
      default:
        return Bytes(1 + Pick(capacity.count() / 3));
    }
  }

  void Step(Bytes capacity) {
    const uint64_t choice = Pick(100);
    if (choice < 45 || live_.empty()) {
      DoAllocate(AnySize(capacity), AnyStream());
    } else if (choice < 80) {
      DoFree(AnyLive());
    } else if (choice < 88) {
      const auto it = AnyLive();
      UseElsewhere(it->first, it->second);
    } else if (choice < 96) {
      sim_->Advance(std::chrono::microseconds(Pick(2000)));
    } else if (choice < 98) {
      const absl::StatusOr<Bytes> released = allocator_->Trim(Bytes(Pick(capacity.count())));
      ASSERT_TRUE(released.ok()) << released.status();
    } else {
      ReplaceStream();
    }
  }

  void DoAllocate(Bytes size, StreamHandle stream) {
    const absl::StatusOr<DeviceAddress> address = allocator_->Allocate(size, stream);
    if (!address.ok()) {
      ASSERT_EQ(address.status().code(), absl::StatusCode::kResourceExhausted) << address.status();
      return;
    }
    ++served_;
    const AddressRange range{*address, size};
    ASSERT_TRUE(sim_->IsMapped(range));
    const auto next = live_.lower_bound(*address);
    ASSERT_TRUE(next == live_.end() || next->first >= range.end()) << "overlaps the next live block";
    ASSERT_TRUE(next == live_.begin() || std::prev(next)->first + std::prev(next)->second.size <= *address);
    LiveBlock block{size, static_cast<unsigned char>(1 + Pick(255)), std::nullopt};
    // Queued work does not really write, so that what the host writes stays to be checked.
    if (real_) std::memset(address->ptr(), block.content, size.count());
    Launch(stream, std::chrono::microseconds(Pick(500)), *address, size);
    block.last = stream;
    live_.emplace(*address, block);
    live_bytes_ += size;
  }

  // Work on some stream, ordered after the block's last work as a program would have to.
  void Work(DeviceAddress address, LiveBlock& block, StreamHandle stream) {
    if (block.last && *block.last != stream) OrderAfter(stream, *block.last);
    Launch(stream, std::chrono::microseconds(Pick(1500)), address, block.size);
    block.last = stream;
  }

  void UseElsewhere(DeviceAddress address, LiveBlock& block) {
    const StreamHandle stream = AnyStream();
    ASSERT_EQ(allocator_->RecordUse(address, stream), absl::OkStatus());
    Work(address, block, stream);
  }

  void DoFree(std::map<DeviceAddress, LiveBlock>::iterator it) {
    const DeviceAddress address = it->first;
    LiveBlock block = it->second;
    CheckContent(address, block);
    if (Pick(5) == 0) {
      const StreamHandle last = AnyStream();
      Work(address, block, last);
      ASSERT_EQ(allocator_->Free(address, last), absl::OkStatus());
    } else {
      ASSERT_EQ(allocator_->Free(address), absl::OkStatus());
    }
    live_.erase(it);
    live_bytes_ -= block.size;
    ASSERT_EQ(allocator_->Free(address).code(), absl::StatusCode::kInvalidArgument);
  }

  // Destroys a stream, waiting for it first in half of the cases. Its blocks live on. The next stream most likely gets
  // the same handle.
  void ReplaceStream() {
    const size_t index = 1 + Pick(program_streams_.size() - 1);
    const StreamHandle old = program_streams_[index];
    const StreamHandle heir = StreamHandle();
    if (Pick(2) == 0) {
      ASSERT_EQ(sim_->driver().stream_synchronize(static_cast<abi::Stream>(old.raw())), abi::kSuccess);
    } else {
      OrderAfter(heir, old);
    }
    for (auto& [address, block] : live_) {
      if (block.last == old) block.last = heir;
    }
    ASSERT_EQ(allocator_->OnStreamDestroyed(old), absl::OkStatus());
    DestroyStream(old);
    program_streams_[index] = NewStream();
  }

  void CheckContent(DeviceAddress address, const LiveBlock& block) {
    if (!real_) return;
    const auto* bytes = static_cast<const unsigned char*>(address.ptr());
    for (uint64_t at = 0; at < block.size.count(); at += 1021) ASSERT_EQ(bytes[at], block.content) << address;
    ASSERT_EQ(bytes[block.size.count() - 1], block.content) << address;
  }
  void CheckContents() {
    for (const auto& [address, block] : live_) CheckContent(address, block);
  }

  std::mt19937 random_;
  bool real_ = false;
  std::vector<StreamHandle> program_streams_;
  std::map<DeviceAddress, LiveBlock> live_;
  Bytes live_bytes_;
  uint64_t served_ = 0;
};

TEST_P(RandomProgram, KeepsItsBooksOnALargerDevice) {
  Run({GetParam(), sim::MemoryMode::kAccounting, GetParam() % 2 == 0 ? Growth::kLazy : Growth::kFrugal, MiB(256),
       3000});
}

TEST_P(RandomProgram, KeepsContentsOnATinyDevice) {
  Run({GetParam(), sim::MemoryMode::kReal, GetParam() % 2 == 0 ? Growth::kLazy : Growth::kFrugal, MiB(32), 400});
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomProgram, ::testing::Range(0u, 8u));

}  // namespace
}  // namespace expanse

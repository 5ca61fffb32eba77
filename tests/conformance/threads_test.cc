// Many threads at once. These also run under the thread sanitizer.

#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "tests/conformance/conformance_test.h"

namespace expanse {
namespace {

class ThreadsConformance : public ConformanceTest {
 protected:
  static constexpr int kThreads = 4;

  // Runs `body(thread number, its stream)` on every thread, with the device's context current. Streams are made first.
  template <typename Body>
  void RunThreads(Body body) {
    std::vector<StreamHandle> streams;
    for (int i = 0; i < kThreads; ++i) streams.push_back(device_->NewStream());
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([this, i, stream = streams[static_cast<size_t>(i)], &body] {
        device_->UseOnThisThread();
        body(i, stream);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
};

TEST_P(ThreadsConformance, ThreadsWithStreamsOfTheirOwn) {
  Create();
  RunThreads([this](int number, StreamHandle stream) {
    std::mt19937 random(static_cast<uint32_t>(number + 1));
    std::vector<AddressRange> blocks;
    for (int i = 0; i < 150; ++i) {
      if (blocks.size() < 6 && random() % 2 == 0) {
        const Bytes size(1 + (uint64_t{random()} >> (11 + random() % 16)));
        auto address = allocator_->Allocate(size, stream);
        ASSERT_TRUE(address.ok()) << address.status();
        blocks.push_back({*address, size});
        device_->Fill(blocks.back(), static_cast<unsigned char>(number + 1), stream);
      } else if (!blocks.empty()) {
        EXPECT_TRUE(device_->Holds(blocks.back(), static_cast<unsigned char>(number + 1), stream));
        EXPECT_TRUE(allocator_->Free(blocks.back().begin, stream).ok());
        blocks.pop_back();
      }
    }
    for (AddressRange block : blocks) EXPECT_TRUE(allocator_->Free(block.begin, stream).ok());
  });
  EXPECT_EQ(allocator_->figures().live, Bytes());
}

TEST_P(ThreadsConformance, BlocksAreFreedByOtherThreads) {
  Create();
  struct Handed {
    AddressRange block;
    StreamHandle stream;
  };
  std::mutex mutex;
  std::deque<Handed> handed;
  RunThreads([&](int number, StreamHandle stream) {
    for (int i = 0; i < 100; ++i) {
      const Bytes size = KiB(1 + static_cast<uint64_t>((number * 37 + i * 13) % 900));
      auto address = allocator_->Allocate(size, stream);
      ASSERT_TRUE(address.ok()) << address.status();
      Handed other{};
      {
        std::lock_guard<std::mutex> lock(mutex);
        handed.push_back({{*address, size}, stream});
        if (handed.size() > 12) {
          other = handed.front();
          handed.pop_front();
        }
      }
      if (other.block.size.is_zero()) continue;
      if (i % 3 == 0) {
        EXPECT_TRUE(allocator_->RecordUse(other.block.begin, stream).ok());
      }
      EXPECT_TRUE(allocator_->Free(other.block.begin, other.stream).ok());
    }
  });
  for (const Handed& left : handed) EXPECT_TRUE(allocator_->Free(left.block.begin, left.stream).ok());
  EXPECT_EQ(allocator_->figures().live, Bytes());
}

TEST_P(ThreadsConformance, OneOfManyFreesOfABlockSucceeds) {
  Create();
  for (int round = 0; round < 20; ++round) {
    const AddressRange block = Allocate(MiB(2));
    std::atomic<int> succeeded{0};
    RunThreads([&](int, StreamHandle) {
      const absl::Status status = allocator_->Free(block.begin, StreamHandle());
      if (status.ok()) {
        ++succeeded;
      } else {
        EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
      }
    });
    EXPECT_EQ(succeeded, 1);
    live_.clear();
    Check();
  }
}

TEST_P(ThreadsConformance, FiguresMayBeReadAllTheTime) {
  Create();
  std::atomic<bool> done{false};
  std::thread reader([&] {
    while (!done) {
      const bench::AllocatorFigures figures = allocator_->figures();
      EXPECT_LE(figures.reserved, figures.peak_reserved);
    }
  });
  RunThreads([this](int, StreamHandle stream) {
    for (int i = 0; i < 100; ++i) {
      auto address = allocator_->Allocate(MiB(1), stream);
      ASSERT_TRUE(address.ok()) << address.status();
      EXPECT_TRUE(allocator_->Free(*address, stream).ok());
    }
  });
  done = true;
  reader.join();
}

EXPANSE_INSTANTIATE_CONFORMANCE(ThreadsConformance);

}  // namespace
}  // namespace expanse

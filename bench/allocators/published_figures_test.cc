// Compares the models of PyTorch's two policies with what PyTorch's own code reserves on recorded traces.
//
// The expected figures come from PyTorch 2.6.0's unmodified c10/cuda/CUDACachingAllocator.cpp, run on a simulated 80
// GiB device over the same traces; they are stated beside the traces, which are not part of this project.

#include <filesystem>
#include <ostream>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "bench/allocators/rival_test_support.h"
#include "bench/trace/reader.h"
#include "bench/trace/trace.h"
#include "gtest/gtest.h"

namespace expanse::bench {
namespace {

struct Published {
  const char* file;
  double caching;              // peak reserved / peak live
  double per_stream_segments;  // the same with expandable segments

  friend std::ostream& operator<<(std::ostream& os, const Published& p) { return os << p.file; }
};

class PublishedFiguresTest : public RivalTest, public testing::WithParamInterface<Published> {
 protected:
  void SetUp() override {
    const std::filesystem::path path = std::filesystem::path(EXPANSE_SHARED_DIR) / "traces" / GetParam().file;
    if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is not there";
    auto loaded = ReadTrace(path.string());
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    trace_ = std::move(loaded->trace);
    SetUpDevice(GiB(80));
  }

  // Peak reserved over peak live.
  double Replay(std::string_view name) {
    SetUpAllocator(name);
    absl::flat_hash_map<int32_t, StreamHandle> streams;
    streams[0] = StreamHandle();
    std::vector<DeviceAddress> addresses(trace_.block_count());
    for (const TraceEvent& event : trace_.events) {
      if (event.op != TraceOp::kAllocate && event.op != TraceOp::kFree) continue;
      if (!streams.contains(event.stream)) streams[event.stream] = NewStream();
      if (event.op == TraceOp::kAllocate) {
        auto address = allocator_->Allocate(Bytes(event.value), streams[event.stream]);
        EXPECT_TRUE(address.ok()) << address.status();
        if (!address.ok()) return 0;
        addresses[event.block] = *address;
      } else {
        EXPECT_TRUE(allocator_->Free(addresses[event.block], streams[event.stream]).ok());
      }
    }
    Check();
    const AllocatorFigures figures = allocator_->figures();
    allocator_.reset();
    return static_cast<double>(figures.peak_reserved.count()) / static_cast<double>(figures.peak_live.count());
  }

  Trace trace_;
};

// The figures are given to three decimals, and the models reproduce them to that.
constexpr double kRounding = 0.0006;

TEST_P(PublishedFiguresTest, Caching) { EXPECT_NEAR(Replay("caching"), GetParam().caching, kRounding); }

TEST_P(PublishedFiguresTest, PerStreamSegments) {
  EXPECT_NEAR(Replay("per-stream-segments"), GetParam().per_stream_segments, kRounding);
}

INSTANTIATE_TEST_SUITE_P(Traces, PublishedFiguresTest,
                         testing::Values(Published{"llama70b_stage0_release_grads.csv.gz", 1.019, 1.016},
                                         Published{"llama70b_stage7_release_grads.csv.gz", 1.020, 1.011},
                                         Published{"fsdp_llama8b_oom.csv.gz", 1.129, 1.055},
                                         Published{"octree_nca_train.csv", 1.615, 1.327},
                                         Published{"gpt_2p7b_adamw_step.csv.gz", 1.115, 1.013},
                                         Published{"llama_offload_10streams.csv.gz", 1.483, 1.455},
                                         Published{"qwen_sparse_attention.csv.gz", 1.428, 1.052},
                                         Published{"random_mixed.csv.gz", 1.689, 1.523}),
                         [](const testing::TestParamInfo<Published>& info) {
                           const std::string file = info.param.file;
                           return file.substr(0, file.find('.'));
                         });

}  // namespace
}  // namespace expanse::bench

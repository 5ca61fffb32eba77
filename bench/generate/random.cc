#include "bench/generate/random.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/generate/option_error.h"
#include "bench/generate/rng.h"
#include "bench/generate/trace_builder.h"

namespace expanse::bench {
namespace {

constexpr uint64_t kSizeMultiple = 4;
constexpr uint64_t kAllocationsPerStep = 1000;
// How often a request is followed by a free that nothing forces.
constexpr double kUnforcedFree = 0.25;

absl::Status Validate(const RandomConfig& c) {
  if (c.events < 2 || c.events % 2 != 0 || c.events > kMaxGeneratedEvents) {
    return UnexpectedOption("events", c.events, absl::StrCat("an even number from 2 to ", kMaxGeneratedEvents));
  }
  if (c.min_size < Bytes(kSizeMultiple)) {
    return UnexpectedOption("min-size", c.min_size.count(), absl::StrCat("at least ", kSizeMultiple, " bytes"));
  }
  if (c.max_size < c.min_size || c.max_size > TiB(1)) {
    return UnexpectedOption("max-size", c.max_size.count(),
                            absl::StrCat("min-size = ", c.min_size.count(), " to 1 TiB"));
  }
  if (c.live < c.max_size || c.live > TiB(1024)) {
    return UnexpectedOption("live", c.live.count(), absl::StrCat("max-size = ", c.max_size.count(), " to 1024 TiB"));
  }
  if (c.phases < 1 || c.phases > c.events / 2) {
    return UnexpectedOption("phases", c.phases, absl::StrCat("1 to the number of allocations = ", c.events / 2));
  }
  constexpr auto kMaxStreams = static_cast<uint64_t>(std::numeric_limits<int32_t>::max());
  if (c.streams < 1 || c.streams > kMaxStreams) {
    return UnexpectedOption("streams", c.streams, absl::StrCat("1 to ", kMaxStreams));
  }
  return absl::OkStatus();
}

// Allocates at random and frees at random. Invariant: `live_` holds each live block once, in no particular order.
// Not thread-safe; used once.
class RandomProgram {
 public:
  RandomProgram(const RandomConfig& config, TraceBuilder& trace)
      : config_(config), trace_(trace), rng_(config.seed), smallest_(config.min_size), largest_(config.max_size) {}

  void Run() {
    const uint64_t allocations = config_.events / 2;
    uint64_t phases_begun = 0;
    for (uint64_t i = 0; i < allocations; ++i) {
      // Phase p begins at allocation ceil(p * allocations / phases).
      if (phases_begun < config_.phases && i * config_.phases >= phases_begun * allocations) BeginPhase(phases_begun++);
      if (i % kAllocationsPerStep == 0) trace_.Mark(absl::StrCat("step", i / kAllocationsPerStep));
      AllocateOne();
      if (rng_.Chance(kUnforcedFree)) FreeOne();
    }
    while (!live_.empty()) FreeOne();
  }

 private:
  void BeginPhase(uint64_t phase) {
    trace_.Mark(absl::StrCat("phase", phase));
    smallest_ = config_.min_size;
    largest_ = config_.max_size;
    if (phase == 0) return;
    const double middle = std::sqrt(static_cast<double>(smallest_.count()) * static_cast<double>(largest_.count()));
    const Bytes median = std::clamp(Bytes(static_cast<uint64_t>(middle)), smallest_, largest_);
    switch (rng_.Between(0, 2)) {
      case 0:
        largest_ = median;
        break;
      case 1:
        smallest_ = median;
        break;
      default:
        break;
    }
    const double freed_share = rng_.Fraction();
    const auto keep = static_cast<size_t>((1 - freed_share) * static_cast<double>(live_.size()));
    while (live_.size() > keep) FreeOne();
  }

  void AllocateOne() {
    const uint64_t drawn = rng_.LogUniform(smallest_.count(), largest_.count()) / kSizeMultiple * kSizeMultiple;
    const Bytes size = std::max(Bytes(drawn), config_.min_size);
    while (trace_.live() + size > config_.live) FreeOne();
    live_.push_back(trace_.Allocate(size, static_cast<int32_t>(rng_.Between(0, config_.streams - 1))));
  }

  void FreeOne() {
    std::swap(live_[rng_.Between(0, live_.size() - 1)], live_.back());
    trace_.Free(live_.back());
    live_.pop_back();
  }

  const RandomConfig& config_;
  TraceBuilder& trace_;
  Rng rng_;
  Bytes smallest_;  // of the present phase
  Bytes largest_;
  std::vector<BlockId> live_;
};

}  // namespace

absl::StatusOr<Trace> GenerateRandom(const RandomConfig& config) {
  if (absl::Status status = Validate(config); !status.ok()) return status;
  TraceBuilder trace(absl::StrCat("random seed ", config.seed));
  RandomProgram(config, trace).Run();
  return std::move(trace).Finish();
}

}  // namespace expanse::bench

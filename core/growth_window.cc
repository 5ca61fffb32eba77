#include "core/growth_window.h"

#include <algorithm>

namespace expanse {
namespace {

// The blocks of one gap, with running sums that tell in O(log n) what a window would cost.
class Gap {
 public:
  explicit Gap(const Segment& segment) : segment_(segment) {}

  // Collects the gap around a hole.
  void Collect(const Block* hole) {
    elements_.clear();
    const auto in_gap = [](const Block* block) {
      return block != nullptr && (block->state == BlockState::kFree || block->state == BlockState::kHole);
    };
    const Block* block = hole;
    while (in_gap(block->prev)) block = block->prev;
    uint64_t missing = 0;
    uint64_t idle = 0;
    for (; in_gap(block); block = block->next) {
      elements_.push_back(Element{block->range(), block->state == BlockState::kHole, missing, idle});
      const uint64_t whole = WholeSlots(block->range(), block->end());
      (elements_.back().hole ? missing : idle) += whole;
    }
  }

  [[nodiscard]] DeviceAddress begin() const { return elements_.front().range.begin; }
  [[nodiscard]] DeviceAddress end() const { return elements_.back().range.end(); }

  template <typename Function>
  void ForEachWindow(Bytes size, Function consider) const {
    for (const Element& element : elements_) {
      const DeviceAddress at = element.range.begin;
      if (end() - at >= size) consider(Measure({at, size}));
      const DeviceAddress to = element.range.end();
      if (to - begin() >= size) consider(Measure({to - size, size}));
    }
  }

 private:
  struct Element {
    AddressRange range;
    bool hole;
    uint64_t missing_before;  // slots in the holes of the gap below this element
    uint64_t idle_before;     // idle slots in its free blocks
  };
  struct Count {
    uint64_t missing;
    uint64_t idle;
  };

  // The whole slots of the segment between the begin of `range` and `to`, which is not above its end.
  [[nodiscard]] uint64_t WholeSlots(AddressRange range, DeviceAddress to) const {
    const DeviceAddress from = segment_.SlotCeil(range.begin);
    const DeviceAddress until = segment_.SlotFloor(to);
    return from < until ? (until - from) / segment_.slot_size() : 0;
  }

  // What lies below a slot boundary.
  [[nodiscard]] Count Below(DeviceAddress boundary) const {
    auto it = std::upper_bound(elements_.begin(), elements_.end(), boundary,
                               [](DeviceAddress a, const Element& e) { return a < e.range.begin; });
    if (it == elements_.begin()) return Count{0, 0};
    const Element& element = *--it;
    const uint64_t part = WholeSlots(element.range, std::min(boundary, element.range.end()));
    return Count{element.missing_before + (element.hole ? part : 0), element.idle_before + (element.hole ? 0 : part)};
  }

  [[nodiscard]] GrowthWindow Measure(AddressRange range) const {
    const Count low = Below(segment_.SlotFloor(range.begin));
    const Count high = Below(segment_.SlotCeil(range.end()));
    return GrowthWindow{nullptr, range, high.missing - low.missing, high.idle - low.idle};
  }

  const Segment& segment_;
  std::vector<Element> elements_;
};

uint64_t Cost(const GrowthWindow& window, WindowChoice choice) {
  return choice == WindowChoice::kFewestMissing ? window.missing : window.missing + window.idle;
}

}  // namespace

std::optional<GrowthWindow> FindGrowthWindow(absl::Span<Segment* const> segments, Bytes size, WindowChoice choice) {
  std::optional<GrowthWindow> best;
  for (Segment* segment : segments) {
    Gap gap(*segment);
    DeviceAddress seen = segment->range().begin;  // gaps up to here were looked at
    for (const auto& [address, hole] : segment->holes()) {
      if (address < seen) continue;
      gap.Collect(hole);
      seen = gap.end();
      gap.ForEachWindow(size, [&](GrowthWindow window) {
        window.segment = segment;
        const bool lower = best && best->segment == segment && window.range.begin < best->range.begin;
        if (!best || Cost(window, choice) < Cost(*best, choice) ||
            (Cost(window, choice) == Cost(*best, choice) && lower)) {
          best = window;
        }
      });
    }
  }
  return best;
}

std::vector<SlotRun> MissingSlots(const GrowthWindow& window) {
  Segment* segment = window.segment;
  std::vector<SlotRun> runs;
  const uint64_t end = segment->SlotOf(segment->SlotCeil(window.range.end()));
  for (uint64_t slot = segment->SlotOf(window.range.begin); slot < end; ++slot) {
    if (!segment->chunk(slot).is_none()) continue;
    if (!runs.empty() && runs.back().end() == slot) {
      ++runs.back().count;
    } else {
      runs.push_back(SlotRun{segment, slot, 1});
    }
  }
  return runs;
}

}  // namespace expanse

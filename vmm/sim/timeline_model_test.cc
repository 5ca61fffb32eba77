// Races of random programs against a model.

#include <chrono>
#include <cstdint>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "vmm/sim/timeline_fixture.h"

namespace expanse::sim {
namespace {

using std::chrono::microseconds;

// Random programs, against the transitive closure of the order that the rules give.
TEST(TimelineModel, RacesAreTheUnorderedPairs) {
  uint64_t work_without_race = 0;
  for (uint32_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    const abi::Context context = reinterpret_cast<abi::Context>(0x10);
    Timeline timeline;
    timeline.AddContext(context, DeviceOrdinal(0));
    constexpr int kStreams = 4;  // The legacy stream, a blocking one and two non-blocking ones.
    std::vector<StreamId> streams = {*timeline.FindStream(nullptr, context, {})};
    for (int i = 1; i < kStreams; ++i) {
      streams.push_back(*timeline.FindStream(timeline.CreateStream(context, i == 1), context, {}));
    }
    const std::vector<abi::Event> events = {timeline.CreateEvent(context), timeline.CreateEvent(context)};

    // The model: the set of work (by number) that comes before the next action of each stream, event and the host.
    using Set = std::vector<bool>;
    constexpr int kSteps = 120;
    std::vector<Set> before(kStreams, Set(kSteps + 1));
    std::vector<Set> recorded(events.size(), Set(kSteps + 1));
    Set host(kSteps + 1);
    const auto join = [](Set& into, const Set& from) {
      for (size_t i = 0; i < into.size(); ++i) into[i] = into[i] || from[i];
    };
    const auto begin = [&](int stream) {
      join(before[stream], host);
      if (stream == 0) join(before[0], before[1]);
      if (stream == 1) join(before[1], before[0]);
    };
    struct Done {
      bool writes;
      uint64_t block;
    };
    std::vector<Done> done = {{false, 0}};  // Work is numbered from 1.

    for (int step = 0; step < kSteps; ++step) {
      const int stream = static_cast<int>(random() % kStreams);
      const size_t e = random() % events.size();
      switch (random() % 12) {
        case 0:
        case 1:
          begin(stream);
          recorded[e] = before[stream];
          timeline.Record(events[e], streams[stream]);
          break;
        case 2:
        case 3:
        case 4:
          begin(stream);
          join(before[stream], recorded[e]);
          timeline.Wait(streams[stream], events[e]);
          break;
        case 5:
          join(host, recorded[e]);
          timeline.SynchronizeEvent(events[e]);
          break;
        case 6:
          join(host, before[stream]);
          timeline.SynchronizeStream(streams[stream]);
          break;
        default: {
          begin(stream);
          const WorkAccess access = Block(random() % 8, random() % 3 == 0);
          const Done work{access.writes, access.extents[0].offset.count()};
          const QueuedWork queued = timeline.Enqueue(streams[stream], microseconds(1), {&access, 1}, "test");
          ASSERT_EQ(queued.work.number, done.size());
          bool races = false;
          for (size_t i = 1; i < done.size(); ++i) {
            races |= done[i].block == work.block && (done[i].writes || work.writes) && !before[stream][i];
          }
          for (const Race& race : queued.races) {
            ASSERT_FALSE(before[stream][race.earlier.number]) << race.ToString();
          }
          // What raced with an access that a later write replaced may go unreported, since the write raced itself: so
          // the two agree until the first race.
          ASSERT_EQ(!queued.races.empty(), races);
          if (races) step = kSteps;
          if (!races) ++work_without_race;
          before[stream][done.size()] = true;
          done.push_back(work);
        }
      }
      ASSERT_TRUE(timeline.CheckInvariants().ok()) << timeline.CheckInvariants();
    }
  }
  EXPECT_GT(work_without_race, 1500U) << "the programs are too racy to show anything";
}

}  // namespace
}  // namespace expanse::sim

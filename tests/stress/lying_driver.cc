#include "tests/stress/lying_driver.h"

namespace expanse::stress {

Driver LyingDriver(const Driver& truth, Lie lie) {
  Driver driver = truth;
  switch (lie) {
    case Lie::kNone:
      break;
    case Lie::kEventsAreComplete:
      driver.event_query = +[](abi::Event) { return abi::kSuccess; };
      break;
    case Lie::kWaitsReturnAtOnce:
      driver.event_synchronize = +[](abi::Event) { return abi::kSuccess; };
      driver.stream_synchronize = +[](abi::Stream) { return abi::kSuccess; };
      driver.ctx_synchronize = +[]() { return abi::kSuccess; };
      break;
    case Lie::kStreamsHaveNoId:
      driver.stream_get_id = nullptr;
      break;
  }
  return driver;
}

}  // namespace expanse::stress

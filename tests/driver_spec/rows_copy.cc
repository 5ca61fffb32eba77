// cuMemcpyAsync and its directed forms, cuMemsetD8Async. The same rows for each, with the device range in each role.

#include <array>

#include "tests/driver_spec/row.h"

namespace expanse::driver_spec {
namespace {

using E = EntryPoint;
using G = Grade;

constexpr size_t kSize = 256;
std::array<unsigned char, kSize> host;

// A copy or fill of which one side is the device range under test; the other is host memory or the second mapping.
struct Form {
  const char* name;
  E entry_point;
  bool writes;  // to the device range
  int (*run)(World& w, abi::DevicePtr range, size_t size, abi::Stream stream);
};

abi::DevicePtr HostAddress() { return DeviceAddress::FromPointer(host.data()).value(); }

const Form kForms[] = {
    {"copy_to", E::memcpy_async, true,
     [](World& w, abi::DevicePtr range, size_t size, abi::Stream stream) -> int {
       return w.d.memcpy_async(range, w.At(1), size, stream);
     }},
    {"copy_from", E::memcpy_async, false,
     [](World& w, abi::DevicePtr range, size_t size, abi::Stream stream) -> int {
       return w.d.memcpy_async(w.At(1), range, size, stream);
     }},
    {"copy_htod", E::memcpy_htod_async, true,
     [](World& w, abi::DevicePtr range, size_t size, abi::Stream stream) -> int {
       return w.d.memcpy_htod_async(range, host.data(), size, stream);
     }},
    {"copy_dtoh", E::memcpy_dtoh_async, false,
     [](World& w, abi::DevicePtr range, size_t size, abi::Stream stream) -> int {
       return w.d.memcpy_dtoh_async(host.data(), range, size, stream);
     }},
    {"copy_dtod_to", E::memcpy_dtod_async, true,
     [](World& w, abi::DevicePtr range, size_t size, abi::Stream stream) -> int {
       return w.d.memcpy_dtod_async(range, w.At(1), size, stream);
     }},
    {"copy_dtod_from", E::memcpy_dtod_async, false,
     [](World& w, abi::DevicePtr range, size_t size, abi::Stream stream) -> int {
       return w.d.memcpy_dtod_async(w.At(1), range, size, stream);
     }},
    {"fill", E::memset_d8_async, true,
     [](World& w, abi::DevicePtr range, size_t size, abi::Stream stream) -> int {
       return w.d.memset_d8_async(range, 0x3c, size, stream);
     }},
};

// Runs a form and waits, so that nothing is queued when the row ends.
int RunAndWait(World& w, const Form& form, abi::DevicePtr range, size_t size = kSize) {
  const int result = form.run(w, range, size, w.stream);
  w.Need(w.d.stream_synchronize(w.stream), "cuStreamSynchronize");
  return result;
}

void AddFormRows(std::vector<Row>& rows, const Form& form) {
  auto add = [&](const char* what, Grade grade, std::vector<int> codes, std::function<int(World&)> call) {
    rows.push_back({std::string(form.name) + "." + what, form.entry_point, grade, std::move(codes), std::move(call)});
  };
  add("mapped", G::kDocumented, {0}, [form](World& w) { return RunAndWait(w, form, w.At(0)); });
  add("across_adjacent_mappings", G::kReliedUpon, {0},
      [form](World& w) { return RunAndWait(w, form, w.At(1) - kSize / 2); });
  add("size_zero", G::kTested, {0}, [form](World& w) { return RunAndWait(w, form, w.At(0), 0); });
  add("only_reserved", G::kAssumed, {1}, [form](World& w) { return RunAndWait(w, form, w.At(5)); });
  add("runs_into_unmapped", G::kAssumed, {1}, [form](World& w) { return RunAndWait(w, form, w.At(3) - kSize / 2); });
  add("no_access", G::kTested, {1}, [form](World& w) {
    w.Need(w.SetAccess(w.At(0), w.g, abi::kAccessNone), "cuMemSetAccess");
    const int result = RunAndWait(w, form, w.At(0));
    w.Need(w.SetAccess(w.At(0), w.g), "cuMemSetAccess");
    return result;
  });
  add("read_only", G::kTested, {form.writes ? 1 : 0}, [form](World& w) {
    w.Need(w.SetAccess(w.At(0), w.g, abi::kAccessRead), "cuMemSetAccess");
    const int result = RunAndWait(w, form, w.At(0));
    w.Need(w.SetAccess(w.At(0), w.g), "cuMemSetAccess");
    return result;
  });
  add("across_two_reservations", G::kAssumed, {1}, [form](World& w) {
    abi::DevicePtr first = 0;
    abi::DevicePtr second = 0;
    w.not_applicable = !w.ReserveNeighbours(&first, &second);
    if (w.not_applicable) return 1;
    w.Need(w.d.mem_map(first, w.g, 0, w.spare, 0), "cuMemMap");
    w.Need(w.d.mem_map(second, w.g, 0, w.spare, 0), "cuMemMap");
    w.Need(w.SetAccess(first, w.g), "cuMemSetAccess");
    w.Need(w.SetAccess(second, w.g), "cuMemSetAccess");
    const int result = RunAndWait(w, form, second - kSize / 2);
    w.Need(w.d.mem_unmap(first, w.g), "cuMemUnmap");
    w.Need(w.d.mem_unmap(second, w.g), "cuMemUnmap");
    w.Need(w.d.mem_address_free(first, w.g), "cuMemAddressFree");
    w.Need(w.d.mem_address_free(second, w.g), "cuMemAddressFree");
    return result;
  });
  add("without_context", G::kDocumented, {201},
      [form](World& w) { return w.WithoutContext([&] { return form.run(w, w.At(0), kSize, nullptr); }); });
  // A real driver dereferences a stream that is none.
  rows.push_back(Row{
      std::string(form.name) + ".no_stream", form.entry_point, G::kDocumented, {400}, [form](World& w) {
        int object = 0;
        return form.run(w, w.At(0), kSize, reinterpret_cast<abi::Stream>(&object));
      }}.SimulatorOnly());
}

}  // namespace

void AddCopyRows(std::vector<Row>& rows) {
  for (const Form& form : kForms) AddFormRows(rows, form);
  rows.push_back({"copy_htod.source_null", E::memcpy_htod_async, G::kTested, {1}, [](World& w) {
                    return w.d.memcpy_htod_async(w.At(0), nullptr, kSize, w.stream);
                  }});
  rows.push_back({"copy_htod.source_null_size_zero", E::memcpy_htod_async, G::kTested, {0}, [](World& w) {
                    return w.d.memcpy_htod_async(w.At(0), nullptr, 0, w.stream);
                  }});
  rows.push_back({"copy_dtoh.destination_null", E::memcpy_dtoh_async, G::kDocumented, {1}, [](World& w) {
                    return w.d.memcpy_dtoh_async(nullptr, w.At(0), kSize, w.stream);
                  }});
  // The direction follows from the addresses.
  rows.push_back({"copy.host_to_device_by_address", E::memcpy_async, G::kDocumented, {0}, [](World& w) {
                    host.fill(0x77);
                    const int result = w.d.memcpy_async(w.At(0), HostAddress(), kSize, w.stream);
                    w.Need(w.d.stream_synchronize(w.stream), "cuStreamSynchronize");
                    host.fill(0);
                    w.Need(w.d.memcpy_async(HostAddress(), w.At(0), kSize, w.stream), "cuMemcpyAsync back");
                    w.Need(w.d.stream_synchronize(w.stream), "cuStreamSynchronize");
                    const bool keeps_bytes =
                        w.simulator == nullptr || w.simulator->config().memory == sim::MemoryMode::kReal;
                    w.NeedThat(!keeps_bytes || (host.front() == 0x77 && host.back() == 0x77), "the bytes back");
                    return result;
                  }});
}

}  // namespace expanse::driver_spec

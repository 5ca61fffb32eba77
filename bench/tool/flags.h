// Options whose values are checked where they are parsed, with messages that name the value and what was expected.

#ifndef EXPANSE_BENCH_TOOL_FLAGS_H_
#define EXPANSE_BENCH_TOOL_FLAGS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "CLI/App.hpp"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "bench/tool/size.h"
#include "bench/tool/suggest.h"
#include "vmm/units.h"

namespace expanse::tool {

// How a bad value leaves CLI11's parser: "--lag: 'many' is no whole number ...".
[[noreturn]] void RejectValue(const std::string& option, const absl::Status& why);

// An option whose value `parse`, which returns absl::StatusOr of the target's type, turns into what `target` gets.
template <typename T, typename Parse>
CLI::Option* AddParsed(CLI::App& app, const std::string& option, T* target, Parse parse, const std::string& type,
                       const std::string& help) {
  return app
      .add_option_function<std::string>(
          option,
          [option, target, parse](const std::string& text) {
            auto value = parse(text);
            if (!value.ok()) RejectValue(option, value.status());
            *target = *std::move(value);
          },
          help)
      ->type_name(type);
}

template <typename T>  // Bytes or std::optional<Bytes>
CLI::Option* AddSize(CLI::App& app, const std::string& option, T* target, const std::string& help) {
  return AddParsed(app, option, target, ParseSize, "SIZE", help);
}
CLI::Option* AddCount(CLI::App& app, const std::string& option, uint64_t* target, const std::string& help);
CLI::Option* AddCount(CLI::App& app, const std::string& option, int64_t* target, const std::string& help);

// An option that takes one of a few words.
template <typename T>
CLI::Option* AddChoice(CLI::App& app, const std::string& option, T* target,
                       std::vector<std::pair<std::string, T>> choices, const std::string& help) {
  std::vector<std::string> names;
  for (const auto& [name, value] : choices) names.push_back(name);
  const std::string type = absl::StrJoin(names, "|");
  auto parse = [choices = std::move(choices), names, type](const std::string& text) -> absl::StatusOr<T> {
    for (const auto& [name, value] : choices) {
      if (name == text) return value;
    }
    return absl::InvalidArgumentError(absl::StrCat("'", text, "' is none of ", type, DidYouMean(text, names)));
  };
  return AddParsed(app, option, target, parse, type, help);
}

// An option for the name of a file to write, "-" for the standard output; an empty name is refused.
CLI::Option* AddOutput(CLI::App& app, const std::string& option, std::string* path, const std::string& help);

// Warns where the option was given: "--seed: '1' has no effect without --touch". For options that what else was said
// leaves nothing to do: scripts may give them always, but nobody should wonder.
void WarnWithoutEffect(const CLI::Option& option, const std::string& where);

// An option of the documented interface that this version lacks: using it is an error that says so.
void AddLater(CLI::App& app, const std::string& option, const std::string& type, const std::string& help);
[[nodiscard]] absl::Status ComesLater(const std::string& what);

// The names of all options of `app`, as "--lag".
[[nodiscard]] std::vector<std::string> OptionNames(const CLI::App& app);

// OK if the parser understood every argument; else INVALID_ARGUMENT naming the first it did not and the nearest option.
[[nodiscard]] absl::Status CheckNoExtras(const CLI::App& app);

}  // namespace expanse::tool

#endif  // EXPANSE_BENCH_TOOL_FLAGS_H_

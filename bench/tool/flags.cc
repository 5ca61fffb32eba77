#include "bench/tool/flags.h"

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "bench/tool/output.h"

namespace expanse::tool {

void RejectValue(const std::string& option, const absl::Status& why) {
  throw CLI::ValidationError(absl::StrCat(option, ": ", std::string(why.message())));
}

CLI::Option* AddCount(CLI::App& app, const std::string& option, uint64_t* target, const std::string& help) {
  return AddParsed(app, option, target, ParseCount, "N", help);
}

CLI::Option* AddCount(CLI::App& app, const std::string& option, int64_t* target, const std::string& help) {
  auto parse = [](const std::string& text) -> absl::StatusOr<int64_t> {
    absl::StatusOr<uint64_t> count = ParseCount(text);
    if (!count.ok()) return count.status();
    if (*count > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      return absl::InvalidArgumentError(absl::StrCat("'", text, "' is too large"));
    }
    return static_cast<int64_t>(*count);
  };
  return AddParsed(app, option, target, parse, "N", help);
}

CLI::Option* AddOutput(CLI::App& app, const std::string& option, std::string* path, const std::string& help) {
  auto parse = [](const std::string& text) -> absl::StatusOr<std::string> {
    if (text.empty()) return absl::InvalidArgumentError("'' is no file name; - is the standard output");
    return text;
  };
  return AddParsed(app, option, path, parse, "FILE", help);
}

void WarnWithoutEffect(const CLI::Option& option, const std::string& where) {
  if (option.empty()) return;
  Warn(absl::StrCat(option.get_name(), ": '", option.results().front(), "' has no effect ", where));
}

absl::Status ComesLater(const std::string& what) {
  return absl::UnimplementedError(absl::StrCat(what, " comes in a later version"));
}

void AddLater(CLI::App& app, const std::string& option, const std::string& type, const std::string& help) {
  app.add_option_function<std::string>(
         option,
         [option](const std::string&) { throw CLI::ValidationError(std::string(ComesLater(option).message())); },
         help + " (comes in a later version)")
      ->type_name(type);
}

std::vector<std::string> OptionNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

absl::Status CheckNoExtras(const CLI::App& app) {
  const std::vector<std::string> extras = app.remaining();
  for (const std::string& extra : extras) {
    if (!absl::StartsWith(extra, "-") || extra == "-") continue;
    const std::string name = extra.substr(0, extra.find('='));
    return absl::InvalidArgumentError(absl::StrCat("unknown option ", name, DidYouMean(name, OptionNames(app))));
  }
  if (extras.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("unexpected argument '", extras.front(), "'"));
}

}  // namespace expanse::tool

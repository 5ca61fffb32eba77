#!/usr/bin/env bash
# Fails if an include goes against the layers: vmm <- core <- bench, vmm/sim seen only by tests, bench and itself, cuda.h
# seen only by the ABI check.
set -euo pipefail
cd "$(dirname "$0")/.."
status=0

# forbid FILES PATTERN WHY: no file among FILES (a git pathspec list) includes what PATTERN matches.
forbid() {
  local why=$1 pattern=$2
  shift 2
  local found
  if found=$(git grep -nE "^[[:space:]]*#[[:space:]]*include[[:space:]]*[<\"]${pattern}" -- "$@"); then
    printf '%s:\n%s\n' "$why" "$found" >&2
    status=1
  fi
}

forbid 'vmm/ must not include core/, bench/ or tests/' '(expanse/)?(core|bench|tests)/' 'vmm/*.h' 'vmm/*.cc' 'vmm/*.inc'
forbid 'vmm/ outside vmm/sim/ must not include the simulator' '(expanse/)?vmm/sim/' \
  'vmm/*.h' 'vmm/*.cc' ':!vmm/sim/*' ':!vmm/*_test.cc' ':!vmm/*_fixture.h'
forbid 'core/ must not include bench/ or tests/' '(expanse/)?(bench|tests)/' 'core/*.h' 'core/*.cc' ':!core/*_test.cc'
forbid 'core/ must not include the simulator outside its tests' '(expanse/)?vmm/sim/' 'core/*.h' 'core/*.cc' ':!core/*_test.cc' \
  ':!core/*_fixture.h'
forbid 'only the ABI check may include cuda.h' 'cuda(_runtime|_runtime_api|Typedefs)?\.h' '*.h' '*.cc' '*.c' \
  ':!vmm/abi_check.cc' ':!tests/sim_libcuda/*'
# core/ gets at driver types through vmm/ classes, never through the ABI header itself.
forbid 'core/ must not include vmm/abi.h' '(expanse/)?vmm/abi\.h' 'core/*.h' 'core/*.cc' ':!core/*_test.cc'

if [[ $status == 0 ]]; then echo 'include directions: fine'; fi
exit $status

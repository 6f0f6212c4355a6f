#!/usr/bin/env bash
# Builds the package in an environment of its own and runs its tests. Without Python, venv or a
# package index it is skipped.
set -euo pipefail
cd "$(dirname "$0")"

skip() {
  printf 'SKIPPED: the Python package: %s\n' "$1"
  exit 0
}

python=${PYTHON:-python3}
command -v "$python" >/dev/null || skip "no $python"
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' || skip "$python is older than 3.10"

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder" 2>/dev/null || skip "$python has no venv"
pip="$folder/bin/python -m pip --disable-pip-version-check --quiet"
$pip download --no-deps --dest "$folder/download" maturin >/dev/null 2>&1 || skip "no package index"

# In the build folder of the workspace, unless one is given: most crates from elsewhere are there.
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/../../target}
export MATURIN_PEP517_ARGS="--profile ${PROFILE:-dev} --locked"
# The command, if it is built.
export PATH=$PWD/../../target/debug:$PATH
$pip install '.[test]'
"$folder/bin/python" -m pytest -rs "$@"
# What type checkers see agrees with what is there.
"$folder/bin/python" -m mypy.stubtest echoless --ignore-missing-stub

#!/usr/bin/env bash
# Checks everything: style, types, tests. Sets the checkout up first where needed.
#
#   packaging/test.sh [PYTEST ARGUMENT...]      e.g.  packaging/test.sh tests/mount -x
#   packaging/test.sh -n 2 --dist loadfile      on two processes
#   packaging/test.sh --random-order            in another order each time; the seed is printed
#
# Every check runs, even after one has failed; the exit code and the last line tell how it ended.
set -uo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"
zarrfs_setup test

failed=()
check() {
    local name=$1
    shift
    printf '\n== %s\n' "$name"
    "$@" || failed+=("$name")
}

check "ruff check" "$PYTHON" -m ruff check .
check "ruff format" "$PYTHON" -m ruff format --check .
check "mypy" "$PYTHON" -m mypy
check "pytest" "$PYTHON" -m pytest "$@"

echo
if [ ${#failed[@]} = 0 ]; then
    echo "test.sh: all is well (ruff check, ruff format, mypy, pytest)"
else
    printf -v list '%s, ' "${failed[@]}"
    echo "test.sh: FAILED: ${list%, }"
    exit 1
fi

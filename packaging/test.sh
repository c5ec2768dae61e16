#!/usr/bin/env bash
# Runs all checks: style, types and tests. Sets up the checkout first if necessary.
#
#   packaging/test.sh [PYTEST ARGUMENT...]      for example  packaging/test.sh tests/mount -x
#   packaging/test.sh --quick [PYTEST ARGUMENT...]
#                                               style, types and the tests of the changed files only; less than a
#                                               minute for a small change. Changed means: different from the merge base
#                                               with the main branch, or not tracked. packaging/changed_tests.py maps
#                                               the files to their tests.
#   packaging/test.sh -n 0                      all tests in one process (the default is one more than cores, at most 8)
#   packaging/test.sh --random-order            in random order; the seed is printed
#
# All checks run, even if one of them fails. The exit code and the last line show the result.
set -uo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"
zarrfs_setup test

# The tests start thousands of Python processes. Without bytecode, each of them would compile the modules it imports.
unset PYTHONDONTWRITEBYTECODE

# The names of files and the messages of programs are the same everywhere. tests/environment.py sets the rest.
unset LANGUAGE
export LC_ALL=C.UTF-8

quick=false
if [ "${1-}" = --quick ]; then
    quick=true
    shift
fi

# One process more than there are cores, because many tests wait for servers, mounts and windows.
processes=$(($(nproc) + 1))
((processes <= 8)) || processes=8

failed=()
check() {
    local name=$1
    shift
    printf '\n== %s\n' "$name"
    "$@" || failed+=("$name")
}

check "ruff check" "$PYTHON" -m ruff check .
check "ruff format" "$PYTHON" -m ruff format --check .
# mypy uses one core, so it runs beside the tests. Its messages are printed afterwards.
types=$(mktemp)
trap 'rm -f "$types"' EXIT
"$PYTHON" -m mypy >"$types" 2>&1 &
mypy=$!
if $quick; then
    mapfile -t tests < <("$PYTHON" packaging/changed_tests.py)
    if [ ${#tests[@]} = 0 ]; then
        printf '\n== pytest\nNo changed file has tests.\n'
    else
        printf '\nTests of the changed files:\n'
        printf '    %s\n' "${tests[@]}"
        check "pytest" "$PYTHON" -m pytest -q "${tests[@]}" "$@"
    fi
else
    # Tests of one file run in the same process, because they share fixtures that are expensive to create. The files
    # start in the order of tests/conftest.py: the longest first.
    check "pytest" "$PYTHON" -m pytest -n "$processes" --dist loadfile --no-loadscope-reorder "$@"
    if [ $# = 0 ]; then
        # Where the native library is not available, the Python executor reads and writes everything.
        check "pytest, Python executor" env ZARRFS_NATIVE=0 "$PYTHON" -m pytest -q -n "$processes" --dist loadfile \
            tests/conformance/test_v2.py tests/conformance/test_v3_{chunks,codecs,sharding}.py \
            tests/engine/test_{array,write_bytes,writing}.py
        # The dependencies of the oldest Python have older versions, such as zarr-python 3.1 and an older numcodecs. This
        # runs what calls them.
        zarrfs_setup_oldest
        if [ -n "$OLDEST_PYTHON" ]; then
            check "pytest, oldest Python" "$OLDEST_PYTHON" -m pytest -q -n "$processes" --dist loadfile \
                tests/interop/test_zarr_python.py tests/interop/test_documents.py tests/engine/codecs/test_contract.py \
                tests/engine/codecs/test_numbers.py tests/engine/test_dtypes.py tests/engine/test_routines.py
        fi
    fi
fi

report_types() {
    wait "$mypy"
    local status=$?
    cat "$types"
    return "$status"
}
check "mypy" report_types

echo
if [ ${#failed[@]} = 0 ]; then
    echo "test.sh: all checks passed (ruff check, ruff format, mypy, pytest)"
else
    printf -v list '%s, ' "${failed[@]}"
    echo "test.sh: FAILED: ${list%, }"
    exit 1
fi

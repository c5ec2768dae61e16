#!/usr/bin/env bash
# Copies the files that packages are built from to a new directory: the tracked files of the checkout.
#
#   packaging/copy_sources.sh DIRECTORY
set -euo pipefail
target=$(realpath "$1")
cd "$(dirname "${BASH_SOURCE[0]}")/.."
mkdir -p "$target"
# -P: viewer/zarrfs_viewer/resources is a symbolic link to the directory resources, and remains one.
if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
    git ls-files -z | xargs -0 cp -P --parents -t "$target"
else
    # An unpacked sdist contains only what is to be built.
    find . \( -path ./build -o -path ./dist \) -prune -o \( -type f -o -type l \) -print0 |
        xargs -0 cp -P --parents -t "$target"
fi

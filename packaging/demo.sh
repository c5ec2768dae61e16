#!/usr/bin/env bash
# Demonstrates zarrfs with a synthetic image or with a given store. Sets up the checkout first if necessary.
#
#   packaging/demo.sh [STORE]
set -euo pipefail
called_from=$PWD
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"
case ${1-} in
-h | --help)
    sed -n '2,4s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
    exit 0
    ;;
esac
zarrfs_setup demo
cd "$called_from"
exec "$PYTHON" "$root/packaging/demo.py" "$@"

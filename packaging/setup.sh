# Sets the checkout up for one of its commands. Sourced by demo.sh and test.sh; does nothing by itself.
#
#   zarrfs_setup demo|test     system packages, .venv and the project in it, each only when missing
#
# Afterwards $PYTHON is the interpreter of .venv and the working directory is the checkout. A stamp in .venv, keyed
# by pyproject.toml and these lists, makes the second run cost a fraction of a second.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
venv=$root/.venv
PYTHON=$venv/bin/python

# Debian and Ubuntu packages; "a|b" is the first of them that the release has.
packages_common=(fuse3 attr)
packages_qt=(
    libegl1 libgl1 libfontconfig1 libdbus-1-3 "libglib2.0-0t64|libglib2.0-0" libxkbcommon0 libxkbcommon-x11-0
    libx11-xcb1 libxcb-cursor0 libxcb-icccm4 libxcb-image0 libxcb-keysyms1 libxcb-randr0 libxcb-render-util0
    libxcb-shape0 libxcb-sync1 libxcb-xfixes0 libxcb-xkb1 libwayland-client0 libwayland-cursor0 libwayland-egl1
    fonts-dejavu-core
)
packages_test=("libfuse2t64|libfuse2" rsync xvfb redis-server)

azurite=3.35.0 # of npm

say() { printf '%s\n' "$*" >&2; }
fail() {
    say "set-up: $*"
    exit 1
}

# Runs a command quietly; shows what it printed only when it fails.
quietly() {
    local log
    log=$(mktemp)
    if ! "$@" >"$log" 2>&1 </dev/null; then
        cat "$log" >&2
        rm -f "$log"
        fail "this failed: $*"
    fi
    rm -f "$log"
}

as_root() {
    if [ "$(id -u)" = 0 ]; then
        env DEBIAN_FRONTEND=noninteractive "$@"
    else
        sudo env DEBIAN_FRONTEND=noninteractive "$@"
    fi
}

installed() {
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

available() {
    [ -n "$(apt-cache show --no-all-versions "$1" 2>/dev/null)" ]
}

# Prints those of the given packages that are not installed. One dpkg-query for all: it is the common case.
missing_packages() {
    local have entry name
    have=$(dpkg-query -W -f='${Package} ${db:Status-Status}\n' 2>/dev/null | sed -n 's/ installed$//p')
    for entry in "$@"; do
        for name in ${entry//|/ }; do
            grep -qx -- "$name" <<<"$have" && continue 2
        done
        printf '%s\n' "$entry"
    done
}

is_debian() { command -v apt-get >/dev/null && command -v dpkg-query >/dev/null; }

# Leaves out packages without which the rest still works, when the release has none of them.
install_packages() {
    local -a missing names=()
    local entry name
    mapfile -t missing < <(missing_packages "$@")
    [ ${#missing[@]} = 0 ] && return
    if [ "$(id -u)" != 0 ] && ! command -v sudo >/dev/null; then
        fail "there is no sudo here: as root, run  apt-get install ${missing[*]//|*/}  and then this command again"
    fi
    say "set-up: installing ${missing[*]//|*/}"
    quietly as_root apt-get update
    for entry in "${missing[@]}"; do
        for name in ${entry//|/ }; do
            if available "$name"; then
                names+=("$name")
                continue 2
            fi
        done
        say "set-up: this release has no package ${entry//|/ or }; going on without it"
    done
    [ ${#names[@]} = 0 ] || quietly as_root apt-get install -y --no-install-recommends "${names[@]}"
}

# Prints the first Python that is new enough, or nothing.
find_python() {
    local name
    for name in python3 python3.13 python3.12 python3.11 python3.14; do
        if "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            command -v "$name"
            return
        fi
    done
}

has_venv() { "$1" -c 'import venv, ensurepip' 2>/dev/null; }

install_python() {
    local python version name
    python=$(find_python)
    if [ -n "$python" ]; then
        has_venv "$python" && return
        version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
        install_packages "python$version-venv"
    else
        install_packages python3 python3-venv
        if [ -z "$(find_python)" ]; then
            for name in python3.13 python3.12 python3.11; do
                if available "$name"; then
                    install_packages "$name" "$name-venv"
                    break
                fi
            done
        fi
    fi
    python=$(find_python)
    [ -n "$python" ] || fail "Python 3.11 or newer is needed, and this release does not have it"
    has_venv "$python" || fail "$python cannot make virtual environments: install its venv module"
}

# Elsewhere than on Debian and Ubuntu nothing is installed: it is said what must be there.
check_by_hand() {
    local -a lacking=()
    command -v fusermount3 >/dev/null || command -v fusermount >/dev/null || lacking+=("FUSE 3 (fuse3; fusermount3)")
    [ -n "$(find_python)" ] || lacking+=("Python 3.11 or newer with venv")
    if [ "$1" = test ]; then
        command -v rsync >/dev/null || lacking+=(rsync)
        command -v getfattr >/dev/null || lacking+=("attr (getfattr)")
        command -v Xvfb >/dev/null || lacking+=(Xvfb)
        command -v redis-server >/dev/null || lacking+=("redis-server or valkey")
    fi
    [ ${#lacking[@]} = 0 ] && return
    say "set-up: this is neither Debian nor Ubuntu, so please install with your package manager:"
    printf '    %s\n' "${lacking[@]}" >&2
    say "    and, for the viewer, what Qt 6 needs (EGL, OpenGL, fontconfig, D-Bus, xkbcommon, xcb-cursor)"
    fail "then run this command again"
}

install_system() {
    local -a wanted=("${packages_common[@]}" "${packages_qt[@]}")
    [ "$1" = test ] && wanted+=("${packages_test[@]}")
    if is_debian; then
        install_packages "${wanted[@]}"
        install_python
    else
        check_by_hand "$1"
    fi
}

install_project() {
    local extras=viewer
    [ "$1" = test ] && extras=viewer,test
    if ! "$PYTHON" -c '' 2>/dev/null; then
        say "set-up: making the virtual environment .venv"
        rm -rf "$venv"
        quietly "$(find_python)" -m venv "$venv"
    fi
    "$PYTHON" -m pip --version >/dev/null 2>&1 || quietly "$PYTHON" -m ensurepip
    say "set-up: installing zarrfs[$extras] into .venv (a minute or so, the first time)"
    quietly "$PYTHON" -m pip install --disable-pip-version-check --editable "$root[$extras]"
}

# Servers for the tests of stores that pip does not have, into .servers of the checkout. Without npm, and where it fails,
# the tests against them are skipped and say so.
install_servers() {
    if ! command -v npm >/dev/null || ! command -v node >/dev/null; then
        say "set-up: npm is not here, so the tests against Azure (Azurite) will be skipped"
        return
    fi
    say "set-up: installing Azurite into .servers (half a minute, the first time)"
    npm install --prefix "$root/.servers" --no-audit --no-fund "azurite@$azurite" >/dev/null 2>&1 </dev/null ||
        say "set-up: npm could not install Azurite; the tests against Azure will be skipped"
}

zarrfs_setup() {
    local what=$1 key stamp
    cd "$root" || exit 1
    install_system "$what"
    key=$(cat pyproject.toml packaging/setup.sh | cksum)
    stamp=$venv/.zarrfs-setup-$what
    if [ ! -x "$PYTHON" ] || [ "$(cat "$stamp" 2>/dev/null)" != "$key" ]; then
        install_project "$what"
        [ "$what" = test ] && install_servers
        printf '%s\n' "$key" >"$stamp"
        # What the tests need holds all that the demo needs.
        [ "$what" = test ] && printf '%s\n' "$key" >"$venv/.zarrfs-setup-demo"
    fi
    return 0
}

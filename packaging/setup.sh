# Set-up of the checkout for demo.sh and test.sh, which source this file. It only defines functions and variables.
#
#   zarrfs_setup demo|test     installs the system packages, .venv, and the project in .venv, if they are missing
#
# Afterwards $PYTHON is the interpreter of .venv, and the working directory is the checkout. A stamp file in .venv
# contains a checksum of pyproject.toml, of this file and of the sources of the native library, which pip compiles if
# there is a C compiler. If it matches, a second run takes a fraction of a second.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
venv=$root/.venv
PYTHON=$venv/bin/python

# Debian and Ubuntu packages. "a|b" means the first package that the release provides.
packages_common=(fuse3 attr)
packages_qt=(
    libegl1 libgl1 libfontconfig1 libdbus-1-3 "libglib2.0-0t64|libglib2.0-0" libxkbcommon0 libxkbcommon-x11-0
    libx11-xcb1 libxcb-cursor0 libxcb-icccm4 libxcb-image0 libxcb-keysyms1 libxcb-randr0 libxcb-render-util0
    libxcb-shape0 libxcb-sync1 libxcb-xfixes0 libxcb-xkb1 libwayland-client0 libwayland-cursor0 libwayland-egl1
    fonts-dejavu-core
)
packages_compiler=(gcc libc6-dev) # for the native library, without which zarrfs is slower
packages_test=("libfuse2t64|libfuse2" rsync xvfb redis-server)

azurite=3.35.0 # version in the npm registry

print_message() { printf '%s\n' "$*" >&2; }
fail() {
    print_message "set-up: $*"
    exit 1
}

# Runs a command and prints its output only if it fails.
quietly() {
    local log
    log=$(mktemp)
    if ! "$@" >"$log" 2>&1 </dev/null; then
        cat "$log" >&2
        rm -f "$log"
        fail "command failed: $*"
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

# Prints the given packages that are not installed. All are queried at once, because usually all are installed.
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

# Installs the given packages that are missing. Packages that the release does not provide are skipped.
install_packages() {
    local -a missing names=()
    local entry name
    mapfile -t missing < <(missing_packages "$@")
    [ ${#missing[@]} = 0 ] && return
    if [ "$(id -u)" != 0 ] && ! command -v sudo >/dev/null; then
        fail "sudo is not installed. Run this as root: apt-get install ${missing[*]//|*/}  Then run this command again"
    fi
    print_message "set-up: installing ${missing[*]//|*/}"
    quietly as_root apt-get update
    for entry in "${missing[@]}"; do
        for name in ${entry//|/ }; do
            if available "$name"; then
                names+=("$name")
                continue 2
            fi
        done
        print_message "set-up: this release does not provide the package ${entry//|/ or }; continuing without it"
    done
    [ ${#names[@]} = 0 ] || quietly as_root apt-get install -y --no-install-recommends "${names[@]}"
}

# Prints the Pythons that zarrfs supports, on PATH and of pyenv, with their versions, the oldest first. With the argument
# "venv" only those that can create virtual environments.
find_pythons() {
    local name modules="sys"
    [ "${1-}" = venv ] && modules="sys, venv, ensurepip"
    for name in python3 python3.11 python3.12 python3.13 python3.14 "${PYENV_ROOT:-${HOME-}/.pyenv}"/versions/3.*/bin/python3; do
        "$name" -c "import $modules
if (3, 11) <= sys.version_info < (3, 15): print('%d.%d' % sys.version_info[:2], sys.executable)" 2>/dev/null
    done | sort --version-sort --unique --key=1,1
}

# Prints the path of the newest Python, one that can create virtual environments if there is any, or nothing.
find_python() {
    local found
    found=$(find_pythons venv)
    [ -n "$found" ] || found=$(find_pythons)
    tail -n 1 <<<"$found" | cut -d ' ' -f 2-
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
    [ -n "$python" ] || fail "Python 3.11 or newer is required, but this release does not provide it"
    has_venv "$python" || fail "$python cannot create virtual environments: install its venv module"
}

# On other systems than Debian and Ubuntu nothing is installed. The missing requirements are listed.
check_requirements() {
    local -a missing=()
    command -v fusermount3 >/dev/null || command -v fusermount >/dev/null || missing+=("FUSE 3 (fuse3; fusermount3)")
    [ -n "$(find_python)" ] || missing+=("Python 3.11 or newer with venv")
    if [ "$1" = test ]; then
        command -v rsync >/dev/null || missing+=(rsync)
        command -v getfattr >/dev/null || missing+=("attr (getfattr)")
        command -v Xvfb >/dev/null || missing+=(Xvfb)
        command -v redis-server >/dev/null || missing+=("redis-server or valkey")
    fi
    [ ${#missing[@]} = 0 ] && return
    print_message "set-up: this system is neither Debian nor Ubuntu. Install these packages with your package manager:"
    printf '    %s\n' "${missing[@]}" >&2
    print_message "    and the libraries that Qt 6 requires (EGL, OpenGL, fontconfig, D-Bus, xkbcommon, xcb-cursor)"
    fail "run this command again after the installation"
}

install_system() {
    local -a required=("${packages_common[@]}" "${packages_qt[@]}")
    [ "$1" = test ] && required+=("${packages_test[@]}")
    command -v cc >/dev/null || command -v gcc >/dev/null || required+=("${packages_compiler[@]}")
    if is_debian; then
        install_packages "${required[@]}"
        install_python
    else
        check_requirements "$1"
    fi
}

install_project() {
    local extras=viewer
    [ "$1" = test ] && extras=viewer,test,emulators
    install_environment "$venv" "$(find_python)" "$extras"
}

# Creates a virtual environment, if it does not exist, and installs the project in it:  DIRECTORY PYTHON EXTRAS
install_environment() {
    local directory=$1 python=$1/bin/python
    if ! "$python" -c '' 2>/dev/null; then
        print_message "set-up: creating the virtual environment ${directory##*/}"
        rm -rf "$directory"
        quietly "$2" -m venv "$directory"
    fi
    "$python" -m pip --version >/dev/null 2>&1 || quietly "$python" -m ensurepip
    print_message "set-up: installing zarrfs[$3] into ${directory##*/} (about one minute the first time)"
    install_with_uv "$python" "$root[$3]" ||
        quietly "$python" -m pip install --disable-pip-version-check --editable "$root[$3]"
}

# Installs a project with uv, which takes a third of the time of pip. uv does not read the configuration of pip, so that
# the package indexes of pip are passed to it. Fails if pip cannot install uv, or if uv fails; then pip is used.
install_with_uv() {
    local name value
    local -a settings=()
    "$1" -m pip install --quiet --disable-pip-version-check "uv>=0.5" >/dev/null 2>&1 </dev/null || return
    while IFS='=' read -r name value; do
        settings+=("$name=$value")
    done < <(pip_settings "$1" | uv_settings)
    env "${settings[@]}" "${1%/*}/uv" pip install --quiet --python "$1" --editable "$2" >/dev/null 2>&1 </dev/null
}

# Prints the configuration of the pip of a Python, later lines override earlier ones.
pip_settings() {
    local all level
    all=$("$1" -m pip config list 2>/dev/null)
    for level in global user site :env:; do
        grep "^$level\." <<<"$all"
    done
}

# Converts the output of `pip config list` to environment variables of uv, one per line.
uv_settings() {
    local line name value
    while read -r line; do
        name=${line%%=*}
        value=${line#*=}
        value=${value#\'}
        value=${value%\'}
        # pip prefers the first of all indexes that has the newest version, uv by default the first that has any.
        case ${name##*.} in
        index-url) printf 'UV_DEFAULT_INDEX=%s\n' "$value" ;;
        extra-index-url) printf 'UV_INDEX=%s\nUV_INDEX_STRATEGY=unsafe-best-match\n' "${value//\\n/ }" ;;
        find-links) printf 'UV_FIND_LINKS=%s\n' "${value//\\n/,}" ;;
        cert) printf 'SSL_CERT_FILE=%s\n' "$value" ;;
        trusted-host) printf 'UV_INSECURE_HOST=%s\n' "${value//\\n/ }" ;;
        esac
    done
}

# Installs servers for tests of stores that pip does not provide into .servers. Without npm, or if npm fails, these tests
# are skipped.
install_servers() {
    if ! command -v npm >/dev/null || ! command -v node >/dev/null; then
        print_message "set-up: npm is not installed; the tests with Azurite (Azure) will be skipped"
        return
    fi
    print_message "set-up: installing Azurite into .servers"
    npm install --prefix "$root/.servers" --no-audit --no-fund "azurite@$azurite" >/dev/null 2>&1 </dev/null ||
        print_message "set-up: npm could not install Azurite; the tests with Azurite (Azure) will be skipped"
}

# Sets up .venv-oldest with the oldest Python, if there is an older one than that of .venv, and sets OLDEST_PYTHON to its
# interpreter, otherwise to nothing. The versions of the dependencies there are the newest ones that it can use.
zarrfs_setup_oldest() {
    local version path current stamp=$root/.venv-oldest/.zarrfs-setup
    OLDEST_PYTHON=
    read -r version path < <(find_pythons venv)
    current=$("$PYTHON" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    [ -n "$path" ] && [ "$version" != "$current" ] || return 0
    OLDEST_PYTHON=$root/.venv-oldest/bin/python
    if [ ! -x "$OLDEST_PYTHON" ] || [ "$(cat "$stamp" 2>/dev/null)" != "$version $(setup_key)" ]; then
        install_environment "$root/.venv-oldest" "$path" viewer,test
        printf '%s\n' "$version $(setup_key)" >"$stamp"
    fi
}

# Prints a checksum of the files on which an installation depends.
setup_key() {
    cat pyproject.toml setup.py packaging/setup.sh zarrfs/engine/native/{build.py,*.c,*.h} | cksum
}

zarrfs_setup() {
    local purpose=$1 key stamp
    cd "$root" || exit 1
    install_system "$purpose"
    key=$(setup_key)
    stamp=$venv/.zarrfs-setup-$purpose
    if [ ! -x "$PYTHON" ] || [ "$(cat "$stamp" 2>/dev/null)" != "$key" ]; then
        # npm mostly waits for the network.
        [ "$purpose" = test ] && install_servers &
        install_project "$purpose"
        wait
        printf '%s\n' "$key" >"$stamp"
        # The requirements of the tests include those of the demo.
        [ "$purpose" = test ] && printf '%s\n' "$key" >"$venv/.zarrfs-setup-demo"
    fi
    return 0
}

#!/usr/bin/env bash
# Builds the packages from the tracked files of the checkout into dist/.
#
#   packaging/build.sh [wheel] [sdist] [deb] [bundle]      default: all
#
#   wheel     zarrfs-VERSION-py3-none-PLATFORM.whl, with the native library, for all versions of Python
#   sdist     zarrfs-VERSION.tar.gz, with documents and tests
#   deb       zarrfs_VERSION_ARCHITECTURE.deb: commands, viewer, man pages, completions, desktop entry, systemd unit.
#             The package has its own environment below /opt/zarrfs, with the packages of all extras for stores, files
#             and the viewer, because nothing can be added to it with pip. It uses Debian's python3.
#   bundle    zarrfs-viewer-VERSION-PLATFORM.tar.gz: the viewer with its own Python and the packages of the same extras
#
# The wheel and the sdist need Python and pip, the Debian package also dpkg-deb and /usr/bin/python3 with venv.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"
cd "$root"

for kind in "$@"; do
    case $kind in
    wheel | sdist | deb | bundle) ;;
    *)
        sed -n '2,4s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2
        exit 2
        ;;
    esac
done
[ $# = 0 ] && set -- wheel sdist deb bundle

work=$root/build/packages
source=$work/source
wheels=$work/wheels
tools=$work/tools/bin/python
# All extras for stores, files, codecs and the viewer: nothing can be added with pip to the bundle or the Debian package.
bundle_extras=viewer,movie,keyring,colormaps,roi,tiff,images,nifti,nrrd,hdf5,remote,http,s3,gcs,azure,sftp,lmdb,redis
bundle_extras+=,mongodb,pcodec,msgpack,zfp
debian_extras=$bundle_extras,dask # for the option --dask of commands
version=$(sed -n 's/^__version__ = "\(.*\)"$/\1/p' zarrfs/_version.py)

install_tools() {
    local python
    "$tools" -c '' 2>/dev/null && return
    python=$(find_python)
    [ -n "$python" ] || fail "Python 3.11 or newer is required"
    rm -rf "$work/tools"
    quietly "$python" -m venv "$work/tools"
    quietly "$tools" -m pip install --disable-pip-version-check "build>=1.2"
}

# Builds the wheel once for all packages that need it.
build_wheel() {
    compgen -G "$wheels/zarrfs-$version-*.whl" >/dev/null && return
    print_message "build: wheel"
    quietly "$tools" -m build --wheel --outdir "$wheels" "$source"
}

build_sdist() {
    print_message "build: sdist"
    quietly "$tools" -m build --sdist --outdir dist "$source"
}

build_deb() {
    local python=/usr/bin/python3 target=$work/deb architecture series
    command -v dpkg-deb >/dev/null || fail "the Debian package needs dpkg-deb"
    has_venv $python || fail "the Debian package needs python3 and python3-venv of Debian: apt-get install python3-venv"
    print_message "build: Debian package"
    architecture=$(dpkg --print-architecture)
    series=$($python -c 'import sys; print(sys.version_info[1])')
    rm -rf "$target"
    mkdir -p "$target/opt" "$target/DEBIAN" "$target/usr/bin" "$target/usr/share/doc/zarrfs" "$target/usr/sbin" \
        "$target/usr/lib/systemd/user"
    quietly $python -m venv "$target/opt/zarrfs"
    quietly "$target/opt/zarrfs/bin/python" -m pip install --disable-pip-version-check --no-compile \
        "$(echo "$wheels"/zarrfs-"$version"-*.whl)[$debian_extras]"
    PYTHONPATH= "$target/opt/zarrfs/bin/python" "$source/packaging/manuals.py" "$target/usr/share"
    find "$target/usr/share/man" -type f -exec gzip -9n {} +
    quietly env XDG_DATA_HOME="$target/usr/share" PATH=/nonexistent \
        "$target/opt/zarrfs/bin/python" -P -m zarrfs_viewer --install-desktop
    # pip and the activation scripts are not needed, and the scripts of pip contain the path of this directory.
    quietly "$target/opt/zarrfs/bin/python" -m pip uninstall -y --disable-pip-version-check setuptools pip
    find "$target/opt/zarrfs" -name __pycache__ -prune -exec rm -rf {} +
    find "$target/opt/zarrfs/bin" ! -type d ! -name 'python*' -delete
    rm -f "$target"/opt/zarrfs/lib/python3.*/site-packages/zarrfs-*.dist-info/direct_url.json
    sed -i '/^command/d' "$target/opt/zarrfs/pyvenv.cfg"
    make_launcher "$target/opt/zarrfs/bin/zarrfs" zarrfs.cli.main run
    make_launcher "$target/opt/zarrfs/bin/zarrfs-viewer" zarrfs_viewer.main run
    make_launcher "$target/opt/zarrfs/bin/mount.zarrfs" zarrfs.cli.mount_helper main
    ln -s ../../opt/zarrfs/bin/zarrfs "$target/usr/bin/zarrfs"
    ln -s ../../opt/zarrfs/bin/zarrfs-viewer "$target/usr/bin/zarrfs-viewer"
    # Where mount(8) searches. /sbin is a link to /usr/sbin in all releases with a new enough Python.
    ln -s ../../opt/zarrfs/bin/mount.zarrfs "$target/usr/sbin/mount.zarrfs"
    ln -s mount.zarrfs "$target/usr/sbin/mount.fuse.zarrfs"
    cp "$source/packaging/systemd/zarrfs@.service" "$target/usr/lib/systemd/user/"
    cp "$source/LICENSE" "$target/usr/share/doc/zarrfs/copyright"
    cp "$source/packaging/systemd/zarrfs.mount.example" "$source/packaging/licences.md" "$target/usr/share/doc/zarrfs/"
    gzip -9nc "$source/CHANGELOG.md" >"$target/usr/share/doc/zarrfs/changelog.gz"
    sed -e "s/@VERSION@/$version/; s/@ARCHITECTURE@/$architecture/" \
        -e "s/@SERIES@/3.$series/; s/@NEXT_SERIES@/3.$((series + 1))/" \
        -e "s/@SIZE@/$(du -sk "$target" | cut -f1)/" \
        "$source/packaging/debian/control" >"$target/DEBIAN/control"
    chmod -R u=rwX,go=rX "$target"
    quietly dpkg-deb --root-owner-group -Zzstd -z6 --build "$target" "dist/zarrfs_${version}_$architecture.deb"
    rm -rf "$target"
}

# Writes a Python script that runs with the interpreter in its own directory, wherever the directory is.
make_launcher() {
    cat >"$1" <<LAUNCHER
#!/bin/sh
'''exec' "\$(dirname -- "\$(readlink -f -- "\$0")")/python" "\$0" "\$@"
' '''
import sys
from $2 import $3
sys.exit($3())
LAUNCHER
    chmod 755 "$1"
}

build_bundle() {
    local environment=$work/bundle platform
    print_message "build: bundle of the viewer (about three minutes)"
    platform=$(uname -s | tr '[:upper:]' '[:lower:]')-$(uname -m)
    rm -rf "$environment"
    quietly "$(find_python)" -m venv "$environment"
    quietly "$environment/bin/python" -m pip install --disable-pip-version-check "pyinstaller>=6.10" \
        "$(echo "$wheels"/zarrfs-"$version"-*.whl)[$bundle_extras]"
    # In another directory, because PyInstaller would find the modules of the checkout.
    cd "$environment"
    quietly env PYTHONPATH= "$environment/bin/python" -P -m PyInstaller --noconfirm --log-level WARN \
        --distpath "$environment/dist" --workpath "$environment/work" "$source/packaging/bundle/zarrfs-viewer.spec"
    cd "$root"
    cp "$source/LICENSE" "$source/packaging/licences.md" "$environment/dist/zarrfs-viewer/"
    tar -C "$environment/dist" --owner=0 --group=0 --numeric-owner -czf \
        "dist/zarrfs-viewer-$version-$platform.tar.gz" zarrfs-viewer
    rm -rf "$environment"
}

rm -rf "$source"
mkdir -p "$wheels" dist
packaging/copy_sources.sh "$source"
install_tools
rm -f "$wheels"/*.whl
for kind in "$@"; do
    case $kind in
    wheel) build_wheel && cp "$wheels"/*.whl dist/ ;;
    sdist) build_sdist ;;
    deb) build_wheel && build_deb ;;
    bundle) build_wheel && build_bundle ;;
    esac
done
ls -l dist >&2

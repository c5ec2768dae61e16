#!/usr/bin/env bash
# Installs the desktop entry, the icons and the MIME types of the viewer, for the current user, or with --system for all
# users. --remove removes them. The desktop databases are updated if their tools are installed.
set -euo pipefail

resources=$(cd "$(dirname "${BASH_SOURCE[0]}")/../resources" && pwd)
data=${XDG_DATA_HOME:-$HOME/.local/share}
remove=false
for option in "$@"; do
    case $option in
        --system) data=/usr/local/share ;;
        --remove) remove=true ;;
        *)
            echo "install-desktop: unknown option $option; expected --system or --remove" >&2
            exit 2
            ;;
    esac
done

targets=("applications/zarrfs-viewer.desktop" "mime/packages/zarrfs.xml" "icons/hicolor/scalable/apps/zarrfs-viewer.svg")
sources=(zarrfs-viewer.desktop zarrfs.xml zarrfs-viewer.svg)
for size in 48 128 256; do
    targets+=("icons/hicolor/${size}x${size}/apps/zarrfs-viewer.png")
    sources+=("zarrfs-viewer-$size.png")
done

for i in "${!targets[@]}"; do
    if $remove; then
        rm -f "$data/${targets[$i]}"
    else
        install -D -m 644 "$resources/${sources[$i]}" "$data/${targets[$i]}"
    fi
done

refresh() { if command -v "$1" >/dev/null; then "$@" >/dev/null 2>&1 || true; fi; }
refresh update-desktop-database "$data/applications"
refresh update-mime-database "$data/mime"
refresh gtk-update-icon-cache -f "$data/icons/hicolor"
if $remove; then echo "removed from $data"; else echo "installed into $data"; fi

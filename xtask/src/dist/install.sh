#!/bin/sh
# Installs Sallyport from the folder of this script, or removes it.
set -eu

usage() {
    cat <<TEXT
Usage: ./install.sh [--prefix DIR] [--uninstall]

Installs Sallyport below a folder: /usr/local for root, otherwise ~/.local. An
older version there is replaced. Nothing else is changed.

  --prefix DIR   install below DIR instead
  --uninstall    remove what was installed; your configuration and data stay
TEXT
}

fail() {
    echo "error: $1" >&2
    exit 1
}

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
sums=share/sallyport/SHA256SUMS
action=install
if [ "$(id -u)" = 0 ]; then prefix=/usr/local; else prefix=${HOME:?HOME is not set}/.local; fi

while [ $# -gt 0 ]; do
    case $1 in
        --prefix) [ $# -ge 2 ] || fail "--prefix needs a folder"; prefix=$2; shift ;;
        --prefix=*) prefix=${1#--prefix=} ;;
        --uninstall) action=uninstall ;;
        -h | --help) usage; exit 0 ;;
        *) usage >&2; fail "unknown argument: $1" ;;
    esac
    shift
done
case $prefix in
    '') fail "--prefix needs a folder" ;;
    /*) ;;
    *) prefix=$PWD/$prefix ;;
esac

# Prints the installed paths, relative to the prefix.
list_files() {
    sed 's/^[0-9a-f]*  //' "$1"
    echo "$sums"
}

# Removes the paths that it reads, and folders that are empty then.
remove_paths() {
    while IFS= read -r path; do
        rm -f -- "$prefix/$path"
        folder=$(dirname -- "$path")
        while [ "$folder" != . ]; do
            rmdir -- "$prefix/$folder" 2>/dev/null || break
            folder=$(dirname -- "$folder")
        done
    done
}

if [ "$action" = uninstall ]; then
    [ -f "$prefix/$sums" ] || fail "Sallyport is not installed in $prefix (use --prefix for another folder)"
    installed=$(list_files "$prefix/$sums")
    echo "$installed" | remove_paths
    echo "Removed Sallyport from $prefix."
    exit 0
fi

[ -f "$here/$sums" ] || fail "run this script in the unpacked archive"
if command -v sha256sum >/dev/null; then
    check='sha256sum --check --quiet'
elif command -v shasum >/dev/null; then
    check='shasum --algorithm 256 --check --quiet'
else
    fail "neither sha256sum nor shasum is here to check the archive; install coreutils or perl"
fi
(cd -- "$here" && $check "$sums") ||
    fail "the archive is damaged; unpack it again or download it again"
"$here/bin/sallyport" --version >/dev/null ||
    fail "the program does not run on this machine ($(uname -s) $(uname -m))"

old=$(mktemp)
trap 'rm -f -- "$old"' EXIT
[ ! -f "$prefix/$sums" ] || list_files "$prefix/$sums" >"$old"

# Each file is copied beside its place and then renamed, so that a running
# program and an interrupted installation see whole files.
list_files "$here/$sums" | while IFS= read -r path; do
    mkdir -p -- "$prefix/$(dirname -- "$path")" &&
        cp -- "$here/$path" "$prefix/$path.new" &&
        mv -f -- "$prefix/$path.new" "$prefix/$path" ||
        fail "cannot write to $prefix (use --prefix for another folder)"
done
list_files "$prefix/$sums" | grep -Fxv -f - -- "$old" | remove_paths || true
echo "Installed $("$prefix/bin/sallyport" --version) in $prefix."

case :$PATH: in
    *:"$prefix/bin":*) ;;
    *) echo "Add $prefix/bin to your PATH." ;;
esac
plugins=$prefix/share/sallyport/plugins
case $plugins in
    "${XDG_DATA_HOME:-${HOME:-}/.local/share}/sallyport/plugins" | /usr/local/share/sallyport/plugins | /usr/share/sallyport/plugins) ;;
    *) echo "Its plugins are in $plugins: set SALLYPORT_PLUGIN_DIR to this folder." ;;
esac
echo "Start with: sallyport chat"

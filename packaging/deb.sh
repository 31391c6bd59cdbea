#!/usr/bin/env bash
# Writes dist/gguf-kit_VERSION_ARCHITECTURE.deb from an archive of archive.sh.
#
# Usage: packaging/deb.sh dist/gguf-VERSION-TARGET.tar.gz
#
# Requires dpkg-deb. A static binary has no dependencies; otherwise the package depends on the libc6 that the
# binary was linked against.
set -euo pipefail

archive="$(realpath "$1")"
cd "$(dirname "$0")/.."
name="$(basename "$archive" .tar.gz)"
case "$name" in
    *-x86_64-*) processor=x86_64 architecture=amd64 ;;
    *-aarch64-*) processor=aarch64 architecture=arm64 ;;
    *) echo "no Debian architecture is known for $name" >&2; exit 2 ;;
esac
version="${name#gguf-}"
version="${version%%-"$processor"-*}"
# Debian sorts 1.0~rc.1 before 1.0.
version="${version/-/\~}"

stage="$(mktemp -d)"
trap 'rm -rf "$stage"' EXIT
tar -C "$stage" -xzf "$archive"
from="$stage/$name"
root="$stage/root"
doc="$root/usr/share/doc/gguf-kit"
mkdir -p "$root/DEBIAN" "$doc"
install -D -m 755 "$from/gguf" "$root/usr/bin/gguf"
install -m 644 "$from/README.md" "$doc"
gzip -9nc "$from/CHANGELOG.md" > "$doc/NEWS.md.gz"
{
    echo "Licensed under the Apache License 2.0 (/usr/share/common-licenses/Apache-2.0) or the license below,"
    echo "at your option."
    echo
    cat "$from/LICENSE-MIT"
} > "$doc/copyright"
for page in "$from"/man/*.1; do
    install -D -m 644 "$page" "$root/usr/share/man/man1/$(basename "$page")"
    gzip -9n "$root/usr/share/man/man1/$(basename "$page")"
done
install -D -m 644 "$from/completions/gguf.bash" "$root/usr/share/bash-completion/completions/gguf"
install -D -m 644 "$from/completions/_gguf" "$root/usr/share/zsh/vendor-completions/_gguf"
install -D -m 644 "$from/completions/gguf.fish" "$root/usr/share/fish/vendor_completions.d/gguf.fish"

depends=""
if readelf -d "$from/gguf" | grep -q NEEDED; then
    needed="$(readelf --version-info "$from/gguf" | grep -o 'GLIBC_[0-9.]*' | sort -V | tail -1)"
    depends="Depends: libc6 (>= ${needed#GLIBC_}), libgcc-s1"
fi
cat > "$root/DEBIAN/control" <<CONTROL
Package: gguf-kit
Version: $version
Architecture: $architecture
Maintainer: ${MAINTAINER:-The gguf-kit founders <nobody@localhost>}
Section: science
Priority: optional
Installed-Size: $(du -sk "$root" | cut -f1)
${depends:+$depends
}Description: toolkit for GGUF model files
 Makes, quantizes, checks, shows, changes, compares, runs and evaluates
 GGUF files of language models, with the bytes of llama.cpp's tools.
CONTROL
package="dist/gguf-kit_${version}_$architecture.deb"
dpkg-deb --root-owner-group --build "$root" "$package" > /dev/null
echo "$package"

#!/usr/bin/env bash
# Writes dist/gguf-VERSION-TARGET.tar.gz: binary, licenses, manual pages, completions.
#
# Usage: packaging/archive.sh [TARGET]
#
# With a musl target the binary is static and runs on any Linux of that architecture; this requires
# `rustup target add x86_64-unknown-linux-musl` and musl-gcc (Debian: musl-tools). With
# STATIC=1 and a gnu target it is static too, but resolves host names through the system's glibc.
set -euo pipefail
cd "$(dirname "$0")/.."

# Without a target, uses the host target and the artifacts of previous builds.
given=("$@")
target="${1:-$(rustc --version --verbose | sed -n 's/^host: //p')}"
if [ "${STATIC:-0}" = 1 ]; then
    # With an explicit target, the flags apply to the program and not to build scripts.
    given=("$target")
    export RUSTFLAGS="${RUSTFLAGS:-} -C target-feature=+crt-static"
fi
version="$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)"
name="gguf-$version-$target"

cargo build --release --locked ${given:+--target "$target"} -p gguf-cli
binary="${CARGO_TARGET_DIR:-target}/${given:+$target/}release/gguf"

stage="$(mktemp -d)"
trap 'rm -rf "$stage"' EXIT
root="$stage/$name"
mkdir -p "$root/man" "$root/completions" dist
install -m 755 "$binary" "$root/gguf"
install -m 644 README.md CHANGELOG.md LICENSE-APACHE LICENSE-MIT "$root"
# The binary generates these files, so it must run on this machine.
"$root/gguf" man --quiet "$root/man"
# File names that each shell expects.
for file in bash:gguf.bash zsh:_gguf fish:gguf.fish powershell:_gguf.ps1; do
    "$root/gguf" completions "${file%%:*}" > "$root/completions/${file#*:}"
done
# Reproducible: the same bytes for the same commit.
time="$(git log -1 --format=@%ct 2> /dev/null || echo @0)"
tar -C "$stage" --owner=0 --group=0 --numeric-owner --mode=go-w --sort=name --mtime="$time" -c "$name" \
    | gzip -9n > "dist/$name.tar.gz"
(cd dist && sha256sum "$name.tar.gz" > "$name.tar.gz.sha256")
echo "dist/$name.tar.gz"

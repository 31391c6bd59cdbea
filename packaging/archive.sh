#!/usr/bin/env bash
# Makes dist/gguf-VERSION-TARGET.tar.gz: binary, licences, manual pages, completions.
#
# Usage: packaging/archive.sh [TARGET]
#
# With a musl target the binary is static and runs on any Linux of that processor; it takes
# `rustup target add x86_64-unknown-linux-musl` and musl-gcc (Debian: musl-tools). With
# STATIC=1 and a gnu target it is static too, but asks the system's glibc for names of hosts.
set -euo pipefail
cd "$(dirname "$0")/.."

target="${1:-$(rustc --version --verbose | sed -n 's/^host: //p')}"
version="$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)"
name="gguf-$version-$target"
made="${CARGO_TARGET_DIR:-target}"
if [ "${STATIC:-0}" = 1 ]; then
    export RUSTFLAGS="${RUSTFLAGS:-} -C target-feature=+crt-static"
fi

cargo build --release --locked --target "$target" -p gguf-kit-cli
binary="$made/$target/release/gguf"

stage="$(mktemp -d)"
trap 'rm -rf "$stage"' EXIT
root="$stage/$name"
mkdir -p "$root/man" "$root/completions" dist
install -m 755 "$binary" "$root/gguf"
install -m 644 README.md CHANGELOG.md LICENSE-APACHE LICENSE-MIT "$root"
# Made by the binary itself, so it has to run here.
"$root/gguf" man "$root/man"
for shell in bash zsh fish powershell; do
    "$root/gguf" completions "$shell" > "$root/completions/gguf.$shell"
done
tar -C "$stage" --owner=0 --group=0 --sort=name -czf "dist/$name.tar.gz" "$name"
(cd dist && sha256sum "$name.tar.gz" > "$name.tar.gz.sha256")
echo "dist/$name.tar.gz"

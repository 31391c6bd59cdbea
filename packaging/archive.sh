#!/usr/bin/env bash
# Makes dist/gguf-VERSION-TARGET.tar.gz: binary, licenses, manual pages, completions.
#
# Usage: packaging/archive.sh [TARGET]
#
# With a musl target the binary is static and runs on any Linux of that processor; it takes
# `rustup target add x86_64-unknown-linux-musl` and musl-gcc (Debian: musl-tools). With
# STATIC=1 and a gnu target it is static too, but asks the system's glibc for names of hosts.
set -euo pipefail
cd "$(dirname "$0")/.."

# Without a target, what `cargo build` made before is used.
given=("$@")
target="${1:-$(rustc --version --verbose | sed -n 's/^host: //p')}"
if [ "${STATIC:-0}" = 1 ]; then
    # With a target, flags are for the program, and not for what runs while it is built.
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
# Made by the binary itself, so it has to run here.
"$root/gguf" man --quiet "$root/man"
# Named as each shell looks for them.
for file in bash:gguf.bash zsh:_gguf fish:gguf.fish powershell:_gguf.ps1; do
    "$root/gguf" completions "${file%%:*}" > "$root/completions/${file#*:}"
done
# The same bytes for the same commit.
time="$(git log -1 --format=@%ct 2> /dev/null || echo @0)"
tar -C "$stage" --owner=0 --group=0 --numeric-owner --mode=go-w --sort=name --mtime="$time" -c "$name" \
    | gzip -9n > "dist/$name.tar.gz"
(cd dist && sha256sum "$name.tar.gz" > "$name.tar.gz.sha256")
echo "dist/$name.tar.gz"

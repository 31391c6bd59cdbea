#!/bin/sh
# Installs gguf 1.2.3 for the current user, without root. It checks the SHA-256 digest of the archive.
#
#   GGUF_INSTALL_DIR    folder of the command; default: ~/.local/bin
#
# Requires tar, and curl or wget.
set -eu

url='https://example.invalid/owner/gguf-kit/releases/download/v1.2.3'

fail() {
    printf 'error: %s\n' "$*" >&2
    exit 1
}

has() {
    command -v "$1" > /dev/null 2>&1
}

download() {
    if has curl; then
        curl --fail --location --silent --show-error --output "$2" "$1"
    elif has wget; then
        wget -q -O "$2" "$1"
    else
        fail "neither curl nor wget is installed"
    fi || fail "cannot download $1"
}

digest_of() {
    if has sha256sum; then
        sha256sum "$1" | cut -d ' ' -f 1
    elif has shasum; then
        shasum -a 256 "$1" | cut -d ' ' -f 1
    elif has openssl; then
        openssl dgst -sha256 -r "$1" | cut -d ' ' -f 1
    else
        fail "neither sha256sum, shasum nor openssl is installed: the archive cannot be checked"
    fi
}

# The whole script is read before anything happens: a download that stops early does nothing.
main() {
    platform="$(uname -s) $(uname -m)"
    # A shell under Rosetta says x86_64.
    if [ "$platform" = "Darwin x86_64" ] && [ "$(sysctl -n hw.optional.arm64 2> /dev/null)" = 1 ]; then
        platform="Darwin arm64"
    fi
    case "$platform" in
        "Linux x86_64") folder=gguf-1.2.3-x86_64-unknown-linux-musl digest=51e67ee39dcb133935cb8c9caab47b2c5c0b472e2c07304577eca1f94788bec9 ;;
        "Linux aarch64") folder=gguf-1.2.3-aarch64-unknown-linux-musl digest=bc1556daf6fa7727ad1d1114340419e9cbe6475fc55431893da18bfd4ee2bb4f ;;
        "Darwin x86_64") folder=gguf-1.2.3-x86_64-apple-darwin digest=abd688321097f38c51b91944153d0c369583b4cf75e082a211069030e3ae39bc ;;
        "Darwin arm64") folder=gguf-1.2.3-aarch64-apple-darwin digest=fca8acb18fd4e1d668302d21d9e6b21e19ef3209e40646727e024d9ee8692044 ;;
        MINGW* | MSYS* | CYGWIN*) fail "on Windows, run install.ps1 in PowerShell" ;;
        *) fail "there is no binary for $platform; https://example.invalid/owner/gguf-kit explains how to build one" ;;
    esac

    if [ -n "${GGUF_INSTALL_DIR:-}" ]; then
        target="$GGUF_INSTALL_DIR"
    else
        target="${HOME:?HOME is not set; set GGUF_INSTALL_DIR}/.local/bin"
    fi
    command="$target/gguf"
    if [ -e "$command" ]; then
        case "$("$command" --version 2> /dev/null)" in
            "gguf "*) ;;
            *) fail "$command exists and is another program; set GGUF_INSTALL_DIR to a different folder" ;;
        esac
    fi
    mkdir -p "$target" || fail "cannot create $target; set GGUF_INSTALL_DIR to a folder that you can write"

    stage="$(mktemp -d)"
    # Beside the command, so that the last step is a rename.
    part="$target/.gguf-$$"
    trap 'rm -rf "$stage" "$part"' EXIT
    trap 'exit 130' INT TERM
    download "$url/$folder.tar.gz" "$stage/archive.tar.gz"
    actual="$(digest_of "$stage/archive.tar.gz")"
    [ "$actual" = "$digest" ] || fail "$url/$folder.tar.gz has the SHA-256 digest $actual; expected $digest"
    tar -xzf "$stage/archive.tar.gz" -C "$stage"
    cp "$stage/$folder/gguf" "$part" || fail "cannot write to $target; set GGUF_INSTALL_DIR to a different folder"
    chmod 755 "$part"
    version="$("$part" --version)" || fail "the binary does not run on this system"
    mv -f "$part" "$command"

    echo "$version is installed as $command"
    case ":${PATH:-}:" in
        *":$target:"*) ;;
        *)
            echo "To run it by its name, add the folder to PATH:"
            echo "  export PATH=\"$target:\$PATH\""
            ;;
    esac
    found="$(command -v gguf || true)"
    if [ -n "$found" ] && [ "$found" != "$command" ]; then
        echo "note: the shell finds $found first"
    fi
}

main

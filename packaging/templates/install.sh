#!/bin/sh
# Installs @COMMAND@ @VERSION@ for the current user, without root. It checks the SHA-256 digest of the archive.
#
#   GGUF_INSTALL_DIR    folder of the command; default: ~/.local/bin
#
# Requires tar, and curl or wget.
set -eu

url='@URL@'

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
@CASES@
        MINGW* | MSYS* | CYGWIN*) fail "on Windows, run install.ps1 in PowerShell" ;;
        *) fail "there is no binary for $platform; @REPOSITORY@ explains how to build one" ;;
    esac

    if [ -n "${GGUF_INSTALL_DIR:-}" ]; then
        target="$GGUF_INSTALL_DIR"
    else
        target="${HOME:?HOME is not set; set GGUF_INSTALL_DIR}/.local/bin"
    fi
    command="$target/@COMMAND@"
    if [ -e "$command" ]; then
        case "$("$command" --version 2> /dev/null)" in
            "@COMMAND@ "*) ;;
            *) fail "$command exists and is another program; set GGUF_INSTALL_DIR to a different folder" ;;
        esac
    fi
    mkdir -p "$target" || fail "cannot create $target; set GGUF_INSTALL_DIR to a folder that you can write"

    stage="$(mktemp -d)"
    # Beside the command, so that the last step is a rename.
    part="$target/.@COMMAND@-$$"
    trap 'rm -rf "$stage" "$part"' EXIT
    trap 'exit 130' INT TERM
    download "$url/$folder.tar.gz" "$stage/archive.tar.gz"
    actual="$(digest_of "$stage/archive.tar.gz")"
    [ "$actual" = "$digest" ] || fail "$url/$folder.tar.gz has the SHA-256 digest $actual; expected $digest"
    tar -xzf "$stage/archive.tar.gz" -C "$stage"
    cp "$stage/$folder/@COMMAND@" "$part" || fail "cannot write to $target; set GGUF_INSTALL_DIR to a different folder"
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
    found="$(command -v @COMMAND@ || true)"
    if [ -n "$found" ] && [ "$found" != "$command" ]; then
        echo "note: the shell finds $found first"
    fi
}

main

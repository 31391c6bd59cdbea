class GgufKit < Formula
  desc "Toolkit for GGUF model files"
  homepage "https://example.invalid/owner/gguf-kit"
  version "1.2.3"
  license any_of: ["Apache-2.0", "MIT"]

  on_macos do
    on_intel do
      url "https://example.invalid/owner/gguf-kit/releases/download/v1.2.3/gguf-1.2.3-x86_64-apple-darwin.tar.gz"
      sha256 "abd688321097f38c51b91944153d0c369583b4cf75e082a211069030e3ae39bc"
    end
    on_arm do
      url "https://example.invalid/owner/gguf-kit/releases/download/v1.2.3/gguf-1.2.3-aarch64-apple-darwin.tar.gz"
      sha256 "fca8acb18fd4e1d668302d21d9e6b21e19ef3209e40646727e024d9ee8692044"
    end
  end

  on_linux do
    on_intel do
      url "https://example.invalid/owner/gguf-kit/releases/download/v1.2.3/gguf-1.2.3-x86_64-unknown-linux-musl.tar.gz"
      sha256 "51e67ee39dcb133935cb8c9caab47b2c5c0b472e2c07304577eca1f94788bec9"
    end
    on_arm do
      url "https://example.invalid/owner/gguf-kit/releases/download/v1.2.3/gguf-1.2.3-aarch64-unknown-linux-musl.tar.gz"
      sha256 "bc1556daf6fa7727ad1d1114340419e9cbe6475fc55431893da18bfd4ee2bb4f"
    end
  end

  def install
    bin.install "gguf"
    man1.install Dir["man/*.1"]
    bash_completion.install "completions/gguf.bash" => "gguf"
    zsh_completion.install "completions/_gguf" => "_gguf"
    fish_completion.install "completions/gguf.fish" => "gguf.fish"
    doc.install "README.md", "CHANGELOG.md", "THIRD-PARTY.txt"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/gguf --version")
    system bin/"gguf", "demo"
  end
end

class @CLASS@ < Formula
  desc "@SUMMARY@"
  homepage "@REPOSITORY@"
  version "@VERSION@"
  license @LICENSE@

@SOURCES@

  def install
    bin.install "@COMMAND@"
    man1.install Dir["man/*.1"]
    bash_completion.install "completions/gguf.bash" => "@COMMAND@"
    zsh_completion.install "completions/_gguf" => "_@COMMAND@"
    fish_completion.install "completions/gguf.fish" => "@COMMAND@.fish"
    doc.install "README.md", "CHANGELOG.md", "THIRD-PARTY.txt"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/@COMMAND@ --version")
    system bin/"@COMMAND@", "demo"
  end
end

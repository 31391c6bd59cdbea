# Installs a formula into a folder and tests it, with the part of Homebrew's language that the formula uses.
#
# Usage: ruby homebrew.rb FORMULA FOLDER

require "digest"
require "fileutils"
require "open-uri"
require "pathname"
require "tmpdir"

PREFIX = Pathname(ARGV[1]).expand_path

# Folder with the method `install` of Homebrew.
class Folder < Pathname
  def install(*sources)
    mkpath
    sources.flatten.flat_map { |source| source.is_a?(Hash) ? source.to_a : [[source, nil]] }.each do |from, to|
      raise "#{from} is missing in the archive" unless File.file?(from)

      FileUtils.cp(from, self + (to || File.basename(from)), preserve: true)
    end
  end
end

class Formula
  class << self
    attr_reader :fields, :check

    %i[desc homepage version license url sha256].each do |name|
      define_method(name) { |value| (@fields ||= {})[name] = value }
    end

    def on_macos = (yield if RUBY_PLATFORM.include?("darwin"))
    def on_linux = (yield if RUBY_PLATFORM.include?("linux"))
    def on_arm = (yield if RUBY_PLATFORM.match?(/arm64|aarch64/))
    def on_intel = (yield if RUBY_PLATFORM.include?("x86_64"))
    def test(&block) = @check = block
  end

  {
    bin: "bin",
    man1: "share/man/man1",
    bash_completion: "etc/bash_completion.d",
    zsh_completion: "share/zsh/site-functions",
    fish_completion: "share/fish/vendor_completions.d",
    doc: "share/doc/gguf-kit",
  }.each { |name, place| define_method(name) { Folder.new(PREFIX + place) } }

  def version = self.class.fields[:version]
  def shell_output(command) = `#{command}`
  def system(*words) = Kernel.system(*words.map(&:to_s)) || raise("#{words.join(" ")} failed")
  def assert_match(part, text) = text.include?(part) || raise("#{text} does not contain #{part}")
end

load ARGV[0]
type = ObjectSpace.each_object(Class).find { |one| one.superclass == Formula }
%i[desc homepage version license url sha256].each { |name| type.fields[name] || raise("#{name} is missing") }
archive = URI.parse(type.fields[:url]).open("rb", &:read)
digest = Digest::SHA256.hexdigest(archive)
raise "the digest is #{digest}; expected #{type.fields[:sha256]}" unless digest == type.fields[:sha256]

formula = type.new
Dir.mktmpdir do |stage|
  Dir.chdir(stage) do
    IO.popen(%w[tar -xzf -], "wb") { |tar| tar.write(archive) }
    # Homebrew enters the only folder of an archive.
    Dir.chdir(Dir["*"].fetch(0)) { formula.install }
    formula.instance_eval(&type.check)
  end
end

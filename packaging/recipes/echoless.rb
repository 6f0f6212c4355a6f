class Echoless < Formula
  desc "Removes duplicate records from streams in fixed memory"
  homepage "@URL@"
  url "@URL@/echoless-@VERSION@-x86_64-linux.tar.gz"
  sha256 "@COMMAND_SHA256@"
  license any_of: ["MIT", "Apache-2.0"]
  depends_on arch: :x86_64
  depends_on :linux

  def install
    bin.install "echoless"
    man1.install Dir["man/*"]
    bash_completion.install "completions/echoless.bash" => "echoless"
    fish_completion.install "completions/echoless.fish"
    zsh_completion.install "completions/_echoless"
  end

  test do
    assert_equal "a\nb\n", pipe_output("#{bin}/echoless dedup -q", "a\nb\na\n")
  end
end

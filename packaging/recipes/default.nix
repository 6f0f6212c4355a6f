{ pkgs ? import <nixpkgs> { } }:
pkgs.stdenv.mkDerivation {
  pname = "echoless";
  version = "@VERSION@";
  src = pkgs.fetchurl {
    url = "@URL@/echoless-@VERSION@-x86_64-linux.tar.gz";
    sha256 = "@COMMAND_SHA256@";
  };
  nativeBuildInputs = [ pkgs.autoPatchelfHook pkgs.installShellFiles ];
  installPhase = ''
    install -Dm755 echoless $out/bin/echoless
    installManPage man/*
    installShellCompletion completions/{echoless.bash,echoless.fish,_echoless}
  '';
  meta = {
    description = "Removes duplicate records from streams in fixed memory";
    license = with pkgs.lib.licenses; [ mit asl20 ];
    platforms = [ "x86_64-linux" ];
    mainProgram = "echoless";
  };
}

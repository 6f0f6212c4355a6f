#!/usr/bin/env bash
# Installs command, libraries, wheel, Go module and jars of a release in a bare Debian without Rust,
# does there what their READMEs show, and removes them: `.ci/release --test [FOLDER]`. The sdist is
# built there with the Rust of this machine. Of the recipes that for Conan is tried, and the .rpm on
# Debian alone. It needs root, debootstrap, Go, Rust, Maven, lintian, rpmlint, rpm, network, and
# target/tools of `.ci/release`. Of each Debian a folder stays in target/release-roots, and what a
# test changes in it is gone afterwards.
set -euo pipefail
cd "$(dirname "$0")/.."

files=$(realpath "$1")
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)
[ -f "$files/SHA256SUMS" ] || { echo "no files of a release in $files: run .ci/release first" >&2; exit 2; }
[ "$(id -u)" = 0 ] || { echo "needs root, for debootstrap and chroot" >&2; exit 2; }
(cd "$files" && sha256sum --quiet -c SHA256SUMS)
roots=$PWD/target/release-roots
mkdir -p "$roots"
rm -rf "$roots"/layer.*

step() { printf '\n== %s (at %d s)\n' "$*" "$SECONDS"; }

# The bare system of a release of Debian: bullseye has glibc 2.31, bookworm 2.36.
root() {
  [ -f "$roots/$1/done" ] && return
  rm -rf "${roots:?}/$1"
  debootstrap --variant=minbase "$1" "$roots/$1" >"$roots/$1.log" || { tail "$roots/$1.log"; exit 1; }
  cp /etc/resolv.conf /etc/hosts "$roots/$1/etc"
  touch "$roots/$1/done"
}

# Runs the script of standard input in the Debian $1 with the packages $2. It has the files of the
# release in /files, the repository in /echoless, Go in /go, and with a third argument Rust in
# /rust. `untouched` fails if a file remains.
inside() {
  root "$1"
  local layers
  layers=$(mktemp -d "$roots/layer.XXXX")
  mkdir "$layers"/{upper,work,merged}
  { cat <<'SETUP'
set -euo pipefail
export DEBIAN_FRONTEND=noninteractive HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8
if [ -n "$packages" ]; then
  apt-get -qq update
  apt-get -qq install -y --no-install-recommends $packages >/dev/null
fi
everything() { find / -xdev -regex '/\(tmp\|root\|cargo\|var/cache\|var/log\|var/lib/apt\)' -prune -o -print | sort; }
none() { [ -z "$("$@" 2>/dev/null)" ]; }
none command -v cargo rustc
untouched() { diff /tmp/before <(everything); }
# The first block of code of a kind in a page.
block() { sed -n "/^\`\`\`$2\$/,/^\`\`\`\$/p" "$1" | sed '1d; /^```$/,$d'; }
everything >/tmp/before
cd /tmp
SETUP
    cat; } >"$layers/script"
  unshare --mount --pid --fork --kill-child bash -euc '
    mount -t overlay overlay -o "lowerdir=$1,upperdir=$2/upper,workdir=$2/work" "$2/merged"
    mkdir -p "$2"/merged/{files,echoless,go,rust,cargo/registry}
    mount --bind "$3" "$2/merged/files"
    mount -o bind,ro . "$2/merged/echoless"
    mount --bind "$(go env GOROOT)" "$2/merged/go"
    [ -z "$6" ] || {
      mount -o bind,ro "$(rustc --print sysroot)" "$2/merged/rust"
      mount -o bind,ro "${CARGO_HOME:-$HOME/.cargo}/registry" "$2/merged/cargo/registry"
    }
    mount -t proc proc "$2/merged/proc"
    cp "$2/script" "$2/merged/tmp/script"
    packages=$4 version=$5 chroot "$2/merged" bash /tmp/script' - "$roots/$1" "$layers" "$files" "$2" "$version" "${3-}"
  rm -rf "$layers"
}

command_tarball() {
  step "the tarball of the command, in bullseye"
  inside bullseye "" <<'EOS'
tar -xf /files/echoless-$version-x86_64-linux.tar.gz
PATH=$PATH:/tmp/echoless-$version-x86_64-linux
echoless gen cdr -n 1000000 --duplicates 0.2 | echoless dedup -o fresh.csv
[ "$(wc -l <fresh.csv)" = 800231 ]
rm -r echoless-* fresh.csv
untouched
EOS
}

command_packages() {
  step "the .deb, in bullseye"
  inside bullseye "" <<'EOS'
apt-get -qq install -y /files/echoless_*.deb >/dev/null 2>&1
[ "$(printf 'a\nb\na\n' | echoless dedup -q)" = "$(printf 'a\nb')" ]
dpkg --verify echoless
apt-get -qq purge -y echoless >/dev/null 2>&1
untouched
EOS
  step "an enabled unit of the .deb, in bookworm"
  inside bookworm systemd <<'EOS'
apt-get -qq install -y /files/echoless_*.deb >/dev/null 2>&1
systemctl --quiet enable echoless-packets@eth0.service
links() { find /etc/systemd -name 'echoless-packets@eth0.service'; }
[ -n "$(links)" ]
dpkg -i /files/echoless_*.deb >/dev/null
[ -n "$(links)" ]
apt-get -qq purge -y echoless >/dev/null 2>&1
untouched
EOS
  step "the .rpm, and the units of both, in bookworm"
  inside bookworm "rpm systemd" <<'EOS'
rpm -i --nodeps /files/echoless-*.rpm
[ "$(printf 'a\nb\na\n' | echoless dedup -q)" = "$(printf 'a\nb')" ]
touch /etc/echoless/follow-app.conf
systemd-analyze verify --man=no echoless-packets@eth0.service echoless-follow@app.service
systemd-analyze security --offline=true --no-pager echoless-{packets@eth0,follow@app}.service | grep Overall
rm /etc/echoless/follow-app.conf
systemctl --quiet enable echoless-packets@eth0.service
rpm -e --nodeps echoless
none find /usr /etc -name '*echoless*'
EOS
}

c() {
  step "C, in bullseye with gcc and CMake"
  inside bullseye "gcc libc6-dev pkg-config cmake make" <<'EOS'
mkdir usr && tar -xf /files/echoless-c-*.tar.gz --strip-components 1 -C usr
export PKG_CONFIG_PATH=/tmp/usr/lib/pkgconfig LD_LIBRARY_PATH=/tmp/usr/lib
readme=usr/share/doc/echoless/README.md
block $readme c >first.c
block $readme text >expected
newest=$(nm -D usr/lib/libecholess.so | grep -o 'GLIBC_2\.[0-9]*' | sort -uV | tail -n 1)
[[ $newest =~ ^GLIBC_2\.([0-9]|1[0-7])$ ]]
cc first.c $(pkg-config --cflags --libs echoless) -o first
./first | diff expected -
readelf -d first | grep -q "libecholess.so.${version%.*}"
cc -static first.c $(pkg-config --static --cflags --libs echoless) -o first 2>/dev/null
./first | diff expected -
cat >CMakeLists.txt <<CMAKE
cmake_minimum_required(VERSION 3.13)
project(first C)
find_package(echoless ${version%.*} REQUIRED)
add_executable(shared first.c)
target_link_libraries(shared echoless::echoless)
add_executable(static first.c)
target_link_libraries(static echoless::static)
CMAKE
cmake -DCMAKE_PREFIX_PATH=/tmp/usr -B build . >/dev/null && cmake --build build >/dev/null
build/shared | diff expected -
build/static | diff expected -
rm -r usr build first* expected CMakeLists.txt
untouched
EOS
}

c_package() {
  step "the package for C, in bookworm with gcc"
  inside bookworm "gcc libc6-dev pkg-config" <<'EOS'
apt-get -qq install -y /files/libecholess-dev_*.deb >/dev/null 2>&1
block /echoless/tools/capi/README.md c >first.c
cc first.c $(pkg-config --cflags --libs echoless) -o first
./first | diff <(block /echoless/tools/capi/README.md text) -
rm first*
apt-get -qq purge -y libecholess-dev >/dev/null 2>&1
untouched
EOS
}

# Installs the file $1 of the release with the packages $2, perhaps with Rust, and runs the examples
# of the README.
python_package() {
  inside bookworm "python3 python3-venv $2" "${3-}" < <(sed "s|@FILE@|$1|" <<'EOS'
export PATH=$PATH:/rust/bin CARGO_HOME=/cargo CARGO_NET_OFFLINE=true
python3 -m venv venv
venv/bin/pip -q install --no-index --find-links /echoless/target/release-roots/wheels /files/@FILE@ polars
# Without the folder of the sources, and without what runs the command.
cd / && /tmp/venv/bin/python -m doctest /echoless/tools/python/README.md
/tmp/venv/bin/pip -q uninstall -y echoless
none find /tmp/venv -name '*echoless*'
rm -r /tmp/venv
untouched
EOS
  )
}

python() {
  step "the wheel, in bookworm with Python 3.11: the examples of its README"
  target/tools/bin/pip -q --disable-pip-version-check install twine==7.0.0
  target/tools/bin/twine check --strict "$files"/*.whl "$files/echoless-$version.tar.gz"
  target/tools/bin/pip -q --disable-pip-version-check download --only-binary=:all: \
    --python-version 3.11 --dest "$roots/wheels" numpy polars maturin==1.16.0
  python_package '*.whl' ""
  step "the sdist, built there with the Rust of this machine"
  cargo fetch --locked --quiet --manifest-path tools/python/Cargo.toml
  python_package "echoless-$version.tar.gz" "gcc libc6-dev" with-rust
}

go_module() {
  step "Go, in bullseye with gcc: the example of its README, also vendored"
  inside bullseye "gcc libc6-dev" <<'EOS'
export PATH=$PATH:/go/bin GOPROXY=off GOFLAGS=-mod=mod GOTOOLCHAIN=local
tar -xf /files/echoless-go-*.tar.gz
mkdir program && cd program
block ../echoless-go-$version/README.md go >main.go
go mod init program 2>/dev/null
go mod edit -require echoless@v$version -replace echoless=../echoless-go-$version
go run . >printed
printf 'call 17\ncall 18\n' | diff printed -
go mod vendor
rm -r ../echoless-go-*
GOFLAGS=-mod=vendor go run . | diff printed -
cd .. && rm -r program
untouched
EOS
}

java() {
  step "Java, in bullseye with JDK 17: the example of its README"
  inside bullseye openjdk-17-jdk-headless <<'EOS'
block /echoless/tools/java/README.md java >Example.java
javac -cp /files/echoless-$version.jar Example.java
[ "$(java -cp /files/echoless-$version.jar:. Example)" = "1 100" ]
jar tf /files/echoless-flink-$version.jar | grep -q META-INF/LICENSE-MIT
jar tf /files/echoless-$version.jar | grep -q META-INF/THIRD-PARTY.txt
none find /tmp -name 'libecholess*'
rm Example*
untouched
EOS
}

flink() {
  step "Flink, in bullseye with JDK 17: the job of its README"
  mvn -B -q -ntp -f tools/flink/pom.xml org.apache.maven.plugins:maven-dependency-plugin:3.9.0:copy-dependencies \
    -DexcludeGroupIds=echoless -DoutputDirectory="$roots/flink"
  inside bullseye openjdk-17-jdk-headless <<'EOS'
classes="/files/echoless-$version.jar:/files/echoless-flink-$version.jar:/echoless/target/release-roots/flink/*"
javac -cp "$classes" -d job /echoless/tools/flink/src/test/java/echoless/flink/Example.java
java --add-opens=java.base/java.util=ALL-UNNAMED -cp "job:$classes" echoless.flink.Example >printed 2>/dev/null
grep '^call ' printed | diff <(printf 'call 17\ncall 18\n') -
none find /tmp -name 'libecholess*'
rm -r job printed
untouched
EOS
}

recipes() {
  step "the recipe for Conan, in bookworm with gcc: the example of the README"
  target/tools/bin/pip -q --disable-pip-version-check wheel --wheel-dir "$roots/wheels" conan==2.34.0
  inside bookworm "gcc libc6-dev pkg-config python3 python3-venv" <<'EOS'
python3 -m venv venv
venv/bin/pip -q install --no-index --find-links /echoless/target/release-roots/wheels conan
export PATH=$PATH:/tmp/venv/bin CONAN_HOME=/tmp/conan
tar -xf /files/echoless-recipes-*.tar.gz
# The files are where the recipe says once they are published.
sed -i 's|"[^"]*/echoless-c-|"file:///files/echoless-c-|' echoless-recipes-*/conan/conanfile.py
conan profile detect 2>/dev/null
conan create echoless-recipes-*/conan >log 2>&1 || { tail log; exit 1; }
conan install --requires "echoless/$version" -g PkgConfigDeps --output-folder found >log 2>&1 || { tail log; exit 1; }
block /echoless/tools/capi/README.md c >first.c
cc first.c $(PKG_CONFIG_PATH=found pkg-config --cflags --libs echoless) -o first
./first | diff <(block /echoless/tools/capi/README.md text) -
EOS
}

checkers() {
  step "lintian and rpmlint"
  lintian --fail-on error "$files"/*.deb
  rpmlint -c packaging/rpmlint.toml "$files"/*.rpm
}

# What is larger has debug information, or code that nobody calls. Hot loops are much of the
# command: each rule and width of slots, for four instruction sets.
sizes() {
  step "sizes in MB, and their limits"
  local unpacked
  unpacked=$(mktemp -d)
  tar -C "$unpacked" -xf "$files/echoless-$version-x86_64-linux.tar.gz"
  tar -C "$unpacked" -xf "$files/echoless-c-$version-x86_64-linux.tar.gz"
  stat -c '%s %n' "$unpacked"/*/echoless "$unpacked"/*/lib/libecholess.so."$version" "$files"/*.whl \
    "$files/echoless-$version.jar" | awk '
      { limit = $2 ~ /whl$/ ? 5 : $2 ~ /(jar|so[.0-9]*)$/ ? 4 : 12; sub(/.*\//, "", $2)
        printf "%-60s %5.2f %d%s\n", $2, $1 / 1e6, limit, ($1 > limit * 1e6) ? " EXCEEDED" : ""
        if ($1 > limit * 1e6) failed = 1 }
      END { exit failed }' || failed=1
  rm -r "$unpacked"
  return "${failed:-0}"
}

command_tarball
command_packages
c
c_package
python
go_module
java
flink
recipes
checkers
sizes
step "what was installed did its job"

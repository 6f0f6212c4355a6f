#!/bin/sh
# Installs the library for C programs on Linux, once it is built:
#
#     cargo build --profile dist -p echoless-capi
#     tools/capi/install.sh PREFIX [FOLDER]
#
# PREFIX is such as /usr/local; FOLDER has the libraries, target/dist if it is left out. With
# DESTDIR everything is put below that folder, for a package. What is installed may be moved.
set -eu

if [ $# -lt 1 ] || [ $# -gt 2 ]; then
    echo "expected install.sh PREFIX [FOLDER]" >&2
    exit 2
fi
prefix=$1
here=$(cd "$(dirname "$0")" && pwd)
from=${2:-${CARGO_TARGET_DIR:-$here/../../target}/dist}
to=${DESTDIR:-}$prefix
version=$(sed -n 's/^#define ECHOLESS_VERSION "\(.*\)"$/\1/p' "$here/include/echoless.h")

if [ ! -f "$from/libecholess_c.so" ] || [ ! -f "$from/libecholess_c.a" ]; then
    echo "no libecholess_c.so and libecholess_c.a in $from: build them first, or name their folder" >&2
    exit 2
fi
case $version in
0.*) interface=${version%.*} ;;
*) interface=${version%%.*} ;;
esac
cmake=$to/lib/cmake/echoless
mkdir -p "$to/include" "$to/lib/pkgconfig" "$cmake"
install -m 644 "$here/include/echoless.h" "$here/include/echoless.hpp" "$to/include/"
install -m 644 "$from/libecholess_c.a" "$to/lib/libecholess.a"
install -m 644 "$from/libecholess_c.so" "$to/lib/libecholess.so.$version"
ln -sf "libecholess.so.$version" "$to/lib/libecholess.so.$interface"
ln -sf "libecholess.so.$interface" "$to/lib/libecholess.so"
sed "s|@VERSION@|$version|" "$here/echoless.pc.in" >"$to/lib/pkgconfig/echoless.pc"
install -m 644 "$here/echolessConfig.cmake" "$cmake/"
sed "s|@VERSION@|$version|" "$here/echolessConfigVersion.cmake.in" >"$cmake/echolessConfigVersion.cmake"
chmod 644 "$to/lib/pkgconfig/echoless.pc" "$cmake/echolessConfigVersion.cmake"

#!/bin/sh
# Before the package is removed, but not before a newer one takes its place: its units stop, and no
# link to one stays behind.
set -e
case "${1-}" in
remove | 0) ;;
*) exit 0 ;;
esac
command -v systemctl >/dev/null || exit 0
if [ -d /run/systemd/system ]; then
  systemctl stop 'echoless-packets@*.service' 'echoless-follow@*.service' || true
fi
# No other unit, even if its name begins alike.
find /etc/systemd/system -type l \( -name 'echoless-packets@*.service' -o \
  -name 'echoless-follow@*.service' \) 2>/dev/null |
  while read -r link; do
    systemctl --quiet disable "$(basename "$link")" || true
  done

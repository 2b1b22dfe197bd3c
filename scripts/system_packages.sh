#!/usr/bin/env bash
# Install the Debian packages that the tests need. Run as root; CI runs the same script.
set -euo pipefail
export DEBIAN_FRONTEND=noninteractive

apt-get update -qq
apt-get install -qq -y --no-install-recommends \
  bubblewrap chromium curl ffmpeg flite fonts-dejavu-core fonts-liberation fonts-noto-cjk \
  fonts-noto-color-emoji git iproute2 \
  libreoffice-calc-nogui libreoffice-impress-nogui libreoffice-math-nogui \
  libreoffice-writer-nogui linux-libc-dev make nftables passt python3 util-linux \
  >/dev/null
command -v npm >/dev/null || apt-get install -qq -y --no-install-recommends nodejs npm >/dev/null
# Open to all users, as udev leaves it: the tests of the open network make a device of it.
[ ! -e /dev/net/tun ] || chmod 666 /dev/net/tun

#!/bin/sh
# Installs daycare for the user who runs it, without root:
#
#   curl -fsSL https://…/install.sh | sh
#   PREFIX=/opt/daycare sh install.sh
#
# It downloads the archive for this machine, verifies its SHA-256 (and the signature of the
# checksums, where minisign is installed), tries the program, and puts it into PREFIX/bin,
# with manual pages and completions in PREFIX/share. PREFIX is ~/.local unless you set it. The
# program that was there is kept as daycare.old.
set -eu

# Where the release is, and the key that signs it.
url=${RELEASE_URL:-}
key=${RELEASE_KEY:-}

say() { printf '%s\n' "$*"; }

fail() { # WHAT, WHAT TO DO OR WHAT IT MEANS
  printf 'install.sh: %s\n%s\n' "$1" "$2" >&2
  exit 1
}

has() { command -v "$1" >/dev/null 2>&1; }

# platform prints OS-ARCH as archives are named.
platform() {
  os=$(uname -s)
  case $os in
  Linux) os=linux ;;
  Darwin) os=darwin ;;
  FreeBSD) os=freebsd ;;
  *) fail "there is no daycare for $os" "on Windows, use WSL" ;;
  esac

  cpu=$(uname -m)
  case $cpu in
  x86_64 | amd64) cpu=amd64 ;;
  aarch64 | arm64) cpu=arm64 ;;
  *) fail "there is no daycare for $os on $cpu" "with Go you can build it from its source" ;;
  esac
  say "$os-$cpu"
}

# download gets FILE of the release. Over plain http others could change it on its way.
download() {
  case $url in
  https://*) protocol='=https' ;;
  http://127.0.0.1[:/]* | http://localhost[:/]*) protocol='=http' ;;
  '') fail "the place of the release is unknown" "set RELEASE_URL to it" ;;
  *) fail "$url is not an https address" "releases are fetched over https only" ;;
  esac

  if has curl; then
    curl -fsSL --proto "$protocol" -o "$1" "$url/$1"
  elif has wget; then
    wget -q -O "$1" "$url/$1"
  elif has fetch; then
    fetch -q -o "$1" "$url/$1"
  else
    fail "cannot download anything" "install curl or wget"
  fi || fail "cannot download $url/$1" "nothing was installed"
}

checksum() { # FILE
  if has sha256sum; then
    sha256sum "$1" | cut -d' ' -f1
  elif has shasum; then
    shasum -a 256 "$1" | cut -d' ' -f1
  elif has sha256; then
    sha256 -q "$1"
  else
    fail "cannot compute a SHA-256" "install sha256sum or shasum"
  fi
}

# verify_signature checks who made SHA256SUMS, as far as this machine can.
verify_signature() {
  if [ -z "$key" ]; then
    say "signature  not checked: this script knows no key (RELEASE_KEY)"
  elif ! has minisign; then
    say "signature  not checked: minisign is not installed"
  else
    download SHA256SUMS.minisig
    minisign -V -q -P "$key" -m SHA256SUMS ||
      fail "the signature of SHA256SUMS is wrong" "nothing was installed"
    say "signature  right"
  fi
}

# put installs FILE as TARGET in one step, so that a program that runs goes on.
put() {
  mkdir -p "${2%/*}" && cp "$1" "$2.new" && chmod "$3" "$2.new" && mv -f "$2.new" "$2" ||
    fail "cannot write $2" "set PREFIX to a folder that is yours"
}

install_files() { # FOLDER
  program=$prefix/bin/daycare
  mkdir -p "$prefix/bin" 2>/dev/null && [ -w "$prefix/bin" ] ||
    fail "cannot write to $prefix/bin" "set PREFIX to a folder that is yours"
  if [ -e "$program" ]; then
    put "$program" "$program.old" 755
    say "kept       $program.old"
  fi
  put "$1/daycare" "$program" 755

  share=$prefix/share
  for page in "$1"/man/*.1; do put "$page" "$share/man/man1/${page##*/}" 644; done
  put "$1/completion/daycare.bash" "$share/bash-completion/completions/daycare" 644
  put "$1/completion/daycare.zsh" "$share/zsh/site-functions/_daycare" 644
  put "$1/completion/daycare.fish" "$share/fish/vendor_completions.d/daycare.fish" 644
  say "installed  $program"
  say "           manual pages and completions in $share"
}

main() {
  where=$(platform)
  prefix=${PREFIX:-$HOME/.local}
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  cd "$work"

  download SHA256SUMS
  verify_signature
  archive=$(sed -n "s/^[0-9a-f]\{64\}  \(daycare-[0-9][^ /]*-$where\.tar\.gz\)\$/\1/p" SHA256SUMS)
  case $archive in
  '') fail "SHA256SUMS of $url names no archive for $where" "nothing was installed" ;;
  *'
'*) fail "SHA256SUMS of $url names several archives for $where" "nothing was installed" ;;
  esac

  download "$archive"
  expected=$(sed -n "s/  $archive\$//p" SHA256SUMS)
  found=$(checksum "$archive")
  [ "$found" = "$expected" ] ||
    fail "$archive was damaged or changed: its SHA-256 is $found, SHA256SUMS says $expected" "nothing was installed"
  say "checksum   right: $archive"

  tar -xzf "$archive"
  "./${archive%.tar.gz}/daycare" version >/dev/null ||
    fail "the program does not run on this machine" "nothing was installed"
  install_files "$work/${archive%.tar.gz}"

  case :$PATH: in
  *:"$prefix/bin":*) ;;
  *) say "add it to your PATH: export PATH=\"$prefix/bin:\$PATH\"" ;;
  esac
  say "next       cd to a folder for your agents, and: daycare init"
}

main

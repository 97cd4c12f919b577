# The checks inside a root, for cross/packaging/debian/test: check.sh PART ARCH HOST VERSION NEXT.
# `@@state|name` is the result of one, `@begin name` its begin, and `@end` the end of all.
set -uo pipefail
part="$1" arch="$2" host="$3" version="$4" next="$5"
mine=(contigo libcontigo2 libcontigo-dev python3-contigo contigo-dkms contigo-overlays)

check() {
    local name="$1"
    shift
    echo "@begin $name"
    if "$@"; then echo "@@passed|$name"; else echo "@@FAILED|$name"; fi
}
skip() { echo "@@skipped|$1"; }
apt() { apt-get --quiet --yes --no-install-recommends -o Dpkg::Options::=--force-confold -o Dpkg::Use-Pty=0 "$@"; }
configured() { [ "$(dpkg-query -W -f='${db:Status-Status}' "$1")" = installed ]; }
all_configured() { for package in "${mine[@]}"; do configured "$package" || return; done; }
repository() { echo "deb [trusted=yes] file:/repository/$1 ./" >/etc/apt/sources.list.d/contigo.list && apt update; }

# Every file of the root, with its kind, rights and owner, but for what apt, dpkg and logs keep.
files() {
    find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /tmp -o -path /run -o -path /src -o -path /var/cache -o -path /var/log \
        -o -path /var/lib/apt -o -path /var/lib/dpkg -o -path /repository \) -prune -o -name __pycache__ -prune -o -printf '%y %m %u:%g %p %l\n' |
        grep -Ev ' (/etc/(passwd|group|gshadow|shadow|subuid|subgid)-?|/etc/\.pwd\.lock|/etc/ld\.so\.cache|/etc/apt/sources\.list\.d/contigo\.list) ' | sort
}

without_headers() {
    mkdir -p /lib/modules/6.1.0-0-none/kernel
    apt install contigo-dkms 2>&1 | tee /tmp/said
    configured contigo-dkms && grep -q 'no module for 6.1.0-0-none, because its headers are not here' /tmp/said &&
        grep -q 'apt install linux-headers-6.1.0-0-none' /tmp/said
}
no_kernel() {
    rm -rf /lib/modules
    apt install contigo-dkms 2>&1 | tee /tmp/said
    configured contigo-dkms && grep -q 'no kernel and no headers are here' /tmp/said
}
if [ "$part" = without-headers ]; then
    repository "$version" >/dev/null || { echo "no lists"; exit 1; }
    if [ "$arch" != "$host" ]; then
        skip "contigo-dkms without headers: it is the same package for each processor"
    else
        check "contigo-dkms without a kernel reports it, and is configured" no_kernel
        apt purge contigo-dkms >/dev/null
        check "contigo-dkms without headers names them, and is configured" without_headers
        apt purge contigo-dkms >/dev/null
        rm -rf /lib/modules/6.1.0-0-none
    fi
    echo "@end"
    exit
fi

# The needs of the packages come first, so that the list of files before them has those.
prepare() {
    local headers=()
    [ "$arch" != "$host" ] || headers=(dkms "linux-headers-$(grep -qi ubuntu /etc/os-release && echo generic || echo "$arch")")
    apt install python3 python3-numpy udev systemd gcc libc6-dev pkg-config cmake make "${headers[@]}"
}
info() { contigo info && contigo doctor --help >/dev/null && contigo --version; }
board_tests() { contigo-board-tests --help && contigo-board-tests --list >/dev/null; }
manual() {
    local command
    for command in $(contigo --help | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p'); do
        [ "$command" = help ] || zcat /usr/share/man/man1/contigo.1.gz | grep -qx "\.B $command" || { echo "contigo.1 lacks $command"; return 1; }
    done
}
python() {
    python3 -c 'import contigo, importlib.metadata as of; print(contigo.__file__); assert of.version("contigo") == "'"$version"'"' &&
        (cd /src && python3 first.py)
}
by_pkg_config() {
    # shellcheck disable=SC2046 # flags
    (cd /src && cc -std=c11 kernel.c $(pkg-config --cflags --libs contigo) -o kernel && ./kernel &&
        readelf -d kernel | grep -q 'libcontigo.so.2')
}
by_cmake() {
    mkdir -p /src/cmake
    cat >/src/cmake/CMakeLists.txt <<'CMAKE'
cmake_minimum_required(VERSION 3.10)
project(kernel C)
find_package(contigo REQUIRED)
add_executable(shared ../kernel.c)
target_link_libraries(shared contigo::contigo)
add_executable(static ../kernel.c)
target_link_libraries(static contigo::static)
CMAKE
    cmake -S /src/cmake -B /src/cmake/built && cmake --build /src/cmake/built && (cd /src && cmake/built/shared && cmake/built/static) &&
        ! ldd /src/cmake/built/static | grep -q libcontigo
}
group() { getent group dma; }
# The kernel of the headers, which is not the one that runs.
kernel() { ls /lib/modules | grep -v none | tail -1; }
module() {
    dkms status && modinfo -k "$(kernel)" contigo && [ "$(modinfo -k "$(kernel)" -F version contigo)" = "$(sed -n 's/^PACKAGE_VERSION="\(.*\)"/\1/p' /usr/src/contigo-*/dkms.conf)" ] &&
        [[ "$(modinfo -k "$(kernel)" -F vermagic contigo)" = "$(kernel) "* ]]
}
overlays() {
    local overlay
    for overlay in /usr/share/contigo/overlays/{pynq-z2,de10-nano,kv260}.dtbo; do
        [ "$(od -An -tx1 -N4 "$overlay" | tr -d ' ')" = d00dfeed ] || return
    done
}
install_all() { apt install "${mine[@]}" && all_configured; }
upgrade() {
    echo "options contigo unprivileged=1" >>/etc/modprobe.d/contigo.conf
    repository "$next" && apt install --only-upgrade "${mine[@]}" && all_configured &&
        [ "$(dpkg-query -W -f='${Version}\n' "${mine[@]}" | sort -u)" = "$next" ] &&
        grep -q '^options contigo unprivileged=1' /etc/modprobe.d/contigo.conf && contigo --version && { [ "$arch" != "$host" ] || module; }
}
remove() {
    apt remove "${mine[@]}" && [ ! -e /usr/bin/contigo ] && [ -e /etc/modprobe.d/contigo.conf ] &&
        [ -z "$(find /lib/modules -name 'contigo.ko*' 2>/dev/null)" ]
}
purge() { apt purge "${mine[@]}" && files >/tmp/after && diff /tmp/before /tmp/after; }

repository "$version" >/dev/null || { echo "no lists"; exit 1; }
prepare >/tmp/prepared 2>&1 || { tail -20 /tmp/prepared; echo "what the packages need cannot be had"; exit 1; }
if [ "$arch" != "$host" ]; then mine=(contigo libcontigo2 libcontigo-dev python3-contigo contigo-overlays); fi
# A kernel that was installed has its index of modules. Headers alone have none, and DKMS makes it.
for folder in /lib/modules/*/; do [ ! -e "$folder/build" ] || depmod "$(basename "$folder")"; done
files >/tmp/before
check "all packages install, and are configured" install_all
check "contigo info" info
check "contigo-board-tests --help" board_tests
check "the manual page has each command" manual
check "Python: its version, and a job on the simulated board" python
check "C by pkg-config: a job on the simulated board" by_pkg_config
check "C by CMake, shared and static" by_cmake
check "the group dma is there" group
if udevadm verify --help >/dev/null 2>&1; then
    check "udevadm verify takes the rules" udevadm verify /usr/lib/udev/rules.d/60-contigo.rules
else
    skip "udevadm of this suite has no verify"
fi
if [ "$arch" = "$host" ]; then
    check "DKMS built the module for $(kernel)" module
else
    skip "the module for $arch: kernel-helpers/module/matrix builds it across"
fi
check "the overlays are there" overlays
check "an upgrade keeps the administrator's file" upgrade
check "removed: no program and no module, the administrator's file stays" remove
check "purged: not a file is left" purge
check "the group stays, as Debian's policy says" group
echo "@end"

#!/usr/bin/env bash
# The agent's own binary on a real Linux kernel with real I2C and SPI
# controllers, emulated by QEMU: it looks at every chip, writes a memory, and
# loads the buses from many goroutines while memory is collected.
#
#   ast2600-evb  armv7, a board controller: EEPROM and temperature on one bus,
#                a mux with a chip behind three of its ports on another
#   pins         the same board: edges of a pin answered by writes on a real bus,
#                each judged by the emulator's memory; lines that a controller
#                owns; a memory and a mux that drivers of the kernel have
#   imx8mp-evk   arm64: EEPROM and temperature on I2C, a flash on SPI
#   models       arm64: the kernel's own chip drivers on the simulator's register
#                models, which this kernel sees as USB adapters of I2C and as an
#                SPI controller; two of the drivers, which Debian's kernels leave
#                out, are built from its packages of the kernel's source
#
# Everything is fetched by apt into one folder and unpacked there: nothing is
# installed, no root is needed, the machine's own package lists are not
# touched. Where it cannot be had, this says why and is content.
#
#   latency      arm64: from an edge to the write that answers it
#
#   .ci/kernel.sh [ast2600|pins|imx8mp|models|latency ...]      SOAK=6000 EDGES=1000 RUNS=100 WORK=bin/kernel
set -euo pipefail
cd "$(dirname "$0")/.."
SOAK=${SOAK:-6000} EDGES=${EDGES:-1000} RUNS=${RUNS:-100}
mkdir -p "${WORK:=bin/kernel}"
W=$(realpath "$WORK")

skip() { echo "bench-kernel: skipped, $*"; exit 0; }

# --- packages -----------------------------------------------------------------

for c in apt-get apt-cache dpkg-deb dpkg; do command -v $c >/dev/null || skip "no $c: the emulator and the kernels come as Debian packages"; done
. /etc/os-release
[ "${ID:-}" = debian ] || skip "the packages are Debian's, this is ${PRETTY_NAME:-unknown}"
HOST=$(dpkg --print-architecture)
BACKPORTS=$VERSION_CODENAME-backports # QEMU 10, for imx8mp-evk, and the arm64 kernel
NEWER=trixie-backports                # whose kernel source has drivers/iio/adc/ti-ads7138.c

# unpack FILE FOLDER
unpack() { dpkg-deb -x "$1" "$W/$2" || { echo "$1 cannot be unpacked"; return 1; }; }

# fetch: an apt of our own, for the machine's architecture and the boards'.
fetch() {
  local mirror key suites
  mirror=$(cat /etc/apt/sources.list.d/*.sources 2>/dev/null | sed -n 's/^URIs: *\([^ ]*debian\)\/* *$/\1/p' | head -1)
  [ -n "$mirror" ] || mirror=$(sed -n 's/^deb \(\[[^]]*\] \)*\([^ ]*debian\)\/* .*/\2/p' /etc/apt/sources.list 2>/dev/null | head -1)
  [ -n "$mirror" ] || { echo "no Debian mirror in this machine's package sources"; return 1; }
  key=/usr/share/keyrings/debian-archive-keyring.gpg
  mkdir -p "$W"/apt/{state/lists/partial,cache/archives/partial} "$W/deb"
  suites="$VERSION_CODENAME $BACKPORTS"
  for s in $suites; do echo "deb [signed-by=$key] $mirror $s main"; done > "$W/apt/sources.list"
  echo "deb [arch=$HOST signed-by=$key] $mirror $NEWER main" >> "$W/apt/sources.list"
  cat > "$W/apt/conf" <<X
Dir::Etc::SourceList "$W/apt/sources.list";
Dir::Etc::SourceParts "-";
Dir::State "$W/apt/state";
Dir::State::status "/var/lib/dpkg/status";
Dir::Cache "$W/apt/cache";
APT::Architectures { "$HOST"; "armhf"; "arm64"; };
APT::Sandbox::User "";
Acquire::Languages "none";
Acquire::Retries "2";
APT::Update::Error-Mode "any";
Debug::NoLocking "1";
X
  export APT_CONFIG=$W/apt/conf
  apt-get update -qq || { echo "the package lists cannot be had"; return 1; }
  # What of it this machine has not got yet. It is unpacked, not installed.
  apt-get -qq -y -t "$BACKPORTS" --no-install-recommends --no-remove --download-only install \
    qemu-system-arm device-tree-compiler cpio || { echo "QEMU cannot be had"; return 1; }
  local armmp arm64
  armmp=$(apt-cache depends linux-image-armmp:armhf | sed -n 's/.*Depends: \(linux-image-[^ ]*\).*/\1/p' | head -1)
  arm64=$(apt-cache -o APT::Default-Release="$BACKPORTS" depends linux-image-arm64:arm64 | sed -n 's/.*Depends: \(linux-image-[^ ]*\).*/\1/p' | head -1)
  [ -n "$armmp" ] && [ -n "$arm64" ] || { echo "no kernel packages for armhf and arm64"; return 1; }
  (cd "$W/deb" && apt-get -qq download "$armmp" "$arm64" busybox-static:armhf busybox-static:arm64) || { echo "the kernels cannot be had"; return 1; }
  for f in "$W"/apt/cache/archives/*.deb; do [ ! -f "$f" ] || unpack "$f" tools || return 1; done
  for a in armhf arm64; do
    for f in "$W"/deb/*_"$a".deb; do unpack "$f" "$a" || return 1; done
    for f in bin/busybox "boot/vmlinuz-*" "lib/modules/*/kernel"; do
      compgen -G "$W/$a/$f" >/dev/null || { ls "$W/deb" "$W/$a"; echo "what came of $a's packages has no $f"; return 1; }
    done
  done
  echo "${arm64#linux-image-}" | sed 's/:.*//' > "$W/arm64.release"
  rm -rf "$W/deb" "$W/apt/cache/archives"
}

# drivers: what it takes to build drivers for the arm64 kernel: its headers, a
# compiler of its kind, and two files of the kernel's source.
drivers() {
  local rel kind gcc src f D=$W/arm64/drivers
  rel=$(cat "$W/arm64.release") kind=
  export APT_CONFIG=$W/apt/conf
  mkdir -p "$W"/apt/cache/archives/partial "$W/deb" "$D"
  gcc=$(apt-cache depends "linux-headers-$rel:arm64" | sed -n 's/.*Depends: \(gcc-[0-9]*\).*/\1/p' | head -1)
  [ -n "$gcc" ] || { echo "no headers of the arm64 kernel"; return 1; }
  [ "$HOST" = arm64 ] || kind=-aarch64-linux-gnu
  apt-get -qq -y -t "$BACKPORTS" --no-install-recommends --no-remove --download-only install "$gcc$kind" "linux-kbuild-${rel%-arm64}:$HOST" make || { echo "no $gcc for arm64"; return 1; }
  src=$(apt-cache -o APT::Default-Release="$NEWER" depends linux-source | sed -n 's/.*Depends: \(linux-source-.*\)/\1/p' | head -1)
  (cd "$W/deb" && apt-get -qq -t "$NEWER" download "$src" && apt-get -qq -t "$BACKPORTS" download "linux-headers-$rel:arm64" "linux-headers-${rel%-arm64}-common") || { echo "the kernel's headers and source cannot be had"; return 1; }
  for f in "$W"/apt/cache/archives/*.deb "$W"/deb/linux-headers-*.deb; do [ ! -f "$f" ] || unpack "$f" tools || return 1; done
  dpkg-deb --fsys-tarfile "$W/deb/$src"_*.deb | tar -xO --wildcards './usr/src/linux-source-*.tar.xz' |
    tar -xJ -C "$D" --strip-components=4 --wildcards '*/drivers/iio/adc/ti-ads7138.c' '*/drivers/iio/dac/ltc2688.c' || { echo "no such drivers in $src"; return 1; }
  sed -i "s|^include .*|include $W/tools/usr/src/linux-headers-${rel%-arm64}-common/Makefile|" "$W/tools/usr/src/linux-headers-$rel/Makefile"
  echo "$gcc" > "$W/arm64.compiler"; echo "$src" > "$W/arm64.source"
  rm -rf "$W/deb" "$W/apt/cache/archives"
}

for try in 1 2 3; do
  [ ! -f "$W/.kernels" ] || break
  rm -rf "$W/tools" "$W/armhf" "$W/arm64" "$W/deb" "$W/apt"; mkdir -p "$W/tools"
  echo "bench-kernel: fetching QEMU and two kernels into $W"
  if why=$(fetch 2>&1); then touch "$W/.kernels"; break; fi
  printf '%s\n' "$why" | tail -20 >&2
  [ $try != 3 ] || skip "$(printf '%s\n' "$why" | tail -1)"
  sleep 5
done
T=$W/tools
export PATH=$T/usr/bin:$T/bin:$PATH
LIBS=$(find "$T" -name 'lib*.so*' -printf '%h\n' | sort -u | paste -sd:)
QMOD=$(find "$T/usr/lib" -path '*-linux-gnu*/qemu' -type d 2>/dev/null | head -1)
SHARE=(); [ -d "$T/usr/share/qemu" ] && SHARE=(-L "$T/usr/share/qemu")
tool() { LD_LIBRARY_PATH=$LIBS "$@"; }
emulate() { LD_LIBRARY_PATH=$LIBS QEMU_MODULE_DIR=$QMOD timeout "${LIMIT:-300}" "$@"; }
emulate qemu-system-aarch64 --version >/dev/null || skip "QEMU does not run here"
emulate qemu-system-aarch64 -M help | grep -q imx8mp-evk || skip "QEMU knows no imx8mp-evk: version 10 or later is needed"

# --- parts --------------------------------------------------------------------

# memory FILE TEXT: 8 KiB with the identity of serial number QEMU01 (hal.Identity)
# and then TEXT and a count, so that no two places look alike.
memory() {
  { printf 'OCST\001\006QEMU01'; head -c 18 /dev/zero; printf '\x6d\xdd'; seq -f "$2 %06g" 1 900; } | head -c 8192 > "$1"
  [ "$(stat -c %s "$1")" = 8192 ]
}

# initrd ARCH OUT "MODULES" COMMAND FILES [PROGRAM]: busybox, the modules, the
# program (the agent); the command runs once the files are there.
initrd() {
  local d m f load=; d=$(mktemp -d); mkdir -p "$d"/{bin,proc,sys,dev,lib,tmp,sbin,usr/bin,usr/sbin}
  cp "$W/$1/bin/busybox" "$d/bin/busybox"; cp "$W/${6:-ocs-agent}-$1" "$d/bin/${6:-ocs-agent}"
  for m in $3; do
    f=$(find "$W/$1" -name "$m.ko*" | head -1)
    [ -n "$f" ] || { echo "bench-kernel: no module $m in the $1 kernel" >&2; return 1; }
    case $f in *.xz) xz -dc "$f" ;; *) cat "$f" ;; esac > "$d/lib/$m.ko"; load+="insmod /lib/$m.ko"$'\n'
  done
  cat > "$d/init" <<X
#!/bin/busybox sh
/bin/busybox --install -s
export PATH=/bin:/sbin:/usr/bin:/usr/sbin
mount -t proc p /proc; mount -t sysfs s /sys; mount -t devtmpfs d /dev 2>/dev/null
$load
n=0; while ! ls $5 >/dev/null 2>&1 && [ \$n -lt 50 ]; do n=\$((n+1)); usleep 100000; done
echo "kernel \$(uname -r) \$(uname -m), \$(nproc) CPUs, up \$(cut -d' ' -f1 /proc/uptime) s"
cd /tmp; $4
echo "exit \$?"
sync; reboot -f
X
  chmod +x "$d/init"; ln -s busybox "$d/bin/sh"
  (cd "$d" && find . | tool cpio -o -H newc --quiet | gzip -1) > "$2"; rm -rf "$d"
}

# warm PIPE COMMAND...: tell the emulator's monitor, once it listens.
warm() { local p=$1 l; shift; for l in "$@"; do echo "$l"; done > "$p.in" & }

# judge BOARD LOG LINE...: every LINE must be in the log, and the agent content.
judge() {
  local board=$1 log=$2 l bad=0; shift 2
  sed 's/\r$//; s/^/  /' "$log"
  for l in "exit 0" "$@"; do
    grep -qF -- "$l" "$log" || { echo "bench-kernel: $board: no \"$l\"" >&2; bad=1; }
  done
  return $bad
}

# --- boards -------------------------------------------------------------------

ast2600() {
  local K=$W/armhf L=$W/ast2600.log M=$W/ast2600.mon sum
  GOOS=linux GOARCH=arm GOARM=7 CGO_ENABLED=0 ${GO:-go} build -trimpath -ldflags '-s -w' -o "$W/ocs-agent-armhf" ./cmd/ocs-agent || return 1
  memory "$W/ee0.img" first; memory "$W/ee1.img" other
  sum=$(head -c 1024 "$W/ee0.img" | sha256sum | cut -c1-16)
  initrd armhf "$W/ast2600.gz" "gpio-aspeed i2c-aspeed i2c-dev" "ocs-agent selftest -bus-soak $SOAK -deadline 30s -write \
    -chip eeprom=/dev/i2c-0@0x50 -chip temp=/dev/i2c-0@0x48 -chip absent=/dev/i2c-0@0x33 \
    -chip mux=/dev/i2c-1@0x70 -chip temp=/dev/i2c-1@0x4c/0x70.0 -chip temp=/dev/i2c-1@0x4c/0x70.2 \
    -chip eeprom=/dev/i2c-1@0x51/0x70.3 -chip absent=/dev/i2c-1@0x4c/0x70.1" "/dev/i2c-1" || return 1
  rm -f "$M".*; mkfifo "$M.in" "$M.out"
  warm "$M" "qom-set /machine/peripheral/t0 temperature 71500" "qom-set /machine/peripheral/t1 temperature -5500" "qom-set /machine/peripheral/t2 temperature 33000"
  emulate qemu-system-arm "${SHARE[@]}" -M ast2600-evb -display none -serial stdio -no-reboot -chardev "pipe,id=mon,path=$M" -mon chardev=mon,mode=readline \
    -kernel "$(ls "$K"/boot/vmlinuz-*)" -dtb "$(find "$K" -name aspeed-ast2600-evb.dtb)" -initrd "$W/ast2600.gz" \
    -append "console=ttyS4,115200n8 rdinit=/init panic=1 quiet" \
    -drive "if=none,id=e0,format=raw,file=$W/ee0.img" -device at24c-eeprom,bus=aspeed.i2c.bus.0,address=0x50,rom-size=8192,drive=e0 \
    -device tmp105,id=t0,bus=aspeed.i2c.bus.0,address=0x48 \
    -device pca9548,id=mux,bus=aspeed.i2c.bus.1,address=0x70 -device tmp105,id=t1,bus=i2c.0,address=0x4c -device tmp105,id=t2,bus=i2c.2,address=0x4c \
    -drive "if=none,id=e1,format=raw,file=$W/ee1.img" -device at24c-eeprom,bus=i2c.3,address=0x51,rom-size=8192,drive=e1 > "$L" </dev/null || true
  judge ast2600-evb "$L" "0 errors, 0 wrong reads" "$sum, serial number QEMU01" "71.5000 C" "-5.5000 C" "33.0000 C" "8 channels" \
    "0x33: address not acknowledged" "restored" "linux/arm go"
}

# toggle MONITOR LOG IMAGE N: the pin goes up and down N times, each time after
# the memory has what the agent wrote of the last; who does not answer is told.
toggle() {
  local n level want
  until grep -q "answering" "$2"; do sleep 0.2; done
  for ((n = 1; n <= $4; n++)); do
    want=$((n % 2)); level=false; [ $want = 1 ] && level=true
    echo "qom-set /machine/soc/gpio gpioA0 $level"
    SECONDS=0
    until [ "$(od -An -tu1 -j4 -N1 "$3" | tr -d ' ')" = $want ]; do
      [ $SECONDS -lt 20 ] || { echo "edge $n: no answer within 20 s" >> "$2.host"; return; }
    done
  done
  echo "$4 edges, each with its own level in the memory" >> "$2.host"
}

pins() {
  local K=$W/armhf L=$W/pins.log M=$W/pins.mon D=$W/pins.dtb bus=/sys/bus/i2c/devices
  GOOS=linux GOARCH=arm GOARM=7 CGO_ENABLED=0 ${GO:-go} build -trimpath -ldflags '-s -w' -o "$W/ocs-agent-armhf" ./cmd/ocs-agent || return 1
  memory "$W/ee0.img" first; memory "$W/ee1.img" other; head -c 512 /dev/zero > "$W/latch.img"
  cp "$(find "$K" -name aspeed-ast2600-evb.dtb)" "$D"
  tool fdtput -t s "$D" /ahb/apb/gpio@1e780000 gpio-line-names LOS_LOOP0 || return 1
  cat > "$W/pins.sh" <<X
mount -t debugfs d /sys/kernel/debug
echo 24c64 0x50 > $bus/i2c-0/new_device; echo pca9548 0x70 > $bus/i2c-1/new_device
pin=\$(sed -n 's/^pin \([0-9]*\) .*: device 1e78a680.i2c-bus .*/\1/p' /sys/kernel/debug/pinctrl/*/pinmux-pins | tr '\n' ' ')
set -- \$pin
echo "pins of an I2C controller: \$1 \$2"
echo '{"board":{"kind":"linux","bundles":1,"modules":1,"buses":[{"device":"/dev/i2c-3","scl":{"chip":"gpiochip0","offset":'\$1'},"sda":{"chip":"gpiochip0","offset":'\$2'}},{"device":"/dev/spidev0."},{"device":"/dev/i2c-4"},{"device":"/dev/i2c-5"},{"device":"/dev/i2c-6"}]}}' > c.json
ocs-agent path set 0 dark -config c.json; echo "recovery lines: exit \$?"
ocs-agent selftest -bus-soak 10 -chip mux=/dev/i2c-1@0x70; echo "mux of the kernel: exit \$?"
ch() { basename \$(readlink $bus/1-0070/channel-\$1); }
(while [ ! -f over ]; do cat $bus/0-0050/eeprom | sha256sum | cut -c1-16; done | sort | uniq -c > kernel.txt; touch told) &
ocs-agent selftest -bus-soak $((SOAK/12)) -deadline 30s -chip eeprom=/dev/i2c-0@0x50 -chip temp=/dev/\$(ch 0)@0x4c -chip temp=/dev/\$(ch 2)@0x4c -chip eeprom=/dev/\$(ch 3)@0x51
echo "soak beside drivers: exit \$?"
touch over; while [ ! -f told ]; do usleep 100000; done
echo "read by the kernel's at24 meanwhile: \$(wc -l < kernel.txt) contents, times and sum \$(cat kernel.txt | tr -s ' ')"
ocs-agent selftest -edges $EDGES -deadline 30s -line LOS_LOOP0 -latch pca9535=/dev/i2c-2@0x20
X
  initrd armhf "$W/pins.gz" "gpio-aspeed i2c-aspeed i2c-dev i2c-mux i2c-mux-pca954x at24" "$(cat "$W/pins.sh")" "/dev/i2c-1" || return 1
  rm -f "$M".* "$L.host"; mkfifo "$M.in" "$M.out"; : > "$L"
  { echo "qom-set /machine/peripheral/t1 temperature -5500"; echo "qom-set /machine/peripheral/t2 temperature 33000"; toggle "$M" "$L" "$W/latch.img" "$EDGES"; exec sleep 600; } > "$M.in" & local host=$!
  emulate qemu-system-arm "${SHARE[@]}" -M ast2600-evb -display none -serial stdio -no-reboot -chardev "pipe,id=mon,path=$M" -mon chardev=mon,mode=readline \
    -kernel "$(ls "$K"/boot/vmlinuz-*)" -dtb "$D" -initrd "$W/pins.gz" -append "console=ttyS4,115200n8 rdinit=/init panic=1 quiet" \
    -drive "if=none,id=e0,format=raw,file=$W/ee0.img" -device at24c-eeprom,bus=aspeed.i2c.bus.0,address=0x50,rom-size=8192,drive=e0 \
    -drive "if=none,id=e2,format=raw,file=$W/latch.img" -device at24c-eeprom,bus=aspeed.i2c.bus.2,address=0x20,rom-size=512,address-size=1,drive=e2 \
    -device pca9548,id=mux,bus=aspeed.i2c.bus.1,address=0x70 -device tmp105,id=t1,bus=i2c.0,address=0x4c -device tmp105,id=t2,bus=i2c.2,address=0x4c \
    -drive "if=none,id=e1,format=raw,file=$W/ee1.img" -device at24c-eeprom,bus=i2c.3,address=0x51,rom-size=8192,drive=e1 > "$L" </dev/null || true
  kill $host 2>/dev/null || true
  cat "$L.host" >> "$L" 2>/dev/null || true
  judge pins "$L" "recovery lines: exit 1" "leave scl and sda out" "mux of the kernel: exit 1" "held by pca954x" "soak beside drivers: exit 0" \
    "at24 of the kernel reads it, too" "meanwhile: 1 contents" "$(sha256sum < "$W/ee0.img" | cut -c1-16)" \
    "$EDGES answered, 0 lost, 0 wrong" "$EDGES edges, each with its own level in the memory"
}

imx8mp() {
  local K=$W/arm64 L=$W/imx8mp.log M=$W/imx8mp.mon D=$W/imx8mp.dtb S sum
  GOOS=linux GOARCH=arm64 CGO_ENABLED=0 ${GO:-go} build -trimpath -ldflags '-s -w' -o "$W/ocs-agent-arm64" ./cmd/ocs-agent || return 1
  memory "$W/ee2.img" third
  sum=$(head -c 1024 "$W/ee2.img" | sha256sum | cut -c1-16)
  # A spidev where the board has a connector; the emulated controller has no DMA.
  cp "$(find "$K" -name imx8mp-evk.dtb)" "$D"
  S=$(tool fdtget "$D" /__symbols__ ecspi3) # where it is moves between kernels
  tool fdtput -t s "$D" $S status okay; tool fdtput -c "$D" $S/spidev@0; tool fdtput -t s "$D" $S/spidev@0 compatible rohm,dh2228fv
  tool fdtput -t x "$D" $S/spidev@0 reg 0; tool fdtput -t i "$D" $S/spidev@0 spi-max-frequency 20000000
  tool fdtput -d "$D" $S dmas; tool fdtput -d "$D" $S dma-names
  initrd arm64 "$W/imx8mp.gz" "imx2_wdt i2c-imx i2c-dev spi-imx" "ocs-agent selftest -bus-soak $SOAK -deadline 30s -write \
    -chip eeprom=/dev/i2c-0@0x50 -chip temp=/dev/i2c-0@0x48 -chip absent=/dev/i2c-0@0x33 -chip flash=\$(ls /dev/spidev* | head -1)" "/dev/i2c-0 /dev/spidev*" || return 1
  rm -f "$M".*; mkfifo "$M.in" "$M.out"
  warm "$M" "qom-set /machine/peripheral/t0 temperature 71500"
  # Time in this guest is its instructions: its I2C waits for interrupts by the
  # clock, and a host that is busy elsewhere must not look like a bus that hangs.
  emulate qemu-system-aarch64 "${SHARE[@]}" -M imx8mp-evk -smp 2 -m 1G -icount shift=3 -display none -serial null -serial stdio -no-reboot \
    -chardev "pipe,id=mon,path=$M" -mon chardev=mon,mode=readline \
    -kernel "$(ls "$K"/boot/vmlinuz-*)" -dtb "$D" -initrd "$W/imx8mp.gz" -append "console=ttymxc1,115200 rdinit=/init panic=1 quiet" \
    -drive "if=none,id=e0,format=raw,file=$W/ee2.img" -device at24c-eeprom,bus=i2c-bus.0,address=0x50,rom-size=8192,drive=e0 \
    -device tmp105,id=t0,bus=i2c-bus.0,address=0x48 -device sst25vf016b,bus=spi,cs=0 > "$L" </dev/null || true
  # What its driver reports of an address that nobody acknowledges is a timeout.
  judge imx8mp-evk "$L" "0 errors, 0 wrong reads" "$sum, serial number QEMU01" "71.5000 C" "JEDEC number bf 25 41" "0x33: " "restored" "linux/arm64 go"
}

# built: ltc2688, ti-ads7138 and the SPI controller that is a process, as modules
# of the arm64 kernel. The ADC's driver is newer than the kernel: of what it says
# to it one argument has changed its type, from int to bool.
built() {
  local why D=$W/arm64/drivers
  if [ ! -f "$W/.drivers" ]; then
    echo "bench-kernel: fetching a compiler, the kernel's headers and source into $W"
    if ! why=$(drivers 2>&1); then echo "bench-kernel: models: without ltc2688 and ads7138, $(printf '%s\n' "$why" | tail -1)"; return 1; fi
    touch "$W/.drivers"
  fi
  LIBS=$(find "$T" -name 'lib*.so*' -printf '%h\n' | sort -u | paste -sd:)
  cp .ci/kernel/spi_relay.c "$D/"; echo 'obj-m := ti-ads7138.o ltc2688.o spi_relay.o' > "$D/Makefile"
  echo "$(cat "$W/arm64.source"): ltc2688.c $(sha256sum < "$D/ltc2688.c" | cut -c1-16), ti-ads7138.c $(sha256sum < "$D/ti-ads7138.c" | cut -c1-16)"
  tool make -s -C "$T/usr/src/linux-headers-$(cat "$W/arm64.release")" M="$D" ARCH=arm64 CROSS_COMPILE=aarch64-linux-gnu- CC="aarch64-linux-gnu-$(cat "$W/arm64.compiler")" \
    KCFLAGS="-Wno-incompatible-pointer-types" CONFIG_DEBUG_INFO_BTF_MODULES= modules > "$W/drivers.log" 2>&1 ||
    { tail -5 "$W/drivers.log"; echo "bench-kernel: models: without ltc2688 and ads7138, they do not compile for $(cat "$W/arm64.release")"; return 1; }
}

models() {
  local L=$W/models.log test=TestKernelDriversDriveTheModels more= dtb=() chips="at24 tmp102 ina219 latch" want=() c V=(-M virt -cpu cortex-a53 -smp 2 -m 1G -nic none -display none)
  GOOS=linux GOARCH=arm64 CGO_ENABLED=0 ${GO:-go} test -c -trimpath -ldflags '-s -w' -o "$W/models-arm64" ./sim || return 1
  if built; then
    more="fixed spi_relay ltc2688 ti-ads7138" chips+=" ads7138 ltc2688"
    tool dtc -q -I dts -O dtb -o "$W/models.dtbo" .ci/kernel/models.dtso
    emulate qemu-system-aarch64 "${SHARE[@]}" "${V[@]}" -M dumpdtb="$W/virt.dtb" 2>/dev/null
    tool fdtoverlay -i "$W/virt.dtb" -o "$W/models.dtb" "$W/models.dtbo" || return 1
    dtb=(-dtb "$W/models.dtb")
  fi
  for c in $chips; do want+=("--- PASS: $test/$c"); done
  initrd arm64 "$W/models.gz" "usb-common usbcore usbip-core vhci-hcd i2c-tiny-usb i2c-mux i2c-mux-pca954x at24 tmp102 industrialio kfifo_buf ina2xx-adc $more" \
    "RINGLIGHT_VHCI=1 models -test.v -test.run KernelDrivers" "/sys/devices/platform/vhci_hcd.0/attach" models || return 1
  emulate qemu-system-aarch64 "${SHARE[@]}" "${V[@]}" -serial stdio -no-reboot "${dtb[@]}" \
    -kernel "$(ls "$W"/arm64/boot/vmlinuz-*)" -initrd "$W/models.gz" -append "console=ttyAMA0 rdinit=/init panic=1 quiet" > "$L" </dev/null || true
  judge models "$L" "${want[@]}"
}

# latency: what `make bench-latency` measures, in a kernel of its own with nothing
# else in it: the path of an answer, not the time of an emulated processor.
latency() {
  local L=$W/latency.log load
  GOOS=linux GOARCH=arm64 CGO_ENABLED=0 ${GO:-go} test -c -trimpath -ldflags '-s -w' -o "$W/latency-arm64" ./agent || return 1
  initrd arm64 "$W/latency.gz" "" "for load in idle alloc; do RINGLIGHT_LATENCY=$RUNS RINGLIGHT_LOAD=\$load latency -test.run TestLatencyOfAnAnswer -test.v -test.timeout 200s; done" "/proc/self" latency || return 1
  emulate qemu-system-aarch64 "${SHARE[@]}" -M virt -cpu cortex-a53 -smp 2 -m 1G -nic none -display none -serial stdio -no-reboot \
    -kernel "$(ls "$W"/arm64/boot/vmlinuz-*)" -initrd "$W/latency.gz" -append "console=ttyAMA0 rdinit=/init panic=1 quiet" > "$L" </dev/null || true
  judge latency "$L" "load idle" "load alloc"
}

bad=0
[ $# -gt 0 ] || set -- ast2600 pins imx8mp models latency
for b in "$@"; do
  case $b in ast2600|pins|imx8mp|models|latency) ;; *) echo "kernel.sh: board $b: want ast2600, pins, imx8mp, models or latency" >&2; exit 2;; esac
  echo "== $b"; began=$SECONDS
  how=passed
  $b || { bad=1 how=FAILED; }
  echo "bench-kernel: $b $how, $((SECONDS-began)) s"
done
exit $bad

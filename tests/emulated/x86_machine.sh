#!/usr/bin/env bash
# Runs a program of this machine on another x86 processor, which Bochs emulates instruction by
# instruction (some 50 million a second): qemu has no AVX-512.
#
#   x86_machine.sh FOLDER MODEL PROGRAM [ARGUMENTS]
#
# MODEL is a processor that `bochs --help cpu` lists. FOLDER keeps Debian's kernel, which boots from
# a CD with the program and its libraries in memory, and what the machine wrote: FOLDER/MODEL.log.
# Environment of the program: what GUEST_ENVIRONMENT lists (NAME=VALUE NAME=VALUE). Exits as it does;
# 1 when the machine stops first, or has not after GUEST_SECONDS (7200). FOLDER's name has no spaces.
set -euo pipefail
[ $# -ge 3 ] || {
    echo "usage: $0 FOLDER MODEL PROGRAM [ARGUMENTS]" >&2
    exit 2
}
mkdir -p "$1"
folder=$(realpath "$1")
model=$2
program=$(realpath "$3")
shift 3

fetch_kernel() {
    local package
    [ ! -d "$folder/kernel" ] || return 0
    package=$(apt-cache depends linux-image-cloud-amd64 | awk '/Depends:/ { print $2; exit }')
    rm -rf "$folder/kernel.unpacking" "$folder"/linux-image-*.deb
    (cd "$folder" && apt-get download -qq -o APT::Sandbox::User=root "$package")
    dpkg -x "$folder"/linux-image-*.deb "$folder/kernel.unpacking"
    rm "$folder"/linux-image-*.deb
    mv "$folder/kernel.unpacking" "$folder/kernel"
}

# What the machine finds in its memory: the program, the libraries it names, and what starts it.
fill_root() {
    local root=$1 library
    shift
    mkdir -p "$root/bin" "$root/dev" "$root/proc" "$root/tmp" "$root/run"
    cp "$(command -v busybox)" "$root/bin/busybox"
    strip -o "$root/run/program" "$program"
    for library in $(ldd "$program" | grep -oE '/[^ ]+ \(0x' | cut -d' ' -f1); do
        mkdir -p "$root$(dirname "$library")"
        cp -L "$library" "$root$library"
    done
    # Bochs loses the end of its log when the machine is switched off: empty lines, which nobody
    # misses.
    {
        echo '#!/bin/busybox sh'
        echo '/bin/busybox mount -t proc proc /proc; /bin/busybox mount -t devtmpfs dev /dev'
        echo 'cd /run'
        # glibc binds late between XSAVEC and XRSTOR, which stops programs here, too.
        echo "/bin/busybox env -i HOME=/tmp LD_BIND_NOW=1 ${GUEST_ENVIRONMENT:-} ./program ${*@Q} 2>&1"
        echo 'status=$?; echo; echo "the program exited with $status"'
        echo '/bin/busybox yes "" | /bin/busybox head -n 9000'
        echo '/bin/busybox poweroff -f'
    } >"$root/init"
    chmod +x "$root/init"
    (cd "$root" && find . | cpio --quiet -o -H newc)
}

make_cd() {
    local iso=$1
    cp "$folder"/kernel/boot/vmlinuz-* "$iso/linux"
    cp /usr/lib/ISOLINUX/isolinux.bin /usr/lib/syslinux/modules/bios/ldlinux.c32 "$iso"
    # Bochs 2.7 says other sizes of what XSAVE keeps than its XSAVEC has, and kernels that use the
    # latter, and more of Ice Lake's features, stop: programs still find them in CPUID. Numbers are
    # Linux's: XSAVEC, XSAVES, PKU, RDPID, FSRM, UMIP, PCID, INVPCID, VAES, SHA.
    cat >"$iso/isolinux.cfg" <<EOF
default reef
label reef
  kernel /linux
  initrd /initrd
  append console=ttyS0 quiet nokaslr mitigations=off tsc=reliable lpj=4000000 nosmp nopku noxsaves clearcpuid=321,323,515,534,580,514,145,298,521,317 spectre_v2=off nopti panic=-1
EOF
    xorriso -report_about WARNING -as mkisofs -o "$work/cd.iso" -b isolinux.bin -c boot.cat \
        -no-emul-boot -boot-load-size 4 -boot-info-table "$iso"
}

boot() {
    cat >"$work/bochsrc" <<EOF
plugin_ctrl: unmapped=true, biosdev=true, serial=true
display_library: term
cpu: model=$model, count=1, ips=100000000, reset_on_triple_fault=0
memory: guest=2048, host=2048
romimage: file=/usr/share/bochs/BIOS-bochs-latest
vgaromimage: file=/usr/share/vgabios/vgabios.bin
pci: enabled=1, chipset=i440fx
ata0: enabled=1, ioaddr1=0x1f0, ioaddr2=0x3f0, irq=14
ata0-master: type=cdrom, path="$work/cd.iso", status=inserted
boot: cdrom
com1: enabled=1, mode=file, dev=$log
log: $work/bochs.log
panic: action=fatal
error: action=report
info: action=ignore
debug: action=ignore
EOF
    # Debian's is the one with a debugger, which waits for a command; its screen wants a terminal.
    echo c >"$work/commands"
    TERM=vt100 timeout "${GUEST_SECONDS:-7200}" script -qfc \
        "bochs -q -rc $work/commands -f $work/bochsrc" "$work/screen" </dev/null >/dev/null 2>&1 || true
}

fetch_kernel
work=$(mktemp -d "$folder/work.XXXXXX")
trap 'rm -rf "$work"' EXIT
log=$folder/$model.log
: >"$log"
mkdir "$work/iso"
fill_root "$work/root" "$@" >"$work/iso/initrd"
make_cd "$work/iso"
echo "booting a $model; $log grows meanwhile" >&2
boot
sed -n '/^the program exited with/q; s/\r//g; p' "$log"
status=$(sed -n 's/\r//g; s/^the program exited with //p' "$log")
[ -n "$status" ] || {
    echo "$0: the machine stopped before the program did; its log: $log" >&2
    tail -qn 5 "$work/bochs.log" "$work/screen" >&2 || true
    exit 1
}
exit "$status"

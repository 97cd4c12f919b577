use contigo_bringup::board::Board;
use contigo_bringup::clocks::{self, Crystal};
use contigo_bringup::doctor::doctor;
use contigo_bringup::fpga::Fpga;
use contigo_bringup::machine::Machine;
use contigo_bringup::ports::{self, Cores};
use contigo_bringup::{power, resets};
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::Path;

/// Files that readers ask for, and folders that they list. The first ones are there from the
/// beginning, with the text behind them.
const FILES: [(&str, &str); 58] = [
    ("proc/meminfo", "MemTotal: 500000 kB\nCmaTotal: 65536 kB\n"),
    ("proc/sys/kernel/osrelease", "6.12.0\n"),
    ("proc/cmdline", "console=ttyPS0 cma=64M\n"),
    ("proc/zoneinfo", "Node 0, zone  Normal\n  spanned 131072\n  start_pfn:  0\n"),
    ("proc/interrupts", "           CPU0\n 45:    3     GIC-0  61 Level     uio\n"),
    ("proc/7/comm", "program\n"),
    ("proc/7/maps", "b6f00000-b6f10000 rw-s 40400000 00:06 31  /dev/uio0\n"),
    ("proc/self/status", "Uid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\nGroups:\t0\n"),
    ("sys/firmware/devicetree/base/compatible", "xlnx,zynq-7000\0"),
    ("sys/firmware/devicetree/base/amba/compatible", "simple-bus\0"),
    ("sys/firmware/devicetree/base/amba/ranges", ""),
    ("sys/firmware/devicetree/base/amba/uio@40400000/compatible", "generic-uio\0"),
    ("sys/firmware/devicetree/base/amba/uio@40400000/interrupts", "\0\0\0\0\0\0\0\x1d\0\0\0\x04"),
    ("sys/firmware/devicetree/base/amba/uio@40400000/clocks", "\0\0\0\x01\0\0\0\x0f"),
    ("sys/firmware/devicetree/base/amba/dma@40410000/compatible", "contigo,engine\0"),
    ("sys/firmware/devicetree/base/amba/clkc@100/compatible", "xlnx,ps7-clkc\0"),
    ("sys/firmware/devicetree/base/amba/clkc@100/phandle", "\0\0\0\x01"),
    ("sys/firmware/devicetree/base/amba/clkc@100/#clock-cells", "\0\0\0\x01"),
    ("sys/firmware/devicetree/base/udmabuf0/compatible", "ikwzm,u-dma-buf\0"),
    ("sys/firmware/devicetree/base/reserved-memory/pool@10000000/reg", "\x10\0\0\0\0\x10\0\0"),
    ("sys/class/uio/uio0/name", "uio\n"),
    ("sys/class/uio/uio0/maps/map0/addr", "0x40400000\n"),
    ("sys/class/u-dma-buf/udmabuf0/size", "1048576\n"),
    ("sys/class/u-dma-buf/udmabuf0/phys_addr", "0x10000000\n"),
    ("sys/class/contigo/40410000.dma/device/of_node/compatible", "contigo,engine\0"),
    ("sys/class/fpga_manager/fpga0/name", "Xilinx Zynq FPGA Manager\n"),
    ("sys/class/fpga_manager/fpga0/state", "operating\n"),
    ("sys/class/hwmon/hwmon0/name", "ina226\n"),
    ("sys/class/hwmon/hwmon0/power1_input", "1500000\n"),
    ("sys/kernel/debug/clk/clk_summary", " fclk0  1  1  0  100000000  0  0  50000  Y\n"),
    ("sys/bus/platform/devices/40400000.uio/driver_override", "\n"),
    ("sys/devices/system/cpu/cpufreq/policy0/scaling_governor", "performance\n"),
    ("sys/kernel/iommu_groups/0/type", "DMA\n"),
    ("etc/group", "root:x:0:\n"),
    // And these are not.
    ("proc/config.gz", ""),
    ("proc/self/limits", ""),
    ("proc/7/fd", ""),
    ("proc/driver/nvidia/version", ""),
    ("boot/config-6.12.0", ""),
    ("dev/mem", ""),
    ("dev/uio0", ""),
    ("dev/gpiochip0", ""),
    ("dev/i2c-0", ""),
    ("dev/dma_heap", ""),
    ("dev/vfio", ""),
    ("sys/class/uio/uio0/device/of_node", ""),
    ("sys/class/contigo/40410000.dma/device", ""),
    ("sys/class/contigo", ""),
    ("sys/class/hwmon", ""),
    ("sys/bus/platform/devices", ""),
    ("sys/bus/platform/devices/40400000.uio/of_node", ""),
    ("sys/bus/platform/devices/40400000.uio/driver", ""),
    ("sys/firmware/devicetree/base/amba/uio@40400000", ""),
    ("sys/firmware/devicetree/base/amba/uio@40400000/interrupts-extended", ""),
    ("sys/firmware/devicetree/base/amba", ""),
    ("sys/kernel/debug", ""),
    ("sys/kernel/mm/cma", ""),
    ("lib/firmware", ""),
];
/// Those of them that are there.
const THERE: usize = 34;
/// More than any reader reads.
const HUGE_BYTES: u64 = 1 << 42;
const SECRET: &str = "outside-of-the-copy";
/// Deeper than a machine's folders are.
const DEEP: usize = 200;

/// Each step is a file and what becomes of it: two bytes, and those of its contents.
pub fn run(bytes: &[u8]) {
    let place =
        tempfile::tempdir_in(if Path::new("/dev/shm").is_dir() { "/dev/shm" } else { "/tmp" })
            .expect("a folder");
    let (copy, outside) = (place.path().join("copy"), place.path().join("outside"));
    for (file, text) in &FILES[..THERE] {
        put(&copy.join(file), text.as_bytes());
    }
    put(&outside.join("secret"), SECRET.as_bytes());
    mkfifo(&outside.join("pipe"), Mode::S_IRWXU).expect("a pipe");
    let mut rest = bytes;
    for _ in 0..64 {
        let [file, kind, tail @ ..] = rest else { break };
        rest = change(&copy, &outside, usize::from(*file), *kind, tail);
    }
    let seen = Inotify::init(InitFlags::IN_NONBLOCK).expect("inotify");
    for path in [outside.clone(), outside.join("secret"), outside.join("pipe")] {
        seen.add_watch(&path, AddWatchFlags::IN_ALL_EVENTS).expect("inotify");
    }
    look(&Machine::copy(&copy));
    assert!(seen.read_events().is_err(), "a file outside of the copy was used");
}

/// Every reader of a copied machine.
fn look(machine: &Machine) {
    let _ = Board::of(machine);
    for finding in doctor(machine).unwrap_or_default() {
        assert!(!finding.outcome.found.contains(SECRET), "{}", finding.check.id);
    }
    if let Ok(family) = ports::family(machine) {
        let _ = Cores::of(machine, family);
    }
    let _ = (
        ports::is_running(machine),
        ports::is_stopped(machine),
        ports::DevMem::open(machine, false).is_ok(),
    );
    let _ = (
        clocks::wanted(machine),
        clocks::clocks(machine).map_err(|error| error.to_string()),
        Crystal::of(machine),
    );
    let _ = resets::lines(machine).map_err(|error| error.to_string());
    for rail in power::rails(machine) {
        let _ =
            rail.open().and_then(|mut gauge| gauge.microwatts()).map_err(|error| error.to_string());
    }
    match Fpga::find(machine, None, None) {
        Ok(fpga) => drop((
            fpga.state(),
            fpga.bridges().len(),
            fpga.users().map_err(|error| error.to_string()),
        )),
        Err(error) => drop(error.to_string()),
    }
}

fn put(path: &Path, bytes: &[u8]) {
    fs::create_dir_all(path.parent().expect("a path in a folder"))
        .and_then(|()| fs::write(path, bytes))
        .expect("a file");
}

/// Makes a file of the copy into something else; the bytes that are left.
fn change<'a>(copy: &Path, outside: &Path, file: usize, kind: u8, rest: &'a [u8]) -> &'a [u8] {
    let path = copy.join(FILES[file % FILES.len()].0);
    let parent = path.parent().expect("a path in a folder");
    // A link that an earlier step made on the way leads this one elsewhere: nothing is put there.
    let goes_on = |above: &Path| above.symlink_metadata().map_or(true, |about| about.is_dir());
    if !parent.ancestors().take_while(|above| above.starts_with(copy)).all(goes_on) {
        return rest;
    }
    let _ = if path.is_dir() && !path.is_symlink() {
        fs::remove_dir_all(&path)
    } else {
        fs::remove_file(&path)
    };
    let _ = fs::create_dir_all(parent);
    let up = || "../".repeat(path.components().count());
    let _ = match kind {
        0..=2 => symlink(outside.join(["secret", "pipe", ""][usize::from(kind)]), &path),
        3 => symlink(
            format!("{}{}/secret", up(), outside.strip_prefix("/").unwrap_or(outside).display()),
            &path,
        ),
        4 => symlink(path.file_name().expect("a name"), &path),
        5 => symlink("/", &path),
        6 => symlink("..", &path),
        7 => symlink("/dev/zero", &path),
        8 => symlink("/proc/self/root", &path),
        9 => mkfifo(&path, Mode::S_IRWXU).map_err(Into::into),
        10 => File::create(&path).and_then(|file| file.set_len(HUGE_BYTES)),
        11 => fs::create_dir_all(path.join("deep/".repeat(DEEP))),
        12 => fs::create_dir(&path),
        // Many names in one folder.
        13 => (0..200).try_for_each(|at| fs::create_dir_all(path.join(format!("{at}")))),
        14 => Ok(()),
        15..64 => symlink(Path::new("/").join(FILES[usize::from(kind) % FILES.len()].0), &path),
        64..128 => fs::write(&path, FILES[usize::from(kind) % THERE].1),
        128.. => {
            let (own, tail) = rest.split_at(usize::from(kind - 128).min(rest.len()));
            let _ = fs::write(&path, own);
            return tail;
        }
    };
    rest
}

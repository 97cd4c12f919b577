use contigo_bringup::board::Board;
use contigo_bringup::clocks::{self, Crystal};
use contigo_bringup::doctor::doctor;
use contigo_bringup::machine::Machine;
use contigo_bringup::ports::{self, Cores};
use contigo_bringup::resets;
use std::fs;
use std::path::Path;

/// Names that the readers ask for, by which a few bytes make a tree.
const NODES: [&str; 12] = [
    "amba",
    "soc@0",
    "dma@40400000",
    "clkc@f8000100",
    "fpga-region",
    "reserved-memory",
    "pool@10000000",
    "uio@43c00000",
    "cpus",
    "memory@0",
    "udmabuf0",
    "contigo@40000000",
];
const PROPERTIES: [&str; 18] = [
    "compatible",
    "status",
    "reg",
    "ranges",
    "#address-cells",
    "#size-cells",
    "dma-coherent",
    "phandle",
    "clocks",
    "clock-names",
    "clock-frequency",
    "interrupts",
    "interrupt-parent",
    "memory-region",
    "size",
    "dma-ranges",
    "assigned-clock-rates",
    "fclk-enable",
];
const VALUES: [&[u8]; 10] = [
    b"xlnx,zynq-7000\0",
    b"xlnx,zynqmp\0",
    b"altr,socfpga-cyclone5\0",
    b"simple-bus\0",
    b"generic-uio\0",
    b"ikwzm,u-dma-buf\0",
    b"contigo,engine\0",
    b"shared-dma-pool\0",
    b"okay\0",
    b"disabled\0",
];

/// Each step is a node and a property with its value: three bytes, and the value's own.
pub fn run(bytes: &[u8]) {
    let root =
        tempfile::tempdir_in(if Path::new("/dev/shm").is_dir() { "/dev/shm" } else { "/tmp" })
            .expect("a folder");
    let base = root.path().join("sys/firmware/devicetree/base");
    fs::create_dir_all(&base).expect("a folder");
    let (mut at, mut rest) = (base.clone(), bytes);
    for _ in 0..64 {
        let [node, property, value, tail @ ..] = rest else { break };
        rest = tail;
        at = match usize::from(*node) {
            up @ 0..=3 if up < 3 => at
                .ancestors()
                .nth(up)
                .filter(|path| path.starts_with(&base))
                .unwrap_or(&base)
                .to_owned(),
            node => at.join(NODES[node % NODES.len()]),
        };
        if at.components().count() > base.components().count() + 16 {
            at.clone_from(&base);
        }
        let file = at.join(PROPERTIES[usize::from(*property) % PROPERTIES.len()]);
        let value = match usize::from(*value) {
            known @ 0..128 => VALUES[known % VALUES.len()],
            long => {
                let (own, tail) = rest.split_at((long - 128).min(rest.len()));
                rest = tail;
                own
            }
        };
        let _ = fs::create_dir_all(&at).and_then(|()| fs::write(file, value));
    }
    let machine = Machine::copy(root.path());
    let _ = Board::of(&machine);
    let _ = doctor(&machine).map(drop).map_err(|error| error.to_string());
    if let Ok(family) = ports::family(&machine) {
        let _ = Cores::of(&machine, family);
    }
    let _ = (
        clocks::wanted(&machine),
        clocks::clocks(&machine).map_err(|error| error.to_string()),
        Crystal::of(&machine),
    );
    let _ = resets::lines(&machine).map_err(|error| error.to_string());
}

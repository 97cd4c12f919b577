//! Cores in Verilog.

use super::machine::{A_WHILE, FROM, FROM_PAGES, Machine, PAGE, TO, TO_PAGES, of_gates};
use std::thread;
use vfio_bindings::bindings::vfio::{
    VFIO_PCI_BAR2_REGION_INDEX, VFIO_PCI_CONFIG_REGION_INDEX, VFIO_PCI_MSI_IRQ_INDEX,
    VFIO_PCI_MSIX_IRQ_INDEX,
};

/// Starts a product whose end interrupts. A and B are the first page, bias is the second one, C
/// goes over both: 16 rows of 64 sums of 32 products, with GIE and IER.
fn start(machine: &mut Machine) {
    machine.fill(TO_PAGES, 0xEE);
    let pointers = [(0x10, FROM), (0x1C, FROM), (0x28, FROM + PAGE as u64), (0x34, TO + 2048)];
    for (at, addr) in pointers {
        machine.write(at, addr as u32);
        machine.write(at + 4, (addr >> 32) as u32);
    }
    for (at, value) in
        [(0x40, 16), (0x48, 64), (0x50, 32), (0x58, 1 << 9), (0x04, 1), (0x08, 1), (0x00, 1)]
    {
        machine.write(at, value);
    }
}

/// Its end, and C.
fn ended(machine: &mut Machine) {
    machine.interrupted();
    assert_eq!(
        (machine.read(0x00) & 2, machine.read(0x68), machine.read(0x78)),
        (2, 0, 4096),
        "CTRL, STATUS, BYTES_OUT"
    );
    machine.write(0x0C, 1);
    let to = machine.bytes(TO_PAGES);
    let sums = to[2048..6144].as_chunks::<4>().0;
    assert!(sums.iter().all(|sum| u32::from_le_bytes(*sum) == 0x0101_0101 + 32), "a sum is wrong");
    assert!(
        to[..2048].iter().chain(&to[6144..]).all(|byte| *byte == 0xEE),
        "a byte beside C changed"
    );
}

#[test]
fn verilog_core_multiplies_with_msi_x() {
    let Some(mut machine) = of_gates("gemm8", VFIO_PCI_MSIX_IRQ_INDEX) else { return };
    let mut capability = [0; 12];
    machine.client.region_read(VFIO_PCI_CONFIG_REGION_INDEX, 0x40, &mut capability).unwrap();
    assert_eq!(
        capability,
        [0x11, 0x60, 0, 0, 2, 0, 0, 0, 2, 8, 0, 0],
        "one message, whose table is BAR 2"
    );
    assert_eq!(
        machine.client.region(VFIO_PCI_BAR2_REGION_INDEX).map(|region| region.size),
        Some(PAGE as u64)
    );
    let many = |machine: &mut Machine, index| machine.client.get_irq_info(index).unwrap().count;
    assert_eq!(
        [VFIO_PCI_MSI_IRQ_INDEX, VFIO_PCI_MSIX_IRQ_INDEX].map(|index| many(&mut machine, index)),
        [0, 1]
    );
    machine.fill(FROM_PAGES, 1);
    for _ in 0..20 {
        start(&mut machine);
        ended(&mut machine);
    }
    let said = machine.ended();
    assert!(
        said.contains("interrupts: 20,") && said.contains("refused: 0,") && !said.contains("broke"),
        "{said}"
    );
}

#[test]
fn soc_core_is_stopped_by_its_gate_alone() {
    /// The gate's CONTROL and STATUS (`gate/registers.md`).
    const GATE: [usize; 2] = [0x100C, 0x1010];
    let Some(mut machine) = of_gates("gemm8-gated", VFIO_PCI_MSI_IRQ_INDEX) else { return };
    machine.fill(FROM_PAGES, 1);
    // There is no reset among its capabilities, and bus mastering changes nothing.
    let mut next = [0];
    machine.client.region_read(VFIO_PCI_CONFIG_REGION_INDEX, 0x41, &mut next).unwrap();
    machine.client.region_write(VFIO_PCI_CONFIG_REGION_INDEX, 0x64, &[1]).unwrap();
    machine.command(0);
    assert_eq!(next, [0]);
    start(&mut machine);
    ended(&mut machine);
    // The gate keeps it from memory, and lets it go on.
    machine.write(GATE[0], 1);
    start(&mut machine);
    thread::sleep(A_WHILE);
    assert_eq!(machine.read(GATE[1]), 0b11, "idle and stopped");
    assert!(machine.bytes(TO_PAGES).iter().all(|byte| *byte == 0xEE), "it wrote through the gate");
    machine.write(GATE[0], 0);
    ended(&mut machine);
    let said = machine.ended();
    assert!(
        said.contains("resets: 0") && said.contains("refused: 0,") && !said.contains("broke"),
        "{said}"
    );
}

#[test]
fn a_core_that_breaks_a_rule_fails_the_run() {
    // `cores/broken/top.v`: sixteen words from here, in one burst over a boundary of 4 KiB.
    for fault in [0, 1] {
        let Some(mut machine) = of_gates("broken", VFIO_PCI_MSI_IRQ_INDEX) else { return };
        for (at, value) in [
            (0x18, fault),
            (0x04, FROM as u32 + 0xFF0),
            (0x08, TO as u32),
            (0x0C, (FROM >> 32) as u32),
            (0x10, 16),
            (0, 1),
        ] {
            machine.write(at, value);
        }
        machine.interrupted();
        drop(machine.client);
        let (status, said) = machine.server.ended();
        let broke = said.contains("broke a rule: ")
            && said.contains("bytes at 0x100000ff0 goes over 4 KiB");
        assert_eq!((status, broke), (Some(fault as i32), fault == 1), "{said}");
    }
}

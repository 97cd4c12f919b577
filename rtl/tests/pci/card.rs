//! LitePCIe's card: a model that is written by hand.

use super::machine::{FROM, FROM_PAGES, Machine, PAGE, Server, TO, TO_PAGES, WRITER};
use contigo_testkit::litepcie as manual;
use std::os::unix::fs::FileExt;
use vfio_bindings::bindings::vfio::{
    VFIO_PCI_BAR0_REGION_INDEX, VFIO_PCI_CONFIG_REGION_INDEX, VFIO_PCI_MSI_IRQ_INDEX,
};

#[test]
fn a_card_copies_scattered_pages_and_interrupts() {
    let mut machine = Machine::new();
    for round in 1..=50_u8 {
        machine.fill(FROM_PAGES, round);
        machine.ram.write_all_at(&[!round; 100], FROM_PAGES[0]).unwrap();
        machine.fill(TO_PAGES, 0xEE);
        machine.copy(8000);
        machine.copied();
        let (from, to) = (machine.bytes(FROM_PAGES), machine.bytes(TO_PAGES));
        assert!(
            from[..8000] == to[..8000] && to[8000..].iter().all(|byte| *byte == 0xEE),
            "round {round}"
        );
    }
    let said = machine.ended();
    assert!(said.contains("interrupts: 50,") && said.contains("refused: 0,"), "{said}");
}

#[test]
fn memory_that_was_taken_away_is_not_reached() {
    let mut machine = Machine::new();
    // Half of the destination goes; then, at the same address, it is another page.
    machine.client.dma_unmap(TO + PAGE as u64, PAGE as u64).unwrap();
    machine.fill(FROM_PAGES, 0x11);
    machine.fill(TO_PAGES, 0xEE);
    machine.copy(8192);
    machine.copied();
    assert_eq!(machine.bytes(TO_PAGES), [[0x11; PAGE], [0xEE; PAGE]].concat());
    machine.map(TO + PAGE as u64, 0x5000);
    machine.copy(8192);
    machine.copied();
    assert_eq!(machine.bytes([0x5000, TO_PAGES[1]]), [[0x11; PAGE], [0xEE; PAGE]].concat());
    // Without the source the card waits for ever, and sends nothing.
    machine.client.dma_unmap(FROM, 2 * PAGE as u64).unwrap();
    machine.fill([TO_PAGES[0], 0x5000], 0xEE);
    machine.copy(8192);
    machine.nothing_copied([TO_PAGES[0], 0x5000], 0xEE);
    let said = machine.ended();
    assert!(!said.contains("refused: 0,"), "{said}");
}

#[test]
fn unmastered_or_reset_card_reaches_nothing() {
    let mut machine = Machine::new();
    machine.fill(FROM_PAGES, 0x11);
    machine.fill(TO_PAGES, 0xEE);
    machine.command(2);
    machine.copy(8192);
    machine.nothing_copied(TO_PAGES, 0xEE);
    // The job goes with the reset, and bus mastering too.
    let mut features = [0; 6];
    machine.client.region_read(VFIO_PCI_CONFIG_REGION_INDEX, 0x60, &mut features).unwrap();
    assert_eq!(features, [0x13, 0, 6, 3, 0, 0], "Advanced Features, with a reset");
    machine.client.region_write(VFIO_PCI_CONFIG_REGION_INDEX, 0x64, &[1]).unwrap();
    assert_eq!((machine.read(manual::MSI), machine.read(WRITER)), (0, 2));
    machine.copy(8192);
    machine.nothing_copied(TO_PAGES, 0xEE);
    machine.command(6);
    machine.copy(8192);
    machine.copied();
    assert!(machine.bytes(TO_PAGES).iter().all(|byte| *byte == 0x11));
    // A register is read in parts, and written whole.
    let mut part = [0];
    machine.client.region_read(VFIO_PCI_BAR0_REGION_INDEX, manual::MSI as u64, &mut part).unwrap();
    machine.client.region_write(VFIO_PCI_BAR0_REGION_INDEX, manual::MSI as u64, &[7]).unwrap();
    assert_eq!((part, machine.read(manual::MSI)), ([0b10], 0b10));
}

/// The tests above look where each mistake shows.
#[test]
fn each_mistake_of_a_function_shows() {
    let with = |mistakes: &str| {
        let machine =
            Machine::with(Server::of(&format!("litepcie:{mistakes}")), VFIO_PCI_MSI_IRQ_INDEX);
        machine.fill(FROM_PAGES, 0x11);
        machine.fill(TO_PAGES, 0xEE);
        machine
    };
    let arrives = |mut machine: Machine| {
        machine.copied();
        let to = machine.bytes(TO_PAGES);
        machine.ended();
        to
    };
    let mut machine = with("bus-master");
    machine.command(2);
    machine.copy(8192);
    assert_eq!(arrives(machine), [0x11; 2 * PAGE]);
    let mut machine = with("unmap");
    machine.client.dma_unmap(TO, 2 * PAGE as u64).unwrap();
    machine.copy(8192);
    assert_eq!(arrives(machine), [0x11; 2 * PAGE]);
    let mut machine = with("reset");
    machine.copy(8192);
    machine.client.region_write(VFIO_PCI_CONFIG_REGION_INDEX, 0x64, &[1]).unwrap();
    assert_eq!(machine.read(manual::MSI), 0b10, "the card's registers are what they were");
    machine.ended();
    let mut machine = with("bytes");
    machine.copy(8192);
    let to = arrives(machine);
    assert!(to.contains(&0x10) && to.iter().all(|byte| byte | 1 == 0x11), "{to:x?}");
}

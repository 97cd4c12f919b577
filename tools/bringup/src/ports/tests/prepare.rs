//! Writes, and accesses that fail.

use super::*;
use crate::machine::fake::{Board, Root};

#[test]
fn write_without_effect_undoes_earlier() -> Outcome {
    let fake = Fake { keeps: Some(0xf800_b014), ..Fake::zeros(Family::Zynq7000) };
    fake.set(0xf800_0900, 0xf);
    let design = |name: &str| match name {
        "PCW_S_AXI_HP3_DATA_WIDTH" => Some(32),
        "PCW_USE_S_AXI_HP3" => Some(1),
        _ => None,
    };
    let steps = plan(&read(Family::Zynq7000, &fake, &running(Some(&design))));
    assert_eq!(steps.len(), 2);
    let error =
        apply(&no_machine(), Family::Zynq7000, &fake, &steps).err().ok_or("it was applied")?;
    assert!(
        error.to_string().starts_with("HP3 write width did not become 32 bits, and is 64 bits: "),
        "{error}"
    );
    assert_eq!((fake.get(0xf800_b000), fake.get(0xf800_b014)), (Some(0), Some(0)));
    // The SLCR, which contains the level shifters, is locked.
    let fake = Fake::zeros(Family::Zynq7000);
    fake.set(0xf800_000c, 1);
    let steps = plan(&read(Family::Zynq7000, &fake, &running(None)));
    assert!(matches!(
        apply(&no_machine(), Family::Zynq7000, &fake, &steps),
        Err(PortsError::Locked)
    ));
    assert_eq!(fake.get(0xf800_0900), Some(0));
    Ok(())
}

/// The level shifters are set first, then a port behind them.
#[test]
fn failed_width_undoes_level_shifters() -> Outcome {
    let design = |name: &str| match name {
        "PCW_S_AXI_HP0_DATA_WIDTH" => Some(32),
        "PCW_USE_S_AXI_HP0" => Some(1),
        _ => None,
    };
    let known = running(Some(&design));
    let prepared = |fake: &Fake| {
        let mut facts = read(Family::Zynq7000, fake, &known);
        prepare(&no_machine(), Family::Zynq7000, fake, &known, &mut facts)
    };
    let fake = Fake::zeros(Family::Zynq7000);
    let names: Vec<_> = prepared(&fake)?.iter().map(|step| step.field.name).collect();
    assert_eq!(names, ["level shifters", "HP0 read width", "HP0 write width"]);
    let fake = Fake { keeps: Some(0xf800_8014), ..Fake::zeros(Family::Zynq7000) };
    assert!(matches!(prepared(&fake), Err(PortsError::Kept { field: "HP0 write width", .. })));
    assert_eq!((fake.get(0xf800_8000), fake.get(0xf800_0900)), (Some(0), Some(0)));
    // A processor waits for the port: nothing more is accessed, and the shifters stay on.
    let fake = Fake { stuck: Some(0xf800_8014), ..Fake::zeros(Family::Zynq7000) };
    assert_eq!(prepared(&fake)?.len(), 1);
    assert_eq!((fake.read.borrow().last(), fake.get(0xf800_0900)), (Some(&0xf800_8014), Some(0xf)));
    let stuck = PortsError::Stuck { field: "HP0 write width", addr: 0xf800_8014 };
    let error = PortsError::Behind { set: vec!["level shifters"], error: Box::new(stuck) };
    assert!(
        error.to_string().ends_with("; set before that, and left so: level shifters"),
        "{error}"
    );
    Ok(())
}

#[test]
fn a_fabric_in_use_is_left_alone() -> Outcome {
    let folder = tempfile::tempdir()?;
    let root = Root(folder.path().to_owned());
    root.driver("platform", "43c00000.copy", "xilinx-vdma");
    let (machine, fake) = (root.machine(), Fake::zeros(Family::Zynq7000));
    let steps = plan(&read(Family::Zynq7000, &fake, &running(None)));
    let error = apply(&machine, Family::Zynq7000, &fake, &steps).err().ok_or("it was applied")?;
    assert!(error.to_string().contains("xilinx-vdma has 43c00000.copy"), "{error}");
    assert_eq!(fake.get(0xf800_0900), Some(0));
    Ok(())
}

/// Registers where a driver takes the fabric as soon as the level shifters are on.
struct Taken<'a> {
    fake: &'a Fake,
    root: &'a Root,
}

impl Registers for Taken<'_> {
    fn read(&self, addr: u64) -> Result<u32, AccessError> {
        self.fake.read(addr)
    }

    fn write(&self, addr: u64, value: u32) -> Result<(), AccessError> {
        self.root.driver("platform", "43c00000.copy", "xilinx-vdma");
        self.fake.write(addr, value)
    }
}

#[test]
fn taken_fabric_keeps_its_level_shifters() -> Outcome {
    let folder = tempfile::tempdir()?;
    let root = Root(folder.path().to_owned());
    let (machine, fake) = (root.machine(), Fake::zeros(Family::Zynq7000));
    let registers = Taken { fake: &fake, root: &root };
    let design =
        |name: &str| if name == "PCW_S_AXI_HP0_DATA_WIDTH" { Some(32) } else { every_port(name) };
    let known = running(Some(&design));
    let mut facts = read(Family::Zynq7000, &registers, &known);
    let error = prepare(&machine, Family::Zynq7000, &registers, &known, &mut facts)
        .err()
        .ok_or("it was prepared")?;
    let PortsError::Behind { set, error } = error else { return Err(format!("{error}").into()) };
    assert!(set == ["level shifters"] && matches!(*error, PortsError::InUse(_)), "{error}");
    assert_eq!((fake.get(0xf800_0900), fake.get(0xf800_8000)), (Some(0xf), Some(0)));
    Ok(())
}

/// The processor that made the access is lost, and another access would lose the next one.
#[test]
fn endless_access_is_the_last_one() -> Outcome {
    let fake = Fake { stuck: Some(0xf800_9000), ..Fake::zeros(Family::Zynq7000) };
    fake.set(0xf800_0900, 0xf);
    let facts = read(Family::Zynq7000, &fake, &running(Some(&every_port)));
    assert_eq!(stuck(&facts), Some(0xf800_9000));
    assert!(matches!(named(&facts, "HP0 write width")?.reading, Reading::Value(0)));
    assert!(matches!(
        named(&facts, "HP1 write width")?.reading,
        Reading::Failed(AccessError::After { addr: 0xf800_9000 })
    ));
    assert_eq!(fake.read.borrow().last(), Some(&0xf800_9000));
    let steps = plan(&read(Family::Zynq7000, &Fake::zeros(Family::Zynq7000), &running(None)));
    let fake = Fake { stuck: Some(0xf800_0900), ..Fake::zeros(Family::Zynq7000) };
    let applied = apply(&no_machine(), Family::Zynq7000, &fake, &steps);
    assert!(
        matches!(applied, Err(PortsError::Stuck { field: "level shifters", addr: 0xf800_0900 })),
        "{applied:?}"
    );
    assert_eq!(*fake.read.borrow(), [0xf800_000c, 0xf800_0900]);
    Ok(())
}

/// A file in place of `/dev/mem`: beyond its end, a mapping gives a real SIGBUS.
#[test]
#[cfg_attr(miri, ignore = "Miri has no child processes")]
fn bus_error_ends_access_not_program() -> Outcome {
    let folder = tempfile::tempdir()?;
    fs::create_dir_all(folder.path().join("dev"))?;
    let machine = Board::new(folder.path(), "Xilinx Zynq FPGA Manager").machine();
    assert!(matches!(DevMem::open(&machine, false), Err(AccessError::Open(_))));
    let file = File::create(folder.path().join("dev/mem"))?;
    file.set_len(0x2_0000)?;
    file.write_all_at(&0x1234_5678_u32.to_ne_bytes(), 0x1_0014)?;
    let registers = DevMem::open(&machine, true)?;
    assert_eq!(registers.read(0x1_0014)?, 0x1234_5678);
    registers.write(0x1_0018, 7)?;
    assert_eq!(registers.read(0x1_0018)?, 7);
    assert!(matches!(registers.read(0x4_0000), Err(AccessError::Bus { addr: 0x4_0000 })));
    assert!(matches!(registers.write(0x4_0000, 1), Err(AccessError::Bus { addr: 0x4_0000 })));
    assert!(matches!(
        DevMem::open(&machine, false)?.write(0x1_0018, 8),
        Err(AccessError::Map { addr: 0x1_0018, .. })
    ));
    assert_eq!(registers.read(0x1_0018)?, 7);
    // A copy is only read.
    let copy = Machine::copy(folder.path());
    assert_eq!(DevMem::open(&copy, false)?.read(0x1_0018)?, 7);
    let error = DevMem::open(&copy, true).err().ok_or("a copy is open for writing")?.to_string();
    assert!(error.contains("nothing is written to a copied machine"), "{error}");
    Ok(())
}

/// Registers have any value or do not answer, designs and cores are random, and writes are lost.
/// Each field has a row, and a plan succeeds, or fails with a message.
#[test]
fn nonsense_in_registers_is_an_answer() {
    let mut random = fastrand::Rng::with_seed(0x9027);
    let (mut done, mut failed) = (0, 0);
    for _ in 0..2000 {
        let families = [Family::Zynq7000, Family::ZynqMp, Family::CycloneV];
        let family = random.choice(families).unwrap_or(Family::Zynq7000);
        let fake = Fake::zeros(family);
        let addrs: Vec<_> = fake.values.borrow().keys().copied().collect();
        for addr in &addrs {
            match random.u32(..8) {
                0 => drop(fake.values.borrow_mut().remove(addr)),
                1 => fake.set(*addr, u32::MAX),
                2 => {}
                _ => fake.set(*addr, random.u32(..)),
            }
        }
        let any = |random: &mut fastrand::Rng| {
            random.choice(addrs.iter().copied()).filter(|_| random.bool())
        };
        let fake = Fake {
            keeps: any(&mut random),
            stuck: any(&mut random).filter(|_| random.u8(..4) == 0),
            ..fake
        };
        let seed = random.u64(..);
        // The same parameter gets the same number each time.
        let design = |name: &str| {
            let seed = name.bytes().fold(seed, |sum, byte| sum.rotate_left(5) ^ u64::from(byte));
            let numbers = [None, Some(0), Some(1), Some(32), Some(64), Some(u64::MAX)];
            fastrand::Rng::with_seed(seed).choice(numbers).flatten()
        };
        let cores = Cores {
            coherent: random.bool(),
            behind_h2f: random.bool(),
            behind_lw: random.bool(),
            asks_for_sdram: random.bool(),
        };
        let known = Known {
            design: random.bool().then_some(&design),
            running: random.bool(),
            stopped: random.u8(..8) == 0,
            cores,
        };
        let facts = read(family, &fake, &known);
        assert_eq!(facts.len(), fields(family).len());
        let steps = plan(&facts);
        assert!(
            steps.iter().all(|step| step.field.setter == Setter::Prepare && step.from != step.to)
        );
        match apply(&no_machine(), family, &fake, &steps) {
            Ok(()) => {
                done += 1;
                assert!(
                    steps
                        .iter()
                        .all(|step| fake.get(step.field.addr).map(|value| step.field.of(value))
                            == Some(step.to))
                );
            }
            Err(error) => {
                failed += 1;
                assert!(!error.to_string().is_empty());
            }
        }
    }
    assert!(done > 100 && failed > 100, "{done} done, {failed} failed");
}

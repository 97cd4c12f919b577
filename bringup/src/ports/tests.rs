use super::*;
use crate::machine::Linux;
use std::{
    cell::RefCell,
    collections::BTreeMap,
    error::Error,
    fs::{self, File},
    os::unix::fs::FileExt,
};

type Outcome = Result<(), Box<dyn Error>>;

/// Registers in memory. One of them keeps its value, and one does not answer.
#[derive(Default)]
struct Fake {
    stuck: Option<u64>,
    values: RefCell<BTreeMap<u64, u32>>,
    read: RefCell<Vec<u64>>,
    keeps: Option<u64>,
}

impl Registers for Fake {
    fn read(&self, addr: u64) -> Result<u32, AccessError> {
        self.read.borrow_mut().push(addr);
        if self.stuck == Some(addr) {
            return Err(AccessError::NoAnswer { addr });
        }
        self.values.borrow().get(&addr).copied().ok_or(AccessError::Bus { addr })
    }

    fn write(&self, addr: u64, value: u32) -> Result<(), AccessError> {
        if self.keeps != Some(addr) {
            self.values.borrow_mut().insert(addr, value);
        }
        Ok(())
    }
}

impl Fake {
    /// Everything reads 0, as after a boot without a bitstream; the SLCR is open.
    fn zeros(family: Family) -> Self {
        let fake = Self::default();
        fake.values.borrow_mut().extend(fields(family).iter().map(|field| (field.addr, 0)));
        fake.values.borrow_mut().extend([(0xf800_000c, 0), (0xfd1a_0100, 0), (0xff5e_023c, 0)]);
        fake
    }

    fn set(&self, addr: u64, value: u32) {
        self.values.borrow_mut().insert(addr, value);
    }

    fn get(&self, addr: u64) -> Option<u32> {
        self.values.borrow().get(&addr).copied()
    }
}

fn named<'a>(facts: &'a [Fact], name: &str) -> Result<&'a Fact, String> {
    facts.iter().find(|fact| fact.field.name == name).ok_or_else(|| format!("no {name}"))
}

fn nobody() -> Machine {
    Machine::below("/nowhere", Linux)
}

/// Addresses and bits as PYNQ's files, AMD's FSBL and the kernel have them, written down apart.
#[test]
fn the_tables_are_those_of_other_peoples_files() -> Outcome {
    let rows = [
        (Family::Zynq7000, "HP0 read width", 0xf800_8000, 0x1),
        (Family::Zynq7000, "HP2 write width", 0xf800_a014, 0x1),
        (Family::Zynq7000, "HP3 write width", 0xf800_b014, 0x1),
        (Family::Zynq7000, "level shifters", 0xf800_0900, 0xf),
        (Family::Zynq7000, "reset 3 of the fabric", 0xf800_0240, 0x8),
        (Family::ZynqMp, "HPC0 read width", 0xfd36_0000, 0x3),
        (Family::ZynqMp, "HP0 write width", 0xfd38_0014, 0x3),
        (Family::ZynqMp, "HP3 read width", 0xfd3b_0000, 0x3),
        (Family::ZynqMp, "LPD read width", 0xff9b_0000, 0x3),
        (Family::ZynqMp, "HPM1 width", 0xfd61_5000, 0xc00),
        (Family::ZynqMp, "HPM0_LPD width", 0xff41_9000, 0x300),
        (Family::ZynqMp, "snooping of HPC", 0xff41_a040, 0x3),
        (Family::CycloneV, "ports to the SDRAM", 0xffc2_5080, 0x3fff),
        (Family::CycloneV, "bridge from the fabric", 0xffd0_501c, 0x4),
        // alt_acpidmap.h: base, offset of the status, page and user.
        (Family::CycloneV, "ACP reads go to", 0xff70_7000 + 0x58, 0x3 << 12),
        (Family::CycloneV, "ACP writes are", 0xff70_7000 + 0x5c, 0x1f << 4),
    ];
    for (family, name, addr, mask) in rows {
        let field = fields(family).iter().find(|field| field.name == name).ok_or(name)?;
        assert_eq!((field.addr, field.mask), (addr, mask), "{name}");
    }
    // The masks that psu_init writes: AFI_FM0 to 5, and 6.
    let held = |family: Family| fields(family).iter().filter_map(|field| field.held);
    assert_eq!(held(Family::ZynqMp).filter(|held| held.0 == 0xfd1a_0100).fold(0, |all, held| all | held.1), 0x1f80);
    assert_eq!(held(Family::ZynqMp).filter(|held| held.0 == 0xff5e_023c).fold(0, |all, held| all | held.1), 0x8_0000);
    Ok(())
}

#[test]
fn a_design_is_compared_and_what_is_wrong_is_set() -> Outcome {
    let fake = Fake::zeros(Family::Zynq7000);
    fake.set(0xf800_8000, 0xf0);
    let design = |name: &str| match name {
        "PCW_USE_S_AXI_HP0" | "PCW_USE_S_AXI_HP1" | "PCW_EN_RST0_PORT" => Some(1),
        "PCW_USE_S_AXI_HP2" => Some(0),
        "PCW_S_AXI_HP0_DATA_WIDTH" | "PCW_S_AXI_HP2_DATA_WIDTH" => Some(32),
        "PCW_S_AXI_HP1_DATA_WIDTH" => Some(64),
        _ => None,
    };
    let facts = read(Family::Zynq7000, &fake, Some(&design), true);
    let rows = [
        ("HP0 read width", Verdict::Wrong),
        ("HP0 write width", Verdict::Wrong),
        ("HP1 read width", Verdict::Right),
        ("HP2 read width", Verdict::Unknown),
        ("HP3 read width", Verdict::Unknown),
        ("level shifters", Verdict::Wrong),
        ("reset 0 of the fabric", Verdict::Right),
        ("reset 1 of the fabric", Verdict::Unknown),
    ];
    for (name, verdict) in rows {
        assert_eq!(named(&facts, name)?.verdict, verdict, "{name}");
    }
    let steps = plan(&facts);
    let said: Vec<_> = steps.iter().map(|step| (step.field.name, step.field.say(step.from), step.field.say(step.to))).collect();
    let expected = [("HP0 read width", "64 bits", "32 bits"), ("HP0 write width", "64 bits", "32 bits"), ("level shifters", "off", "on")];
    assert_eq!(said, expected.map(|(name, from, to)| (name, from.to_owned(), to.to_owned())));
    apply(&nobody(), Family::Zynq7000, &fake, &steps)?;
    // The bits beside the field are as they were.
    assert_eq!((fake.get(0xf800_8000), fake.get(0xf800_8014), fake.get(0xf800_0900)), (Some(0xf1), Some(1), Some(0xf)));
    assert!(plan(&read(Family::Zynq7000, &fake, Some(&design), true)).is_empty());
    Ok(())
}

#[test]
fn without_a_bitstream_and_a_design_nothing_is_wrong() {
    for family in [Family::Zynq7000, Family::ZynqMp, Family::CycloneV] {
        let facts = read(family, &Fake::zeros(family), None, false);
        assert!(facts.iter().all(|fact| fact.verdict == Verdict::Unknown), "{facts:?}");
        assert!(plan(&facts).is_empty());
    }
}

#[test]
fn a_block_that_is_held_in_reset_is_not_read() -> Outcome {
    let fake = Fake::zeros(Family::ZynqMp);
    fake.set(0xfd1a_0100, 1 << 9);
    let facts = read(Family::ZynqMp, &fake, None, true);
    assert!(matches!(named(&facts, "HP0 read width")?.reading, Reading::Held));
    assert!(matches!(named(&facts, "HP1 read width")?.reading, Reading::Value(0)));
    assert!(!fake.read.borrow().contains(&0xfd38_0000) && fake.read.borrow().contains(&0xfd39_0000));
    Ok(())
}

#[test]
fn the_boot_codes_fields_are_said_and_never_set() -> Outcome {
    let fake = Fake::zeros(Family::ZynqMp);
    let mut facts = read(Family::ZynqMp, &fake, Some(&|name: &str| (name == "PSU__USE__S_AXI_GP1").then_some(1)), true);
    let snooping = named(&facts, "snooping of HPC")?;
    assert_eq!((snooping.verdict, snooping.wanted), (Verdict::Unknown, None));
    assert!(matches!(snooping.field.setter, Setter::Boot(cure) if cure.contains("0xFF41A040 = 0x3")));
    for fact in &mut facts {
        (fact.verdict, fact.wanted) = (Verdict::Wrong, Some(3));
    }
    facts.retain(|fact| matches!(fact.field.setter, Setter::Boot(_)));
    assert!(plan(&facts).is_empty());
    Ok(())
}

#[test]
fn a_write_that_does_nothing_undoes_those_before_it() -> Outcome {
    let fake = Fake { keeps: Some(0xf800_0900), ..Fake::zeros(Family::Zynq7000) };
    let design = |name: &str| match name {
        "PCW_S_AXI_HP3_DATA_WIDTH" => Some(32),
        "PCW_USE_S_AXI_HP3" => Some(1),
        _ => None,
    };
    let steps = plan(&read(Family::Zynq7000, &fake, Some(&design), true));
    assert_eq!(steps.len(), 3);
    let error = apply(&nobody(), Family::Zynq7000, &fake, &steps).err().ok_or("it was applied")?;
    assert!(error.to_string().starts_with("level shifters did not become on, and is off: "), "{error}");
    assert_eq!((fake.get(0xf800_b000), fake.get(0xf800_b014)), (Some(0), Some(0)));
    fake.set(0xf800_000c, 1);
    assert!(matches!(apply(&nobody(), Family::Zynq7000, &fake, &steps), Err(PortsError::Locked)));
    assert_eq!(fake.get(0xf800_b000), Some(0));
    Ok(())
}

#[test]
fn a_fabric_in_use_is_left_alone() -> Outcome {
    let folder = tempfile::tempdir()?;
    let device = folder.path().join("sys/bus/platform/devices/43c00000.copy");
    fs::create_dir_all(&device)?;
    std::os::unix::fs::symlink("../../../drivers/xilinx-vdma", device.join("driver"))?;
    let (machine, fake) = (Machine::below(folder.path(), Linux), Fake::zeros(Family::Zynq7000));
    let steps = plan(&read(Family::Zynq7000, &fake, None, true));
    let error = apply(&machine, Family::Zynq7000, &fake, &steps).err().ok_or("it was applied")?;
    assert!(error.to_string().contains("xilinx-vdma has 43c00000.copy"), "{error}");
    assert_eq!(fake.get(0xf800_0900), Some(0));
    Ok(())
}

/// The processor that made the access is lost, and the next one would be, too.
#[test]
fn after_an_access_that_does_not_end_nothing_is_touched() -> Outcome {
    let fake = Fake { stuck: Some(0xf800_9000), ..Fake::zeros(Family::Zynq7000) };
    let facts = read(Family::Zynq7000, &fake, None, true);
    assert!(matches!(named(&facts, "HP0 write width")?.reading, Reading::Value(0)));
    assert!(matches!(named(&facts, "level shifters")?.reading, Reading::Failed(AccessError::After { addr: 0xf800_9000 })));
    assert_eq!(fake.read.borrow().last(), Some(&0xf800_9000));
    let steps = plan(&read(Family::Zynq7000, &Fake::zeros(Family::Zynq7000), None, true));
    let fake = Fake { stuck: Some(0xf800_0900), ..Fake::zeros(Family::Zynq7000) };
    let applied = apply(&nobody(), Family::Zynq7000, &fake, &steps);
    assert!(matches!(applied, Err(PortsError::Stuck { field: "level shifters", addr: 0xf800_0900 })), "{applied:?}");
    assert_eq!(*fake.read.borrow(), [0xf800_000c, 0xf800_0900]);
    Ok(())
}

/// A file for `/dev/mem`: beyond its end a mapping gives a real SIGBUS.
#[test]
#[cfg_attr(miri, ignore = "Miri has no child processes")]
fn a_bus_error_ends_the_access_and_not_the_program() -> Outcome {
    let folder = tempfile::tempdir()?;
    fs::create_dir_all(folder.path().join("dev"))?;
    let machine = Machine::below(folder.path(), Linux);
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
    assert!(matches!(DevMem::open(&machine, false)?.write(0x1_0018, 8), Err(AccessError::Map { addr: 0x1_0018, .. })));
    assert_eq!(registers.read(0x1_0018)?, 7);
    Ok(())
}

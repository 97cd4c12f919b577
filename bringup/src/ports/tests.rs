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

/// A bitstream runs, and the tree names no core.
fn running(design: Option<Parameters<'_>>) -> Known<'_> {
    Known { design, running: true, ..Known::default() }
}

/// A design with each HP port of Zynq-7000.
fn every_port(name: &str) -> Option<u64> {
    name.starts_with("PCW_USE_S_AXI_HP").then_some(1)
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
    // No clock of the fabric reaches the ports before the level shifters are on.
    let facts = read(Family::Zynq7000, &fake, &running(Some(&design)));
    assert!(matches!(named(&facts, "HP0 read width")?, Fact { reading: Reading::Closed, wanted: Some(1), verdict: Verdict::Unread, .. }));
    let said: Vec<_> = plan(&facts).iter().map(|step| (step.field.name, step.from, step.to)).collect();
    assert_eq!(said, [("level shifters", 0, 0xf)]);
    apply(&nobody(), Family::Zynq7000, &fake, &plan(&facts))?;
    assert!(!fake.read.borrow().iter().any(|addr| (0xf800_8000..0xf800_c000).contains(addr)), "{:x?}", fake.read);
    let facts = read(Family::Zynq7000, &fake, &running(Some(&design)));
    let rows = [
        ("HP0 read width", Verdict::Wrong),
        ("HP0 write width", Verdict::Wrong),
        ("HP1 read width", Verdict::Right),
        ("HP2 read width", Verdict::Unread),
        ("HP3 read width", Verdict::Unread),
        ("level shifters", Verdict::Right),
        ("reset 0 of the fabric", Verdict::Right),
        ("reset 1 of the fabric", Verdict::Unknown),
    ];
    for (name, verdict) in rows {
        assert_eq!(named(&facts, name)?.verdict, verdict, "{name}");
    }
    // A design leaves the clock of a port that it does not use undriven: a read may not end.
    assert!(!fake.read.borrow().iter().any(|addr| (0xf800_a000..0xf800_c000).contains(addr)), "{:x?}", fake.read);
    let steps = plan(&facts);
    let said: Vec<_> = steps.iter().map(|step| (step.field.name, step.field.say(step.from), step.field.say(step.to))).collect();
    let expected = [("HP0 read width", "64 bits", "32 bits"), ("HP0 write width", "64 bits", "32 bits")];
    assert_eq!(said, expected.map(|(name, from, to)| (name, from.to_owned(), to.to_owned())));
    apply(&nobody(), Family::Zynq7000, &fake, &steps)?;
    // The bits beside the field are as they were.
    assert_eq!((fake.get(0xf800_8000), fake.get(0xf800_8014), fake.get(0xf800_0900)), (Some(0xf1), Some(1), Some(0xf)));
    assert!(plan(&read(Family::Zynq7000, &fake, &running(Some(&design)))).is_empty());
    Ok(())
}

#[test]
fn without_a_bitstream_and_a_design_nothing_is_wrong() {
    for family in [Family::Zynq7000, Family::ZynqMp, Family::CycloneV] {
        let facts = read(family, &Fake::zeros(family), &Known::default());
        assert!(facts.iter().all(|fact| matches!(fact.reading, Reading::Closed) || fact.verdict == Verdict::Unknown), "{facts:?}");
        assert!(plan(&facts).is_empty());
    }
    // A port of Zynq-7000 has no clock of the fabric then.
    let fake = Fake::zeros(Family::Zynq7000);
    fake.set(0xf800_0900, 0xf);
    read(Family::Zynq7000, &fake, &Known::default());
    read(Family::Zynq7000, &fake, &running(None));
    read(Family::Zynq7000, &fake, &Known { stopped: true, ..running(Some(&every_port)) });
    assert!(!fake.read.borrow().iter().any(|addr| (0xf800_8000..0xf800_c000).contains(addr)), "{:x?}", fake.read);
}

/// Each parameter of a design is asked for by the fields of its port, and by no other: two ports
/// that are mixed up would each get the other's width.
#[test]
fn each_port_has_its_own_parameters() {
    let asked = |family: Family, used: &str, width: &str, bits: u64| {
        let number = |name: &str| [(used, 1), (width, bits)].into_iter().find_map(|(known, value)| (known == name).then_some(value));
        let facts = read(family, &Fake::zeros(family), &running(Some(&number)));
        let wanted = facts.iter().filter(|fact| fact.field.name.ends_with("width"));
        wanted.filter_map(|fact| Some(format!("{}: {}", fact.field.name, fact.field.say(fact.wanted?)))).collect::<Vec<_>>()
    };
    for n in 0..4 {
        let (used, width) = (format!("PCW_USE_S_AXI_HP{n}"), format!("PCW_S_AXI_HP{n}_DATA_WIDTH"));
        let expected = [format!("HP{n} read width: 32 bits"), format!("HP{n} write width: 32 bits")];
        assert_eq!(asked(Family::Zynq7000, &used, &width, 32), expected);
    }
    for (n, port) in ["HPC0", "HPC1", "HP0", "HP1", "HP2", "HP3", "LPD"].iter().enumerate() {
        let (used, width) = (format!("PSU__USE__S_AXI_GP{n}"), format!("PSU__SAXIGP{n}__DATA_WIDTH"));
        for bits in [32, 64, 128] {
            let expected = [format!("{port} read width: {bits} bits"), format!("{port} write width: {bits} bits")];
            assert_eq!(asked(Family::ZynqMp, &used, &width, bits), expected);
        }
    }
    for (n, port) in ["HPM0", "HPM1", "HPM0_LPD"].iter().enumerate() {
        let (used, width) = (format!("PSU__USE__M_AXI_GP{n}"), format!("PSU__MAXIGP{n}__DATA_WIDTH"));
        for bits in [32, 64, 128] {
            assert_eq!(asked(Family::ZynqMp, &used, &width, bits), [format!("{port} width: {bits} bits")]);
        }
    }
    // The values that AMD's boot code and PYNQ write: 0 is the widest of one kind, and the
    // narrowest of the other.
    let value = |name: &str, bits: &str| {
        let field = fields(Family::ZynqMp).iter().find(|field| field.name == name);
        field.and_then(|field| field.words.iter().find(|(_, word)| *word == bits)).map(|(value, _)| *value)
    };
    assert_eq!(["32 bits", "64 bits", "128 bits"].map(|bits| value("HP0 read width", bits)), [Some(2), Some(1), Some(0)]);
    assert_eq!(["32 bits", "64 bits", "128 bits"].map(|bits| value("HPM0 width", bits)), [Some(0), Some(1), Some(2)]);
}

/// A core that is meant to be coherent reads old bytes behind an HPC port that does not snoop.
#[test]
fn snooping_is_wrong_where_the_tree_wants_it() -> Outcome {
    let verdict = |value, coherent, design: Option<Parameters<'_>>| {
        let fake = Fake::zeros(Family::ZynqMp);
        fake.set(0xff41_a040, value);
        let known = Known { cores: Cores { coherent, ..Cores::default() }, ..running(design) };
        let facts = read(Family::ZynqMp, &fake, &known);
        assert!(plan(&facts).is_empty(), "the boot code's alone");
        named(&facts, "snooping of HPC").map(|fact| fact.verdict)
    };
    let hpc1 = |name: &str| (name == "PSU__USE__S_AXI_GP1").then_some(1);
    let hp0 = |name: &str| (name == "PSU__USE__S_AXI_GP2").then_some(1);
    assert_eq!((verdict(0, true, None)?, verdict(1, true, None)?), (Verdict::Wrong, Verdict::Wrong));
    assert_eq!((verdict(2, true, None)?, verdict(3, true, Some(&hpc1))?), (Verdict::Right, Verdict::Right));
    assert_eq!((verdict(0, false, None)?, verdict(0, true, Some(&hp0))?), (Verdict::Unknown, Verdict::Unknown));
    assert_eq!(verdict(0, true, Some(&hpc1))?, Verdict::Wrong);
    Ok(())
}

/// The classic ways to lose a day with a Cyclone V: an access through a bridge in reset, and a core
/// whose port to the SDRAM is closed.
#[test]
fn a_bridge_and_a_port_that_a_core_needs_must_be_open() -> Outcome {
    let fake = Fake::zeros(Family::CycloneV);
    fake.set(0xffd0_501c, 7);
    let all = Cores { coherent: true, behind_h2f: true, behind_lw: true, asks_for_sdram: false };
    let wrong = |fake: &Fake, cores, running| {
        let facts = read(Family::CycloneV, fake, &Known { running, cores, ..Known::default() });
        assert!(plan(&facts).is_empty(), "the boot code's alone");
        facts.iter().filter(|fact| fact.verdict == Verdict::Wrong).map(|fact| fact.field.name).collect::<Vec<_>>()
    };
    // Nor are the closed ports to the SDRAM: the cores may all be behind the ACP.
    let names = ["bridge to the fabric", "bridge to its registers (LW)", "bridge from the fabric"];
    assert_eq!(wrong(&fake, all, true), names);
    let only = |cores| wrong(&fake, cores, true);
    assert_eq!(only(Cores { behind_h2f: true, ..Cores::default() }), names[..1]);
    assert_eq!(only(Cores { behind_lw: true, ..Cores::default() }), names[1..2]);
    assert_eq!(only(Cores { coherent: true, ..Cores::default() }), names[2..]);
    assert!(only(Cores::default()).is_empty() && wrong(&fake, all, false).is_empty());
    fake.set(0xffd0_501c, 0);
    assert!(wrong(&fake, all, true).is_empty());
    Ok(())
}

/// The ports to the SDRAM are those that the boot code left in iswgrp_handoff3, as for Linux's own
/// driver, where the tree asks for their bridge.
#[test]
fn the_ports_to_the_sdram_are_those_of_the_handoff() -> Outcome {
    let fake = Fake::zeros(Family::CycloneV);
    let verdict = |left, open, asks_for_sdram, running| -> Result<(Verdict, Option<u32>), String> {
        fake.set(0xffd0_808c, left);
        fake.set(0xffc2_5080, open);
        let cores = Cores { asks_for_sdram, ..Cores::default() };
        let facts = read(Family::CycloneV, &fake, &Known { running, cores, ..Known::default() });
        let fact = named(&facts, "ports to the SDRAM")?;
        Ok((fact.verdict, fact.wanted))
    };
    assert_eq!(verdict(0x133, 0, true, true)?, (Verdict::Wrong, Some(0x133)));
    assert_eq!(verdict(0x133, 0x33, true, true)?, (Verdict::Wrong, Some(0x133)));
    assert_eq!(verdict(0x133, 0x133, true, true)?, (Verdict::Right, Some(0x133)));
    assert_eq!(verdict(0x133, 0x3fff, true, true)?, (Verdict::Right, Some(0x3fff)));
    // Linux's bridge opens none of them.
    assert_eq!(verdict(0, 0, true, true)?, (Verdict::Wrong, Some(0x3fff)));
    for (asks, running) in [(false, true), (true, false)] {
        assert_eq!(verdict(0x133, 0, asks, running)?, (Verdict::Unknown, None));
    }
    Ok(())
}

#[test]
fn a_tree_that_asks_for_the_ports_to_the_sdram() -> Outcome {
    let folder = tempfile::tempdir()?;
    let soc = folder.path().join("sys/firmware/devicetree/base/soc");
    let machine = Machine::below(folder.path(), Linux);
    let asks = || Cores::of(&machine, Family::CycloneV).asks_for_sdram;
    fs::create_dir_all(soc.join("fpga-bridge@ffc25080"))?;
    fs::create_dir_all(soc.join("region"))?;
    fs::write(soc.join("fpga-bridge@ffc25080/compatible"), "altr,socfpga-fpga2sdram-bridge\0")?;
    fs::write(soc.join("region/fpga-bridges"), [0, 0, 0, 6, 0, 0, 0, 7])?;
    assert!(!asks());
    for (file, value, asked) in
        [("phandle", 5, false), ("phandle", 7, true), ("phandle", 8, false), ("bridge-enable", 0, false), ("bridge-enable", 1, true)]
    {
        fs::write(soc.join("fpga-bridge@ffc25080").join(file), [0, 0, 0, value])?;
        assert_eq!(asks(), asked, "{file} {value}");
    }
    Ok(())
}

#[test]
fn a_tree_says_what_its_cores_need() -> Outcome {
    let folder = tempfile::tempdir()?;
    let tree = folder.path().join("sys/firmware/devicetree/base");
    let machine = Machine::below(folder.path(), Linux);
    let cores = || Cores::of(&machine, Family::CycloneV);
    let node = |path: &str, compatible: &str, coherent: bool| -> std::io::Result<()> {
        fs::create_dir_all(tree.join(path))?;
        fs::write(tree.join(path).join("compatible"), format!("{compatible}\0"))?;
        let file = tree.join(path).join("dma-coherent");
        if coherent { fs::write(file, "") } else { fs::remove_file(file).or(Ok(())) }
    };
    assert_eq!(cores(), Cores::default());
    // A core of the processor's own, and the bridges' nodes, which are at other addresses.
    node("soc/dma@ffe01000", "contigo,engine", true)?;
    node("soc/fpga_bridge@ff400000", "altr,socfpga-lwhps2fpga-bridge", false)?;
    assert_eq!(cores(), Cores::default());
    node("soc/gpio@ff200000", "generic-uio", false)?;
    assert_eq!(cores(), Cores { behind_lw: true, ..Cores::default() });
    fs::write(tree.join("soc/gpio@ff200000/status"), "disabled\0")?;
    assert_eq!(cores(), Cores::default());
    node("soc/bus@c0000000/fir@c0010000", "contigo,engine", false)?;
    assert_eq!(cores(), Cores { behind_h2f: true, ..Cores::default() });
    node("soc/bus@c0000000/fir@c0010000", "contigo,engine", true)?;
    assert_eq!(cores(), Cores { behind_h2f: true, coherent: true, ..Cores::default() });
    node("soc/bus@c0000000/fir@c0010000", "contigo,engine", false)?;
    node("block0", "ikwzm,u-dma-buf-0.10", true)?;
    assert_eq!(cores(), Cores { behind_h2f: true, coherent: true, ..Cores::default() });
    fs::remove_dir_all(&tree)?;
    // The bridges of Intel's reference design are one bus, whose children have two cells: which
    // bridge, and the place behind it. A bus says for all on it that they are coherent.
    let cells = |path: &str, cells: &[u32]| {
        fs::write(tree.join("soc/bridge@0xc0000000").join(path), cells.iter().flat_map(|cell| cell.to_be_bytes()).collect::<Vec<_>>())
    };
    node("soc/bridge@0xc0000000", "altr,bridge-21.1\0simple-bus", false)?;
    fs::write(tree.join("soc/#address-cells"), 1_u32.to_be_bytes())?;
    cells("#address-cells", &[2])?;
    cells("#size-cells", &[1])?;
    cells("ranges", &[0, 0, 0xc000_0000, 0x2000_0000, 1, 0, 0xff20_0000, 0x20_0000])?;
    assert_eq!(cores(), Cores::default());
    node("soc/bridge@0xc0000000/gpio@0x100010000", "altr,pio-1.0", false)?;
    node("soc/bridge@0xc0000000/none@0x200000000", "altr,pio-1.0", false)?;
    assert_eq!(cores(), Cores { behind_lw: true, ..Cores::default() });
    node("soc/bridge@0xc0000000/ram@0x000000000", "generic-uio", false)?;
    assert_eq!(cores(), Cores { behind_h2f: true, behind_lw: true, ..Cores::default() });
    fs::write(tree.join("soc/dma-coherent"), "")?;
    fs::write(tree.join("soc/bridge@0xc0000000/dma-noncoherent"), "")?;
    assert!(!cores().coherent);
    fs::remove_file(tree.join("soc/bridge@0xc0000000/dma-noncoherent"))?;
    assert!(cores().coherent);
    fs::remove_dir_all(&tree)?;
    // A block that has no node: by the module's parameter.
    fs::create_dir_all(folder.path().join("sys/class/u-dma-buf/udmabuf0"))?;
    fs::write(folder.path().join("sys/class/u-dma-buf/udmabuf0/dma_coherent"), "0\n")?;
    assert_eq!(cores(), Cores::default());
    fs::write(folder.path().join("sys/class/u-dma-buf/udmabuf0/dma_coherent"), "1\n")?;
    assert_eq!(cores(), Cores { coherent: true, ..Cores::default() });
    Ok(())
}

/// The kernel may say that every clock of the fabric is off. Then no port has one.
#[test]
fn clocks_that_are_all_off_stop_the_fabric() -> Outcome {
    let folder = tempfile::tempdir()?;
    let machine = Machine::below(folder.path(), Linux);
    assert!(!is_stopped(&machine));
    let place = folder.path().join("sys/kernel/debug/clk");
    fs::create_dir_all(&place)?;
    for (first, second, stopped) in [("N", "N", true), ("N", "Y", false)] {
        let rows = format!(" ps 1 1 0 5 0 0 50000 Y\n fclk0 0 0 0 5 0 0 50000 {first}\n fclk1 0 0 0 5 0 0 50000 {second}\n");
        fs::write(place.join("clk_summary"), format!("protect hardware\n---\n{rows}"))?;
        assert_eq!(is_stopped(&machine), stopped);
    }
    Ok(())
}

#[test]
fn a_block_that_is_held_in_reset_is_not_read() -> Outcome {
    let fake = Fake::zeros(Family::ZynqMp);
    fake.set(0xfd1a_0100, 1 << 9);
    let facts = read(Family::ZynqMp, &fake, &running(None));
    assert!(matches!(named(&facts, "HP0 read width")?.reading, Reading::Held));
    assert!(matches!(named(&facts, "HP1 read width")?.reading, Reading::Value(0)));
    assert!(!fake.read.borrow().contains(&0xfd38_0000) && fake.read.borrow().contains(&0xfd39_0000));
    Ok(())
}

#[test]
fn the_boot_codes_fields_are_said_and_never_set() -> Outcome {
    let fake = Fake::zeros(Family::ZynqMp);
    let mut facts = read(Family::ZynqMp, &fake, &running(Some(&|name: &str| (name == "PSU__USE__S_AXI_GP1").then_some(1))));
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
    let fake = Fake { keeps: Some(0xf800_b014), ..Fake::zeros(Family::Zynq7000) };
    fake.set(0xf800_0900, 0xf);
    let design = |name: &str| match name {
        "PCW_S_AXI_HP3_DATA_WIDTH" => Some(32),
        "PCW_USE_S_AXI_HP3" => Some(1),
        _ => None,
    };
    let steps = plan(&read(Family::Zynq7000, &fake, &running(Some(&design))));
    assert_eq!(steps.len(), 2);
    let error = apply(&nobody(), Family::Zynq7000, &fake, &steps).err().ok_or("it was applied")?;
    assert!(error.to_string().starts_with("HP3 write width did not become 32 bits, and is 64 bits: "), "{error}");
    assert_eq!((fake.get(0xf800_b000), fake.get(0xf800_b014)), (Some(0), Some(0)));
    // Somebody locked the SLCR, which has the level shifters.
    let fake = Fake::zeros(Family::Zynq7000);
    fake.set(0xf800_000c, 1);
    let steps = plan(&read(Family::Zynq7000, &fake, &running(None)));
    assert!(matches!(apply(&nobody(), Family::Zynq7000, &fake, &steps), Err(PortsError::Locked)));
    assert_eq!(fake.get(0xf800_0900), Some(0));
    Ok(())
}

/// The level shifters are set first, and a port behind them second.
#[test]
fn a_port_that_keeps_its_width_undoes_the_level_shifters() -> Outcome {
    let design = |name: &str| match name {
        "PCW_S_AXI_HP0_DATA_WIDTH" => Some(32),
        "PCW_USE_S_AXI_HP0" => Some(1),
        _ => None,
    };
    let known = running(Some(&design));
    let prepared = |fake: &Fake| {
        let mut facts = read(Family::Zynq7000, fake, &known);
        prepare(&nobody(), Family::Zynq7000, fake, &known, &mut facts)
    };
    let fake = Fake::zeros(Family::Zynq7000);
    let names: Vec<_> = prepared(&fake)?.iter().map(|step| step.field.name).collect();
    assert_eq!(names, ["level shifters", "HP0 read width", "HP0 write width"]);
    let fake = Fake { keeps: Some(0xf800_8014), ..Fake::zeros(Family::Zynq7000) };
    assert!(matches!(prepared(&fake), Err(PortsError::Kept { field: "HP0 write width", .. })));
    assert_eq!((fake.get(0xf800_8000), fake.get(0xf800_0900)), (Some(0), Some(0)));
    // A processor waits for the port: nothing more is touched, and the shifters stay.
    let fake = Fake { stuck: Some(0xf800_8014), ..Fake::zeros(Family::Zynq7000) };
    assert_eq!(prepared(&fake)?.len(), 1);
    assert_eq!((fake.read.borrow().last(), fake.get(0xf800_0900)), (Some(&0xf800_8014), Some(0xf)));
    let stuck = PortsError::Stuck { field: "HP0 write width", addr: 0xf800_8014 };
    let error = PortsError::Behind { set: vec!["level shifters"], error: Box::new(stuck) };
    assert!(error.to_string().ends_with("; set before that, and left so: level shifters"), "{error}");
    Ok(())
}

#[test]
fn a_fabric_in_use_is_left_alone() -> Outcome {
    let folder = tempfile::tempdir()?;
    let device = folder.path().join("sys/bus/platform/devices/43c00000.copy");
    fs::create_dir_all(&device)?;
    std::os::unix::fs::symlink("../../../drivers/xilinx-vdma", device.join("driver"))?;
    let (machine, fake) = (Machine::below(folder.path(), Linux), Fake::zeros(Family::Zynq7000));
    let steps = plan(&read(Family::Zynq7000, &fake, &running(None)));
    let error = apply(&machine, Family::Zynq7000, &fake, &steps).err().ok_or("it was applied")?;
    assert!(error.to_string().contains("xilinx-vdma has 43c00000.copy"), "{error}");
    assert_eq!(fake.get(0xf800_0900), Some(0));
    Ok(())
}

/// The processor that made the access is lost, and the next one would be, too.
#[test]
fn after_an_access_that_does_not_end_nothing_is_touched() -> Outcome {
    let fake = Fake { stuck: Some(0xf800_9000), ..Fake::zeros(Family::Zynq7000) };
    fake.set(0xf800_0900, 0xf);
    let facts = read(Family::Zynq7000, &fake, &running(Some(&every_port)));
    assert_eq!(stuck(&facts), Some(0xf800_9000));
    assert!(matches!(named(&facts, "HP0 write width")?.reading, Reading::Value(0)));
    assert!(matches!(named(&facts, "HP1 write width")?.reading, Reading::Failed(AccessError::After { addr: 0xf800_9000 })));
    assert_eq!(fake.read.borrow().last(), Some(&0xf800_9000));
    let steps = plan(&read(Family::Zynq7000, &Fake::zeros(Family::Zynq7000), &running(None)));
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

/// Registers have any value or do not answer, with any design and any cores, and writes are lost.
/// Each field has a row, and a plan ends as it should, or in an error with words.
#[test]
fn nonsense_in_registers_is_an_answer() {
    let mut random = fastrand::Rng::with_seed(0x9027);
    let (mut done, mut failed) = (0, 0);
    for _ in 0..2000 {
        let families = [Family::Zynq7000, Family::ZynqMp, Family::CycloneV];
        let family = families.get(random.usize(..families.len())).copied().unwrap_or(Family::Zynq7000);
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
        let any = |random: &mut fastrand::Rng| random.bool().then(|| addrs.get(random.usize(..addrs.len())).copied()).flatten();
        let fake = Fake { keeps: any(&mut random), stuck: any(&mut random).filter(|_| random.u8(..4) == 0), ..fake };
        let seed = random.u64(..);
        // The same number for the same parameter, whichever that is.
        let design = |name: &str| {
            let number = name.bytes().fold(seed, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(byte)));
            [None, Some(0), Some(1), Some(32), Some(64), Some(u64::MAX)].get(usize::try_from(number % 6).unwrap_or(0)).copied().flatten()
        };
        let cores = Cores { coherent: random.bool(), behind_h2f: random.bool(), behind_lw: random.bool(), asks_for_sdram: random.bool() };
        let known = Known { design: random.bool().then_some(&design), running: random.bool(), stopped: random.u8(..8) == 0, cores };
        let facts = read(family, &fake, &known);
        assert_eq!(facts.len(), fields(family).len());
        let steps = plan(&facts);
        assert!(steps.iter().all(|step| step.field.setter == Setter::Prepare && step.from != step.to));
        match apply(&nobody(), family, &fake, &steps) {
            Ok(()) => {
                done += 1;
                assert!(steps.iter().all(|step| fake.get(step.field.addr).map(|value| step.field.of(value)) == Some(step.to)));
            }
            Err(error) => {
                failed += 1;
                assert!(!error.to_string().is_empty());
            }
        }
    }
    assert!(done > 100 && failed > 100, "{done} done, {failed} failed");
}

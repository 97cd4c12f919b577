//! Fields, and their verdicts.

use super::*;

/// Addresses and bits from PYNQ's files, AMD's FSBL and the kernel, written down independently.
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
    // The masks that psu_init writes: for AFI_FM0 to 5, and for 6.
    let held = |family: Family| fields(family).iter().filter_map(|field| field.held);
    assert_eq!(
        held(Family::ZynqMp).filter(|held| held.0 == 0xfd1a_0100).fold(0, |all, held| all | held.1),
        0x1f80
    );
    assert_eq!(
        held(Family::ZynqMp).filter(|held| held.0 == 0xff5e_023c).fold(0, |all, held| all | held.1),
        0x8_0000
    );
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
    // No fabric clock reaches the ports before the level shifters are on.
    let facts = read(Family::Zynq7000, &fake, &running(Some(&design)));
    assert!(matches!(
        named(&facts, "HP0 read width")?,
        Fact { reading: Reading::Closed, wanted: Some(1), verdict: Verdict::Unread, .. }
    ));
    let said: Vec<_> =
        plan(&facts).iter().map(|step| (step.field.name, step.from, step.to)).collect();
    assert_eq!(said, [("level shifters", 0, 0xf)]);
    apply(&no_machine(), Family::Zynq7000, &fake, &plan(&facts))?;
    assert!(
        !fake.read.borrow().iter().any(|addr| (0xf800_8000..0xf800_c000).contains(addr)),
        "{:x?}",
        fake.read
    );
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
    // A design does not drive the clock of an unused port: a read may not end.
    assert!(
        !fake.read.borrow().iter().any(|addr| (0xf800_a000..0xf800_c000).contains(addr)),
        "{:x?}",
        fake.read
    );
    let steps = plan(&facts);
    let said: Vec<_> = steps
        .iter()
        .map(|step| (step.field.name, step.field.say(step.from), step.field.say(step.to)))
        .collect();
    let expected =
        [("HP0 read width", "64 bits", "32 bits"), ("HP0 write width", "64 bits", "32 bits")];
    assert_eq!(said, expected.map(|(name, from, to)| (name, from.to_owned(), to.to_owned())));
    apply(&no_machine(), Family::Zynq7000, &fake, &steps)?;
    // The bits beside the field are unchanged.
    assert_eq!(
        (fake.get(0xf800_8000), fake.get(0xf800_8014), fake.get(0xf800_0900)),
        (Some(0xf1), Some(1), Some(0xf))
    );
    assert!(plan(&read(Family::Zynq7000, &fake, &running(Some(&design)))).is_empty());
    Ok(())
}

#[test]
fn nothing_is_wrong_without_a_design() {
    for family in [Family::Zynq7000, Family::ZynqMp, Family::CycloneV] {
        let facts = read(family, &Fake::zeros(family), &Known::default());
        assert!(
            facts
                .iter()
                .all(|fact| matches!(fact.reading, Reading::Closed)
                    || fact.verdict == Verdict::Unknown),
            "{facts:?}"
        );
        assert!(plan(&facts).is_empty());
    }
    // A port of Zynq-7000 then has no fabric clock.
    let fake = Fake::zeros(Family::Zynq7000);
    fake.set(0xf800_0900, 0xf);
    read(Family::Zynq7000, &fake, &Known::default());
    read(Family::Zynq7000, &fake, &running(None));
    read(Family::Zynq7000, &fake, &Known { stopped: true, ..running(Some(&every_port)) });
    assert!(
        !fake.read.borrow().iter().any(|addr| (0xf800_8000..0xf800_c000).contains(addr)),
        "{:x?}",
        fake.read
    );
}

/// Only the fields of a port ask for its parameters: if two ports were mixed up, each would get the
/// width of the other.
#[test]
fn each_port_has_its_own_parameters() {
    let asked = |family: Family, used: &str, width: &str, bits: u64| {
        let number = |name: &str| {
            [(used, 1), (width, bits)]
                .into_iter()
                .find_map(|(known, value)| (known == name).then_some(value))
        };
        let facts = read(family, &Fake::zeros(family), &running(Some(&number)));
        let wanted = facts.iter().filter(|fact| fact.field.name.ends_with("width"));
        wanted
            .filter_map(|fact| {
                Some(format!("{}: {}", fact.field.name, fact.field.say(fact.wanted?)))
            })
            .collect::<Vec<_>>()
    };
    let lanes = &["read width", "write width"][..];
    let all = &[32, 64, 128][..];
    let (hp, gp) = (["HP0", "HP1", "HP2", "HP3"], ["HPM0", "HPM1", "HPM0_LPD"]);
    let slaves = ["HPC0", "HPC1", "HP0", "HP1", "HP2", "HP3", "LPD"];
    let rows = [
        (
            Family::Zynq7000,
            ["PCW_USE_S_AXI_HP#", "PCW_S_AXI_HP#_DATA_WIDTH"],
            &hp[..],
            lanes,
            &[32][..],
        ),
        (Family::ZynqMp, ["PSU__USE__S_AXI_GP#", "PSU__SAXIGP#__DATA_WIDTH"], &slaves, lanes, all),
        (Family::ZynqMp, ["PSU__USE__M_AXI_GP#", "PSU__MAXIGP#__DATA_WIDTH"], &gp, &["width"], all),
    ];
    for (family, names, ports, lanes, all) in rows {
        for (n, port) in ports.iter().enumerate() {
            let [used, width] = names.map(|name| name.replace('#', &n.to_string()));
            for bits in all {
                let expected: Vec<_> =
                    lanes.iter().map(|lane| format!("{port} {lane}: {bits} bits")).collect();
                assert_eq!(asked(family, &used, &width, *bits), expected);
            }
        }
    }
    // The values that AMD's boot code and PYNQ write: 0 is the widest of one kind, and the
    // narrowest of the other.
    let value = |name: &str, bits: &str| {
        let field = fields(Family::ZynqMp).iter().find(|field| field.name == name);
        field
            .and_then(|field| field.words.iter().find(|(_, word)| *word == bits))
            .map(|(value, _)| *value)
    };
    assert_eq!(
        ["32 bits", "64 bits", "128 bits"].map(|bits| value("HP0 read width", bits)),
        [Some(2), Some(1), Some(0)]
    );
    assert_eq!(
        ["32 bits", "64 bits", "128 bits"].map(|bits| value("HPM0 width", bits)),
        [Some(0), Some(1), Some(2)]
    );
}

/// A core that should be coherent reads old bytes behind an HPC port that does not snoop.
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
    assert_eq!(
        (verdict(0, true, None)?, verdict(1, true, None)?),
        (Verdict::Wrong, Verdict::Wrong)
    );
    assert_eq!(
        (verdict(2, true, None)?, verdict(3, true, Some(&hpc1))?),
        (Verdict::Right, Verdict::Right)
    );
    assert_eq!(
        (verdict(0, false, None)?, verdict(0, true, Some(&hp0))?),
        (Verdict::Unknown, Verdict::Unknown)
    );
    assert_eq!(verdict(0, true, Some(&hpc1))?, Verdict::Wrong);
    Ok(())
}

/// The classic ways to lose a day with a Cyclone V: an access through a bridge in reset, and a core
/// whose port to the SDRAM is closed.
#[test]
fn needed_bridge_and_port_must_be_open() -> Outcome {
    let fake = Fake::zeros(Family::CycloneV);
    fake.set(0xffd0_501c, 7);
    let all = Cores { coherent: true, behind_h2f: true, behind_lw: true, asks_for_sdram: false };
    let wrong = |fake: &Fake, cores, running| {
        let facts = read(Family::CycloneV, fake, &Known { running, cores, ..Known::default() });
        assert!(plan(&facts).is_empty(), "the boot code's alone");
        facts
            .iter()
            .filter(|fact| fact.verdict == Verdict::Wrong)
            .map(|fact| fact.field.name)
            .collect::<Vec<_>>()
    };
    // The closed ports to the SDRAM are not wrong either: all cores may be behind the ACP.
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

/// If the tree asks for the SDRAM ports' bridge, the right ports are those that the boot code left
/// in iswgrp_handoff3, as for Linux's own driver.
#[test]
fn sdram_ports_are_those_of_the_handoff() -> Outcome {
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
    // The boot code's design has no such ports, so the right ones are not known.
    assert_eq!(verdict(0, 0, true, true)?, (Verdict::Unknown, None));
    assert_eq!(verdict(0, 0x133, true, true)?, (Verdict::Unknown, None));
    for (asks, running) in [(false, true), (true, false)] {
        assert_eq!(verdict(0x133, 0, asks, running)?, (Verdict::Unknown, None));
    }
    Ok(())
}

/// The handoff is a register like the others: if it does not answer, nothing more is accessed.
#[test]
fn unanswered_handoff_is_last_access() -> Outcome {
    let known = || Known {
        running: true,
        cores: Cores { asks_for_sdram: true, ..Cores::default() },
        ..Known::default()
    };
    let fake = Fake { stuck: Some(0xffd0_808c), ..Fake::zeros(Family::CycloneV) };
    let facts = read(Family::CycloneV, &fake, &known());
    assert_eq!(
        (stuck(&facts), fake.read.borrow().last().copied()),
        (Some(0xffd0_808c), Some(0xffd0_808c))
    );
    assert!(matches!(
        named(&facts, "ACP writes are")?.reading,
        Reading::Failed(AccessError::After { addr: 0xffd0_808c })
    ));
    // A register that is missing has the reason.
    let facts = read(Family::CycloneV, &Fake::zeros(Family::CycloneV), &known());
    assert!(matches!(
        named(&facts, "ports to the SDRAM")?.reading,
        Reading::Failed(AccessError::Bus { addr: 0xffd0_808c })
    ));
    assert!(matches!(named(&facts, "ACP writes are")?.reading, Reading::Value(0)));
    Ok(())
}

#[test]
fn a_block_that_is_held_in_reset_is_not_read() -> Outcome {
    let fake = Fake::zeros(Family::ZynqMp);
    fake.set(0xfd1a_0100, 1 << 9);
    let facts = read(Family::ZynqMp, &fake, &running(None));
    assert!(matches!(named(&facts, "HP0 read width")?.reading, Reading::Held));
    assert!(matches!(named(&facts, "HP1 read width")?.reading, Reading::Value(0)));
    assert!(
        !fake.read.borrow().contains(&0xfd38_0000) && fake.read.borrow().contains(&0xfd39_0000)
    );
    Ok(())
}

#[test]
fn the_boot_codes_fields_are_said_and_never_set() -> Outcome {
    let fake = Fake::zeros(Family::ZynqMp);
    let mut facts = read(
        Family::ZynqMp,
        &fake,
        &running(Some(&|name: &str| (name == "PSU__USE__S_AXI_GP1").then_some(1))),
    );
    let snooping = named(&facts, "snooping of HPC")?;
    assert_eq!((snooping.verdict, snooping.wanted), (Verdict::Unknown, None));
    assert!(
        matches!(snooping.field.setter, Setter::Boot(cure) if cure.contains("0xFF41A040 = 0x3"))
    );
    for fact in &mut facts {
        (fact.verdict, fact.wanted) = (Verdict::Wrong, Some(3));
    }
    facts.retain(|fact| matches!(fact.field.setter, Setter::Boot(_)));
    assert!(plan(&facts).is_empty());
    Ok(())
}

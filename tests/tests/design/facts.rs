//! The facts that a whole design has.

use super::{ZYNQ, ZYNQMP};
use contigo::design::kernel::Protocol;
use contigo::design::{Core, Design, Reaches, Snoops, Soc, Trigger, Wired, parameter_number};

/// A core's windows, as (interface, address, bytes).
fn windows<'a>(core: &Core<'_, 'a>) -> Vec<(&'a str, u64, u64)> {
    core.windows()
        .unwrap()
        .iter()
        .map(|window| (window.interface, window.address, window.len_bytes))
        .collect()
}

/// Its masters, as (interface, the port's name, the port's bits, snoops).
fn masters<'a>(core: &Core<'_, 'a>) -> Vec<(&'a str, &'static str, u32, Snoops)> {
    let of = |reaches| match reaches {
        Reaches::Memory { port, data_bits, snoops, .. } => (port.name, data_bits, snoops),
        other => panic!("{other:?}"),
    };
    core.masters()
        .unwrap()
        .iter()
        .map(|master| (master.interface, of(master.reaches)))
        .map(|(name, (port, bits, snoops))| (name, port, bits, snoops))
        .collect()
}

fn interrupts<'a>(core: &Core<'_, 'a>) -> Vec<(&'a str, Wired<'a>)> {
    core.interrupts().unwrap().iter().map(|interrupt| (interrupt.pin, interrupt.wired)).collect()
}

#[test]
fn a_zynq_says_all_of_its_cores() {
    let design = Design::read(ZYNQ.as_bytes()).unwrap();
    assert_eq!(
        (design.name, design.tool, design.device, design.soc),
        ("loop", "2022.1", "7z020", Soc::Zynq7000)
    );
    let names: Vec<_> = design.cores().map(|core| core.path()).collect();
    assert_eq!(names, ["axi_dma_0", "scale_0", "audio/gain", "axi_intc_0"]);
    assert_eq!(design.instances().count(), 12);

    let dma = design.core("axi_dma_0").unwrap();
    assert_eq!(
        (dma.vlnv(), dma.ip(), dma.is_hls()),
        ("xilinx.com:ip:axi_dma:7.1", "axi_dma", false)
    );
    assert_eq!(windows(&dma), [("S_AXI_LITE", 0x4040_0000, 0x1_0000)]);
    assert_eq!(
        masters(&dma),
        [("M_AXI_MM2S", "zynq-hp0", 64, Snoops::No), ("M_AXI_S2MM", "zynq-hp0", 64, Snoops::No)]
    );
    let port = dma.port().unwrap();
    assert_eq!(
        (port.window, port.addr_bits, port.coherent),
        ((0x0010_0000, 0x1FFF_FFFF), 32, false),
        "512 MiB, and no on-chip memory"
    );
    let wired = [
        ("mm2s_introut", Wired::Processor { line: 0 }),
        ("s2mm_introut", Wired::Processor { line: 1 }),
    ];
    assert_eq!(interrupts(&dma), wired, "a probe beside the wire does not hide where it goes");
    assert_eq!(
        dma.clocks().map(|clock| (clock.hz, clock.fabric)).collect::<Vec<_>>(),
        [(100_000_000, Some(0)); 3]
    );
    assert_eq!(
        (
            dma.parameter("C_SG_LENGTH_WIDTH"),
            dma.parameter("c_include_sg").and_then(parameter_number),
            dma.parameter("C_NONE")
        ),
        (Some("23"), Some(0), None)
    );
    let registers: Vec<_> = dma
        .registers()
        .map(Result::unwrap)
        .map(|register| (register.name, register.offset))
        .collect();
    assert_eq!(
        registers[2..4],
        [("MM2S_LENGTH", 0x28), ("S2MM_DMACR", 0x30)],
        "CURDESC is not built in"
    );
}

#[test]
fn way_through_interconnects_is_followed() {
    let design = Design::read(ZYNQ.as_bytes()).unwrap();
    let scale = design.core("scale_0").unwrap();
    assert_eq!((scale.is_hls(), scale.protocol()), (true, Some(Protocol::Chain)));
    assert_eq!(
        masters(&scale),
        [("m_axi_gmem", "zynq-acp", 64, Snoops::Yes)],
        "it drives AxUSER, and has no map of memory"
    );
    assert!(scale.port().unwrap().coherent);
    assert_eq!(
        interrupts(&scale),
        [("interrupt", Wired::Controller { instance: "axi_intc_0", input: 2 })],
        "behind two wires of another"
    );
    let clock = scale.clocks().next().unwrap();
    assert_eq!((clock.hz, clock.fabric, clock.from), (150_000_000, Some(1), "clk_wiz_0"));
    let arguments: Vec<_> =
        scale.registers().filter_map(|register| register.unwrap().argument).collect();
    assert_eq!(arguments, ["ap_return", "from_r", "from_r", "to_r", "to_r", "n"]);
    let last = scale.registers().last().unwrap().unwrap();
    assert_eq!((last.name, last.offset), ("n", 48), "its field's offset is another");

    let gain = design.core("audio/gain").unwrap();
    assert_eq!(
        (gain.name(), gain.path(), design.core("audio_gain").unwrap().path()),
        ("audio_gain", "audio/gain", "audio/gain")
    );
    let wires = [0, 1].map(|input| ("ready", Wired::Controller { instance: "axi_intc_0", input }));
    assert_eq!(
        interrupts(&gain),
        wires,
        "its SIGIS is undef: where it leads makes the pin an interrupt"
    );
    assert_eq!(
        gain.port().unwrap_err().to_string(),
        "line 284, byte 14630: `audio_gain`: none of its masters reaches the processor's memory"
    );
    let status = gain.registers().last().unwrap().unwrap();
    assert_eq!((status.name, status.offset, status.read_only), ("STATUS", 4, true));

    let controller = design.core("axi_intc_0").unwrap();
    assert_eq!(
        (controller.ip(), controller.controller_goes()),
        ("axi_intc", Ok(Wired::Processor { line: 2 }))
    );
}

#[test]
fn a_zynqmp_says_which_ports_snoop_for_whom() {
    let design = Design::read(ZYNQMP.as_bytes()).unwrap();
    assert_eq!((design.soc, design.tool), (Soc::ZynqMp, "2020.2"));
    let dma = design.core("axi_dma_0").unwrap();
    let hpc0 = [
        ("M_AXI_SG", "zynqmp-hpc0", 128, Snoops::No),
        ("M_AXI_S2MM", "zynqmp-hpc0", 128, Snoops::No),
    ];
    assert_eq!(masters(&dma), hpc0, "an AXI DMA does not ask: AxCACHE is 0011");
    assert_eq!(
        windows(&dma),
        [("S_AXI_LITE", 0xA000_0000, 0x1_0000)],
        "two masters of the processor see it at one address"
    );
    assert_eq!(dma.port().unwrap().window, (0, 0x7FFF_FFFF), "as far as its descriptors can be");
    assert_eq!(dma.masters().unwrap()[1].addr_bits, 64);
    assert_eq!(interrupts(&dma), [("s2mm_introut", Wired::Processor { line: 8 })]);
    assert_eq!(
        masters(&design.core("scale_0").unwrap()),
        [("m_axi_gmem", "zynqmp-hpc1", 64, Snoops::Yes)]
    );
    let both = design.core("both_0").unwrap();
    let told = both.port().unwrap_err().to_string();
    assert!(told.contains("one of its masters is on a port that snoops, and another is not"));
    assert_eq!(interrupts(&both), [("interrupt", Wired::Elsewhere { instance: "inverter" })]);
    let writer = design.core("capture/writer").unwrap();
    assert_eq!(masters(&writer), [("M_AXI", "zynqmp-lpd", 32, Snoops::Unsure)]);
    let told = writer.port().unwrap_err().to_string();
    assert!(told.contains("say which port it is, and whether it does"), "{told}");
    assert_eq!(windows(&writer), [("S_AXI", 0x4_0000_0000, 0x1_0000)]);
    let interrupt = writer.interrupts().unwrap()[0];
    assert_eq!(
        (interrupt.trigger, interrupt.wired),
        (Trigger::EdgeRising, Wired::Processor { line: 0 })
    );
    assert_eq!(writer.clocks().next().unwrap().fabric, None);
}

/// UG585, table 7-4, and UG1085, "System Interrupts", as the interrupt controller counts them.
#[test]
fn fabric_interrupts_match_the_manuals() {
    let gic = |soc: Soc, line| soc.shared_interrupt(line).map(|shared| shared + 32);
    assert_eq!(
        (0..16).map(|line| gic(Soc::Zynq7000, line).unwrap()).collect::<Vec<_>>(),
        (61..69).chain(84..92).collect::<Vec<_>>()
    );
    assert_eq!(
        (0..16).map(|line| gic(Soc::ZynqMp, line).unwrap()).collect::<Vec<_>>(),
        (121..129).chain(136..144).collect::<Vec<_>>()
    );
    assert_eq!((Soc::Zynq7000.shared_interrupt(16), Soc::Other.shared_interrupt(0)), (None, None));
    assert_eq!(
        (Soc::Zynq7000.clock_number(3), Soc::ZynqMp.clock_number(0), Soc::ZynqMp.clock_number(4)),
        (Some(18), Some(71), None)
    );
}

/// Before 2014, from the last line down: three wires are lines 13 to 15.
#[test]
fn interrupts_that_count_from_the_end_do() {
    let text = ZYNQ.replace("VALUE=\"DIRECT\"", "VALUE=\"REVERSE\"");
    let design = Design::read(text.as_bytes()).unwrap();
    let lines: Vec<_> = interrupts(&design.core("axi_dma_0").unwrap())
        .into_iter()
        .map(|(_, wired)| wired)
        .collect();
    assert_eq!(lines, [Wired::Processor { line: 13 }, Wired::Processor { line: 14 }]);
}

#[test]
fn an_acp_snoops_only_for_who_asks() {
    let snoops = |from: &str, to: &str| {
        let text = ZYNQ.replace(from, to);
        masters(&Design::read(text.as_bytes()).unwrap().core("scale_0").unwrap())[0].3
    };
    assert_eq!(
        snoops(
            "NAME=\"C_M_AXI_GMEM_USER_VALUE\" VALUE=\"0x00000001\"",
            "NAME=\"C_M_AXI_GMEM_USER_VALUE\" VALUE=\"0x0\""
        ),
        Snoops::No
    );
    assert_eq!(snoops("&quot;0011&quot;", "&quot;0000&quot;"), Snoops::No);
    assert_eq!(snoops("C_M_AXI_GMEM_USER_VALUE", "C_M_AXI_OTHER_USER_VALUE"), Snoops::Unsure);
    // The processing system's own value instead of the master's.
    assert_eq!(
        snoops(
            "NAME=\"C_USE_DEFAULT_ACP_USER_VAL\" VALUE=\"0\"",
            "NAME=\"C_USE_DEFAULT_ACP_USER_VAL\" VALUE=\"1\""
        ),
        Snoops::Yes
    );
}

#[test]
fn core_reach_is_what_all_masters_reach() {
    let range = |last: &str| {
        format!(
            "HIGHVALUE=\"{last}\" INSTANCE=\"ps7\" IS_DATA=\"TRUE\" IS_INSTRUCTION=\"TRUE\" \
             MASTERBUSINTERFACE=\"M_AXI_S2MM\""
        )
    };
    let text = ZYNQ.replace(&range("0x1FFFFFFF"), &range("0x0FFFFFFF"));
    let design = Design::read(text.as_bytes()).unwrap();
    assert_eq!(
        design.core("axi_dma_0").unwrap().port().unwrap().window,
        (0x0010_0000, 0x0FFF_FFFF),
        "the second one reaches less"
    );
}

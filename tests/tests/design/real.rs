//! The shapes that files of real designs have, each in a few lines.

use contigo::design::{Core, Design, DesignRule, Reaches};
use contigo::names::{device_of, driver_of};

/// A core `gain` on a Zynq-7000, with `inside` it, and `ranges` of the processor.
fn zynq(inside: &str, ranges: &str) -> String {
    design("xilinx.com:ip:processing_system7:5.5", inside, ranges)
}

fn design(processor: &str, inside: &str, ranges: &str) -> String {
    format!(
        "<EDKSYSTEM VIVADOVERSION=\"2022.1\"><SYSTEMINFO NAME=\"mine\"/><MODULES>\n\
         <MODULE FULLNAME=\"/gain\" INSTANCE=\"gain\" VLNV=\"me:user:gain:1.0\">{inside}</MODULE>\n\
         <MODULE FULLNAME=\"/ps\" INSTANCE=\"ps\" VLNV=\"{processor}\"><BUSINTERFACES>\n\
         <BUSINTERFACE BUSNAME=\"to_hp0\" DATAWIDTH=\"64\" NAME=\"S_AXI_HP0\" TYPE=\"SLAVE\" \
             VLNV=\"x:interface:aximm:1.0\"/>\n\
         <BUSINTERFACE BUSNAME=\"to_hp2\" DATAWIDTH=\"32\" NAME=\"S_AXI_HP2\" TYPE=\"SLAVE\" \
             VLNV=\"x:interface:aximm:1.0\"/>\n\
         </BUSINTERFACES><MEMORYMAP>{ranges}</MEMORYMAP></MODULE></MODULES></EDKSYSTEM>"
    )
}

fn gain(text: &str, ask: impl FnOnce(&Core<'_, '_>)) {
    let design = Design::read(text.as_bytes()).unwrap();
    ask(&design.core("gain").unwrap());
}

#[test]
fn a_clocks_rate_is_read_as_vivado_writes_it() {
    let clock = |said: &str| {
        let pin = format!(
            "<PORT CLKFREQUENCY=\"{said}\" DIR=\"I\" NAME=\"aclk\" SIGIS=\"clk\"><CONNECTIONS>"
        );
        let wire = "<CONNECTION INSTANCE=\"ps\" PORT=\"FCLK_CLK0\"/></CONNECTIONS></PORT>";
        let text = zynq(&format!("<PORTS>{pin}{wire}</PORTS>"), "");
        let design = Design::read(text.as_bytes()).unwrap();
        let clock = design.core("gain").unwrap().clocks().next().unwrap();
        assert_eq!((clock.fabric, clock.from), (Some(0), "ps"));
        (clock.hz, clock.said.to_owned())
    };
    for (said, hz) in [
        ("100000000", 100_000_000),
        ("1e+08", 100_000_000),
        ("2.5e+07", 25_000_000),
        ("33333333.333", 33_333_333),
    ] {
        assert_eq!(clock(said), (hz, said.to_owned()));
    }
    assert_eq!(clock(""), (0, String::new()), "the file does not say it");
    assert_eq!(clock("100 MHz"), (0, "100 MHz".to_owned()), "words that are no rate are told");
}

/// A parameter may be a whole table.
#[test]
fn a_tag_is_as_long_as_it_is() {
    let table = "1 0 ".repeat(50_000);
    let text =
        zynq(&format!("<PARAMETERS><PARAMETER NAME=\"CFG\" VALUE=\"{table}\"/></PARAMETERS>"), "");
    gain(&text, |gain| assert_eq!(gain.parameter("CFG"), Some(table.as_str())));
    let cut = Design::read(&text.as_bytes()[..text.find("CFG").unwrap() + 100_000]).unwrap_err();
    assert_eq!((cut.rule, cut.line), (DesignRule::Truncated, 2));
}

/// Each way of a core's masters, as (interface, port, first, last).
fn ways(core: &Core<'_, '_>) -> Vec<(String, &'static str, u64, u64)> {
    let mut ways = Vec::new();
    for master in &core.masters().unwrap() {
        let Reaches::Memory { port, .. } = master.reaches else { panic!("{master:?}") };
        ways.push((master.interface.to_owned(), port.name, port.window.0, port.window.1));
    }
    ways
}

fn range(port: &str, first: &str, last: &str) -> String {
    format!(
        "<MEMRANGE ADDRESSBLOCK=\"{port}_DDR_LOWOCM\" BASEVALUE=\"{first}\" HIGHVALUE=\"{last}\" \
         INSTANCE=\"ps\" \
         MASTERBUSINTERFACE=\"M_AXI\" SLAVEBUSINTERFACE=\"S_AXI_{port}\"/>"
    )
}

fn mastering(inside: &str, ranges: &[String]) -> String {
    let bus = "<BUSINTERFACE BUSNAME=\"out\" DATAWIDTH=\"64\" NAME=\"M_AXI\" TYPE=\"MASTER\" \
        VLNV=\"x:interface:aximm:1.0\"/>";
    zynq(
        &format!("<BUSINTERFACES>{bus}</BUSINTERFACES><MEMORYMAP>{}</MEMORYMAP>", ranges.concat()),
        "",
    )
    .replace("</MODULES>", &format!("{inside}</MODULES>"))
}

#[test]
fn master_of_ports_reaches_memory_by_each() {
    let (low, high) =
        (range("HP0", "0x00000000", "0x0FFFFFFF"), range("HP2", "0x10000000", "0x1FFFFFFF"));
    let hp0 = ("M_AXI".to_owned(), "zynq-hp0", 0x0010_0000, 0x0FFF_FFFF);
    let hp2 = ("M_AXI".to_owned(), "zynq-hp2", 0x1000_0000, 0x1FFF_FFFF);
    for (ranges, wanted) in
        [([low.clone(), high.clone()], [hp0.clone(), hp2.clone()]), ([high, low], [hp2, hp0])]
    {
        gain(&mastering("", &ranges), |gain| {
            assert_eq!(ways(gain), wanted);
            assert_eq!(
                gain.port().unwrap().window,
                (0x0010_0000, 0x1FFF_FFFF),
                "both pieces are one"
            );
        });
    }
    // One of them snoops.
    let ranges = [range("HP0", "0x0", "0x0FFFFFFF"), range("ACP", "0x10000000", "0x1FFFFFFF")];
    let text = mastering("", &ranges).replace("me:user:gain:1.0\">", "me:user:gain:1.0\"><PARAMETER NAME=\"C_M_AXI_CACHE_VALUE\" VALUE=\"0b0011\"/><PARAMETER NAME=\"C_M_AXI_USER_VALUE\" VALUE=\"1.0\"/>");
    gain(&text, |gain| assert_eq!(gain.port().unwrap_err().rule, DesignRule::MixedPorts));
}

/// A window over memory that the master does not reach would let a job write nowhere.
#[test]
fn memory_between_pieces_is_not_reached() {
    let ranges =
        [range("HP0", "0x00000000", "0x07FFFFFF"), range("HP0", "0x10000000", "0x1FFFFFFF")];
    gain(&mastering("", &ranges), |gain| {
        let each = |first, last| ("M_AXI".to_owned(), "zynq-hp0", first, last);
        assert_eq!(ways(gain), [each(0x0010_0000, 0x07FF_FFFF), each(0x1000_0000, 0x1FFF_FFFF)]);
        assert_eq!(gain.port().unwrap().window, (0x1000_0000, 0x1FFF_FFFF), "the larger one");
    });
    // A piece that fills the gap joins them, whatever the order.
    let filled = [ranges.concat(), range("HP0", "0x08000000", "0x0FFFFFFF")];
    gain(&mastering("", &filled), |gain| {
        assert_eq!(ways(gain), [("M_AXI".to_owned(), "zynq-hp0", 0x0010_0000, 0x1FFF_FFFF)])
    });
}

/// Without a map of its own, a master goes where its bus leads: here to two ports.
#[test]
fn a_bus_leads_to_each_port_behind_it() {
    let bus = |net: &str, name: &str, kind: &str| {
        format!(
            "<BUSINTERFACE BUSNAME=\"{net}\" NAME=\"{name}\" TYPE=\"{kind}\" \
             VLNV=\"x:interface:aximm:1.0\"/>"
        )
    };
    let buses = bus("out", "S00", "SLAVE")
        + &bus("again", "S01", "SLAVE")
        + &bus("to_hp2", "M00", "MASTER")
        + &bus("again", "M01", "MASTER")
        + &bus("to_hp0", "M02", "MASTER");
    let fabric = format!(
        "<MODULE INSTANCE=\"smc\" MODCLASS=\"BUS\" \
         VLNV=\"x:ip:smartconnect:1.0\">{buses}</MODULE>"
    );
    gain(&mastering(&fabric, &[]), |gain| {
        let each = |port| ("M_AXI".to_owned(), port, 0x0010_0000, 0x3FFF_FFFF);
        assert_eq!(ways(gain), [each("zynq-hp2"), each("zynq-hp0")]);
    });
}

/// An interface of the block design that leads out of it has no instance.
#[test]
fn registers_outside_the_block_design_are_a_core() {
    let range = |name: &str, first: &str, last: &str, bus: &str| {
        format!(
            "<MEMRANGE BASEVALUE=\"{first}\" HIGHVALUE=\"{last}\" INSTANCE=\"{name}\" \
             MEMTYPE=\"REGISTER\" SLAVEBUSINTERFACE=\"{bus}\"/>\n"
        )
    };
    let ranges = range("gain", "0x43C00000", "0x43C0FFFF", "S_AXI")
        + &range("M01_AXI_0", "0x40000000", "0x4000FFFF", "M01_AXI_0")
        + &range("gain", "0x43D00000", "0x43D0FFFF", "S_AXI2")
        + &range("M01_AXI_0", "0x50000000", "0x50000FFF", "M01_AXI_0");
    let text = zynq("", &ranges);
    let design = Design::read(text.as_bytes()).unwrap();
    assert_eq!(
        design.cores().map(|core| (core.path(), core.is_outside())).collect::<Vec<_>>(),
        [("gain", false), ("M01_AXI_0", true)]
    );
    let outside = design.core("M01_AXI_0").unwrap();
    let windows = |core: &Core<'_, '_>| {
        core.windows()
            .unwrap()
            .iter()
            .map(|window| (window.address, window.len_bytes))
            .collect::<Vec<_>>()
    };
    assert_eq!(windows(&outside), [(0x4000_0000, 0x1_0000), (0x5000_0000, 0x1000)]);
    assert_eq!(
        windows(&design.core("gain").unwrap()),
        [(0x43C0_0000, 0x1_0000), (0x43D0_0000, 0x1_0000)]
    );
    assert_eq!(device_of(&outside).unwrap().to_string(), "contigo:M01_AXI_0@40000000");
    assert!(
        driver_of(&outside).is_none()
            && outside.vlnv().is_empty()
            && outside.port().unwrap_err().rule == DesignRule::NoPort
    );
    assert_eq!(
        (
            outside.masters().unwrap().len(),
            outside.interrupts().unwrap().len(),
            outside.clocks().count()
        ),
        (0, 0, 0)
    );
    assert_eq!((outside.registers().count(), outside.parameters().count()), (0, 0));
    // Its address is wrong: the line is the range's.
    let text = text.replace("0x4000FFFF", "4000FFFFx");
    let error =
        Design::read(text.as_bytes()).unwrap().core("M01_AXI_0").unwrap().windows().unwrap_err();
    assert_eq!(
        (error.rule, error.name.as_str(), error.line),
        (DesignRule::NotANumber("HIGHVALUE"), "M01_AXI_0", 7)
    );
}

/// A number that is none is an error where something depends on it, and never a 0.
#[test]
fn a_number_that_is_none_is_refused() {
    let register = |offset: &str, size: &str| {
        let property =
            |name: &str, value: &str| format!("<PROPERTY NAME=\"{name}\" VALUE=\"{value}\"/>");
        let properties = property("ADDRESS_OFFSET", offset) + &property("SIZE", size);
        let text = zynq(&format!("<REGISTER NAME=\"R\">{properties}</REGISTER>"), "");
        Design::read(text.as_bytes())
            .unwrap()
            .core("gain")
            .unwrap()
            .registers()
            .next()
            .unwrap()
            .map(|register| (register.offset, register.bits))
    };
    assert_eq!(
        (register("16", "32"), register("1.6e1", "8.0"), register("0x10", "")),
        (Ok((16, 32)), Ok((16, 8)), Ok((16, 32)))
    );
    assert_eq!(register("x", "32").unwrap_err().rule, DesignRule::NotANumber("ADDRESS_OFFSET"));
    // Without an offset it is in no window. At 0, where it would be otherwise, another one is.
    let named =
        |name: &str, property: &str| format!("<REGISTER NAME=\"{name}\">{property}</REGISTER>");
    let offset = |value: &str| format!("<PROPERTY NAME=\"ADDRESS_OFFSET\" VALUE=\"{value}\"/>");
    let registers = [
        named("A", &offset("")),
        named("B", ""),
        named("C", &offset(" ")),
        named("D", &offset("0")),
    ]
    .concat();
    gain(&zynq(&registers, ""), |gain| {
        let names = gain
            .registers()
            .map(|register| register.map(|register| (register.name, register.offset)));
        assert_eq!(names.collect::<Vec<_>>(), [Ok(("D", 0))]);
    });
    assert_eq!(register("16", "many").unwrap_err().rule, DesignRule::NotANumber("SIZE"));

    let master = |attributes: &str, inside: &str| {
        let bus = format!(
            "<BUSINTERFACE NAME=\"M_AXI\" TYPE=\"MASTER\" VLNV=\"x:interface:aximm:1.0\" \
             {attributes}>{inside}</BUSINTERFACE>"
        );
        let text = zynq(&bus, "");
        Design::read(text.as_bytes())
            .unwrap()
            .core("gain")
            .unwrap()
            .masters()
            .map(|all| (all[0].data_bits, all[0].addr_bits))
    };
    let parameter =
        |name: &str, value: &str| format!("<PARAMETER NAME=\"{name}\" VALUE=\"{value}\"/>");
    assert_eq!(master("DATAWIDTH=\"6.4e1\"", &parameter("ADDR_WIDTH", "32.0")), Ok((64, 32)));
    assert_eq!(
        master("DATAWIDTH=\"\"", &parameter("ADDR_WIDTH", "")),
        Ok((0, 0)),
        "the file does not say it"
    );
    for (attributes, inside, what) in [
        ("DATAWIDTH=\"wide\"", String::new(), "DATA_WIDTH"),
        ("", parameter("DATA_WIDTH", "wide"), "DATA_WIDTH"),
        ("", parameter("ADDR_WIDTH", "-1"), "ADDR_WIDTH"),
    ] {
        assert_eq!(master(attributes, &inside).unwrap_err().rule, DesignRule::NotANumber(what));
    }
    let pin = "<PORT DIR=\"O\" LEFT=\"N-1\" NAME=\"irq\" RIGHT=\"0\" SIGIS=\"INTERRUPT\"/>";
    gain(&zynq(pin, ""), |gain| {
        assert_eq!(gain.interrupts().unwrap_err().rule, DesignRule::NotANumber("LEFT or RIGHT"))
    });
}

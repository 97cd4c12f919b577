use super::summary::parse;
use super::{Clock, ClockError, Control, Fabric, Verdict, Wanted, check, clocks};
use crate::machine::fake::Root;
use crate::machine::{Kernel, Machine};
use std::error::Error;
use std::path::Path;
use std::{fs, io};

type Outcome = Result<(), Box<dyn Error>>;

/// Linux 6.12's format, with fewer columns. A clock with two users has another line.
const NEW: &str = "\
         enable  prepare  protect             duty  hardware              connection
   clock  count    count    count  rate  accuracy phase  cycle  enable   consumer  id
------------------------------------------------------------------------------------
 ps_clk 2 2 0 33333333 0 0 50000 Y   deviceless no_connection_id
    iopll 1 1 0 999999990 0 0 50000 Y      deviceless no_connection_id
       fclk0 1 1 0 99999999 0 0 50000 Y         40000000.copy s_axi_aclk
                                                deviceless no_connection_id
       fclk1 0 0 0 199999998 0 0 50000 N         deviceless no_connection_id
 other 0 0 0 12 0 ----- 50000 ?   deviceless no_connection_id
";

/// Linux 4.14's format.
const OLD: &str = "\
   clock                         enable_cnt  prepare_cnt        rate   accuracy   phase
----------------------------------------------------------------------------------------
 ps_clk                                   2            2    33333333          0 0
    pl0_ref                               0            0    99999001          0 0
";

#[test]
fn a_summary_of_each_form_is_read() -> Outcome {
    let new = parse(NEW).ok_or("no summary")?;
    let names: Vec<_> = new
        .iter()
        .map(|clock| (clock.name.as_str(), clock.parent.as_deref(), clock.hz, clock.running))
        .collect();
    let expected = [
        ("ps_clk", None, 33_333_333, Some(true)),
        ("iopll", Some("ps_clk"), 999_999_990, Some(true)),
        ("fclk0", Some("iopll"), 99_999_999, Some(true)),
        ("fclk1", Some("iopll"), 199_999_998, Some(false)),
        ("other", None, 12, None),
    ];
    assert_eq!(names, expected);
    assert_eq!(new.iter().map(|clock| clock.enables).collect::<Vec<_>>(), [2, 1, 1, 0, 0]);
    assert_eq!(
        Fabric::new(0).and_then(|fabric| fabric.of(&new)).map(|clock| clock.consumers.clone()),
        Some(vec!["40000000.copy".to_owned()])
    );
    let old = parse(OLD).ok_or("no summary")?;
    let last = old.last().ok_or("no clock")?;
    assert_eq!(
        (old.len(), last.parent.as_deref(), last.hz, last.running),
        (2, Some("ps_clk"), 99_999_001, None)
    );
    assert_eq!(parse("nonsense"), None);
    let deep: String = (0..40)
        .map(|level| format!("{}c{level} 1 1 0 5 0 0 50000 Y\n", " ".repeat(level * 3 + 1)))
        .collect();
    assert_eq!(parse(&format!("protect hardware\n---\n{deep}")), None, "a tree that no kernel has");
    let named = |bytes: usize| {
        parse(&format!("protect hardware\n---\n\n {} 1 1 0 5 0 0 50000 Y\n", "c".repeat(bytes)))
    };
    assert!(
        named(256).is_some_and(|clocks| clocks.len() == 1) && named(257).is_none(),
        "each child would keep a long name"
    );
    Ok(())
}

#[test]
fn a_design_is_compared_with_the_clocks() -> Outcome {
    let clocks = parse(NEW).ok_or("no summary")?;
    let wanted = |number, hz, generated| {
        Fabric::new(number)
            .map(|fabric| Wanted { who: "copy aclk".to_owned(), fabric, hz, generated })
            .ok_or("no such clock")
    };
    let rows = [
        (0, 100_000_000, false, Verdict::Right),
        (0, 98_000_000, false, Verdict::TooFast),
        (0, 150_000_000, false, Verdict::Slow),
        (0, 150_000_000, true, Verdict::Runs),
        (0, 0, false, Verdict::RunsUnsaid),
        (1, 200_000_000, false, Verdict::Off),
        (2, 100_000_000, false, Verdict::Unknown),
    ];
    for (number, hz, generated, verdict) in rows {
        let checked = check(&clocks, &[wanted(number, hz, generated)?]);
        assert_eq!(
            checked.first().map(|checked| checked.verdict),
            Some(verdict),
            "{number} {hz} {generated}"
        );
    }
    assert!(
        Fabric::new(4).is_none()
            && Fabric::named("fclk4").is_none()
            && Fabric::named("pl0_ref_mux").is_none()
    );
    assert_eq!(
        (Fabric::named("pl3_ref"), Fabric::named("fclk3")),
        (Fabric::new(3), Fabric::new(3))
    );
    Ok(())
}

/// A kernel whose divider gives integer fractions of 1 GHz. A stubborn one fails the second write.
#[derive(Debug)]
struct Divider {
    stubborn: bool,
}

const DIVIDER: Divider = Divider { stubborn: false };

impl Kernel for Divider {
    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let invalid = || io::Error::from_raw_os_error(22);
        if self.stubborn && fs::read_to_string(path)? != "100000000\n" {
            return Err(io::Error::from_raw_os_error(16));
        }
        let hz: u64 = str::from_utf8(bytes)
            .ok()
            .and_then(|text| text.parse().ok())
            .filter(|hz| *hz > 0)
            .ok_or_else(invalid)?;
        fs::write(path, format!("{}\n", 1_000_000_000 / (1_000_000_000 / hz).clamp(1, 64)))
    }
}

const SET_RATE: &str = "sys/bus/platform/devices/clocking0/set_rate";

/// A machine with AMD's device for the clock of this number, which has 100 MHz.
fn clocking(root: &Root, number: u8, kernel: Divider) -> Machine {
    let node = "sys/bus/platform/devices/clocking0/of_node";
    root.put(&format!("{node}/compatible"), "xlnx,fclk\0");
    root.put(&format!("{node}/clocks"), [0, 0, 0, 3, 0, 0, 0, number]);
    root.put(SET_RATE, "100000000\n");
    Machine::below(&root.0, kernel)
}

#[test]
fn clock_is_set_back_where_it_is_not_near() -> Outcome {
    let folder = tempfile::tempdir()?;
    let root = Root(folder.path().to_owned());
    let machine = clocking(&root, 16, DIVIDER);
    let [zero, one] = [0, 1].map(Fabric::new);
    assert!(matches!(Control::find(&machine, zero.ok_or("")?), Err(ClockError::NoControl(_))));
    let control = Control::find(&machine, one.ok_or("")?)?;
    assert_eq!(control.set(&machine, 50_000_000)?, 50_000_000);
    assert_eq!(control.hz(&machine)?, 50_000_000);
    // 333 MHz is near enough to a third; no divider gives 600 MHz, and the clock stays as it was.
    assert_eq!(control.set(&machine, 333_000_000)?, 333_333_333);
    assert!(matches!(
        control.set(&machine, 600_000_000),
        Err(ClockError::Rate { nearest: 1_000_000_000, .. })
    ));
    assert_eq!(control.hz(&machine)?, 333_333_333);
    assert!(matches!(control.set(&machine, 0), Err(ClockError::Refused { hz: 0, .. })));
    // A program that has a core of the fabric open keeps the clock.
    root.folder("sys/class/contigo/43c00000.copy");
    root.put("proc/77/maps", "");
    root.link("proc/77/fd/4", "/dev/contigo/43c00000.copy");
    assert!(matches!(
        control.set(&machine, 50_000_000),
        Err(ClockError::InUse(users)) if users.len() == 1
    ));
    assert_eq!(control.hz(&machine)?, 333_333_333);
    root.put(SET_RATE, "fast");
    assert!(matches!(control.hz(&machine), Err(ClockError::Unreadable { .. })));
    Ok(())
}

#[test]
fn clock_not_set_back_is_told_with_rate() -> Outcome {
    let folder = tempfile::tempdir()?;
    let machine = clocking(&Root(folder.path().to_owned()), 15, Divider { stubborn: true });
    let control = Control::find(&machine, Fabric::new(0).ok_or("")?)?;
    let error = control.set(&machine, 600_000_000).err().ok_or("there is no such rate")?;
    assert!(matches!(error, ClockError::NotSetBack { error: Some(_), .. }), "{error}");
    let said =
        "clock 0 of the fabric had 100000000 Hz, has 1000000000 Hz now, and was not set back";
    assert!(error.to_string().starts_with(said), "{error}");
    Ok(())
}

/// A core on FCLK1 with a rate, one on its own clock, and one behind the node of AMD's driver.
#[test]
fn the_tree_has_a_contigo_devices_clocks() -> Outcome {
    let folder = tempfile::tempdir()?;
    let root = Root(folder.path().to_owned());
    for (node, phandle, cells, compatible) in [
        ("clkc@100", 3, 1, "xlnx,ps7-clkc"),
        ("oscillator", 4, 0, "fixed-clock"),
        ("clocking0", 5, 0, "xlnx,fclk"),
    ] {
        root.cells(&format!("{node}/phandle"), &[phandle]);
        root.cells(&format!("{node}/#clock-cells"), &[cells]);
        root.node(node, compatible);
    }
    root.cells("clocking0/clocks", &[3, 15]);
    root.cells("fir@43c00000/clocks", &[4, 3, 16, 3, 1]);
    let names = "sys/firmware/devicetree/base/fir@43c00000/clock-names";
    root.put(names, "sample\0s_axi_aclk\0cpu\0");
    root.cells("fir@43c00000/assigned-clocks", &[3, 16]);
    root.cells("fir@43c00000/assigned-clock-rates", &[100_000_000]);
    root.cells("copy@43c10000/clocks", &[5]);
    // One core names a missing provider.
    root.cells("odd@43c20000/clocks", &[9, 9, 9]);
    let machine = root.machine();
    assert_eq!(super::wanted(&machine), []);
    for (device, node) in [
        ("43c00000.fir", "fir@43c00000"),
        ("43c10000.copy", "copy@43c10000"),
        ("43c20000.odd", "odd@43c20000"),
    ] {
        let tree = "/sys/firmware/devicetree/base";
        root.link(&format!("sys/class/contigo/{device}/device/of_node"), format!("{tree}/{node}"));
    }
    let [zero, one] = [0, 1].map(Fabric::new);
    let wanted = |who: &str, fabric: Option<Fabric>, hz| {
        Some(Wanted { who: who.to_owned(), fabric: fabric?, hz, generated: false })
    };
    let expected =
        [wanted("43c00000.fir s_axi_aclk", one, 100_000_000), wanted("43c10000.copy", zero, 0)];
    assert_eq!(super::wanted(&machine).into_iter().map(Some).collect::<Vec<_>>(), expected);
    let verdicts: Vec<_> = check(&parse(NEW).ok_or("no summary")?, &super::wanted(&machine))
        .iter()
        .map(|one| one.verdict)
        .collect();
    assert_eq!(verdicts, [Verdict::Off, Verdict::RunsUnsaid]);
    // The design's own generator makes another rate, which cannot be compared with FCLK1's.
    root.cells("clk_wiz@43c30000/phandle", &[6]);
    root.cells("clk_wiz@43c30000/#clock-cells", &[1]);
    root.cells("clk_wiz@43c30000/clocks", &[3, 16]);
    root.cells("copy@43c10000/clocks", &[6, 0]);
    root.cells("copy@43c10000/assigned-clocks", &[6, 0]);
    root.cells("copy@43c10000/assigned-clock-rates", &[250_000_000]);
    let last = super::wanted(&machine).pop().ok_or("nothing is wanted")?;
    assert_eq!((Some(last.fabric), last.hz, last.generated), (one, 250_000_000, true));
    // Cyclone V's clocks have their own nodes.
    root.cells("clks/h2f_user1_clk/phandle", &[7]);
    root.cells("clks/h2f_user1_clk/#clock-cells", &[0]);
    root.cells("copy@43c10000/clocks", &[7]);
    assert_eq!(super::wanted(&machine).last().map(|wanted| wanted.fabric), one);
    let cyclone = parse(" protect hardware\n---\n h2f_user1_clk 1 1 0 50000000 0 0 50000 Y\n")
        .ok_or("no summary")?;
    assert_eq!(one.and_then(|fabric| fabric.of(&cyclone)).map(|clock| clock.hz), Some(50_000_000));
    Ok(())
}

#[test]
fn a_clock_of_fclkcfg_is_set() -> Outcome {
    let folder = tempfile::tempdir()?;
    let root = Root(folder.path().to_owned());
    // The fabric's clock, and the PLL that feeds it.
    root.put("sys/devices/fclk1/of_node/clocks", [0, 0, 0, 3, 0, 0, 0, 16, 0, 0, 0, 3, 0, 0, 0, 2]);
    root.link("sys/class/fclkcfg/fclk1/device", "../../../devices/fclk1");
    root.put("sys/class/fclkcfg/fclk1/rate", "100000000\n");
    let machine = Machine::below(&root.0, DIVIDER);
    let [one, two] = [1, 2].map(Fabric::new);
    assert!(matches!(Control::find(&machine, two.ok_or("")?), Err(ClockError::NoControl(_))));
    let control = Control::find(&machine, one.ok_or("")?)?;
    assert_eq!(control.set(&machine, 50_000_000)?, 50_000_000);
    assert_eq!(control.hz(&machine)?, 50_000_000);
    Ok(())
}

#[test]
fn a_summary_that_cannot_be_read_says_what_to_do() -> Outcome {
    let hidden = clocks(&Machine::copy("/nowhere")).err().ok_or("a summary from nowhere")?;
    assert!(hidden.to_string().contains("mount -t debugfs"), "{hidden}");
    let folder = tempfile::tempdir()?;
    let root = Root(folder.path().to_owned());
    root.put("sys/kernel/debug/clk/clk_summary", "nonsense");
    assert!(matches!(clocks(&root.machine()), Err(ClockError::NotASummary)));
    root.put("sys/kernel/debug/clk/clk_summary", NEW);
    assert_eq!(clocks(&root.machine())?.iter().filter(|clock: &&Clock| clock.is_off()).count(), 1);
    Ok(())
}

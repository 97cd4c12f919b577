use super::{Clock, ClockError, Control, Fabric, Verdict, Wanted, check, clocks, summary::parse};
use crate::machine::{Kernel, Linux, Machine, Ran};
use std::{error::Error, fs, io, os::unix::fs::symlink, path::Path};

type Outcome = Result<(), Box<dyn Error>>;

/// Linux 6.12's form, in fewer columns. A clock with two users has a line more.
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

/// Linux 4.14's.
const OLD: &str = "\
   clock                         enable_cnt  prepare_cnt        rate   accuracy   phase
----------------------------------------------------------------------------------------
 ps_clk                                   2            2    33333333          0 0
    pl0_ref                               0            0    99999001          0 0
";

#[test]
fn a_summary_of_each_form_is_read() -> Outcome {
    let new = parse(NEW).ok_or("no summary")?;
    let names: Vec<_> = new.iter().map(|clock| (clock.name.as_str(), clock.parent.as_deref(), clock.hz, clock.running)).collect();
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
    assert_eq!((old.len(), last.parent.as_deref(), last.hz, last.running), (2, Some("ps_clk"), 99_999_001, None));
    assert_eq!(parse("nonsense"), None);
    let deep: String = (0..40).map(|level| format!("{}c{level} 1 1 0 5 0 0 50000 Y\n", " ".repeat(level * 3 + 1))).collect();
    assert_eq!(parse(&format!("protect hardware\n---\n{deep}")), None, "a tree that no kernel has");
    Ok(())
}

#[test]
fn a_design_is_compared_with_the_clocks() -> Outcome {
    let clocks = parse(NEW).ok_or("no summary")?;
    let wanted = |number, hz, generated| {
        Fabric::new(number).map(|fabric| Wanted { who: "copy aclk".to_owned(), fabric, hz, generated }).ok_or("no such clock")
    };
    let rows = [
        (0, 100_000_000, false, Verdict::Right),
        (0, 98_000_000, false, Verdict::TooFast),
        (0, 150_000_000, false, Verdict::Slow),
        (0, 150_000_000, true, Verdict::Runs),
        (0, 0, false, Verdict::Runs),
        (1, 200_000_000, false, Verdict::Off),
        (2, 100_000_000, false, Verdict::Unknown),
    ];
    for (number, hz, generated, verdict) in rows {
        let checked = check(&clocks, &[wanted(number, hz, generated)?]);
        assert_eq!(checked.first().map(|checked| checked.verdict), Some(verdict), "{number} {hz} {generated}");
    }
    assert!(Fabric::new(4).is_none() && Fabric::named("fclk4").is_none() && Fabric::named("pl0_ref_mux").is_none());
    assert_eq!((Fabric::named("pl3_ref"), Fabric::named("fclk3")), (Fabric::new(3), Fabric::new(3)));
    Ok(())
}

/// A kernel whose divider makes whole parts of 1 GHz.
#[derive(Debug)]
struct Divider;

impl Kernel for Divider {
    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let invalid = || io::Error::from_raw_os_error(22);
        let hz: u64 = str::from_utf8(bytes).ok().and_then(|text| text.parse().ok()).filter(|hz| *hz > 0).ok_or_else(invalid)?;
        fs::write(path, format!("{}\n", 1_000_000_000 / (1_000_000_000 / hz).clamp(1, 64)))
    }

    fn make_dir(&self, _: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn remove_dir(&self, _: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn run(&self, _: &Path, _: &[&str]) -> io::Result<Ran> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

#[test]
fn a_clock_is_set_and_set_back_where_it_is_not_near() -> Outcome {
    let folder = tempfile::tempdir()?;
    let root = folder.path();
    let device = root.join("sys/bus/platform/devices/clocking0");
    fs::create_dir_all(device.join("of_node"))?;
    fs::write(device.join("of_node/compatible"), "xlnx,fclk\0")?;
    fs::write(device.join("of_node/clocks"), [0, 0, 0, 3, 0, 0, 0, 16])?;
    fs::write(device.join("set_rate"), "100000000\n")?;
    let machine = Machine::below(root, Divider);
    let [zero, one] = [0, 1].map(Fabric::new);
    assert!(matches!(Control::find(&machine, zero.ok_or("")?), Err(ClockError::NoControl(_))));
    let control = Control::find(&machine, one.ok_or("")?)?;
    assert_eq!((control.set(&machine, 50_000_000)?, control.hz(&machine)?), (50_000_000, 50_000_000));
    // 333 MHz is near enough to a third; 600 MHz has no divider, and the clock is as before.
    assert_eq!(control.set(&machine, 333_000_000)?, 333_333_333);
    assert!(matches!(control.set(&machine, 600_000_000), Err(ClockError::Rate { nearest: 1_000_000_000, .. })));
    assert_eq!(control.hz(&machine)?, 333_333_333);
    assert!(matches!(control.set(&machine, 0), Err(ClockError::Refused { hz: 0, .. })));
    // A program with a core of the fabric open keeps it.
    fs::create_dir_all(root.join("sys/class/contigo/43c00000.copy"))?;
    fs::create_dir_all(root.join("proc/77/fd"))?;
    fs::write(root.join("proc/77/maps"), "")?;
    symlink("/dev/contigo/43c00000.copy", root.join("proc/77/fd/4"))?;
    assert!(matches!(control.set(&machine, 50_000_000), Err(ClockError::InUse(users)) if users.len() == 1));
    assert_eq!(control.hz(&machine)?, 333_333_333);
    fs::write(device.join("set_rate"), "fast")?;
    assert!(matches!(control.hz(&machine), Err(ClockError::Unreadable { .. })));
    Ok(())
}

#[test]
fn a_clock_of_fclkcfg_is_set() -> Outcome {
    let folder = tempfile::tempdir()?;
    let root = folder.path();
    let node = root.join("sys/devices/fclk1/of_node");
    let class = root.join("sys/class/fclkcfg/fclk1");
    fs::create_dir_all(&node)?;
    fs::create_dir_all(&class)?;
    // The fabric's clock, and the PLL that it comes from.
    fs::write(node.join("clocks"), [0, 0, 0, 3, 0, 0, 0, 16, 0, 0, 0, 3, 0, 0, 0, 2])?;
    symlink("../../../devices/fclk1", class.join("device"))?;
    fs::write(class.join("rate"), "100000000\n")?;
    let machine = Machine::below(root, Divider);
    assert!(matches!(Control::find(&machine, Fabric::new(2).ok_or("")?), Err(ClockError::NoControl(_))));
    let control = Control::find(&machine, Fabric::new(1).ok_or("")?)?;
    assert_eq!((control.set(&machine, 50_000_000)?, control.hz(&machine)?), (50_000_000, 50_000_000));
    Ok(())
}

#[test]
fn a_summary_that_cannot_be_read_says_what_to_do() -> Outcome {
    let hidden = clocks(&Machine::below("/nowhere", Linux)).err().ok_or("a summary from nowhere")?;
    assert!(hidden.to_string().contains("mount -t debugfs"), "{hidden}");
    let folder = tempfile::tempdir()?;
    fs::create_dir_all(folder.path().join("sys/kernel/debug/clk"))?;
    let write = |text: &str| fs::write(folder.path().join("sys/kernel/debug/clk/clk_summary"), text);
    let read = || clocks(&Machine::below(folder.path(), Linux));
    write("nonsense")?;
    assert!(matches!(read(), Err(ClockError::NotASummary)));
    write(NEW)?;
    assert_eq!(read()?.iter().filter(|clock: &&Clock| clock.is_off()).count(), 1);
    Ok(())
}
